/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profile of sleeps: for each wait channel the count, the total time, the
 * median and the 99th percentile.
 *
 * Durations are counted in a histogram with four steps to each power of two,
 * so that the error of a percentile is at most an eighth.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/kern_private.h"
#include "kern/sysctl.h"

#define	CHANNELS_MAX	128	/* a power of two */
#define	STEPS		4	/* to a power of two */
#define	BUCKETS		(64 * STEPS)

/*
 *	[a] atomic
 */
static struct channel {
	atomic_uptr	 name;			/* [a] const char *, 0: free */
	atomic_u64	 count, total;		/* [a] total in ns */
	atomic_u64	 buckets[BUCKETS];	/* [a] */
} channels[CHANNELS_MAX];

static atomic_u32 enabled;
static atomic_u64 rejected;

/* NULL: the entry is free. */
static const char *
name_of(struct channel *c)
{
	return ((const char *)atomic_load_uptr(&c->name));
}

/* The position of the first bit, and the two bits after it. */
static unsigned
bucket_of(nsec_t ns)
{
	unsigned log;

	if (ns < STEPS)
		return ((unsigned)ns);
	log = 63 - (unsigned)__builtin_clzll(ns);
	return (log * STEPS + (unsigned)(ns >> (log - 2) & (STEPS - 1)));
}

/* The middle of a bucket, ns. */
static nsec_t
bucket_middle(unsigned b)
{
	unsigned log = b / STEPS;

	if (b < 2 * STEPS)
		return (b);
	return (((nsec_t)(STEPS + b % STEPS) << (log - 2)) +
	    ((nsec_t)1 << (log - 2)) / 2);
}

/*
 * A constant may have a different address in each file: the view merges equal
 * names.
 */
static struct channel *
channel_of(const char *name)
{
	uint64_t hash = (uintptr_t)name * 0x9e3779b97f4a7c15ULL >> 32;

	for (unsigned i = 0; i < CHANNELS_MAX; i++) {
		struct channel *c = &channels[(hash + i) % CHANNELS_MAX];
		uintptr_t there = 0;

		if (name_of(c) == name || atomic_cmpset_uptr(&c->name, &there,
		    (uintptr_t)name) || there == (uintptr_t)name)
			return (c);
	}
	return (NULL);
}

nsec_t
sleep_begins(void)
{
	return (atomic_load_u32(&enabled) != 0 ? mach_uptime() : 0);
}

void
sleep_ended(const char *name, nsec_t since)
{
	struct channel *c;
	nsec_t ns;

	if (since == 0 || atomic_load_u32(&enabled) == 0)
		return;
	ns = mach_uptime() - since;
	c = channel_of(name);
	if (c == NULL) {
		atomic_count_u64(&rejected, 1);
		return;
	}
	atomic_count_u64(&c->count, 1);
	atomic_count_u64(&c->total, ns);
	atomic_count_u64(&c->buckets[bucket_of(ns)], 1);
}

static nsec_t
percentile(struct channel *c, unsigned percent)
{
	uint64_t wanted = (atomic_load_u64(&c->count) * percent + 99) / 100;
	uint64_t seen = 0;

	for (unsigned b = 0; b < BUCKETS; b++) {
		seen += atomic_load_u64(&c->buckets[b]);
		if (seen >= wanted)
			return (bucket_middle(b));
	}
	return (0);
}

static void
channel_add(struct channel *to, struct channel *from)
{
	atomic_store_uptr(&to->name, atomic_load_uptr(&from->name));
	atomic_count_u64(&to->count, atomic_load_u64(&from->count));
	atomic_count_u64(&to->total, atomic_load_u64(&from->total));
	for (unsigned b = 0; b < BUCKETS; b++)
		atomic_count_u64(&to->buckets[b],
		    atomic_load_u64(&from->buckets[b]));
}

/* Sums entries with equal names; returns the number of names. */
static unsigned
gather(struct channel *sums)
{
	unsigned n = 0, i;

	for (struct channel *c = channels; c < channels + CHANNELS_MAX; c++) {
		if (name_of(c) == NULL || atomic_load_u64(&c->count) == 0)
			continue;
		for (i = 0; i < n && strcmp(name_of(&sums[i]), name_of(c)) != 0; i++)
			continue;
		channel_add(&sums[i], c);
		if (i == n)
			n++;
	}
	return (n);
}

static int
by_count(const void *a, const void *b)
{
	uint64_t x = atomic_load_u64(&(*(struct channel *const *)a)->count);
	uint64_t y = atomic_load_u64(&(*(struct channel *const *)b)->count);

	return (x < y ? 1 : x > y ? -1 : 0);
}

static void
sleep_prof_show(struct ctl_out *co)
{
	struct channel *sums = kmalloc(CHANNELS_MAX * sizeof(*sums));
	struct channel **sorted = kmalloc(CHANNELS_MAX * sizeof(*sorted));
	unsigned n = gather(sums);

	for (unsigned i = 0; i < n; i++)
		sorted[i] = &sums[i];
	qsort(sorted, n, sizeof(sorted[0]), by_count);
	ctl_printf(co, "%11s %14s %12s %12s %s\n", "count", "total us", "p50 us",
	    "p99 us", "wait channel");
	for (unsigned i = 0; i < n; i++)
		ctl_printf(co, "%11llu %14llu %12.1f %12.1f %s\n",
		    (unsigned long long)atomic_load_u64(&sorted[i]->count),
		    (unsigned long long)(atomic_load_u64(&sorted[i]->total) /
		    NSEC_PER_USEC), (double)percentile(sorted[i], 50) / 1e3,
		    (double)percentile(sorted[i], 99) / 1e3, name_of(sorted[i]));
	kfree(sorted);
	kfree(sums);
}

static int
proc_reset(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	(void)oid;
	if (len > 1)
		memcpy(buf, "0", 2);
	if (value == NULL)
		return (0);
	atomic_store_u64(&rejected, 0);
	for (struct channel *c = channels; c < channels + CHANNELS_MAX; c++) {
		atomic_store_u64(&c->count, 0);
		atomic_store_u64(&c->total, 0);
		for (unsigned b = 0; b < BUCKETS; b++)
			atomic_store_u64(&c->buckets[b], 0);
	}
	return (0);
}

static const struct sysctl_oid sleep_prof_oids[] = {
	{ .oid_name = "debug.sleepq.prof.enable", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &enabled, .oid_max = 1,
	    .oid_descr = "1: profile sleeps (stackctl sleepprof)" },
	{ .oid_name = "debug.sleepq.prof.reset", .oid_type = CTL_PROC,
	    .oid_flags = CTL_RUN, .oid_proc = proc_reset,
	    .oid_descr = "any value: reset the profile" },
	{ .oid_name = "debug.sleepq.prof.rejected", .oid_type = CTL_U64,
	    .oid_ptr = &rejected,
	    .oid_descr = "sleeps not recorded: table full" },
};

void
sleep_prof_init(void)
{
	sysctl_register(sleep_prof_oids, nitems(sleep_prof_oids));
	ctl_view_register("sleepprof", sleep_prof_show);
}
