/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The net lock: one reader-writer lock over the internet protocols (OpenBSD's
 * netlock).  A thread holds it while it processes a burst of packets, makes a
 * socket call or runs a callout.  Held exclusively, it is the only lock that
 * protocols need.  Held shared, it lets several threads work on different
 * sockets.  net.inet.tcp.input selects exclusive, shared or none.
 *
 * It is taken after Giant, before any other lock, and is dropped while a
 * thread sleeps.  A thread that holds it may enter again, which only counts: a
 * second read behind a waiting writer would deadlock.
 */
#ifndef KERN_NETLOCK_H
#define KERN_NETLOCK_H

#include "kern/systm.h"

enum netlock_mode { NETLOCK_NONE, NETLOCK_EXCLUSIVE, NETLOCK_SHARED };

extern enum netlock_mode netlock_mode;		/* [I] after boot */

void	 netlock_take(void);
void	 netlock_give(void);

static inline void
net_enter(void)
{
	if (__predict_false(netlock_mode != NETLOCK_NONE))
		netlock_take();
}

static inline void
net_exit(void)
{
	if (__predict_false(netlock_mode != NETLOCK_NONE))
		netlock_give();
}

/* Release the lock around a sleep; net_pickup() restores the depth. */
unsigned net_drop(void);
void	 net_pickup(unsigned depth);
/* Whether this thread holds the lock, and holds it exclusively. */
bool	 net_held(void);
bool	 net_is_exclusive(void);
/*
 * Takes the lock exclusively for a handler that is not MP-safe.  The caller
 * holds no locks.
 */
void	 net_enter_exclusive(void);

void	 netlock_init(void);		/* at boot */

#endif /* KERN_NETLOCK_H */
