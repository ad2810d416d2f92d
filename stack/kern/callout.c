/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callouts: timing wheels and the clock thread.
 *
 * A callout is in the slot of the tick at which it is due.  Callouts of later
 * turns of the wheel stay in their slot (Varghese and Lauck 1987, scheme 6).
 * Each CPU has a wheel with its own lock (kern.callout.wheels), where the
 * callouts are that it has initialised.
 *
 * The clock thread runs the handlers of all wheels one after the other without
 * a lock, and sleeps until the first is due.  clk.wake is the tick at which it
 * wakes, or WORKING while it visits the wheels: a callout that is due earlier
 * may be in a wheel that it has visited, so it visits all again.
 */
#include "kern/callout.h"

#include <errno.h>

#include "kern/kern_private.h"
#include "kern/netlock.h"
#include "kern/planted.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "kern/worker.h"

#define	WHEEL_SIZE	1024
#define	WHEELS_MAX	64	/* more CPUs share them */
#define	TICK		NSEC_PER_MSEC
#define	WORKING		UINT64_MAX

static worker_fn run_due;

struct callout_wheel {
	struct mtx	 lock;
	struct callout	*slot[WHEEL_SIZE] GUARDED_BY(lock);	/* [c] */
	uint64_t	 tick GUARDED_BY(lock);	/* [c] next to process */
	/* [c] no callout is due before this tick */
	uint64_t	 next GUARDED_BY(lock);
	/* [c] callouts in the wheel */
	unsigned	 pending GUARDED_BY(lock);
	struct callout	*running GUARDED_BY(lock);	/* [c] */
} __attribute__((aligned(64)));

static struct callout_wheel wheels[WHEELS_MAX];
static unsigned nwheels = 1;		/* [I] after boot */

static struct {
	struct mtx	 lock;
	atomic_u64	 wake;		/* [a] tick, or WORKING */
	atomic_u32	 again;		/* [a] visit the wheels again */
	struct worker	 worker;
} clk = {
	.worker = { .w_lock = &clk.lock, .w_fn = run_due, .w_wmesg = "clock" },
};

enum { WHEELS_ONE, WHEELS_CPU };
static const char *const wheels_names[] = { "one", "cpu", NULL };
static atomic_u32 wheels_choice = WHEELS_CPU;	/* [I] after boot */

static const struct sysctl_oid callout_oids[] = {
	{ .oid_name = "kern.callout.wheels", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &wheels_choice,
	  .oid_names = wheels_names,
	  .oid_descr = "timing wheels, each with a lock: one, or one for each "
	  "CPU (cpu)" },
};

static struct callout **
slot_of(struct callout_wheel *w, uint64_t tick) REQUIRES(w->lock)
{
	return (&w->slot[tick % WHEEL_SIZE]);
}

static uint64_t
due_tick(const struct callout *c) REQUIRES(callout_role)
{
	return ((c->c_when + TICK - 1) / TICK);
}

static void
wheel_insert(struct callout_wheel *w, struct callout *c)
    REQUIRES(w->lock, callout_role)
{
	uint64_t tick = due_tick(c);
	struct callout **head;

	/* If that tick was processed already, the next one. */
	head = slot_of(w, tick < w->tick ? w->tick : tick);
	c->c_next = *head;
	if (c->c_next != NULL)
		c->c_next->c_prev = &c->c_next;
	c->c_prev = head;
	*head = c;
	c->c_pending = true;
	w->pending++;
	if (tick < w->next)
		w->next = tick;
}

static void
wheel_remove(struct callout_wheel *w, struct callout *c)
    REQUIRES(w->lock, callout_role)
{
	KASSERT(c->c_pending && w->pending > 0,
	    ("wheel_remove: %u pending", w->pending));
	*c->c_prev = c->c_next;
	if (c->c_next != NULL)
		c->c_next->c_prev = c->c_prev;
	c->c_pending = false;
	w->pending--;
}

void
callout_init(struct callout *c)
{
	*c = (struct callout){ .c_wheel = nwheels == 1 ? wheels :
	    &wheels[mach_curcpu() % nwheels] };
}

/* A callout is due before the clock thread would look. */
NOINLINE static void
clock_wake(void)
{
	if (atomic_load_u32(&clk.again) != 0)
		return;
	mtx_lock(&clk.lock);
	atomic_store_u32(&clk.again, 1);
	worker_wake(&clk.worker);
	mtx_unlock(&clk.lock);
}

__hot bool
callout_reset(struct callout *c, nsec_t delay, callout_fn *fn, void *arg)
{
	struct callout_wheel *w = c->c_wheel;
	uint64_t due;
	bool was;

	mtx_lock_as(&w->lock, &callout_role);
	was = c->c_pending;
	if (was)
		wheel_remove(w, c);
	c->c_when = mach_uptime() + delay;
	c->c_fn = fn;
	c->c_arg = arg;
	wheel_insert(w, c);
	due = due_tick(c);
	mtx_unlock_as(&w->lock, &callout_role);
	if (due < atomic_load_u64(&clk.wake))
		clock_wake();
	return (was);
}

