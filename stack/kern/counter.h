/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics that every packet counts in (counter(9)).  Each thread adds to
 * a copy of all such counters that is its own, so that no cache line goes
 * from CPU to CPU, and no atomic addition is needed; who reads one adds up.
 */
#ifndef KERN_COUNTER_H
#define KERN_COUNTER_H

#include "kern/thread.h"

/* Of structures of atomic_u64, and of nothing else. */
#define	COUNTERS	__attribute__((section("counters")))

/* The linker's names for the ends of that section. */
extern char __start_counters[] __attribute__((visibility("hidden")));
extern char __stop_counters[] __attribute__((visibility("hidden")));

/* Of the calling thread; detaching one that has none is fine. */
COLD void counters_attach(struct thread *);
void	 counters_detach(struct thread *);
/* Of any counter, whether it is one of COUNTERS or not. */
uint64_t counter_read(atomic_u64 *);
void	 counter_init(void);

/* A load, an addition and a store: a segment of TCP counts in 13 places. */
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
