/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A spin lock for short sections below mutexes, which need a struct thread:
 * the list of threads, and lock tracking.  A holder must not wait for
 * anything.  The functions are not analysed, because an atomic operation on
 * s_held implements them.
 */
#ifndef KERN_SPIN_H
#define KERN_SPIN_H

#include "kern/annotate.h"
#include "machine/machine.h"

struct LOCKABLE("spin") spin {
	atomic_u32	 s_held;	/* [a] */
};

static inline void
spin_lock(struct spin *s) ACQUIRES(*s) NO_LOCK_ANALYSIS
{
	uint32_t held = 0;

	while (!atomic_cmpset_u32(&s->s_held, &held, 1)) {
		held = 0;
		mach_yield();
	}
}

static inline void
spin_unlock(struct spin *s) RELEASES(*s) NO_LOCK_ANALYSIS
{
	atomic_store_rel_u32(&s->s_held, 0);
}

#endif /* KERN_SPIN_H */
