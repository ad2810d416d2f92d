/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MUTEX_PROFILING of FreeBSD in 2006, with its columns and its flaws.  Every
 * release looks its place up in one table under one spin lock, so profiling
 * slows the profiled code (lock_prof.c does not).
 *
 * The key is the place that acquired the mutex.  Each failed attempt to get a
 * mutex adds one to cnt_hold of the place where its owner acquired it, even
 * for repeated attempts of one thread.  cnt_lock counts acquisitions that had
 * to wait, at the acquiring place.  The kernel of 2006 kept these tallies
 * while profiling was off and credited them to the first release after it was
 * switched on; here they begin at zero.
 */
#include <stdio.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/lock_private.h"
#include "kern/lock_track.h"
#include "kern/spin.h"
#include "kern/sysctl.h"

#define	RECORDS_MAX	1000
#define	BUCKETS		1009	/* a prime */

static struct spin table_lock;

/*
 *	[s] table_lock
 */
struct mtx_record {
	/* [s] of the same bucket */
	struct mtx_record *mr_next GUARDED_BY(table_lock);
	const struct lock_site *mr_site GUARDED_BY(table_lock);	/* [s] */
	unsigned	 mr_class GUARDED_BY(table_lock);	/* [s] */
	/* [s] longest and total time held, ns; acquisitions */
	uint64_t	 mr_max GUARDED_BY(table_lock),
			 mr_total GUARDED_BY(table_lock), mr_count
	    GUARDED_BY(table_lock);
	/* [s] */
	uint64_t	 mr_hold GUARDED_BY(table_lock), mr_lock
	    GUARDED_BY(table_lock);
};

static struct mtx_record records[RECORDS_MAX] GUARDED_BY(table_lock);
static struct mtx_record *buckets[BUCKETS] GUARDED_BY(table_lock);
static unsigned nrecords GUARDED_BY(table_lock);
/* tallies of an earlier generation are invalid */
static atomic_u32 generation = 1;
static atomic_u64 acquisitions, rejected, collisions;

static void
reset(void)
{
	spin_lock(&table_lock);
	memset(records, 0, sizeof(records));
	memset(buckets, 0, sizeof(buckets));
	nrecords = 0;
	spin_unlock(&table_lock);
	atomic_fetchadd_u32(&generation, 1);
	atomic_store_u64(&acquisitions, 0);
	atomic_store_u64(&rejected, 0);
	atomic_store_u64(&collisions, 0);
}

static struct prof_switch prof = { .ps_reset = reset };

