/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netisr: dispatch of received packets to protocols.  netisr.c explains
 * direct, hybrid and deferred dispatch.
 */
#ifndef NET_NETISR_H
#define NET_NETISR_H

#include "kern/mbuf.h"

/*
 * NETISR_TCP: segments for the worker that owns their connection group
 * (netinet/in_pcbthread.c).
 */
enum netisr_proto { NETISR_ETHER, NETISR_IP, NETISR_ARP, NETISR_IPV6,
    NETISR_TCP, NETISR_NPROTO };

#define	NETISR_WORKERS_MAX	64

/*
 * The property of a packet that selects its worker.  Packets with the same
 * value stay in order.
 */
enum netisr_policy {
	NETISR_POLICY_SOURCE,	/* interface and receive queue */
	NETISR_POLICY_FLOW,	/* flow, if known, else the source */
	NETISR_POLICY_CPU	/* CPU of the flow's RSS bucket */
};

/*
 * The flow ID for a hash computed by nh_m2flow.  It is never 0, which means
 * unknown.  Workers are selected by its low bits, but a product's low bits do
 * not depend on the high bits of its factors.  The finalizer of MurmurHash3
 * (Appleby) mixes them in.
 */
static inline uint32_t
netisr_flow(uint32_t hash)
{
	hash = (hash ^ hash >> 16) * 0x85ebca6bu;
	hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
	hash ^= hash >> 16;
	return (hash != 0 ? hash : 1);
}

struct netisr_handler {
	const char	*nh_name;
	enum netisr_proto nh_proto;
	void		(*nh_handler)(struct mbuf *);
	uint32_t	(*nh_m2flow)(struct mbuf *);	/* or NULL */
	enum netisr_policy nh_policy;	/* default of the tunable */
	/*
	 * Called first, in the receiving thread, under any dispatch policy;
	 * true: the packet was processed completely.  Or NULL.
	 */
	bool		(*nh_fast)(struct mbuf *);
	/*
	 * Called when a worker has emptied its queue, or after netisr_wake();
	 * or NULL.
	 */
	void		(*nh_drained)(unsigned worker);
	bool		 nh_mpsafe;	/* else always queued, under Giant */
};

void	 netisr_register(const struct netisr_handler *);
/* After boot: false if its handler runs under Giant. */
bool	 netisr_is_mpsafe(enum netisr_proto);
/*
 * Dispatches by the current policy.  Consumes m; ENOBUFS if a queue was full.
 */
int	 netisr_dispatch(enum netisr_proto, struct mbuf *);
/* Always queues: for loopback and tunnels. */
int	 netisr_queue(enum netisr_proto, struct mbuf *);

/*
 * A receive thread encloses a burst in these.  Packets for workers are queued
 * at its end, with one lock operation for each queue.  netisr_burst_end() is
 * called without locks, because it may wait until a queue that the thread has
 * filled has room again (net.isr.feedback).
 */
void	 netisr_burst_begin(void);
void	 netisr_burst_end(void);

/*
 * Workers are numbered from 0; the generation of 2005 has none.
 * netisr_is_worker(): whether the calling thread is this worker.  The other
 * functions queue a packet to a worker, or only wake it.
 */
unsigned netisr_workers(void);
bool	 netisr_is_worker(unsigned worker);
int	 netisr_queue_to(unsigned worker, enum netisr_proto, struct mbuf *);
void	 netisr_wake(unsigned worker, enum netisr_proto);

/* At boot and shutdown; netisr_start() returns an errno value. */
void	 netisr_init(void);
int	 netisr_start(void);
void	 netisr_stop(void);

#endif /* NET_NETISR_H */
