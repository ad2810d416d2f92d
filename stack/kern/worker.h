/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker threads: each processes work that accumulates under its owner's lock,
 * and sleeps while there is none.
 */
#ifndef KERN_WORKER_H
#define KERN_WORKER_H

#include "kern/lock.h"

/*
 * Does a piece of work with the lock held, which it may release meanwhile.
 * Returns the time until there is more work: 0 calls it again at once;
 * NSEC_FOREVER waits for worker_wake().
 */
typedef nsec_t	 worker_fn(void *arg);

/*
 * Locks used to protect struct worker members:
 *	[I] immutable; its owner sets the first four
 *	[s] written while it does not run
 *	[w] *w_lock
 */
struct worker {
	struct mtx	*w_lock;	/* [I] */
	worker_fn	*w_fn;		/* [I] */
	void		*w_arg;		/* [I] */
	const char	*w_wmesg;	/* [I] constant: its wait channel */
	struct thread	*w_thread;	/* [s] NULL: not running */
	bool		 w_stop GUARDED_BY(*w_lock);	/* [w] */
};

/* Returns an errno value; cpu as in mach_thread_create(). */
int	 worker_start(struct worker *, const char *name, int cpu);
void	 worker_wake(struct worker *);
/*
 * Stops the worker after its current piece of work; does nothing if none runs.
 */
void	 worker_stop(struct worker *);

#endif /* KERN_WORKER_H */
