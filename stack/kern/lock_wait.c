/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutex contention strategies: the values of lock.mutex.
 *
 * The owner's struct thread may be read even after the owner has unlocked and
 * ended, because a struct thread is never freed (kern/thread.c).  Each thread
 * records in it when it parks on another lock.  Preemption by the host is not
 * visible, and therefore every spin has a limit.
 */
#include <stdio.h>
#include <string.h>

#include "kern/kern_private.h"
#include "kern/lock_private.h"
#include "kern/lock_track.h"
#include "kern/sysctl.h"

enum mutex_strategy { MUTEX_SPIN, MUTEX_BLOCK, MUTEX_ADAPTIVE, MUTEX_BACKOFF };
static const char *const strategy_names[] = { "spin", "block", "adaptive",
    "backoff", NULL };

static atomic_u32 strategy = MUTEX_ADAPTIVE;	/* [I] after boot */
/* turns; about one short critical section */
static atomic_u32 spin_limit = 100;
static atomic_u32 delay_base = 1;	/* turns */
static atomic_u32 delay_max = 64;	/* turns */
static atomic_u32 giant_adaptive = 1;

unsigned
lock_spin_limit(void)
{
	return (mach_up() ? 0 : atomic_load_u32(&spin_limit));
}

void
lock_spin_never(void)
{
	char asked[12];

	snprintf(asked, sizeof(asked), "%u", atomic_load_u32(&spin_limit));
	atomic_store_u32(&spin_limit, 0);
	if (strcmp(asked, "0") != 0)
		sysctl_forced("lock.spin_limit", asked, "0",
		    "on one CPU no owner runs while another thread spins");
}

void
lock_park(atomic_u32 *word, uint32_t expected)
{
	struct thread *td = curthread;

	atomic_store_u32(&td->td_offcpu, 1);
	mach_park(word, expected, NSEC_FOREVER);
	atomic_store_u32(&td->td_offcpu, 0);
}

/* Sets the contested bit and parks once.  True if the lock was acquired. */
static bool
park(struct mtx *m, uintptr_t self)
{
	uint32_t seq = atomic_load_acq_u32(&m->mtx_seq);
	uintptr_t owner = atomic_load_uptr(&m->mtx_owner);

	/* Other threads may still be parked: stay contested. */
	if (owner == 0)
		return (atomic_cmpset_uptr(&m->mtx_owner, &owner,
		    self | CONTESTED));
	if ((owner & CONTESTED) == 0 &&
	    !atomic_cmpset_uptr(&m->mtx_owner, &owner, owner | CONTESTED))
		return (false);
	lock_park(&m->mtx_seq, seq);
	return (false);
}

static void
pause_for(unsigned turns)
{
	while (turns-- > 0)
		mach_cpu_relax();
}

static bool
is_running(uintptr_t owner)
{
	struct thread *td = (struct thread *)(owner & ~CONTESTED);

	return (atomic_load_u32(&td->td_offcpu) == 0);
}

/*
 * Tests the lock after delays that grow from base to max, while the owner runs
 * and turns remain.  True if it was acquired; word is the new owner word.
 */
static bool
spin_on_owner(struct mtx *m, uintptr_t word, unsigned base, unsigned max)
{
	unsigned turns = lock_spin_limit(), delay = base;

	while (turns > 0) {
		uintptr_t owner = atomic_load_acq_uptr(&m->mtx_owner);

		if (owner == 0 && mtx_try(m, word))
			return (true);
		if (owner != 0 && !is_running(owner))
			return (false);
		pause_for(delay);
		turns -= delay < turns ? delay : turns;
		delay = 2 * delay < max ? 2 * delay : max;
	}
	return (false);
}

/*
 * After it has parked once, a thread keeps the contested bit for others that
 * may still be parked.
 */
static void
spin_and_park(struct mtx *m, uintptr_t self, unsigned base, unsigned max)
{
	uintptr_t word = self;

	while (!spin_on_owner(m, word, base, max) && !park(m, self)) {
		word = self | CONTESTED;
		mtx_prof_bounce(m);
	}
}

/*
 * Never parks, but yields after some turns, because the owner may need this
 * CPU.
 */
static void
wait_spin(struct mtx *m, uintptr_t self)
{
	for (;;) {
		unsigned turns = lock_spin_limit();

		do {
			if (atomic_load_uptr(&m->mtx_owner) == 0 &&
			    mtx_try(m, self))
				return;
			mach_cpu_relax();
		} while (turns-- > 0);
		mtx_prof_bounce(m);
		mach_yield();
	}
}

static void
wait_block(struct mtx *m, uintptr_t self)
{
	while (!park(m, self))
		mtx_prof_bounce(m);
}

static void
wait_adaptive(struct mtx *m, uintptr_t self)
{
	spin_and_park(m, self, 1, 1);
}

/* Anderson, "The performance of spin lock alternatives", 1990, section III. */
static void
wait_backoff(struct mtx *m, uintptr_t self)
{
	spin_and_park(m, self, atomic_load_u32(&delay_base),
	    atomic_load_u32(&delay_max));
}

void
mtx_wait(struct mtx *m, uintptr_t self)
{
	static void (*const waits[])(struct mtx *, uintptr_t) = {
		[MUTEX_SPIN] = wait_spin, [MUTEX_BLOCK] = wait_block,
		[MUTEX_ADAPTIVE] = wait_adaptive,
		[MUTEX_BACKOFF] = wait_backoff,
	};

	mtx_prof_bounce(m);
	if (m->mtx_class == LC_GIANT && atomic_load_u32(&giant_adaptive) == 0)
		wait_block(m, self);
	else
		waits[atomic_load_u32(&strategy)](m, self);
}

static const struct sysctl_oid lock_oids[] = {
	{ .oid_name = "lock.mutex", .oid_type = CTL_ENUM,
	    .oid_flags = CTL_TUN, .oid_ptr = &strategy,
	    .oid_names = strategy_names,
	    .oid_descr = "mutex contention strategy: spin, block, adaptive "
	    "(spin while the owner runs), backoff (spin with growing delays)" },
	/* ADAPTIVE_GIANT (Watson 2004): Giant is held for long times. */
	{ .oid_name = "lock.giant_adaptive", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &giant_adaptive,
	    .oid_max = 1,
	    .oid_descr = "1: lock.mutex also applies to Giant; 0: park at "
	    "once" },
	{ .oid_name = "lock.spin_limit", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &spin_limit,
	    .oid_max = 1000000,
	    .oid_descr = "max turns of spinning before parking" },
	{ .oid_name = "lock.delay_base", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &delay_base,
	    .oid_min = 1, .oid_max = 1000000,
	    .oid_descr = "first delay of backoff, turns" },
	{ .oid_name = "lock.delay_max", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &delay_max,
	    .oid_min = 1, .oid_max = 1000000,
	    .oid_descr = "max delay of backoff, turns" },
};

void
lock_init(void)
{
	sysctl_register(lock_oids, nitems(lock_oids));
	lock_watch_init();
}
