/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LOCK_PROFILING of FreeBSD since 2007: wait and hold times for each place
 * that acquires a lock.
 *
 * Each thread has its own table, so that profiling does not serialise the
 * threads.  A view adds the tables up, including those of ended threads.  The
 * profile of 2006, which does serialise, is in mutex_prof.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/lock_private.h"
#include "kern/lock_track.h"
#include "kern/sysctl.h"

#define	SLOTS		1024	/* places a thread; a power of two */
#define	PROBES		16	/* slots probed before a place is rejected */
#define	COST_TURNS	20000

/* Data of one place and class. [o] written by one thread only. */
struct lock_record {
	const struct lock_site *_Atomic lr_site;
	atomic_u32	 lr_class;
	atomic_u64	 lr_count, lr_contested;
	atomic_u64	 lr_hold, lr_hold_max;		/* ns */
	atomic_u64	 lr_wait, lr_wait_max;		/* ns */
};

struct lock_prof {
	/* a table of an older generation is empty */
	atomic_u32	 lp_generation;
	struct lock_record lp_records[SLOTS];
};

static atomic_u32 generation = 1;
static atomic_u64 rejected;

static void
reset(void)
{
	atomic_fetchadd_u32(&generation, 1);
	atomic_store_u64(&rejected, 0);
}

static struct prof_switch prof = { .ps_reset = reset };

bool
lock_prof_enabled(void)
{
	return (atomic_load_u32(&prof.ps_on) != 0);
}

/* Each counter has one writer: no atomic addition is needed. */
static void
add(atomic_u64 *p, uint64_t n)
{
	atomic_store_u64(p, atomic_load_u64(p) + n);
}

static void
raise_to(atomic_u64 *p, uint64_t n)
{
	if (n > atomic_load_u64(p))
		atomic_store_u64(p, n);
}

static void
record_clear(struct lock_record *lr)
{
	lr->lr_site = NULL;
	atomic_store_u64(&lr->lr_count, 0);
	atomic_store_u64(&lr->lr_contested, 0);
	atomic_store_u64(&lr->lr_hold, 0);
	atomic_store_u64(&lr->lr_hold_max, 0);
	atomic_store_u64(&lr->lr_wait, 0);
	atomic_store_u64(&lr->lr_wait_max, 0);
}

/* Empties a table that predates the last reset. */
static void
prof_refresh(struct lock_prof *lp)
{
	uint32_t now = atomic_load_u32(&generation);

	if (atomic_load_u32(&lp->lp_generation) == now)
		return;
	for (unsigned i = 0; i < SLOTS; i++)
		record_clear(&lp->lp_records[i]);
	atomic_store_rel_u32(&lp->lp_generation, now);
}

/*
 * The record of a place, created if missing; NULL: no free slot.  A function
 * in a header counts as one place for each file that includes it.
 */
static struct lock_record *
record_of(struct lock_prof *lp, const struct lock_site *site, unsigned class)
{
	uint64_t hash = ((uintptr_t)site ^ class) * 0x9e3779b97f4a7c15ULL;

	for (unsigned i = 0; i < PROBES; i++) {
		struct lock_record *lr =
		    &lp->lp_records[((hash >> 32) + i) % SLOTS];

		if (lr->lr_site == site &&
		    atomic_load_u32(&lr->lr_class) == class)
			return (lr);
		if (lr->lr_site == NULL) {
			atomic_store_u32(&lr->lr_class, class);
			lr->lr_site = site;
			return (lr);
		}
	}
	atomic_count_u64(&rejected, 1);
	return (NULL);
}

void
lock_prof_release(struct thread *td, const struct lock_held *lh)
{
	struct lock_prof *lp = td->td_prof;
	struct lock_record *lr;
	nsec_t held;

	if (lh->lh_since == 0 || !lock_prof_enabled())
		return;
	held = mach_uptime() - lh->lh_since;
	if (lp == NULL)
		td->td_prof = lp = kmalloc(sizeof(*lp));
	prof_refresh(lp);
	lr = record_of(lp, lh->lh_site, lh->lh_class);
	if (lr == NULL)
		return;
	add(&lr->lr_count, 1);
	add(&lr->lr_hold, held);
	raise_to(&lr->lr_hold_max, held);
	add(&lr->lr_contested, lh->lh_contested);
	add(&lr->lr_wait, lh->lh_waited);
	raise_to(&lr->lr_wait_max, lh->lh_waited);
}

/* Adds one table to another, which no other thread writes. */
static void
prof_add(struct lock_prof *to, struct lock_prof *from)
{
	prof_refresh(to);
	if (atomic_load_acq_u32(&from->lp_generation) !=
	    atomic_load_u32(&generation))
		return;
	for (unsigned i = 0; i < SLOTS; i++) {
		struct lock_record *lr = &from->lp_records[i], *sum;

		if (lr->lr_site == NULL)
			continue;
		sum = record_of(to, lr->lr_site, atomic_load_u32(&lr->lr_class));
		if (sum == NULL)
			continue;
		add(&sum->lr_count, atomic_load_u64(&lr->lr_count));
		add(&sum->lr_contested, atomic_load_u64(&lr->lr_contested));
		add(&sum->lr_hold, atomic_load_u64(&lr->lr_hold));
		raise_to(&sum->lr_hold_max, atomic_load_u64(&lr->lr_hold_max));
		add(&sum->lr_wait, atomic_load_u64(&lr->lr_wait));
		raise_to(&sum->lr_wait_max, atomic_load_u64(&lr->lr_wait_max));
	}
}

