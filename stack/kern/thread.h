/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct thread: a thread of the stack, or an application's thread that
 * entered through a socket call.
 */
#ifndef KERN_THREAD_H
#define KERN_THREAD_H

#include <sys/queue.h>

#include "kern/lock_track.h"
#include "kern/spin.h"
#include "kern/systm.h"

struct ast;
struct epoch_reader;
struct tx_batch;
struct mbuf_cache;
struct netmark;

#define	TD_WOKEN_MAX	16

/*
 * Slots of a thread for caches of other layers, freed with the thread.  Each
 * layer numbers its own in a header NAME_hints.h, from the last of the layer
 * below on.
 */
#define	TD_HINTS	11

extern struct spin threads_lock;

/*
 * Locks used to protect struct thread members:
 *	[I] immutable after creation
 *	[o] owner thread only
 *	[a] atomic
 *	[l] the list of threads
 */
struct thread {
	SLIST_ENTRY(thread) td_link GUARDED_BY(threads_lock);	/* [l] */
	/* [l] the struct may be reused */
	bool		 td_ended GUARDED_BY(threads_lock);
	/* [a] parked while it may own a lock; spinning is useless */
	atomic_u32	 td_offcpu;
	/* [o] its mark as a reader of the net lock, or NULL */
	struct netmark	*td_netmark;
#ifdef LOCK_PROFILING
	struct lock_prof *_Atomic td_prof;	/* [a] counters, or NULL */
#endif
	/* The members from here on are zeroed in a new thread. */
	char		 td_name[24];		/* [I] */
	bool		 td_kernel; /* [I] created by kthread_create() */
	atomic_u32	 td_id; /* [a] the host's thread ID, or 0 */
	/* [a] word to park on: twice the number of wakeups, odd while parked */
	atomic_u32	 td_park;
	/* [a] a signal is pending: no sleep with PCATCH */
	atomic_u32	 td_interrupt;
	const char	*_Atomic td_wmesg;	/* [a] wait channel, or NULL */
	/* [a] class of the lock that it waits for, or NULL */
	const char	*_Atomic td_blocked;
	/* [o] depth: sleeps without spinning first */
	unsigned	 td_nospin;
	unsigned	 td_wakehold;		/* [o] depth of wakeup_hold() */
	unsigned	 td_nwoken;		/* [o] deferred wakeups */
	atomic_u32	*td_woken[TD_WOKEN_MAX]; /* [o] */
	nsec_t		 td_now; /* [o] getuptime(), 0: not cached */
	unsigned	 td_astdepth;		/* [o] depth of ast_enter() */
	struct ast	*td_asts;		/* [o] deferred work */
	unsigned	 td_giant;		/* [o] Giant recursion depth */
	unsigned	 td_netdepth;		/* [o] depth of net_enter() */
	bool		 td_netexclusive;	/* [o] ... exclusively */
	bool		 td_netmarked;		/* [o] ... by its mark */
	struct mbuf_cache *td_mcache;		/* [o] free mbufs */
	struct tx_batch	*td_tx_batch;	/* [o] frames to send, or NULL */
	/* [o] its copy of the counters, or NULL */
	char		*td_counters;
	struct epoch_reader *td_epoch; /* [o] its epoch record, or NULL */
	unsigned	 td_epochdepth;	/* [o] depth of epoch_enter() */
	void		*td_hints[TD_HINTS];	/* [o] from kmalloc(), or NULL */
	struct mach_thread *td_machine;		/* [I] */
#ifdef LOCK_TRACKING
	struct lock_track td_track;
#endif
};

/* Attaches an application's thread on its first call. */
__cold struct thread *thread_attach(void);
static inline struct thread *
thread_self(void)
{
	struct thread *td = mach_thread_self();

	return (__predict_true(td != NULL) ? td : thread_attach());
}
#define	curthread	(thread_self())
/*
 * Like curthread, for a thread that holds a lock or handles a packet: it is
 * attached.
 */
static inline struct thread *
thread_known(void)
{
	struct thread *td = mach_thread_self();

	KASSERT(td != NULL, ("thread_known: not attached"));
	return (td);
}

NOINLINE nsec_t thread_read_clock(struct thread *);	/* reads the clock */
/*
 * When the current packet or call of this thread began: the clock is read once
 * for it.  A thread that locks a socket discards the cached time, because no
 * timestamp stored in the socket may be in the future.
 */
static inline nsec_t
getuptime(void)
{
	struct thread *td = thread_known();

	return (__predict_true(td->td_now != 0) ? td->td_now :
	    thread_read_clock(td));
}
/* Discards the cached time, because a new packet or call begins. */
static inline void
forget_uptime(void)
{
	thread_known()->td_now = 0;
}

/*
 * Reports a signal to the calling thread: its sleeps with PCATCH end with
 * EINTR until td_interrupt is cleared.  Called in signal handlers.
 */
void	 thread_interrupt(void);

__cold void thread_hints_attach(struct thread *, unsigned slot,
	    size_t size);
/* This thread's cache in a slot: size bytes, zeroed when created. */
static inline void *
thread_hints(unsigned slot, size_t size)
{
	struct thread *td = thread_known();

	if (__predict_false(td->td_hints[slot] == NULL))
		thread_hints_attach(td, slot, size);
	return (td->td_hints[slot]);
}

/*
 * The entry of key in a cache of 1 << bits entries (Fibonacci hashing, Knuth,
 * volume 3, section 6.4).
 */
static inline void *
thread_hint(unsigned slot, size_t size, unsigned bits, uint32_t key)
{
	char *hints = thread_hints(slot, size << bits);

	return (hints + ((key * 0x9e3779b1u) >> (32 - bits)) * size);
}

/*
 * Calls fn for each struct thread, in use or ended; none is added or removed
 * meanwhile.  fn must not wait.
 */
void	 thread_foreach(void (*fn)(struct thread *, void *arg), void *arg);

/*
 * In the child of fork(): the list is unlocked, because a thread that had
 * locked it is not there.
 */
void	 threads_forked(void);

/* Creates a thread of the stack; cpu as in mach_thread_create(). */
int	 kthread_create(const char *name, int cpu, void (*fn)(void *),
	    void *arg, struct thread **);
void	 kthread_join(struct thread *);

#endif /* KERN_THREAD_H */
