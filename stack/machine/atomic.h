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
 * Reports an access to the simulated machine: which word, and how it is used.
 * Only SIM_RMW needs exclusive ownership of the cache line while the CPU
 * waits.
 */
enum sim_access { SIM_LOAD, SIM_STORE, SIM_RMW };
#ifdef MACH_SIM
void	 sim_access(const volatile void *, enum sim_access);
void	 sim_fence(void);
void	 sim_lock_got(void);	/* any kind of lock; only counted */
/*
 * Until sim_waited() the calling thread waits for a lock of a class, or for
 * work while it keeps its CPU.
 */
void	 sim_lock_waits(const volatile void *lock, const char *class);
void	 sim_work_waits(const volatile void *work);
void	 sim_waited(void);
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
static inline void
sim_lock_waits(const volatile void *lock, const char *class)
{
	(void)lock;
	(void)class;
}
static inline void
sim_work_waits(const volatile void *work)
{
	(void)work;
}
static inline void
sim_waited(void)
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

/* Stores a pointer of any type that other threads only read. */
#define	atomic_store_ptr(p, v)						\
	(sim_access((p), SIM_STORE),					\
	    atomic_store_explicit((p), (v), memory_order_relaxed))

/*
 * Three implementations: SMP, the simulated CPUs, and a stack built for one
 * CPU.
 */
#ifdef MACH_UP
#include "machine/atomic_up.h"
#else
#include "machine/atomic_smp.h"
#endif

#endif /* MACHINE_ATOMIC_H */
