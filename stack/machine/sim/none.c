/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Missing parts of the simulated machine: devices and control sockets, which
 * depend on a host and its time.  Interfaces in memory (dev/mem.h) do not need
 * them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine/machine.h"

#define	UNUSED	__attribute__((unused))

static int
refuse_device(void)
{
	fprintf(stderr, "sim: the simulated machine has no devices; use "
	    "interfaces in memory, for example mem0\n");
	return (ENODEV);
}

int
mach_devq_open_tap(const char *ifname UNUSED, bool multiqueue UNUSED,
    unsigned offloads UNUSED, struct mach_devq **q UNUSED)
{
	return (refuse_device());
}

int
mach_devq_open_packet(const char *ifname UNUSED, unsigned group UNUSED,
    struct mach_devq **q UNUSED)
{
	return (refuse_device());
}

int
mach_devq_open_xdp(const char *ifname UNUSED, unsigned n UNUSED,
    struct mach_devq *queues[] UNUSED, const char **step)
{
	*step = "the simulated machine";
	return (refuse_device());
}

int
mach_ctl_listen(const char *path UNUSED, struct mach_ctl **c UNUSED)
{
	fprintf(stderr, "sim: the simulated machine has no control socket; "
	    "remove ctl.path\n");
	return (EOPNOTSUPP);
}

/* The other functions cannot be called without a queue or a control socket. */
#define	NEVER(type, name, args)						\
type									\
name args								\
{									\
	abort();							\
}

NEVER(ssize_t, mach_devq_readv, (struct mach_devq *q UNUSED,
    const struct iovec *iov UNUSED, int n UNUSED))
NEVER(int, mach_devq_peek, (struct mach_devq *q UNUSED,
    struct mach_slot *slot UNUSED))
NEVER(void, mach_devq_release, (struct mach_devq *q UNUSED))
NEVER(void, mach_devq_prefetch, (struct mach_devq *q UNUSED))
NEVER(int, mach_devq_send, (struct mach_devq *q UNUSED,
    const struct mach_frame *frames UNUSED, unsigned n UNUSED))
NEVER(int, mach_devq_wait, (struct mach_devq *q UNUSED,
    nsec_t deadline UNUSED))
NEVER(void, mach_devq_wake, (struct mach_devq *q UNUSED))
NEVER(void, mach_devq_close, (struct mach_devq *q UNUSED))
NEVER(void, mach_devq_xdp_frames, (struct mach_devq *q UNUSED,
    struct mach_xdp_frames *frames UNUSED))
NEVER(int, mach_ctl_accept, (struct mach_ctl *c UNUSED))
NEVER(ssize_t, mach_ctl_read, (int handle UNUSED, void *buf UNUSED,
    size_t len UNUSED, nsec_t deadline UNUSED))
NEVER(ssize_t, mach_ctl_write, (int handle UNUSED, const void *buf UNUSED,
    size_t len UNUSED, nsec_t deadline UNUSED))
NEVER(void, mach_ctl_hangup, (int handle UNUSED))
NEVER(void, mach_ctl_wake, (struct mach_ctl *c UNUSED))
NEVER(void, mach_ctl_close, (struct mach_ctl *c UNUSED))
