/* SPDX-License-Identifier: BSD-2-Clause */
/* Several threads of the stack that run the same function. */
#ifndef TESTS_THREADS_H
#define TESTS_THREADS_H

#include "kern/thread.h"
#include "tests/check.h"

#define	NTHREADS	4

/*
 * Each runs fn with its number, 0 to NTHREADS - 1; returns when all have ended.
 */
static inline void
run_threads(void (*fn)(void *))
{
	struct thread *td[NTHREADS];

	for (int i = 0; i < NTHREADS; i++)
		CHECK_EQ(kthread_create("test", MACH_CPU_ANY, fn,
		    (void *)(uintptr_t)i, &td[i]), 0);
	for (int i = 0; i < NTHREADS; i++)
		kthread_join(td[i]);
}

#endif /* TESTS_THREADS_H */
