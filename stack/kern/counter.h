/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Per-thread statistics counters (counter(9)).  Each thread adds to its own
 * copy of all counters, so counting needs no atomic operation and no cache
 * line moves between CPUs.  Readers add the copies up.
 */
#ifndef KERN_COUNTER_H
#define KERN_COUNTER_H

#include "kern/thread.h"

/* For structures that contain only atomic_u64. */
#define	COUNTERS	__attribute__((section("counters")))

/* Start and end of that section, defined by the linker. */
extern char __start_counters[] __attribute__((visibility("hidden")));
extern char __stop_counters[] __attribute__((visibility("hidden")));

/*
 * Attach and detach the calling thread's copy; detaching without one is
 * allowed.
 */
__cold void counters_attach(struct thread *);
void	 counters_detach(struct thread *);
/* Reads any counter, in COUNTERS or not. */
uint64_t counter_read(atomic_u64 *);
void	 counter_init(void);

/*
 * Inlined as a load, an addition and a store, because one TCP segment updates
 * 13 counters.
 */
__attribute__((always_inline)) static inline void
counter_add(atomic_u64 *c, uint64_t n)
{
	atomic_u64 *own;

	if (__predict_false(mach_counters == 0))
		counters_attach(curthread);
	own = (atomic_u64 *)(void *)((char *)c + mach_counters);
	atomic_store_u64(own, atomic_load_u64(own) + n);
}

#endif /* KERN_COUNTER_H */
