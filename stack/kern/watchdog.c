/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watchdog.  Several times in debug.watchdog.seconds it checks every
 * thread and every queue.  A thread hangs if it waits at each check for the
 * same lock or for the same step of another thread.  A queue hangs if it has
 * packets and none was handled.
 *
 * Each hang is reported by name.  The first report also prints ddb(4)'s ps,
 * show alllocks, and the stacks of all threads.
 *
 * The watchdog counts checks, not time: a stack that was stopped and continues
 * does not hang.  It takes no lock that a thread may hold for long.
 */
#include "kern/watchdog.h"

#include <stdio.h>

#include "kern/ddb.h"
#include "kern/kern_private.h"
#include "kern/sysctl.h"
#include "kern/thread.h"

#define	LOOKS		4	/* checks within the time of the tunable */
#define	HUNG_MAX	16	/* max threads reported at one check */
#define	SOURCES_MAX	4
#define	NUMBERS_MAX	64	/* max queues of one source */

static struct source {
	const char	*name;			/* [I] after boot */
	watch_t		*watch;			/* [I] after boot */
	uint64_t	 done[NUMBERS_MAX];	/* [w] at the last check */
	unsigned	 looks[NUMBERS_MAX]; /* [w] checks without progress */
} sources[SOURCES_MAX];
static unsigned nsources;			/* [I] after boot */

static atomic_u32 seconds;		/* [I] after boot; 0: off */
static atomic_u64 hangs;		/* [a] */
static atomic_u32 stop; /* [a] the watchdog parks on this word */
static struct thread *watchdog;		/* [I] or NULL */
static bool shown;			/* [w] the views were printed */

static const struct sysctl_oid watchdog_oids[] = {
	{ .oid_name = "debug.watchdog.seconds", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN, .oid_ptr = &seconds, .oid_max = 86400,
	    .oid_descr = "seconds without progress until the watchdog "
	    "reports; 0: no watchdog" },
	{ .oid_name = "debug.watchdog.hangs", .oid_type = CTL_U64,
	    .oid_ptr = &hangs,
	    .oid_descr = "hung threads and queues reported" },
};

void
watchdog_watch(const char *what, watch_t *watch)
{
	KASSERT(nsources < SOURCES_MAX, ("watchdog_watch: %s: no room", what));
	sources[nsources].name = what;
	sources[nsources++].watch = watch;
}

void
watchdog_wait_begins(struct thread *td)
{
	struct lock_track *lt = &td->td_track;

	atomic_store_u32(&lt->lt_waits, atomic_load_u32(&lt->lt_waits) + 1);
	atomic_store_u32(&lt->lt_due, 1);
}

void
watchdog_wait_ended(struct thread *td)
{
	atomic_store_u32(&td->td_track.lt_due, 0);
}

/* True exactly once for each hang. */
static bool
too_long(unsigned *looks, bool same)
{
	*looks = same ? *looks + 1 : 0;
	return (*looks == LOOKS);
}

static bool
thread_hangs(struct thread *td)
{
	struct lock_track *lt = &td->td_track;
	const uint32_t waits = atomic_load_u32(&lt->lt_waits);
	const bool same = atomic_load_u32(&lt->lt_due) != 0 &&
	    waits == lt->lt_seen;

	lt->lt_seen = waits;
	return (too_long(&lt->lt_looks, same));
}

struct hung {
	char		 name[24], what[32];
	uint32_t	 id;
};
struct hung_list {
	struct hung	 first[HUNG_MAX];
	unsigned	 n;
};

static void
look_at_thread(struct thread *td, void *arg) REQUIRES(threads_lock)
{
	struct hung_list *list = arg;
	const char *lock = td->td_blocked, *chan = td->td_wmesg;
	struct hung *h;

	if (td->td_ended || !thread_hangs(td) || list->n == HUNG_MAX)
		return;
	h = &list->first[list->n++];
	snprintf(h->name, sizeof(h->name), "%s", td->td_name);
	snprintf(h->what, sizeof(h->what), "%s%s", lock != NULL ? "lock " :
	    "", lock != NULL ? lock : chan != NULL ? chan : "something");
	h->id = atomic_load_u32(&td->td_id);
}

static unsigned
look_at_threads(void)
{
	struct hung_list list = { .n = 0 };

	thread_foreach(look_at_thread, &list);
	for (unsigned i = 0; i < list.n; i++)
		console("watchdog: %s (%u) has waited for %s for %u s",
		    list.first[i].name, list.first[i].id, list.first[i].what,
		    atomic_load_u32(&seconds));
	return (list.n);
}

static unsigned
look_at_source(struct source *s)
{
	struct watched w;
	unsigned found = 0;

	for (unsigned i = 0; i < NUMBERS_MAX && s->watch(i, &w); i++) {
		const bool same = w.wd_waiting > 0 && w.wd_done == s->done[i];

		s->done[i] = w.wd_done;
		if (!too_long(&s->looks[i], same))
			continue;
		found++;
		console("watchdog: %s %u: %u queued, none handled for %u s",
		    s->name, i, w.wd_waiting,
		    atomic_load_u32(&seconds));
	}
	return (found);
}

static void
show_all(void)
{
	ddb_ps(NULL);
	ddb_alllocks(NULL);
	ddb_stacks(NULL);
	console("watchdog: end of report; later hangs get one line each");
}

/* The counter is incremented after the report. */
static void
look(void)
{
	unsigned found = look_at_threads();

	for (unsigned i = 0; i < nsources; i++)
		found += look_at_source(&sources[i]);
	if (found > 0 && !shown) {
		shown = true;
		show_all();
	}
	atomic_count_u64(&hangs, found);
}

static void
watchdog_main(void *arg)
{
	const nsec_t pause = atomic_load_u32(&seconds) * NSEC_PER_SEC / LOOKS;
	nsec_t next = mach_uptime() + pause;

	(void)arg;
	while (atomic_load_acq_u32(&stop) == 0) {
		if (mach_uptime() < next) {
			(void)mach_park(&stop, 0, next);
			continue;
		}
		look();
		next = mach_uptime() + pause;
	}
}

int
watchdog_start(void)
{
	if (atomic_load_u32(&seconds) == 0)
		return (0);
	return (kthread_create("watchdog", MACH_CPU_ANY, watchdog_main, NULL,
	    &watchdog));
}

void
watchdog_stop(void)
{
	if (watchdog == NULL)
		return;
	atomic_store_rel_u32(&stop, 1);
	mach_unpark(&stop, 1);
	kthread_join(watchdog);
	watchdog = NULL;
}

void
watchdog_init(void)
{
	sysctl_register(watchdog_oids, nitems(watchdog_oids));
}
