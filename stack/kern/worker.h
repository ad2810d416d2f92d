/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker threads: each does what gathers under a lock of its owner's, and
 * sleeps while there is nothing.
 */
#ifndef KERN_WORKER_H
#define KERN_WORKER_H

#include "kern/lock.h"

/*
 * A piece of work, with the lock, which may be let go meanwhile.  Returns for
 * how long there is nothing to do: 0, it is called again at once, or
 * NSEC_FOREVER, until worker_wake().
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
	struct thread	*w_thread;	/* [s] NULL: it does not run */
	bool		 w_stop;	/* [w] */
};

/* Errno value; cpu as in mach_thread_create(). */
int	 worker_start(struct worker *, const char *name, int cpu);
void	 worker_wake(struct worker *);
/* Once it has ended the piece of work that it is at; nothing if none runs. */
void	 worker_stop(struct worker *);

#endif /* KERN_WORKER_H */
