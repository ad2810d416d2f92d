/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The locks that a thread holds, in builds that keep track of them
 * (-Dwitness=true, -Dlock_profiling=true).
 */
#ifndef KERN_LOCK_TRACK_H
#define KERN_LOCK_TRACK_H

#include "kern/lock.h"

struct thread;

#define	LOCK_HELD_MAX	16

/*
 * A lock that is held, or that a thread waits for; read by others for a
 * look ("show alllocks"), which may be late.
 */
struct lock_held {
	const void	*lh_lock;
	const struct lock_site *lh_site;
	nsec_t		 lh_since;	/* profiled: when it was acquired */
	nsec_t		 lh_waited;	/* profiled: how long that took */
	bool		 lh_contested;	/* profiled: it was not free */
	uint8_t		 lh_class;	/* enum lock_class */
};

/*
 * Locks used to protect its members:
 *	[o] the thread that has it in its struct thread
 *	[a] atomic
 *	[w] the watchdog
 */
struct lock_track {
	struct lock_held lt_held[LOCK_HELD_MAX];	/* [o] */
	unsigned	 lt_nheld;			/* [o] */
	struct lock_held lt_wanted;	/* [o] no lh_lock: nothing */
	atomic_u32	 lt_due;	/* [a] waits for what must come soon */
	atomic_u32	 lt_waits;	/* [a] how often it has */
	uint32_t	 lt_seen;	/* [w] lt_waits at the last look */
	unsigned	 lt_looks;	/* [w] since when it is the same */
};

#ifdef LOCK_PROFILING
struct ctl_out;
struct lock_prof;
struct sysctl_oid;

/* What both profiles are switched by, and what they say of their own cost. */
struct prof_switch {
	atomic_u32	 ps_on;		/* [a] */
	atomic_u64	 ps_cost_off;	/* [a] a mutex got and let go, ns */
	atomic_u64	 ps_cost_on;	/* [a] the same while it counts */
	void		(*ps_reset)(void); /* [I] */
};
int	 proc_prof_enable(const struct sysctl_oid *, const char *, char *,
	    size_t);
int	 proc_prof_reset(const struct sysctl_oid *, const char *, char *,
	    size_t);
void	 prof_show_cost(struct ctl_out *, struct prof_switch *);

/* The profile of 2007: a lock was let go. */
void	 lock_prof_release(struct thread *, const struct lock_held *);
bool	 lock_prof_enabled(void);
void	 lock_prof_init(void);
void	 mtx_prof_init(void);
#endif

/* Registers what was compiled in. */
#ifdef LOCK_TRACKING
void	 lock_watch_init(void);
#else
static inline void
lock_watch_init(void)
{
}
#endif

#ifdef WITNESS
/*
 * The order of the class table is checked whenever a lock is asked for.  A
 * thread that holds locks where it must not is reported the same way: going
 * to sleep, coming back from a handler, ending.
 */
void	 witness_order(const struct lock_track *, const void *,
	    enum lock_class, const struct lock_site *);
void	 witness_none(const char *where);
void	 witness_init(void);
#else
static inline void
witness_none(const char *where)
{
	(void)where;
}
#endif

#endif /* KERN_LOCK_TRACK_H */
