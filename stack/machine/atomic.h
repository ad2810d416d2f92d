/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations of the machine layer.  The stack uses these names and
 * no others, so that a machine that runs on virtual CPUs in virtual time
 * can count and schedule every one of them.
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

#define	MACH_LOADSTORE(sfx, type, word)					\
static inline type							\
atomic_load_##sfx(word *p)						\
{									\
	return (atomic_load_explicit(p, memory_order_relaxed));		\
}									\
static inline type							\
atomic_load_acq_##sfx(word *p)						\
{									\
	return (atomic_load_explicit(p, memory_order_acquire));		\
}									\
static inline void							\
atomic_store_##sfx(word *p, type v)					\
{									\
	atomic_store_explicit(p, v, memory_order_relaxed);		\
}									\
static inline void							\
atomic_store_rel_##sfx(word *p, type v)					\
{									\
	atomic_store_explicit(p, v, memory_order_release);		\
}

MACH_LOADSTORE(u32, uint32_t, atomic_u32)
MACH_LOADSTORE(u64, uint64_t, atomic_u64)
MACH_LOADSTORE(uptr, uintptr_t, atomic_uptr)

/* A pointer, of any type, that others only look at. */
#define	atomic_store_ptr(p, v)						\
	atomic_store_explicit(p, v, memory_order_relaxed)

/*
 * The rest reads and writes at once: with other CPUs, or in a stack built
 * for one.
 */
#ifdef MACH_UP
#include "machine/atomic_up.h"
#else
#include "machine/atomic_smp.h"
#endif

#endif /* MACHINE_ATOMIC_H */
