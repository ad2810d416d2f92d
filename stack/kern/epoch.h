/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs: readers of a shared structure take no lock.  What a writer has
 * unlinked is freed when no reader can still see it (K.  Fraser, "Practical
 * lock-freedom", 2004, section 5.2.3; epoch(9)).
 *
 * A reader encloses its read section, and every use of what it found, in
 * epoch_enter() and epoch_exit().  Sections nest, so one section around a
 * burst of packets makes the sections of each packet cheap.  A reader follows
 * pointers with atomic_load_acq.  A writer holds a lock against other writers,
 * unlinks with atomic_store_rel and then calls epoch_call().
 *
 * A read section may wait for a mutex but should not sleep for an event,
 * because nothing retired meanwhile is freed before the section ends.
 */
#ifndef KERN_EPOCH_H
#define KERN_EPOCH_H

#include "kern/thread.h"

NOINLINE void epoch_begin(struct thread *);
NOINLINE void epoch_end(struct thread *);

/* Inlined for nested sections, one or two for each packet. */
static inline void
epoch_enter(void)
{
	struct thread *td = curthread;

	if (td->td_epochdepth++ == 0)
		epoch_begin(td);
}

static inline void
epoch_exit(void)
{
	struct thread *td = thread_known();

	KASSERT(td->td_epochdepth > 0, ("epoch_exit: not in a read section"));
	if (--td->td_epochdepth == 0)
		epoch_end(td);
}

static inline bool
epoch_inside(void)			/* for assertions */
{
	return (curthread->td_epochdepth > 0);
}

/*
 * Calls fn(arg) later, when every read section that is active now has ended.
 * Any thread may call this, also with locks held; fn must not wait.  The
 * caller must not be in a read section that could have seen arg.
 */
void	 epoch_call(void (*fn)(void *), void *arg);
/* Makes the calls that are due; returns how many remain. */
unsigned epoch_reclaim(void);

void	 epoch_init(void);
void	 epoch_thread_exit(struct thread *);

#endif /* KERN_EPOCH_H */
