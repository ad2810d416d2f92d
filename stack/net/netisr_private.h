/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the netisr share: the table of protocols, and what a
 * generation of the dispatch is.
 */
#ifndef NET_NETISR_PRIVATE_H
#define NET_NETISR_PRIVATE_H

#include "kern/lock.h"
#include "kern/watchdog.h"
#include "net/netisr.h"

struct ctl_out;

enum isr_dispatch { DISPATCH_DEFAULT, DISPATCH_DIRECT, DISPATCH_HYBRID,
    DISPATCH_DEFERRED };

/* Registered at boot. */
struct isr_proto {
	struct netisr_handler np;
	atomic_u32	 dispatch;	/* [a] enum isr_dispatch */
	atomic_u32	 policy;	/* [a] enum netisr_policy */
	atomic_u32	 qlimit;	/* [a] 0: the default */
	bool		 mpsafe;	/* [I] */
};
extern struct isr_proto isr_protos[NETISR_NPROTO];

extern atomic_u32 isr_dispatch;		/* [a] of all protocols */
extern atomic_u32 isr_maxthreads;	/* [I] -1: one for each CPU */
extern bool	 isr_bindthreads;	/* [I] */

/* Counters of one protocol, on one workstream where there are several. */
struct isr_count {
	atomic_u64	 hybrid;	/* by hybrid, without a queue */
	atomic_u64	 queued;
	atomic_u64	 worked;	/* handled from the queue */
	atomic_u64	 qdrops;
	atomic_u32	 watermark;	/* longest queue seen */
};

/* Handled by direct dispatch, by stream and protocol. */
struct isr_direct {
	atomic_u64	 id_count[NETISR_WORKERS_MAX][NETISR_NPROTO];
};
extern struct isr_direct isr_direct;	/* COUNTERS */

/* A way to hand packets over, chosen at boot by net.isr.generation. */
struct isr_generation {
	/* Why the tunables do not go together, or NULL; itself may be NULL. */
	const char	*(*ig_refuses)(void);
	int		(*ig_start)(void);	/* an errno value */
	void		(*ig_stop)(void);
	/* By a way that is not DISPATCH_DEFAULT. */
	int		(*ig_dispatch)(enum netisr_proto, struct mbuf *,
			    enum isr_dispatch);
	int		(*ig_queue)(enum netisr_proto, struct mbuf *);
	void		(*ig_show)(struct ctl_out *);
	watch_t		*ig_watch;	/* its queues */
};
extern const struct isr_generation isr_2005, isr_2009;
/* That which the tunable names; whoever starts it keeps to it. */
const struct isr_generation *isr_chosen(void);

/* What holds for a protocol: its override, or what is set for all. */
enum isr_dispatch isr_way(enum netisr_proto);
unsigned isr_qlimit(enum netisr_proto);
/* Why the generation cannot do what is set, or NULL. */
const char *isr_refusal(void);
/* Runs the handler, under Giant if it needs that.  Consumes m. */
void	 isr_handle(enum netisr_proto, struct mbuf *);
/* Around a queue that is handled whole: a burst, if it can be one. */
void	 isr_rx_burst_begin(enum netisr_proto);
void	 isr_rx_burst_end(enum netisr_proto);
/* Appends, unless the queue is full: then counts that and returns false. */
bool	 isr_enqueue(enum netisr_proto, struct mbufq *, struct isr_count *,
	    struct mbuf *);
/* At the end, while others that have not ended may still append. */
void	 isr_drain(struct mtx *, struct mbufq *);

void	 isr_sysctl_init(void);
/* A line of "netstat -Q". */
void	 isr_show_count(struct ctl_out *, unsigned stream, enum netisr_proto,
	    struct isr_count *, unsigned len);

#endif /* NET_NETISR_PRIVATE_H */
