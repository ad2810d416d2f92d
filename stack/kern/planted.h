/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Known races that test a search for races (docs/explanation/simulator.md).
 * In a build with -Dplanted=true the tunable debug.planted enables one of
 * them; other builds contain none.
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
	/* a sleeper unlocks before it is on the sleep queue */		\
	X(LOST_WAKEUP, "lost_wakeup")					\
	/* a mutex is released between the test and the park */		\
	X(MUTEX_SEQ, "mutex_seq")					\
	/* drain returns while the handler still runs */		\
	X(CALLOUT_DRAIN, "callout_drain")				\
	/* the clock sleeps for a tick that it found before it worked */ \
	X(CLOCK_WAKE, "clock_wake")					\
	/* retired memory is freed under the newest readers */		\
	X(EPOCH_EARLY, "epoch_early")					\
	/* a neighbour is freed under its readers */			\
	X(ARP_FREE, "arp_free")						\
	/* an entry of a pcb is freed under its readers */		\
	X(PCB_FREE, "pcb_free")						\
	/* a depot of mbufs is not tested again after locking it */	\
	X(DEPOT_RECHECK, "depot_recheck")				\
	/* a waiter takes a socket buffer without a second test */	\
	X(SBLOCK_ONCE, "sblock_once")					\
	/* two pcbs are locked in the wrong order */			\
	X(PAIR_ORDER, "pair_order")					\
	/* the peer is not tested again after locking both */		\
	X(PAIR_RECHECK, "pair_recheck")					\
	/* a message is sent or read while the collector runs */	\
	X(GC_UNLOCKED, "gc_unlocked")					\
	/* a listener is woken without a reference */			\
	X(ACCEPT_WAKE, "accept_wake")					\
	/* a child is queued after it was dequeued */			\
	X(ACCEPT_QUEUE, "accept_queue")					\
	/* accept() tests the other copies before it is seen to sleep */ \
	X(COPY_SLEEP, "copy_sleep")					\
	/* a segment reaches a connection closed meanwhile */		\
	X(TCP_CLOSED, "tcp_closed")					\
	/* a timer has no reference to its socket */			\
	X(TIMER_REF, "timer_ref")					\
	/* the owner leaves with segments in the backlog */		\
	X(BACKLOG_LEAVE, "backlog_leave")				\
	/* ... or sleeps with them */					\
	X(BACKLOG_SLEEP, "backlog_sleep")				\
	/* hybrid dispatch ends with packets left in the queue */	\
	X(HYBRID_LOST, "hybrid_lost")					\
	/* hybrid dispatch starts while the worker runs */		\
	X(HYBRID_OVERTAKE, "hybrid_overtake")				\
	/* a sender leaves packets that came while it handled others */	\
	X(SENDER_LOST, "sender_lost")					\
	/* a closed file gets another descriptor */			\
	X(FD_HOLD, "fd_hold")						\
	/* close() takes a number that accept() has reserved */		\
	X(FD_RESERVED, "fd_reserved")					\
	/* dup2() replaces a descriptor while others do */		\
	X(FD_REPLACE, "fd_replace")					\
	/* numbers change while a program is executed with them */	\
	X(FD_EXEC, "fd_exec")						\
	/* ... or while a process forks */				\
	X(FD_FORK, "fd_fork")						\
	/* a reader of the net lock tests for a writer, then marks */	\
	X(NETMARK_LATE, "netmark_late")					\
	/* a socket is locked behind one that comes after it */		\
	X(SOPAIR_ORDER, "sopair_order")					\
	/* connect() uses a socket that was closed meanwhile */		\
	X(CONNECT_CLOSED, "connect_closed")				\
	/* no race: IPv4 does one more atomic operation a packet */	\
	X(EXTRA_ATOMIC, "extra_atomic")

enum planted {
#define	X(id, name)	PLANTED_##id,
	PLANTED_LIST(X)
#undef X
};

extern atomic_u32 planted;		/* [I] after boot */

/* A relaxed load: it is no scheduling point of a search. */
#define	PLANTED(id)							\
	(atomic_load_explicit(&planted, memory_order_relaxed) == PLANTED_##id)

/* The operation that EXTRA_ATOMIC adds. */
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
