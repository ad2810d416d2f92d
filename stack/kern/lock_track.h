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
 * A lock that a thread holds or waits for.  Other threads read it without
 * synchronization ("show alllocks"), so their view may be stale.
 */
struct lock_held {
	const void	*lh_lock;
	const struct lock_site *lh_site;
	nsec_t		 lh_since;	/* profiled: when it was acquired */
	/* profiled: how long the acquisition took */
	nsec_t		 lh_waited;
	bool		 lh_contested;	/* profiled: the lock was contended */
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
	struct lock_held lt_wanted;	/* [o] lh_lock is NULL: not waiting */
	atomic_u32	 lt_due; /* [a] waits for a step of another thread */
	atomic_u32	 lt_waits;	/* [a] number of such waits */
	uint32_t	 lt_seen;	/* [w] lt_waits when last checked */
	unsigned	 lt_looks;	/* [w] checks without a change */
};

#ifdef LOCK_PROFILING
struct ctl_out;
struct lock_prof;
struct sysctl_oid;

/* The switch of either profile, and the measured cost of profiling. */
struct prof_switch {
	atomic_u32	 ps_on;		/* [a] */
	atomic_u64	 ps_cost_off;	/* [a] ns for a lock and unlock */
	atomic_u64	 ps_cost_on;	/* [a] the same while profiling */
	void		(*ps_reset)(void); /* [I] */
};
int	 proc_prof_enable(const struct sysctl_oid *, const char *, char *,
	    size_t);
int	 proc_prof_reset(const struct sysctl_oid *, const char *, char *,
	    size_t);
void	 prof_show_cost(struct ctl_out *, struct prof_switch *);

/* The profile of 2007: a lock was released. */
void	 lock_prof_release(struct thread *, const struct lock_held *);
bool	 lock_prof_enabled(void);
void	 lock_prof_init(void);
void	 mtx_prof_init(void);
#endif

/* Registers the trackers that were compiled in. */
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
 * Checks the class table's order before a lock is acquired.  A thread that
 * holds locks where it must not (sleep, return from a handler, exit) is
 * reported in the same way.
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
