/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callouts: functions that the clock thread calls later, with no lock held
 * except Giant if debug.mpsafenet=0.
 */
#ifndef KERN_CALLOUT_H
#define KERN_CALLOUT_H

#include "kern/systm.h"

typedef void callout_fn(void *);

extern struct lock_role callout_role;	/* the lock of a wheel */
struct callout_wheel;

/* [c] the lock of its wheel */
struct callout {
	struct callout_wheel *c_wheel;	/* [I] */
	/* [c] wheel slot list */
	struct callout	*c_next GUARDED_BY(callout_role), **c_prev
	    GUARDED_BY(callout_role);
	nsec_t		 c_when GUARDED_BY(callout_role);	/* [c] time */
	callout_fn	*c_fn GUARDED_BY(callout_role);	/* [c] */
	void		*c_arg GUARDED_BY(callout_role);	/* [c] */
	bool		 c_pending GUARDED_BY(callout_role);	/* [c] */
};

/* Its wheel is that of the calling thread's CPU. */
void	 callout_init(struct callout *);
/*
 * (Re)arms the callout to fire after delay.  Returns true if it was pending.
 * An owner that holds one reference for each pending callout takes another if
 * this returns false.
 */
bool	 callout_reset(struct callout *, nsec_t delay, callout_fn *, void *arg);
/* Returns true if the callout was pending and will not run. */
bool	 callout_stop(struct callout *);
bool	 callout_pending(struct callout *);
/* Like callout_stop(), and waits for a running handler to return. */
bool	 callout_drain(struct callout *);

#endif /* KERN_CALLOUT_H */
