/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations among virtual CPUs; included by machine/atomic.h in builds
 * with -Dsim=true.
 *
 * Before each the simulated machine looks whether another CPU comes first, and
 * charges what the way of the cache line costs (machine/sim/lines.c).  From
 * then on nobody else runs until the next one, so that reading and writing in
 * two steps is atomic.
 */
#ifndef MACHINE_ATOMIC_SIM_H
#define MACHINE_ATOMIC_SIM_H

#define	MACH_ATOMIC(sfx, type, word)					\
static inline type							\
atomic_fetchadd_##sfx(word *p, type v)					\
{									\
	type old;							\
									\
	sim_access(p, SIM_RMW);						\
	old = atomic_load_explicit(p, memory_order_relaxed);		\
	atomic_store_explicit(p, (type)(old + v), memory_order_relaxed); \
	return (old);							\
}									\
static inline type							\
atomic_swap_##sfx(word *p, type v)					\
{									\
	type old;							\
									\
	sim_access(p, SIM_RMW);						\
	old = atomic_load_explicit(p, memory_order_relaxed);		\
	atomic_store_explicit(p, v, memory_order_relaxed);		\
	return (old);							\
}									\
/* Returns true, and stores v, if *p was *old; else loads *p into *old. */ \
static inline bool							\
atomic_cmpset_##sfx(word *p, type *old, type v)				\
{									\
	type was;							\
									\
	sim_access(p, SIM_RMW);						\
	was = atomic_load_explicit(p, memory_order_relaxed);		\
	if (was == *old) {						\
		atomic_store_explicit(p, v, memory_order_relaxed);	\
		return (true);						\
	}								\
	*old = was;							\
	return (false);							\
}									\
/* Sets bits, or clears them. */					\
static inline void							\
atomic_set_##sfx(word *p, type bits)					\
{									\
	sim_access(p, SIM_RMW);						\
	atomic_store_explicit(p, atomic_load_explicit(p,		\
	    memory_order_relaxed) | bits, memory_order_relaxed);	\
}									\
static inline void							\
atomic_clear_##sfx(word *p, type bits)					\
{									\
	sim_access(p, SIM_RMW);						\
	atomic_store_explicit(p, atomic_load_explicit(p,		\
	    memory_order_relaxed) & (type)~bits, memory_order_relaxed);	\
}									\
/* A statistics counter: no ordering, never lost. */			\
static inline void							\
atomic_count_##sfx(word *p, type v)					\
{									\
	(void)atomic_fetchadd_##sfx(p, v);				\
}

static inline void
atomic_fence(void)
{
	sim_fence();
}

MACH_ATOMIC(u32, uint32_t, atomic_u32)
MACH_ATOMIC(u64, uint64_t, atomic_u64)
MACH_ATOMIC(uptr, uintptr_t, atomic_uptr)

#endif /* MACHINE_ATOMIC_SIM_H */
