/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct thread: what the stack knows of a thread, its own or one of the
 * application's that came in through a socket call.
 */
#ifndef KERN_THREAD_H
#define KERN_THREAD_H

#include <sys/queue.h>

#include "kern/lock_track.h"
#include "kern/systm.h"

struct ast;
struct epoch_reader;
struct tx_batch;
struct if_lro;
struct mbuf_cache;

#define	TD_WOKEN_MAX	16

/* What layers above remember for a thread; freed with it. */
enum td_hint { TD_ROUTES, TD_ROUTES6, TD_LINKS, TD_LINKS6, TD_PCBS, TD_RX_BURST,
    TD_LOCK_BATCH, TD_HINTS };

/*
 * Locks used to protect struct thread members:
 *	[I] immutable after creation
 *	[o] owner thread only
 *	[a] atomic
 *	[l] the list of threads
 */
struct thread {
	SLIST_ENTRY(thread) td_link;		/* [l] */
	bool		 td_ended;		/* [l] may be used again */
	atomic_u32	 td_offcpu;		/* [a] parked while it may own
						   a lock; others may spin */
#ifdef LOCK_PROFILING
	struct lock_prof *_Atomic td_prof;	/* [a] counters, or NULL */
#endif
	/* From here on a new thread begins with zeros. */
	char		 td_name[24];		/* [I] */
	bool		 td_kernel;		/* [I] made by kthread_create */
	atomic_u32	 td_id;			/* [a] the host's number, or 0 */
	atomic_u32	 td_park;		/* [a] word it parks on: twice the
						   wake-ups, odd while parked */
	atomic_u32	 td_interrupt;		/* [a] a signal waits: no sleep
						   with PCATCH */
	const char	*_Atomic td_wmesg;	/* [a] why it sleeps, or NULL */
	const char	*_Atomic td_blocked;	/* [a] class of the lock that it
						   waits for, or NULL */
	unsigned	 td_nospin;		/* [o] sleeps without spinning */
	unsigned	 td_wakehold;		/* [o] depth of wakeup_hold() */
	unsigned	 td_nwoken;		/* [o] wake-ups held back */
	atomic_u32	*td_woken[TD_WOKEN_MAX]; /* [o] */
	nsec_t		 td_now;		/* [o] getuptime(), 0: not yet */
	unsigned	 td_astdepth;		/* [o] depth of ast_enter() */
	struct ast	*td_asts;		/* [o] work put off */
	unsigned	 td_giant;		/* [o] Giant recursion depth */
	unsigned	 td_netdepth;		/* [o] depth of net_enter() */
	bool		 td_netalone;		/* [o] ... exclusively */
	unsigned	 td_tunnels;		/* [o] that what it sends is in */
	struct mbuf_cache *td_mcache;		/* [o] free mbufs */
	struct tx_batch	*td_tx_batch;	/* [o] frames to send, or NULL */
	struct if_lro	*td_lro;		/* [o] frames held, or NULL */
	char		*td_counters;		/* [o] its copy, or NULL */
	struct epoch_reader *td_epoch;		/* [o] its record, or NULL */
	void		*td_hints[TD_HINTS];	/* [o] from kmalloc(), or NULL */
	struct mach_thread *td_machine;		/* [I] */
#ifdef LOCK_TRACKING
	struct lock_track td_track;
#endif
};

/* Attaches an application's thread at first sight. */
COLD struct thread *thread_attach(void);
static inline struct thread *
thread_self(void)
{
	struct thread *td = mach_thread_self();

	return (__predict_true(td != NULL) ? td : thread_attach());
}
#define	curthread	(thread_self())
/* The same, of a thread that holds a lock or handles a packet: it is known. */
static inline struct thread *
thread_known(void)
{
	struct thread *td = mach_thread_self();

	KASSERT(td != NULL, ("thread_known: not attached"));
	return (td);
}

APART nsec_t thread_date(struct thread *);	/* looks at the clock */
/*
 * When the packet or call that this thread is at work on began: one look at
 * the clock for all that is done with it.  Whoever locks a socket forgets it,
 * since no date that others left there may be in the future.
 */
static inline nsec_t
getuptime(void)
{
	struct thread *td = thread_known();

	return (__predict_true(td->td_now != 0) ? td->td_now : thread_date(td));
}
/* Another one begins. */
static inline void
forget_uptime(void)
{
	thread_known()->td_now = 0;
}

/*
 * A signal came for the calling thread: its sleeps with PCATCH end with
 * EINTR until td_interrupt is cleared.  Called in signal handlers.
 */
void	 thread_interrupt(void);

COLD void thread_hints_attach(struct thread *, enum td_hint kind, size_t size);
/* What this thread remembers of a kind: size bytes, zero at first. */
static inline void *
thread_hints(enum td_hint kind, size_t size)
{
	struct thread *td = thread_known();

	if (__predict_false(td->td_hints[kind] == NULL))
		thread_hints_attach(td, kind, size);
	return (td->td_hints[kind]);
}

/*
 * Of 1 << bits things of a size that this thread remembers of a kind, the one
 * where a key's would be (Fibonacci hashing, Knuth, volume 3, section 6.4).
 */
static inline void *
thread_hint(enum td_hint kind, size_t size, unsigned bits, uint32_t key)
{
	char *hints = thread_hints(kind, size << bits);

	return (hints + ((key * 0x9e3779b1u) >> (32 - bits)) * size);
}

/*
 * Calls fn for each thread there is or was; none comes or goes meanwhile.  fn
 * must not wait for anything.
 */
void	 thread_foreach(void (*fn)(struct thread *, void *arg), void *arg);

/* Threads of the stack's own; cpu as in mach_thread_create(). */
int	 kthread_create(const char *name, int cpu, void (*fn)(void *),
	    void *arg, struct thread **);
void	 kthread_join(struct thread *);

#endif /* KERN_THREAD_H */