bool
callout_stop(struct callout *c)
{
	struct callout_wheel *w = c->c_wheel;
	bool was;

	mtx_lock_as(&w->lock, &callout_role);
	was = c->c_pending;
	if (was)
		wheel_remove(w, c);
	mtx_unlock_as(&w->lock, &callout_role);
	return (was);
}

bool
callout_pending(struct callout *c)
{
	struct callout_wheel *w = c->c_wheel;
	bool is;

	mtx_lock_as(&w->lock, &callout_role);
	is = c->c_pending;
	mtx_unlock_as(&w->lock, &callout_role);
	return (is);
}

bool
callout_drain(struct callout *c)
{
	struct callout_wheel *w = c->c_wheel;
	bool was = callout_stop(c);

	mtx_lock_as(&w->lock, &callout_role);
	KASSERT(w->running != c || clk.worker.w_thread != curthread,
	    ("callout_drain: a handler drains itself"));
	while (w->running == c && !PLANTED(CALLOUT_DRAIN))
		msleep(&w->running, &w->lock, PDUE, "codrain", NSEC_FOREVER);
	mtx_unlock_as(&w->lock, &callout_role);
	return (was);
}

/* Runs one due callout of a slot; false if there is none. */
static bool
run_one(struct callout_wheel *w, uint64_t slot_tick, nsec_t now)
    REQUIRES(w->lock, callout_role)
{
	struct callout *c;
	callout_fn *fn;
	void *arg;

	for (c = *slot_of(w, slot_tick); c != NULL; c = c->c_next)
		if (c->c_when <= now)
			break;
	if (c == NULL)
		return (false);
	wheel_remove(w, c);
	fn = c->c_fn;
	arg = c->c_arg;
	w->running = c;
	mtx_unlock_as(&w->lock, &callout_role);
	giant_enter();
	net_enter();
	forget_uptime();
	fn(arg);
	net_exit();
	giant_exit();
	witness_none("callout");
	mtx_lock_as(&w->lock, &callout_role);
	w->running = NULL;
	wakeup(&w->running);
	return (true);
}

/* The next tick whose slot has a callout. */
static uint64_t
next_tick(struct callout_wheel *w) REQUIRES(w->lock, callout_role)
{
	uint64_t best = UINT64_MAX;

	if (w->pending == 0)
		return (UINT64_MAX);
	for (uint64_t t = w->tick; t < w->tick + WHEEL_SIZE; t++)
		for (struct callout *c = *slot_of(w, t); c != NULL;
		    c = c->c_next) {
			uint64_t due = due_tick(c) > t ? due_tick(c) : t;

			if (due == t)
				return (t);
			if (due < best)
				best = due;
		}
	return (best);
}

/* Runs the due callouts of a wheel; returns the tick of the next one. */
static uint64_t
wheel_run(struct callout_wheel *w, nsec_t now)
{
	const uint64_t tick = now / TICK;
	uint64_t next;

	mtx_lock_as(&w->lock, &callout_role);
	if (w->next <= tick) {
		/* One turn covers every slot. */
		if (tick >= w->tick + WHEEL_SIZE)
			w->tick = tick - WHEEL_SIZE + 1;
		for (; w->tick <= tick; w->tick++)
			while (run_one(w, w->tick, now))
				continue;
		w->next = next_tick(w);
	}
	next = w->next;
	mtx_unlock_as(&w->lock, &callout_role);
	return (next);
}

/* Visits all wheels; returns the time until the next callout. */
static nsec_t
run_due(void *arg) REQUIRES(clk.lock)
{
	nsec_t now = mach_uptime();
	uint64_t first = WORKING, next;

	(void)arg;
	mtx_assert_owned(clk.worker.w_lock);
	atomic_store_u32(&clk.again, 0);
	if (!PLANTED(CLOCK_WAKE))
		atomic_store_u64(&clk.wake, WORKING);
	mtx_unlock(&clk.lock);
	for (unsigned i = 0; i < nwheels; i++) {
		next = wheel_run(&wheels[i], now);
		first = next < first ? next : first;
	}
	mtx_lock(&clk.lock);
	atomic_store_u64(&clk.wake, first);
	if (atomic_load_u32(&clk.again) != 0)
		return (0);
	if (first == UINT64_MAX)
		return (NSEC_FOREVER);
	now = mach_uptime();
	return (first * TICK > now ? first * TICK - now : 0);
}

void
callout_subsys_init(void)
{
	mtx_init(&clk.lock, LC_CALLOUT);
	atomic_store_u64(&clk.wake, WORKING);
	for (unsigned i = 0; i < WHEELS_MAX; i++)
		mtx_init(&wheels[i].lock, LC_CALLOUT);
	sysctl_register(callout_oids, nitems(callout_oids));
}

int
callout_start(void)
{
	if (atomic_load_u32(&wheels_choice) == WHEELS_CPU)
		nwheels = mach_ncpus() < WHEELS_MAX ? mach_ncpus() :
		    WHEELS_MAX;
	return (worker_start(&clk.worker, "swi: clock", MACH_CPU_ANY));
}

void
callout_shutdown(void)
{
	worker_stop(&clk.worker);
}
