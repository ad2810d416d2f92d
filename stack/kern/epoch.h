/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs: readers of a shared structure take no lock, and what a writer has
 * taken out of it is freed when nobody can be looking at it any more
 * (K. Fraser, "Practical lock-freedom", 2004, section 5.2.3; epoch(9)).
 *
 * A reader encloses its visit, and every use of what it found, in
 * epoch_enter() and epoch_exit(); visits may be nested, so that one around a
 * burst of packets makes those for each packet cheap.  It follows pointers
 * with atomic_load_acq.  A writer, which has a lock against other writers,
 * unlinks with atomic_store_rel and then calls epoch_call().
 *
 * A visit may wait for a mutex but should not sleep for an event: nothing
 * that was retired meanwhile is freed before it ends.
 */
#ifndef KERN_EPOCH_H
#define KERN_EPOCH_H

#include "kern/systm.h"

struct thread;

void	 epoch_enter(void);
void	 epoch_exit(void);
bool	 epoch_inside(void);		/* for assertions */
/*
 * Calls fn(arg) some time later, when every visit that goes on now has
 * ended; from any thread, perhaps with locks held, so that fn may not wait.
 * The caller is in no visit that could have seen arg.
 */
void	 epoch_call(void (*fn)(void *), void *arg);
/* Makes those calls that can be made; returns how many are left. */
unsigned epoch_reclaim(void);

void	 epoch_init(void);
void	 epoch_thread_exit(struct thread *);

#endif /* KERN_EPOCH_H */
