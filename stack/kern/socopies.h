/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of a listener (kern.ipc.listeners=cpu): one for each CPU, each a
 * socket with its own lock, queues and sleeping threads.  A program knows only
 * the listener.  The protocol gives segments to the copy of the CPU that
 * handles them.  accept() begins at the copy of the CPU that calls it.  CPUs
 * that accept connections of one listener therefore share no lock.
 *
 * A thread in accept() sleeps in one copy.  A connection wakes a thread that
 * sleeps in its own copy, or else is announced: its copy's bit is set in
 * sc_ready, and a thread that sleeps in another copy is woken.  A thread sets
 * its copy's bit in sc_sleeping before it tests sc_ready for the last time, so
 * either sees the other.  sc_sleeping may have bits of copies in which no
 * thread sleeps, and sc_ready of empty ones.
 *
 * A program expects connections in the order in which they were established.
 * accept() takes the oldest one of its copy and of SOCOPIES_LOOK others that
 * are announced.  So the order is right if few copies have connections, as if a
 * client makes one after the other; and none waits for ever.
 *
 * A listener's options and end are repeated for its copies.  The backlog
 * limits the connections of all copies together, except that an empty queue
 * takes a connection if the limit is several times the number of copies.
 */
#ifndef KERN_SOCOPIES_H
#define KERN_SOCOPIES_H

#include "kern/socketvar.h"

#define	SOCOPIES_MAX	64	/* more CPUs share them */
#define	SOCOPIES_LOOK	8	/* copies that accept() compares with its own */

/*
 * Locks used to protect struct socopies members:
 *	[I] immutable
 *	[a] atomic
 * Found in epochs, and retired when the listener ends.
 */
struct socopies {
	struct socket	*sc_head;	/* [I] the listener, not referenced */
	unsigned	 sc_count;	/* [I] */
	atomic_u32	 sc_qlimit;	/* [a] */
	/* [I] referenced until the listener ends */
	struct socket	*sc_copy[SOCOPIES_MAX];
	_Alignas(64) atomic_u64	sc_ready;	/* [a] */
	_Alignas(64) atomic_u64	sc_sleeping;	/* [a] */
};

/*
 * Makes the copies of a socket that is about to listen; does nothing with one
 * CPU, or if the protocol has no pr_copy.
 */
void	 socopies_make(struct socket *head) REQUIRES(head->so_lock);
void	 socopies_limit(struct socket *head, unsigned qlimit)
	    REQUIRES(head->so_lock);
/*
 * The listener ends: socopies_detach() when the protocol finds it no more, and
 * socopies_close() when it is unlocked.  NULL: it has no copies.
 */
struct socopies *socopies_detach(struct socket *head)
	    REQUIRES(head->so_lock);
void	 socopies_close(struct socopies *);
/* Calls fn for each copy, entered. */
void	 socopies_foreach(struct socket *head,
	    void (*fn)(struct socket *copy, void *arg), void *arg);
/*
 * The socket for connections to a listener: the copy of this CPU, or the
 * listener.  Referenced; NULL if it ends.
 */
struct socket *socopies_ref(struct socket *head);
/* Whether a copy's listener has reached its limit. */
bool	 socopies_full(struct socket *copy) REQUIRES(copy->so_lock);
/* Whether a copy has a connection for accept(). */
bool	 socopies_ready(struct socket *head) REQUIRES(head->so_lock);
/* Wakes a thread for a connection in the queue of a copy, in an epoch. */
void	 socopies_wake(struct socopies *, struct socket *copy);
/*
 * Takes the connection for accept() on this copy; NULL: it may sleep.
 */
struct socket *socopies_take(struct socket *copy) REQUIRES(copy->so_lock);
void	 socopies_init(void);			/* at boot */

/*
 * uipc_listen.c: takes the first connection of a listener or copy, or NULL.
 * Clears bits of a word if the queue is empty.
 */
struct socket *soq_take(struct socket *, atomic_u64 *word, uint64_t bits);

static inline struct socopies *
socopies_of(struct socket *so)
{
	return ((struct socopies *)atomic_load_acq_uptr(&so->so_copies));
}

#endif /* KERN_SOCOPIES_H */
