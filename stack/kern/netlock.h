/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The net lock: one reader-writer lock over the internet's protocols, which a
 * thread holds while it takes a burst of packets in, makes a socket call or
 * runs a callout (OpenBSD's netlock).  Held exclusively it is all the locking
 * that protocols need; shared, it lets several threads work on several
 * sockets.  Which it is, or that there is none, net.inet.tcp.input says.
 *
 * It is taken after Giant, before any other lock, and is dropped while a
 * thread sleeps.  A thread that has it may ask again, which only counts: a
 * reader that waited for itself behind a writer would wait for ever.
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

/* Around a sleep; the depth is what net_pickup() restores. */
unsigned net_drop(void);
void	 net_pickup(unsigned depth);
/* Whether this thread holds it, and does so alone. */
bool	 net_held(void);
bool	 net_alone(void);
/*
 * A handler that only one thread may run, in a thread that holds nothing; so
 * long as it lasts nobody else is in the network.
 */
void	 net_enter_alone(void);

void	 netlock_init(void);		/* at boot */

#endif /* KERN_NETLOCK_H */