static void
add_thread(struct thread *td, void *arg)
{
	struct lock_prof *lp = td->td_prof;

	if (lp != NULL)
		prof_add(arg, lp);
}

/* Sorts by time waited, then by acquisitions. */
static int
by_wait(const void *a, const void *b)
{
	struct lock_record *x = *(struct lock_record *const *)a;
	struct lock_record *y = *(struct lock_record *const *)b;
	uint64_t xw = atomic_load_u64(&x->lr_wait);
	uint64_t yw = atomic_load_u64(&y->lr_wait);

	if (xw == yw) {
		xw = atomic_load_u64(&x->lr_count);
		yw = atomic_load_u64(&y->lr_count);
	}
	return (xw < yw ? 1 : xw > yw ? -1 : 0);
}

static unsigned long long
usec(atomic_u64 *ns, uint64_t count)
{
	return (count == 0 ? 0 : atomic_load_u64(ns) / NSEC_PER_USEC / count);
}

static void
show_record(struct ctl_out *co, struct lock_record *lr)
{
	const struct lock_site *site = lr->lr_site;
	uint64_t n = atomic_load_u64(&lr->lr_count);

	ctl_printf(co, "%6llu %8llu %12llu %12llu %11llu %5llu %8llu %8u %10llu "
	    "%s:%u (%s)\n", usec(&lr->lr_hold_max, 1), usec(&lr->lr_wait_max, 1),
	    usec(&lr->lr_hold, 1), usec(&lr->lr_wait, 1), (unsigned long long)n,
	    usec(&lr->lr_hold, n), usec(&lr->lr_wait, n), 0,
	    (unsigned long long)atomic_load_u64(&lr->lr_contested),
	    site->ls_file, site->ls_line,
	    lock_classes[atomic_load_u32(&lr->lr_class)].lc_name);
}

static void
lock_prof_show(struct ctl_out *co)
{
	struct lock_prof *sum = kmalloc(sizeof(*sum));
	struct lock_record **sorted = kmalloc(SLOTS * sizeof(*sorted));
	unsigned n = 0;

	thread_foreach(add_thread, sum);
	for (unsigned i = 0; i < SLOTS; i++)
		if (sum->lp_records[i].lr_site != NULL)
			sorted[n++] = &sum->lp_records[i];
	qsort(sorted, n, sizeof(sorted[0]), by_wait);
	prof_show_cost(co, &prof);
	ctl_printf(co, "%6s %8s %12s %12s %11s %5s %8s %8s %10s %s\n", "max",
	    "wait_max", "total", "wait_total", "count", "avg", "wait_avg",
	    "cnt_hold", "cnt_lock", "name");
	for (unsigned i = 0; i < n; i++)
		show_record(co, sorted[i]);
	kfree(sorted);
	kfree(sum);
}

/* Cost of an uncontended lock and unlock of a mutex, ns. */
static uint64_t
mutex_cost(void)
{
	struct mtx m;
	nsec_t start;

	mtx_init(&m, LC_PROFILE);
	start = mach_uptime();
	for (unsigned i = 0; i < COST_TURNS; i++) {
		mtx_lock(&m);
		mtx_unlock(&m);
	}
	return ((mach_uptime() - start) / COST_TURNS);
}

int
proc_prof_enable(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	struct prof_switch *ps = oid->oid_ptr;

	if (value == NULL) {
		snprintf(buf, len, "%u", atomic_load_u32(&ps->ps_on));
		return (0);
	}
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
		snprintf(buf, len, "'%s' is neither 0 nor 1", value);
		return (EINVAL);
	}
	atomic_store_u32(&ps->ps_on, 0);
	if (*value == '0')
		return (0);
	atomic_store_u64(&ps->ps_cost_off, mutex_cost());
	atomic_store_u32(&ps->ps_on, 1);
	atomic_store_u64(&ps->ps_cost_on, mutex_cost());
	ps->ps_reset();
	return (0);
}

int
proc_prof_reset(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	struct prof_switch *ps = oid->oid_ptr;

	snprintf(buf, len, "0");
	if (value != NULL)
		ps->ps_reset();
	return (0);
}

void
prof_show_cost(struct ctl_out *co, struct prof_switch *ps)
{
	ctl_printf(co, "# mutex lock and unlock: %llu ns; %llu without this "
	    "profile\n",
	    (unsigned long long)atomic_load_u64(&ps->ps_cost_on),
	    (unsigned long long)atomic_load_u64(&ps->ps_cost_off));
}

static const struct sysctl_oid lock_prof_oids[] = {
	{ .oid_name = "debug.lock.prof.enable", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &prof, .oid_max = 1,
	    .oid_proc = proc_prof_enable,
	    .oid_descr = "1: profile wait and hold times of each place that "
	        "locks" },
	{ .oid_name = "debug.lock.prof.reset", .oid_type = CTL_PROC,
	    .oid_flags = CTL_RUN, .oid_ptr = &prof,
	    .oid_proc = proc_prof_reset,
	    .oid_descr = "any value: reset the profile" },
	{ .oid_name = "debug.lock.prof.rejected", .oid_type = CTL_U64,
	    .oid_ptr = &rejected,
	    .oid_descr = "releases not recorded: table full" },
};

void
lock_prof_init(void)
{
	sysctl_register(lock_prof_oids, nitems(lock_prof_oids));
	ctl_view_register("lockprof", lock_prof_show);
}
