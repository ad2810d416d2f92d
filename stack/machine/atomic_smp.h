/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations among several CPUs; included by machine/atomic.h.
 */
#ifndef MACHINE_ATOMIC_SMP_H
#define MACHINE_ATOMIC_SMP_H

#define	MACH_ATOMIC(sfx, type, word)					\
static inline type							\
atomic_fetchadd_##sfx(word *p, type v)					\
{									\
	sim_access(p, SIM_RMW);						\
	return (atomic_fetch_add_explicit(p, v, memory_order_acq_rel));	\
}									\
static inline type							\
atomic_swap_##sfx(word *p, type v)					\
{									\
	sim_access(p, SIM_RMW);						\
	return (atomic_exchange_explicit(p, v, memory_order_acq_rel));	\
}									\
/* If *p == *old, stores v, returns true; else loads *p into *old. */	\
static inline bool							\
atomic_cmpset_##sfx(word *p, type *old, type v)				\
{									\
	sim_access(p, SIM_RMW);						\
	return (atomic_compare_exchange_strong_explicit(p, old, v,	\
	    memory_order_acq_rel, memory_order_acquire));		\
}									\
/* Set bits or clear bits. */						\
static inline void							\
atomic_set_##sfx(word *p, type bits)					\
{									\
	sim_access(p, SIM_RMW);						\
	atomic_fetch_or_explicit(p, bits, memory_order_acq_rel);	\
}									\
static inline void							\
atomic_clear_##sfx(word *p, type bits)					\
{									\
	sim_access(p, SIM_RMW);						\
	atomic_fetch_and_explicit(p, (type)~bits, memory_order_acq_rel); \
}									\
/* Statistics counter: no ordering, but no update is lost. */		\
static inline void							\
atomic_count_##sfx(word *p, type v)					\
{									\
	sim_access(p, SIM_RMW);						\
	atomic_fetch_add_explicit(p, v, memory_order_relaxed);		\
}

/*
 * Makes earlier stores visible to all CPUs before later loads.  The thread
 * sanitizer does not model fences, so it gets a sequentially consistent
 * operation on one word, which has the same effect.
 */
static inline void
atomic_fence(void)
{
	sim_fence();
#ifdef __SANITIZE_THREAD__
	static atomic_uint all;

	atomic_fetch_add_explicit(&all, 1, memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

MACH_ATOMIC(u32, uint32_t, atomic_u32)
MACH_ATOMIC(u64, uint64_t, atomic_u64)
MACH_ATOMIC(uptr, uintptr_t, atomic_uptr)

#endif /* MACHINE_ATOMIC_SMP_H */
