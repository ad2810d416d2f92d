/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Races that are known, to see whether a search for races finds them
 * (docs/explanation/simulator.md).  In a build with -Dplanted=true the tunable
 * debug.planted switches one of them on; other builds have none.
 *
 *	if (!PLANTED(MUTEX_SEQ))
 *		atomic_fetchadd_u32(&m->mtx_seq, 1);
 */
#ifndef KERN_PLANTED_H
#define KERN_PLANTED_H

#ifdef PLANTED_RACES

#include "machine/machine.h"

#define	PLANTED_LIST(X)							\
	X(NONE, "none")							\
	/* who sleeps lets the mutex go before a waker can find him */	\
	X(LOST_WAKEUP, "lost_wakeup")					\
	/* a mutex is let go between the look at it and the park */	\
	X(MUTEX_SEQ, "mutex_seq")					\
	/* a callout is drained while its handler runs on */		\
	X(CALLOUT_DRAIN, "callout_drain")				\
	/* what is retired is freed under who came just before */	\
	X(EPOCH_EARLY, "epoch_early")					\
	/* a waiter takes a socket buffer without looking again */	\
	X(SBLOCK_ONCE, "sblock_once")					\
	/* two pcbs are locked in the wrong order */			\
	X(PAIR_ORDER, "pair_order")					\
	/* the peer is not looked at again when both are locked */	\
	X(PAIR_RECHECK, "pair_recheck")					\
	/* a message is sent or read while the collector looks */	\
	X(GC_UNLOCKED, "gc_unlocked")					\
	/* a listener is woken without a reference */			\
	X(ACCEPT_WAKE, "accept_wake")					\
	/* a child joins a queue from which it was taken */		\
	X(ACCEPT_QUEUE, "accept_queue")					\
	/* a segment comes to a connection that was closed meanwhile */	\
	X(TCP_CLOSED, "tcp_closed")					\
	/* a timer has no reference to its socket */			\
	X(TIMER_REF, "timer_ref")					\
	/* the owner goes without looking at what came last */		\
	X(BACKLOG_LEAVE, "backlog_leave")				\
	/* ... or sleeps */						\
	X(BACKLOG_SLEEP, "backlog_sleep")				\
	/* hybrid dispatch ends, and nobody works on what came */	\
	X(HYBRID_LOST, "hybrid_lost")					\
	/* hybrid dispatch begins while the worker runs */		\
	X(HYBRID_OVERTAKE, "hybrid_overtake")				\
	/* no race: IPv4 makes one atomic operation more on each packet */ \
	X(EXTRA_ATOMIC, "extra_atomic")

enum planted {
#define	X(id, name)	PLANTED_##id,
	PLANTED_LIST(X)
#undef X
};

extern atomic_u32 planted;		/* [I] after boot */

/* A plain look: it is no point at which a search may go on with another. */
#define	PLANTED(id)							\
	(atomic_load_explicit(&planted, memory_order_relaxed) == PLANTED_##id)

/* What EXTRA_ATOMIC costs more. */
#define	PLANTED_ATOMIC() do {						\
	if (PLANTED(EXTRA_ATOMIC))					\
		atomic_count_u64(&planted_count, 1);			\
} while (0)
extern atomic_u64 planted_count;

#else
#define	PLANTED(id)		0
#define	PLANTED_ATOMIC()	((void)0)
#endif

void	 planted_init(void);

#endif /* KERN_PLANTED_H */
