/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facilities for every file of the stack: assertions, console, memory.
 */
#ifndef KERN_SYSTM_H
#define KERN_SYSTM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "kern/annotate.h"
#include "machine/machine.h"

/*
 * Where a function's code goes.  What every packet executes should share cache
 * lines and pages with nothing else, and inlining an uncommon path makes a
 * common one save registers that it does not need.
 *
 *	__hot		executed for nearly every packet: placed together
 *	__cold		errors, losses, set-up: placed elsewhere, never inlined,
 *			and a branch that leads there is predicted not taken
 *	NOINLINE	an uncommon path of packets: never inlined
 */
#define	__hot		__attribute__((hot))
#define	__cold		__attribute__((cold, noinline))
#define	NOINLINE	__attribute__((noinline))

#ifndef nitems
#define	nitems(a)	(sizeof(a) / sizeof((a)[0]))
#endif
#define	container_of(p, type, field)					\
	((type *)(void *)((char *)(p) - offsetof(type, field)))

/* Copies len bytes, part <= len <= 2 * part, as two parts that may overlap. */
__attribute__((always_inline)) static inline void
copy_ends(char *to, const char *from, size_t len, size_t part)
{
	char head[8], tail[8];

	memcpy(head, from, part);
	memcpy(tail, from + len - part, part);
	memcpy(to, head, part);
	memcpy(to + len - part, tail, part);
}

/* memcpy(3) for short lengths: only longer copies are a function call. */
static inline void
copy_bytes(void *to, const void *from, size_t len)
{
	if (len > 16)
		memcpy(to, from, len);
	else if (len >= 8)
		copy_ends(to, from, len, 8);
	else if (len >= 4)
		copy_ends(to, from, len, 4);
	else if (len >= 2)
		copy_ends(to, from, len, 2);
	else if (len == 1)
		*(char *)to = *(const char *)from;
}

/*
 * Prints to the console with the function's name and stops the process.
 */
NORETURN void panic(const char *fmt, ...) PRINTFLIKE(1, 2);

/*
 * KASSERT(cond, ("sbdrop: %u bytes of %u", len, sb->sb_cc)): compiled in
 * by the build option invariants; the message names values.
 */
#ifdef INVARIANTS
#define	KASSERT(cond, msg) do {						\
	if (__predict_false(!(cond)))				\
		panic msg;						\
} while (0)
#else
#define	KASSERT(cond, msg)	((void)sizeof((cond)))
#endif

/* One line of the boot log or a later console message, no newline. */
void	 console(const char *fmt, ...) PRINTFLIKE(1, 2);

/*
 * True if called more than limit times in this second.  Two threads that race
 * at the start of a second may exceed the limit by a few.
 */
struct pps_limit {
	atomic_u64	 second;	/* second that the count belongs to */
	atomic_u32	 count;
};
bool	 pps_limited(struct pps_limit *, uint32_t limit);

static inline nsec_t
timespec_nsec(const struct timespec *ts)
{
	return ((nsec_t)ts->tv_sec * NSEC_PER_SEC + (nsec_t)ts->tv_nsec);
}

/* Memory.  Never returns NULL: exhaustion is a panic.  Zeroed. */
void	*kmalloc(size_t size);
/* Like kmalloc(), aligned as by mach_alloc(). */
void	*kmalloc_aligned(size_t size, size_t align);
void	 kfree(void *);

#endif /* KERN_SYSTM_H */
