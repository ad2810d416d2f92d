/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared definitions of the netisr: the table of protocols and the interface
 * of a dispatch generation.
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

extern atomic_u32 isr_dispatch;		/* [a] default of all protocols */
extern atomic_u32 isr_maxthreads;	/* [I] -1: one for each CPU */
extern bool	 isr_bindthreads;	/* [I] */
extern bool	 isr_feedback;		/* [I] */

/* Counters of one protocol, for one workstream if there are several. */
struct isr_count {
	atomic_u64	 hybrid;	/* hybrid dispatch, not queued */
	atomic_u64	 queued;
	atomic_u64	 worked;	/* handled from the queue */
	atomic_u64	 qdrops;
	atomic_u32	 watermark;	/* max queue length seen */
};

/* Packets handled by direct dispatch, by stream and protocol. */
struct isr_direct {
	atomic_u64	 id_count[NETISR_WORKERS_MAX][NETISR_NPROTO];
};
extern struct isr_direct isr_direct;	/* COUNTERS */

/* A dispatch implementation, selected at boot by net.isr.generation. */
struct isr_generation {
	/*
	 * Returns why the tunables conflict, or NULL.  The pointer may be
	 * NULL.
	 */
	const char	*(*ig_refuses)(void);
	int		(*ig_start)(void);	/* an errno value */
	void		(*ig_stop)(void);
	/* Dispatches a packet; the mode is not DISPATCH_DEFAULT. */
	int		(*ig_dispatch)(enum netisr_proto, struct mbuf *,
			    enum isr_dispatch);
	int		(*ig_queue)(enum netisr_proto, struct mbuf *);
	void		(*ig_show)(struct ctl_out *);
	watch_t		*ig_watch;	/* its queues */
};
extern const struct isr_generation isr_2005, isr_2009;
/* The generation selected by the tunable; a running one is never changed. */
const struct isr_generation *isr_chosen(void);

/* Settings of a protocol: its override, or the common default. */
enum isr_dispatch isr_way(enum netisr_proto);
unsigned isr_qlimit(enum netisr_proto);
/* Why the generation does not support the settings, or NULL. */
const char *isr_refusal(void);
/* Runs the handler, under Giant if it needs that.  Consumes m. */
void	 isr_handle(enum netisr_proto, struct mbuf *);
/*
 * Bracket a queue that is processed as one receive burst, if the protocol
 * allows it.
 */
void	 isr_rx_burst_begin(enum netisr_proto);
void	 isr_rx_burst_end(enum netisr_proto);
/* Queues a packet.  If the queue is full, counts a drop and returns false. */
bool	 isr_enqueue(enum netisr_proto, struct mbufq *, struct isr_count *,
	    struct mbuf *);
/* Frees the queue at shutdown, while other threads may still append. */
void	 isr_drain(struct mtx *, struct mbufq *);

/*
 * Bursts of a receive thread (netisr_burst.c); streams are numbered from 0.
 * isr_burst_add(): false if the thread has no burst.  isr_burst_flush(): queues
 * what was added for a stream.  isr_burst_crowded(): a queue of the stream is
 * more than half full, so that the thread waits at the end of its burst.
 */
bool	 isr_burst_add(unsigned stream, enum netisr_proto, struct mbuf *);
void	 isr_burst_flush(unsigned stream);
void	 isr_burst_crowded(unsigned stream);
/*
 * Of netisr_stream.c.  isr_stream_put() queues all packets of a queue; those
 * for which there is no room go to another.  isr_stream_await() waits until the
 * worker takes a queue that is more than half full, which wakes one thread;
 * true: others still wait.  The woken thread receives another burst before it
 * calls isr_stream_relay(), which wakes the next thread if there is room.
 */
void	 isr_stream_put(unsigned stream, enum netisr_proto, struct mbufq *,
	    struct mbufq *dropped);
bool	 isr_stream_await(unsigned stream);
void	 isr_stream_relay(unsigned stream);

void	 isr_sysctl_init(void);
/* Prints a line of "netstat -Q". */
void	 isr_show_count(struct ctl_out *, unsigned stream, enum netisr_proto,
	    struct isr_count *, unsigned len);

#endif /* NET_NETISR_PRIVATE_H */
