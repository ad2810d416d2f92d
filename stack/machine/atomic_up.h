/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations for threads of one CPU.  machine/atomic.h includes this
 * file in builds with -Dup=true, which run on one CPU only (machine/posix).
 *
 * A thread can be preempted between two instructions but not within one.  One
 * x86 instruction that reads and writes is therefore atomic without its lock
 * prefix (Intel SDM volume 3, 8.1.2.2), as in uniprocessor kernels.  XCHG
 * always locks the bus and is not used.
 */
#ifndef MACHINE_ATOMIC_UP_H
#define MACHINE_ATOMIC_UP_H

#define	MACH_ATOMIC(sfx, type, word)					\
static inline type							\
atomic_fetchadd_##sfx(word *p, type v)					\
{									\
	__asm__ volatile("xadd %0, %1" : "+r" (v), "+m" (*p) : :	\
	    "memory", "cc");						\
	return (v);							\
}									\
/* If *p == *old, stores v, returns true; else loads *p into *old. */	\
static inline bool							\
atomic_cmpset_##sfx(word *p, type *old, type v)				\
{									\
	bool same;							\
									\
	__asm__ volatile("cmpxchg %3, %1" : "=@ccz" (same), "+m" (*p),	\
	    "+a" (*old) : "r" (v) : "memory");				\
	return (same);							\
}									\
static inline type							\
atomic_swap_##sfx(word *p, type v)					\
{									\
	type old = atomic_load_##sfx(p);				\
									\
	while (!atomic_cmpset_##sfx(p, &old, v))			\
		continue;						\
	return (old);							\
}									\
/* Set bits or clear bits. */						\
static inline void							\
atomic_set_##sfx(word *p, type bits)					\
{									\
	__asm__ volatile("or %1, %0" : "+m" (*p) : "r" (bits) :		\
	    "memory", "cc");						\
}									\
static inline void							\
atomic_clear_##sfx(word *p, type bits)					\
{									\
	__asm__ volatile("and %1, %0" : "+m" (*p) : "r" (~bits) :	\
	    "memory", "cc");						\
}									\
/* Statistics counter: no ordering, but no update is lost. */		\
static inline void							\
atomic_count_##sfx(word *p, type v)					\
{									\
	__asm__ volatile("add %1, %0" : "+m" (*p) : "r" (v) : "cc");	\
}

/* A CPU sees its own stores in order; only the compiler needs a barrier. */
static inline void
atomic_fence(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

MACH_ATOMIC(u32, uint32_t, atomic_u32)
MACH_ATOMIC(u64, uint64_t, atomic_u64)
MACH_ATOMIC(uptr, uintptr_t, atomic_uptr)

#endif /* MACHINE_ATOMIC_UP_H */
