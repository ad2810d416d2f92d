/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations of the machine layer.  The stack uses these names and
 * no others, so that the simulated machine can count and schedule every one
 * of them.
 *
 * Names follow atomic(9): operation, memory order, type.
 */
#ifndef MACHINE_ATOMIC_H
#define MACHINE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t atomic_u32;
typedef _Atomic uint64_t atomic_u64;
typedef _Atomic uintptr_t atomic_uptr;

/*
 * What the simulated machine is told: which word is used, and how; only
 * SIM_RMW must have the line for itself while the CPU waits.
 */
enum sim_access { SIM_LOAD, SIM_STORE, SIM_RMW };
#ifdef MACH_SIM
void	 sim_access(const volatile void *, enum sim_access);
void	 sim_fence(void);
void	 sim_lock_got(void);	/* a lock, of whatever kind; only counted */
#else
static inline void
sim_access(const volatile void *word, enum sim_access how)
{
	(void)word;
	(void)how;
}
static inline void
sim_fence(void)
{
}
static inline void
sim_lock_got(void)
{
}
#endif

#define	MACH_LOADSTORE(sfx, type, word)					\
static inline type							\
atomic_load_##sfx(word *p)						\
{									\
	sim_access(p, SIM_LOAD);					\
	return (atomic_load_explicit(p, memory_order_relaxed));		\
}									\
static inline type							\
atomic_load_acq_##sfx(word *p)						\
{									\
	sim_access(p, SIM_LOAD);					\
	return (atomic_load_explicit(p, memory_order_acquire));		\
}									\
static inline void							\
atomic_store_##sfx(word *p, type v)					\
{									\
	sim_access(p, SIM_STORE);					\
	atomic_store_explicit(p, v, memory_order_relaxed);		\
}									\
static inline void							\
atomic_store_rel_##sfx(word *p, type v)					\
{									\
	sim_access(p, SIM_STORE);					\
	atomic_store_explicit(p, v, memory_order_release);		\
}

MACH_LOADSTORE(u32, uint32_t, atomic_u32)
MACH_LOADSTORE(u64, uint64_t, atomic_u64)
MACH_LOADSTORE(uptr, uintptr_t, atomic_uptr)

/* A pointer, of any type, that others only look at. */
#define	atomic_store_ptr(p, v)						\
	(sim_access((p), SIM_STORE),					\
	    atomic_store_explicit((p), (v), memory_order_relaxed))

/*
 * The rest reads and writes at once: with other CPUs, with virtual ones, or
 * in a stack built for one.
 */
#ifdef MACH_UP
#include "machine/atomic_up.h"
#else
#include "machine/atomic_smp.h"
#endif

#endif /* MACHINE_ATOMIC_H */
