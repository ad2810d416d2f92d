/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device queues: what the sorts of them have in common.
 */
#ifndef MACHINE_POSIX_DEVQ_H
#define MACHINE_POSIX_DEVQ_H

#include "machine/machine.h"

/* As in machine/machine.h, where they are called mach_devq_NAME. */
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
 * A queue of size bytes, of which struct mach_devq is the first part, with
 * a descriptor (or -1, with errno) that is its own from now on.
 */
int	 devq_create(size_t size, const struct devq_ops *, int fd,
	    struct mach_devq **);
/* setsockopt(2); an errno value. */
int	 devq_option(const struct mach_devq *, int level, int name,
	    const void *, size_t);
/* The index of an interface of the host; an errno value. */
int	 devq_ifindex(const char *ifname, int *index);
/* Memory that is shared with the host; NULL with errno. */
void	*devq_map(size_t len, int fd, uint64_t offset);

#endif /* MACHINE_POSIX_DEVQ_H */
