/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces that the host gives us: queues of its devices, each with a
 * thread that receives.  A driver says how they are opened and what they
 * can do; the rest is the same for all.
 */
#ifndef DEV_HOSTIF_H
#define DEV_HOSTIF_H

#include "kern/lock.h"
#include "net/if_private.h"

struct hostif;

struct hostif_queue {
	struct hostif	*hq_if;		/* [I] */
	unsigned	 hq_index;	/* [I] */
	struct mach_devq *hq_devq;	/* [I] */
	struct thread	*hq_thread;	/* [I] */
	struct mbuf	*hq_small;	/* receive thread: next frame's start */
	struct mbuf	*hq_large;	/* and its rest */
	int		 hq_error;	/* of the last frame, negative */
	uint64_t	 hq_bytes;	/* received */
	struct mtx	 hq_txlock;	/* if one at a time may send */
};

struct hostif_ops {
	/* Opens the devices of all queues; an errno value with the reason. */
	int		(*open)(struct hostif *, char *why, size_t);
	/* One frame into the stack; -EAGAIN: none, or another error. */
	int		(*receive)(struct hostif_queue *);
	unsigned	 caps;		/* IFCAP_* that it can have */
	uint32_t	 mtu_max;
	bool		 vnet;		/* virtio-net headers before frames */
	bool		 serial;	/* one thread at a time may send */
};

/* [I] immutable after attach, [a] atomic */
struct hostif {
	struct ifnet	 hi_if;
	const struct hostif_ops *hi_ops;	/* [I] */
	atomic_u32	 hi_stop;		/* [a] */
	unsigned	 hi_nqueues;		/* [I] */
	struct hostif_queue hi_queues[];
};

/* What is the same in all drivers' tables. */
int	 hostif_attach(const struct hostif_ops *, const struct if_config *,
	    char *why, size_t);
int	 hostif_start(struct ifnet *);
void	 hostif_detach(struct ifnet *);

/* Receives from a device that is read, or from one that shares a ring. */
int	 hostif_read(struct hostif_queue *);
int	 hostif_take(struct hostif_queue *);
void	 hostif_free(struct hostif_queue *);	/* its buffers */

/* Sends frames that are linked by m_nextpkt; ENOBUFS if not all went. */
int	 hostif_transmit(struct ifnet *, struct mbuf *);

#endif /* DEV_HOSTIF_H */
