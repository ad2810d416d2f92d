/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device queues: the interface between the kinds of queues and their common
 * part.
 */
#ifndef MACHINE_POSIX_DEVQ_H
#define MACHINE_POSIX_DEVQ_H

#include "machine/machine.h"

/*
 * Operations of a kind of queue; machine/machine.h documents each as
 * mach_devq_NAME.
 */
struct devq_ops {
	int	 (*send)(struct mach_devq *, const struct mach_frame *,
		    unsigned);
	int	 (*peek)(struct mach_devq *, struct mach_slot *);
	void	 (*release)(struct mach_devq *);
	void	 (*prefetch)(struct mach_devq *);
	void	 (*before_wait)(struct mach_devq *);	/* or NULL */
	void	 (*close)(struct mach_devq *);		/* or NULL */
};

struct mach_devq {
	int	 fd;
	int	 wakefd;	/* eventfd that interrupts a waiter */
	const struct devq_ops *ops;
};

/*
 * Creates a queue of size bytes that begins with struct mach_devq.  The queue
 * takes over fd.  A negative fd with errno set is reported as the error.
 */
int	 devq_create(size_t size, const struct devq_ops *, int fd,
	    struct mach_devq **);
/* setsockopt(2); returns an errno value. */
int	 devq_option(const struct mach_devq *, int level, int name,
	    const void *, size_t);
/* Looks up the index of a host interface; returns an errno value. */
int	 devq_ifindex(const char *ifname, int *index);
/* Maps memory shared with the host; NULL with errno on failure. */
void	*devq_map(size_t len, int fd, uint64_t offset);

#endif /* MACHINE_POSIX_DEVQ_H */
