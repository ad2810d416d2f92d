/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AF_XDP sockets: queues of a host interface, whose frames bypass the host's
 * network stack.  Frames are plain: the host neither merges segments nor omits
 * checksums, so the stack does both in software.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dev/drivers.h"
#include "dev/hostif.h"
#include "kern/sysctl.h"

/* Suggests a remedy for an error. */
static const char *
remedy(int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return ("this user needs the capabilities CAP_NET_RAW, "
		    "CAP_NET_ADMIN and CAP_BPF");
	case ENODEV:
		return ("check that it is an interface of the host");
	case EINVAL:
		return ("check its number of queues; 'ethtool -L' sets it, "
		    "on a veth at the receiving end first");
	case EBUSY:
	case EEXIST:
		return ("another program uses its queues: see 'ip link show' "
		    "and 'ss -f xdp'");
	case ENOBUFS:
		return ("each queue locks 6 MB of memory: raise the limit "
		    "('ulimit -l') or give CAP_IPC_LOCK");
	case ERANGE:
	case EOPNOTSUPP:
		return ("with a program on it, this interface's frames must "
		    "fit a page: lower its mtu and its peer's");
	default:
		return ("check that the host's kernel has XDP_SOCKETS");
	}
}

/* Prints the numbers of a queue's frames by place; their sum is constant. */
static int
show_frames(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	const struct hostif_queue *hq = oid->oid_ptr;
	struct mach_xdp_frames f;

	(void)value;
	mach_devq_xdp_frames(hq->hq_devq, &f);
	snprintf(buf, len, "fill %u receive %u free %u send %u", f.fill,
	    f.receive, f.free, f.send);
	return (0);
}

static int
xdp_open(struct hostif *hi, char *why, size_t len)
{
	struct mach_devq *queues[IF_QUEUES_MAX];
	const char *step;
	int error = mach_devq_open_xdp(hi->hi_if.if_xname, hi->hi_nqueues,
	    queues, &step);

	if (error != 0) {
		snprintf(why, len, "%s: %s; %s", step, strerror(error),
		    remedy(error));
		return (error);
	}
	for (unsigned i = 0; i < hi->hi_nqueues; i++) {
		hi->hi_queues[i].hq_devq = queues[i];
		sysctl_add(&(struct sysctl_oid){ .oid_type = CTL_PROC,
		    .oid_ptr = &hi->hi_queues[i], .oid_proc = show_frames,
		    .oid_descr = "numbers of a queue's frames by place" },
		    "if.%s.frames.%u", hi->hi_if.if_xname, i);
	}
	return (0);
}

static const struct hostif_ops xdp_ops = {
	.open = xdp_open, .receive = hostif_take, .serial = true,
	.mtu_max = MACH_XDP_MTU,
};

static int
xdp_attach(const struct if_config *ic, char *why, size_t len)
{
	return (hostif_attach(&xdp_ops, ic, why, len));
}

void
xdp_init(void)
{
	static struct if_driver driver = { .name = "xdp",
	    .has = IFHAS_FRAMES, .attach = xdp_attach, .start = hostif_start,
	    .detach = hostif_detach };

	if_driver_register(&driver);
}