/* Fowler, Noll and Vo's hash of file and line. */
static unsigned
bucket_of(const struct lock_site *site)
{
	uint32_t hash = 2166136261U;

	for (const char *c = site->ls_file; *c != '\0'; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619U;
	return ((hash ^ site->ls_line) % BUCKETS);
}

static bool
same_site(const struct lock_site *a, const struct lock_site *b)
{
	return (a == b || (a->ls_line == b->ls_line &&
	    strcmp(a->ls_file, b->ls_file) == 0));
}

/* NULL: the table is full. */
static struct mtx_record *
record_of(const struct lock_site *site, unsigned class) REQUIRES(table_lock)
{
	unsigned b = bucket_of(site);
	struct mtx_record *mr;

	for (mr = buckets[b]; mr != NULL; mr = mr->mr_next)
		if (same_site(mr->mr_site, site))
			return (mr);
	if (nrecords == RECORDS_MAX) {
		atomic_count_u64(&rejected, 1);
		return (NULL);
	}
	if (buckets[b] != NULL)
		atomic_count_u64(&collisions, 1);
	mr = &records[nrecords++];
	mr->mr_site = site;
	mr->mr_class = class;
	mr->mr_next = buckets[b];
	buckets[b] = mr;
	return (mr);
}

void
mtx_prof_bounce(struct mtx *m)
{
	if (atomic_load_u32(&prof.ps_on) != 0)
		atomic_count_u32(&m->mtx_prof.mp_hold, 1);
}

nsec_t
lock_wait_begins(void)
{
	if (atomic_load_u32(&prof.ps_on) == 0 && !lock_prof_enabled())
		return (0);
	return (mach_uptime());
}

void
mtx_prof_got(struct mtx *m, const struct lock_site *site, bool waited)
{
	struct mtx_prof *mp = &m->mtx_prof;
	uint32_t now = atomic_load_u32(&generation);

	mp->mp_since = 0;
	if (atomic_load_u32(&prof.ps_on) == 0)
		return;
	if (mp->mp_generation != now) {
		mp->mp_generation = now;
		mp->mp_lock = 0;
		atomic_store_u32(&mp->mp_hold, 0);
	}
	if (waited) {
		mp->mp_lock++;
		/* These tallies belong to the previous owner. */
		atomic_store_u32(&mp->mp_hold, 0);
	}
	mp->mp_site = site;
	mp->mp_since = mach_uptime();
	atomic_count_u64(&acquisitions, 1);
}

void
mtx_prof_leaving(struct mtx *m)
{
	struct mtx_prof *mp = &m->mtx_prof;
	struct mtx_record *mr;
	nsec_t held;

	if (mp->mp_since == 0 || atomic_load_u32(&prof.ps_on) == 0)
		return;
	held = mach_uptime() - mp->mp_since;
	spin_lock(&table_lock);
	mr = record_of(mp->mp_site, m->mtx_class);
	if (mr != NULL) {
		mr->mr_count++;
		mr->mr_total += held;
		if (held > mr->mr_max)
			mr->mr_max = held;
		mr->mr_hold += atomic_swap_u32(&mp->mp_hold, 0);
		mr->mr_lock += mp->mp_lock;
		mp->mp_lock = 0;
	}
	spin_unlock(&table_lock);
}

static void
show_record(struct ctl_out *co, const struct mtx_record *mr)
    REQUIRES(table_lock)
{
	ctl_printf(co, "%7llu %12llu %11llu %5llu %12llu %12llu %s:%u (%s)\n",
	    (unsigned long long)(mr->mr_max / NSEC_PER_USEC),
	    (unsigned long long)(mr->mr_total / NSEC_PER_USEC),
	    (unsigned long long)mr->mr_count,
	    (unsigned long long)(mr->mr_total / NSEC_PER_USEC / mr->mr_count),
	    (unsigned long long)mr->mr_hold, (unsigned long long)mr->mr_lock,
	    mr->mr_site->ls_file, mr->mr_site->ls_line,
	    lock_classes[mr->mr_class].lc_name);
}

/* Printed unsorted, as in 2006; use sort(1). */
static void
mutex_prof_show(struct ctl_out *co)
{
	prof_show_cost(co, &prof);
	ctl_printf(co, "%7s %12s %11s %5s %12s %12s %s\n", "max", "total",
	    "count", "avg", "cnt_hold", "cnt_lock", "name");
	spin_lock(&table_lock);
	for (unsigned i = 0; i < nrecords; i++)
		if (records[i].mr_count > 0)
			show_record(co, &records[i]);
	spin_unlock(&table_lock);
}

static int
proc_records(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	(void)oid, (void)value;
	spin_lock(&table_lock);
	snprintf(buf, len, "%u", nrecords);
	spin_unlock(&table_lock);
	return (0);
}

static const struct sysctl_oid mutex_prof_oids[] = {
	{ .oid_name = "debug.mutex.prof.enable", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &prof, .oid_max = 1,
	    .oid_proc = proc_prof_enable,
	    .oid_descr = "1: profile mutexes like the kernel of 2006" },
	{ .oid_name = "debug.mutex.prof.reset", .oid_type = CTL_PROC,
	    .oid_flags = CTL_RUN, .oid_ptr = &prof,
	    .oid_proc = proc_prof_reset,
	    .oid_descr = "any value: reset the profile" },
	{ .oid_name = "debug.mutex.prof.acquisitions", .oid_type = CTL_U64,
	    .oid_ptr = &acquisitions, .oid_descr = "mutexes acquired" },
	{ .oid_name = "debug.mutex.prof.records", .oid_type = CTL_PROC,
	    .oid_proc = proc_records, .oid_descr = "places recorded" },
	{ .oid_name = "debug.mutex.prof.rejected", .oid_type = CTL_U64,
	    .oid_ptr = &rejected,
	    .oid_descr = "releases not recorded: table full" },
	{ .oid_name = "debug.mutex.prof.collisions", .oid_type = CTL_U64,
	    .oid_ptr = &collisions,
	    .oid_descr = "places that share a bucket of the table" },
};

void
mtx_prof_init(void)
{
	sysctl_register(mutex_prof_oids, nitems(mutex_prof_oids));
	ctl_view_register("mutexprof", mutex_prof_show);
}
