/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WITNESS (witness(4)): checks the order in which locks are acquired.
 *
 * The order is that of the class table (kern/lock.h).  A reversal is therefore
 * found when either side runs; both need not have happened.
 */
#include <stdio.h>

#include "kern/lock_private.h"
#include "kern/lock_track.h"
#include "kern/spin.h"
#include "kern/sysctl.h"

#define	REPORTS_MAX	64

enum witness_mode { WITNESS_WARN, WITNESS_PANIC };
static const char *const mode_names[] = { "warn", "panic", NULL };

static atomic_u32 mode = WITNESS_PANIC;
static atomic_u64 reversals, leaks;

/* Pairs of places already reported: each is reported once. */
static struct spin report_lock;
static struct {
	const struct lock_site *first, *second;
} reports[REPORTS_MAX] GUARDED_BY(report_lock);
static unsigned nreports GUARDED_BY(report_lock);

static bool
is_new(const struct lock_site *first, const struct lock_site *second)
{
	bool new = true;

	spin_lock(&report_lock);
	for (unsigned i = 0; i < nreports; i++)
		if (reports[i].first == first && reports[i].second == second)
			new = false;
	if (new && nreports < REPORTS_MAX) {
		reports[nreports].first = first;
		reports[nreports++].second = second;
	}
	spin_unlock(&report_lock);
	return (new);
}

static void
describe(char *buf, size_t len, const void *l, enum lock_class class,
    const struct lock_site *site)
{
	snprintf(buf, len, "%s (%p) @ %s:%u", lock_classes[class].lc_name, l,
	    site->ls_file, site->ls_line);
}

static void
complain(const char *what, const char *first, const char *second)
{
	if (atomic_load_u32(&mode) == WITNESS_PANIC)
		panic("%s: 1st %s, 2nd %s", what, first, second);
	console("%s:", what);
	console(" 1st %s", first);
	console(" 2nd %s", second);
}

static void
report(const char *what, const struct lock_held *lh, const void *l,
    enum lock_class class, const struct lock_site *site)
{
	char first[128], second[128];

	atomic_count_u64(&reversals, 1);
	if (!is_new(lh->lh_site, site))
		return;
	describe(first, sizeof(first), lh->lh_lock, lh->lh_class, lh->lh_site);
	describe(second, sizeof(second), l, class, site);
	complain(what, first, second);
}

/* Why a second lock of a class is an error, or NULL. */
static const char *
wrong_twice(const void *held, const void *l, enum lock_class class,
    const struct lock_site *site)
{
	/* a recursive read deadlocks if a writer waits in between */
	if (held == l)
		return ("acquiring a lock that is held");
	switch (lock_classes[class].lc_twice) {
	case LOCK_ANY:
		return (NULL);
	case LOCK_ADDRESS:
		return (site->ls_child || (uintptr_t)held < (uintptr_t)l ?
		    NULL : "acquiring locks of same class against the order "
		    "of addresses");
	default:
		return ("acquiring duplicate lock of same class");
	}
}

void
witness_order(const struct lock_track *lt, const void *l,
    enum lock_class class, const struct lock_site *site)
{
	const int rank = lock_classes[class].lc_rank;

	for (unsigned i = 0; i < lt->lt_nheld; i++) {
		const struct lock_held *lh = &lt->lt_held[i];
		const char *what = NULL;

		if (lh->lh_class == class)
			what = wrong_twice(lh->lh_lock, l, class, site);
		else if (lock_classes[lh->lh_class].lc_rank >= rank)
			what = "lock order reversal";
		if (what != NULL)
			report(what, lh, l, class, site);
	}
}

void
witness_none(const char *where)
{
	const struct thread *td = curthread;
	const struct lock_track *lt = &td->td_track;

	for (unsigned i = 0; i < lt->lt_nheld; i++) {
		const struct lock_held *lh = &lt->lt_held[i];
		char held[128];

		atomic_count_u64(&leaks, 1);
		describe(held, sizeof(held), lh->lh_lock, lh->lh_class,
		    lh->lh_site);
		if (atomic_load_u32(&mode) == WITNESS_PANIC)
			panic("%s: %s holds %s", where, td->td_name, held);
		console("%s: %s holds %s", where, td->td_name, held);
	}
}

static const struct sysctl_oid witness_oids[] = {
	{ .oid_name = "debug.witness.mode", .oid_type = CTL_ENUM,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &mode,
	    .oid_names = mode_names,
	    .oid_descr = "reaction to a lock order violation: warn, panic" },
	{ .oid_name = "debug.witness.reversals", .oid_type = CTL_U64,
	    .oid_ptr = &reversals,
	    .oid_descr = "lock order violations" },
	{ .oid_name = "debug.witness.leaks", .oid_type = CTL_U64,
	    .oid_ptr = &leaks,
	    .oid_descr = "locks held where none may be" },
};

void
witness_init(void)
{
	sysctl_register(witness_oids, nitems(witness_oids));
}
