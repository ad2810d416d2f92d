/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callouts: a timing wheel and the clock thread.
 *
 * A callout is in the slot of the tick at which it is due.  Callouts of later
 * turns of the wheel stay in their slot (Varghese and Lauck 1987, scheme 6).
 * The clock thread runs handlers one after the other without the lock, and
 * sleeps while none is due.
 */
#include "kern/callout.h"

#include <errno.h>

#include "kern/kern_private.h"
#include "kern/netlock.h"
#include "kern/planted.h"
#include "kern/synch.h"
#include "kern/thread.h"
#include "kern/worker.h"

#define	WHEEL_SIZE	1024
#define	TICK		NSEC_PER_MSEC

static worker_fn run_due;

static struct {
	struct mtx	 lock;
	struct callout	*wheel[WHEEL_SIZE] GUARDED_BY(lock);	/* [c] */
	uint64_t	 tick GUARDED_BY(lock);	/* [c] next tick to process */
	/* [c] callouts in the wheel */
	unsigned	 pending GUARDED_BY(lock);
	/* [c] thread sleeps until */
	uint64_t	 wake_tick GUARDED_BY(lock);
	struct callout	*running GUARDED_BY(lock);	/* [c] */
	struct worker	 worker;
} clk = {
	.worker = { .w_lock = &clk.lock, .w_fn = run_due, .w_wmesg = "clock" },
};

#define	wheel_lock()	do {						\
	mtx_lock(&clk.lock);						\
	role_take(&callout_role);					\
} while (0)
#define	wheel_unlock()	do {						\
	role_drop(&callout_role);					\
	mtx_unlock(&clk.lock);						\
} while (0)

static struct callout **
slot_of(uint64_t tick) REQUIRES(clk.lock)
{
	return (&clk.wheel[tick % WHEEL_SIZE]);
}

static uint64_t
due_tick(const struct callout *c) REQUIRES(callout_role)
{
	return ((c->c_when + TICK - 1) / TICK);
}

static void
wheel_insert(struct callout *c) REQUIRES(clk.lock, callout_role)
{
	uint64_t tick = due_tick(c);
	struct callout **head;

	/* If that tick was processed already, the next one. */
	head = slot_of(tick < clk.tick ? clk.tick : tick);
	c->c_next = *head;
	if (c->c_next != NULL)
		c->c_next->c_prev = &c->c_next;
	c->c_prev = head;
	*head = c;
	c->c_pending = true;
	clk.pending++;
}

static void
wheel_remove(struct callout *c) REQUIRES(clk.lock, callout_role)
{
	KASSERT(c->c_pending && clk.pending > 0,
	    ("wheel_remove: %u pending", clk.pending));
	*c->c_prev = c->c_next;
	if (c->c_next != NULL)
		c->c_next->c_prev = c->c_prev;
	c->c_pending = false;
	clk.pending--;
}

void
callout_init(struct callout *c)
{
	*c = (struct callout){ 0 };
}

__hot bool
callout_reset(struct callout *c, nsec_t delay, callout_fn *fn, void *arg)
{
	bool was;

	wheel_lock();
	was = c->c_pending;
	if (was)
		wheel_remove(c);
	c->c_when = mach_uptime() + delay;
	c->c_fn = fn;
	c->c_arg = arg;
	wheel_insert(c);
	if (due_tick(c) < clk.wake_tick) {
		clk.wake_tick = 0;	/* one wakeup is enough */
		worker_wake(&clk.worker);
	}
	wheel_unlock();
	return (was);
}

bool
callout_stop(struct callout *c)
{
	bool was;

	wheel_lock();
	was = c->c_pending;
	if (was)
		wheel_remove(c);
	wheel_unlock();
	return (was);
}

bool
callout_pending(struct callout *c)
{
	bool is;

	wheel_lock();
	is = c->c_pending;
	wheel_unlock();
	return (is);
}

bool
callout_drain(struct callout *c)
{
	bool was = callout_stop(c);

	wheel_lock();
	KASSERT(clk.running != c || clk.worker.w_thread != curthread,
	    ("callout_drain: a handler drains itself"));
	while (clk.running == c && !PLANTED(CALLOUT_DRAIN))
		msleep(&clk.running, &clk.lock, PDUE, "codrain",
		    NSEC_FOREVER);
	wheel_unlock();
	return (was);
}

/* Runs one due callout of a slot; false if there is none. */
static bool
run_one(uint64_t slot_tick, nsec_t now) REQUIRES(clk.lock, callout_role)
{
	struct callout *c;
	callout_fn *fn;
	void *arg;

	for (c = *slot_of(slot_tick); c != NULL; c = c->c_next)
		if (c->c_when <= now)
			break;
	if (c == NULL)
		return (false);
	wheel_remove(c);
	fn = c->c_fn;
	arg = c->c_arg;
	clk.running = c;
	wheel_unlock();
	giant_enter();
	net_enter();
	forget_uptime();
	fn(arg);
	net_exit();
	giant_exit();
	witness_none("callout");
	wheel_lock();
	clk.running = NULL;
	wakeup(&clk.running);
	return (true);
}

/* The next tick whose slot has a callout. */
static uint64_t
next_tick(void) REQUIRES(clk.lock, callout_role)
{
	uint64_t best = UINT64_MAX;

	if (clk.pending == 0)
		return (UINT64_MAX);
	for (uint64_t t = clk.tick; t < clk.tick + WHEEL_SIZE; t++)
		for (struct callout *c = *slot_of(t); c != NULL; c = c->c_next) {
			uint64_t due = due_tick(c) > t ? due_tick(c) : t;

			if (due == t)
				return (t);
			if (due < best)
				best = due;
		}
	return (best);
}

/* Runs the due callouts; returns the time until the next one. */
static nsec_t
run_due(void *arg) REQUIRES(clk.lock, callout_role)
{
	nsec_t now = mach_uptime();
	uint64_t tick = now / TICK, next;

	(void)arg;
	mtx_assert_owned(clk.worker.w_lock);
	clk.wake_tick = 0;
	/* One turn covers every slot. */
	if (tick >= clk.tick + WHEEL_SIZE)
		clk.tick = tick - WHEEL_SIZE + 1;
	for (; clk.tick <= tick && !clk.worker.w_stop; clk.tick++)
		while (run_one(clk.tick, now))
			continue;
	next = next_tick();
	clk.wake_tick = next;
	if (next == UINT64_MAX)
		return (NSEC_FOREVER);
	now = mach_uptime();
	return (next * TICK > now ? next * TICK - now : 0);
}

void
callout_subsys_init(void)
{
	mtx_init(&clk.lock, LC_CALLOUT);
}

int
callout_start(void)
{
	return (worker_start(&clk.worker, "swi: clock", MACH_CPU_ANY));
}

void
callout_shutdown(void)
{
	worker_stop(&clk.worker);
}
