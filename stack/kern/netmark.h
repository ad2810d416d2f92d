/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks of the net lock's readers.  Each thread has a mark in a cache line of
 * its own, so readers on different CPUs share no line that is written.  A
 * writer first stops new readers, and then waits for each mark (Calciu and
 * others, "NUMA-aware reader-writer locks", 2013; Dice and Kogan, "BRAVO",
 * 2019).
 */
#ifndef KERN_NETMARK_H
#define KERN_NETMARK_H

#include <stdbool.h>

struct rwlock;
struct thread;

/* False: a writer is waiting or has the lock, and the mark is not set. */
bool	 netmark_enter(struct thread *);
void	 netmark_exit(struct thread *);
/*
 * Between these two no thread has a mark.  The caller excludes other writers.
 * netmark_stop() returns whether it had to wait for readers.  ddb and lock
 * tracking show that as a wait for the lock.
 */
bool	 netmark_stop(const struct rwlock *);
void	 netmark_start(void);

#endif /* KERN_NETMARK_H */
