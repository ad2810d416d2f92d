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
	NETISR_POLICY_CPU	/* CPU of the flow's bucket, as RSS has it */
};

/*
 * The flow id of a hash that nh_m2flow gathered, never 0, which says unknown.
 * Workers are chosen by its low bits, which a product leaves blind to the high
 * bits of its factors: those are mixed in twice, by the finalizer of
 * MurmurHash3 (Appleby).
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
	enum netisr_policy nh_policy;	/* until a tunable says otherwise */
	/*
	 * Tried first, in the thread that received the packet and whatever
	 * the dispatch is; true: it was handled to its end.  Or NULL.
	 */
	bool		(*nh_fast)(struct mbuf *);
	/*
	 * When a worker has handled all that was queued for it, or somebody
	 * called netisr_wake(); or NULL.
	 */
	void		(*nh_drained)(unsigned worker);
	bool		 nh_mpsafe;	/* else always queued, under Giant */
};

void	 netisr_register(const struct netisr_handler *);
/* After boot: false, if its handler runs under Giant. */
bool	 netisr_is_mpsafe(enum netisr_proto);
/* By the way that is set.  Consumes m; ENOBUFS when a queue was full. */
int	 netisr_dispatch(enum netisr_proto, struct mbuf *);
/* Always queue: loopback, tunnel re-input. */
int	 netisr_queue(enum netisr_proto, struct mbuf *);

/*
 * Workers, from 0 on; the generation of 2005 has none.  Whether the calling
 * thread is one; and a packet, or nothing, for a certain one.
 */
unsigned netisr_workers(void);
bool	 netisr_is_worker(unsigned worker);
int	 netisr_queue_to(unsigned worker, enum netisr_proto, struct mbuf *);
void	 netisr_wake(unsigned worker, enum netisr_proto);

/* At boot, and at its end; netisr_start() returns an errno value. */
void	 netisr_init(void);
int	 netisr_start(void);
void	 netisr_stop(void);

#endif /* NET_NETISR_H */
