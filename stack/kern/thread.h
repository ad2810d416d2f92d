/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct thread: what the stack knows of a thread, its own or one of the
 * application's that came in through a socket call.
 */
#ifndef KERN_THREAD_H
#define KERN_THREAD_H

#include "kern/systm.h"

struct epoch_reader;
struct if_batch;
struct mbuf_cache;

#define	TD_WOKEN_MAX	16

/*
 * Locks used to protect struct thread members:
 *	[I] immutable after creation
 *	[o] owner thread only
 *	[a] atomic
 */
struct thread {
	char		 td_name[24];		/* [I] */
	bool		 td_kernel;		/* [I] made by kthread_create */
	atomic_u32	 td_park;		/* [a] word it parks on: twice the
						   wake-ups, odd while parked */
	atomic_u32	 td_interrupt;		/* [a] a signal waits: no sleep
						   with PCATCH */
	const char	*_Atomic td_wmesg;	/* [a] why it sleeps, or NULL */
	unsigned	 td_nospin;		/* [o] sleeps without spinning */
	unsigned	 td_wakehold;		/* [o] depth of wakeup_hold() */
	unsigned	 td_nwoken;		/* [o] wake-ups held back */
	atomic_u32	*td_woken[TD_WOKEN_MAX]; /* [o] */
	unsigned	 td_locks;		/* [o] locks held (INVARIANTS) */
	unsigned	 td_giant;		/* [o] Giant recursion depth */
	struct mbuf_cache *td_mcache;		/* [o] free mbufs */
	struct if_batch	*td_batch;		/* [o] frames to send, or NULL */
	struct epoch_reader *td_epoch;		/* [o] its record, or NULL */
	struct mach_thread *td_machine;		/* [I] */
};

/* Attaches an application's thread at first sight. */
struct thread *thread_self(void);
#define	curthread	(thread_self())

/*
 * A signal came for the calling thread: its sleeps with PCATCH end with
 * EINTR until td_interrupt is cleared.  Called in signal handlers.
 */
void	 thread_interrupt(void);

/* Threads of the stack's own; cpu as in mach_thread_create(). */
int	 kthread_create(const char *name, int cpu, void (*fn)(void *),
	    void *arg, struct thread **);
void	 kthread_join(struct thread *);

#endif /* KERN_THREAD_H */
