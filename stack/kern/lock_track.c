/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maintains the list of locks that each thread holds, for the checks of their
 * order (witness.c) and for the profile (lock_prof.c).
 */
#include "kern/lock_track.h"

#include "kern/ddb.h"
#include "kern/lock_private.h"
#include "kern/watchdog.h"

void
lock_wanted(const void *l, enum lock_class class, const struct lock_site *site)
{
#ifdef WITNESS
	witness_order(&curthread->td_track, l, class, site);
#else
	(void)l, (void)class, (void)site;
#endif
}

void
lock_got(const void *l, enum lock_class class, const struct lock_site *site,
    nsec_t since)
{
	struct lock_track *lt = &curthread->td_track;
	struct lock_held *lh = &lt->lt_held[lt->lt_nheld];

	if (lt->lt_nheld == LOCK_HELD_MAX)
		panic("lock_got: more than %d locks; the last is %s",
		    LOCK_HELD_MAX, lock_classes[class].lc_name);
	*lh = (struct lock_held){ .lh_lock = l, .lh_class = (uint8_t)class,
	    .lh_site = site };
#ifdef LOCK_PROFILING
	if (lock_prof_enabled()) {
		lh->lh_since = mach_uptime();
		lh->lh_contested = since != 0;
		lh->lh_waited = since != 0 ? lh->lh_since - since : 0;
	}
#else
	(void)since;
#endif
	lt->lt_nheld++;
	sim_lock_got();
}

/* Locks may be released in any order; usually the latest is first. */
void
lock_leaving(const void *l)
{
	struct thread *td = curthread;
	struct lock_track *lt = &td->td_track;
	unsigned i = lt->lt_nheld;

	while (i > 0 && lt->lt_held[i - 1].lh_lock != l)
		i--;
	if (i == 0)
		panic("lock_leaving: %s does not hold this lock", td->td_name);
#ifdef LOCK_PROFILING
	lock_prof_release(td, &lt->lt_held[i - 1]);
#endif
	for (; i < lt->lt_nheld; i++)
		lt->lt_held[i - 1] = lt->lt_held[i];
	lt->lt_nheld--;
}

void
lock_track_wait(struct thread *td, const void *l, enum lock_class class,
    const struct lock_site *site)
{
	td->td_track.lt_wanted = (struct lock_held){ .lh_lock = l,
	    .lh_class = (uint8_t)class, .lh_site = site };
	watchdog_wait_begins(td);
}

void
lock_track_waited(struct thread *td)
{
	watchdog_wait_ended(td);
	td->td_track.lt_wanted.lh_lock = NULL;
}

void
lock_watch_init(void)
{
	ddb_locks_init();
	watchdog_init();
#ifdef WITNESS
	witness_init();
#endif
#ifdef LOCK_PROFILING
	lock_prof_init();
	mtx_prof_init();
#endif
}
