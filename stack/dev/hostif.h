/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces on devices of the host: each queue has a receive thread.  A
 * driver provides operations to open and use a device and its capabilities;
 * everything else is common.
 */
#ifndef DEV_HOSTIF_H
#define DEV_HOSTIF_H

#include "kern/lock.h"
#include "net/if_driver.h"

struct hostif;

struct hostif_queue {
	struct hostif	*hq_if;		/* [I] */
	unsigned	 hq_index;	/* [I] */
	struct mach_devq *hq_devq;	/* [I] */
	struct thread	*hq_thread;	/* [I] */
	/* receive thread: cluster for the start of the next frame */
	struct mbuf	*hq_small;
	struct mbuf	*hq_large;	/* large buffer for the rest of it */
	int		 hq_error;	/* negative errno of the last frame */
	uint64_t	 hq_bytes;	/* received */
	/* used if ho_serial: one sender at a time */
	struct mtx	 hq_txlock;
};

struct hostif_ops {
	/*
	 * Opens the devices of all queues.  Returns an errno value with the
	 * reason in why.
	 */
	int		(*open)(struct hostif *, char *why, size_t);
	/* Receives one frame.  Returns -EAGAIN (no frame) or another error. */
	int		(*receive)(struct hostif_queue *);
	unsigned	 caps;		/* IFCAP_* that are possible */
	uint32_t	 mtu_max;
	bool		 vnet; /* frames begin with virtio-net headers */
	bool		 serial;	/* only one thread at a time may send */
};

/* [I] immutable after attach, [a] atomic */
struct hostif {
	struct ifnet	 hi_if;
	const struct hostif_ops *hi_ops;	/* [I] */
	atomic_u32	 hi_stop;		/* [a] */
	unsigned	 hi_nqueues;		/* [I] */
	struct hostif_queue hi_queues[];
};

/* Members that are the same in the tables of all drivers. */
int	 hostif_attach(const struct hostif_ops *, const struct if_config *,
	    char *why, size_t);
int	 hostif_start(struct ifnet *);
void	 hostif_detach(struct ifnet *);

/*
 * Receive one frame: by a read into buffers, or from a slot of a shared ring.
 */
int	 hostif_read(struct hostif_queue *);
int	 hostif_take(struct hostif_queue *);
void	 hostif_free(struct hostif_queue *);	/* frees its buffers */

/* Sends frames linked by m_nextpkt.  Returns ENOBUFS if some were not sent. */
int	 hostif_transmit(struct ifnet *, struct mbuf *);

#endif /* DEV_HOSTIF_H */
