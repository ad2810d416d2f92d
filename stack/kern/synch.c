/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep and wakeup on wait channels (msleep(9), wakeup(9)).
 *
 * A sleeper enters a hashed queue before it releases its mutex, so a wakeup
 * after the awaited change finds it.  It then waits for a change of its own
 * word, first spinning and then parked.  Parking and unparking each cost
 * several microseconds, and many awaited events come sooner (Karlin, Li,
 * Manasse and Owicki, "Empirical studies of competitive spinning", 1991).
 */
#include "kern/synch.h"

#include <errno.h>
#include <sys/queue.h>

#include "kern/ast.h"
#include "kern/kern_private.h"
#include "kern/netlock.h"
#include "kern/planted.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "kern/watchdog.h"

#define	SLEEPQ_HASH	256

/* td_park: twice the number of wakeups, and a bit set by its thread. */
#define	PARKED		1U
#define	ONE_WAKEUP	2U

/* If a yield takes longer than this, so many sleeps skip spinning. */
#define	YIELD_LATE	(500 * NSEC_PER_USEC)
#define	YIELD_PAUSE	100

static atomic_u32 spin_us = 20;

static const struct sysctl_oid synch_oids[] = {
	{ .oid_name = "machine.spin_us", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &spin_us,
	    .oid_max = 10000,
	    .oid_descr = "time to spin and yield before parking, us" },
};

extern struct lock_role sleepq_role;	/* the lock of its queue */

/*
 * Locks used to protect struct sleeper members:
 *	[I] immutable while queued
 *	[o] the sleeping thread
 *	[q] the queue's lock
 */
struct sleeper {
	TAILQ_ENTRY(sleeper) s_link GUARDED_BY(sleepq_role);	/* [q] */
	const void	*s_chan;	/* [I] */
	struct thread	*s_thread;	/* [I] */
	uint32_t	 s_seq;		/* [o] td_park before the sleep */
	bool		 s_queued GUARDED_BY(sleepq_role);	/* [q] */
};

static struct sleepq {
	struct mtx	 lock;
	/* [q] in order of arrival */
	TAILQ_HEAD(, sleeper) sleepers GUARDED_BY(lock);
} sleepqs[SLEEPQ_HASH];

#define	sleepq_lock(sq)	do {						\
	mtx_lock(&(sq)->lock);						\
	role_take(&sleepq_role);					\
} while (0)
#define	sleepq_unlock(sq) do {						\
	role_drop(&sleepq_role);					\
	mtx_unlock(&(sq)->lock);					\
} while (0)

static struct sleepq *
sleepq_of(const void *chan)
{
	return (&sleepqs[((uintptr_t)chan * 0x9e3779b97f4a7c15ULL) >> 56]);
}
_Static_assert(SLEEPQ_HASH == 1 << (64 - 56), "hash is the top 8 bits");

void
synch_init(void)
{
	for (size_t i = 0; i < SLEEPQ_HASH; i++) {
		mtx_init(&sleepqs[i].lock, LC_SLEEPQ);
		mtx_private(&sleepqs[i].lock);
		TAILQ_INIT(&sleepqs[i].sleepers);
	}
	sysctl_register(synch_oids, nitems(synch_oids));
}

/*
 * A late return from yield means that the CPU has other work.  The host then
 * schedules a sleeping thread sooner than a yielding one, so spinning pauses
 * for some sleeps.
 */
static bool
spin_for(nsec_t limit, bool (*done)(void *), void *arg)
{
	nsec_t now = mach_uptime(), start = now;
	struct thread *td = curthread;

	do {
		nsec_t before = now;

		mach_yield();
		now = mach_uptime();
		if (now - before > YIELD_LATE)
			td->td_nospin = YIELD_PAUSE;
		if (done(arg))
			return (true);
	} while (now - start < limit);
	return (false);
}

bool
spin_until(bool (*done)(void *), void *arg)
{
	nsec_t limit = atomic_load_u32(&spin_us) * NSEC_PER_USEC;
	struct thread *td = curthread;
	bool is;

	if (done(arg))
		return (true);
	if (limit == 0 || (td->td_nospin > 0 && td->td_nospin-- > 0))
		return (false);
	sim_work_waits(arg);
	is = spin_for(limit, done, arg);
	sim_waited();
	return (is);
}

static void
enqueue(struct sleepq *sq, struct sleeper *s)
{
	sleepq_lock(sq);
	TAILQ_INSERT_TAIL(&sq->sleepers, s, s_link);
	sleepq_unlock(sq);
}

static bool
is_woken(void *arg)
{
	const struct sleeper *s = arg;

	return (atomic_load_acq_u32(&s->s_thread->td_park) != s->s_seq);
}

/*
 * Parks until the word changes.  Returns 0, ETIMEDOUT or, with PCATCH, EINTR.
 */
static int
park(struct sleeper *s, int flags, nsec_t deadline)
{
	atomic_u32 *word = &s->s_thread->td_park;
	const uint32_t parked = s->s_seq | PARKED;
	int error = 0;

	if (atomic_fetchadd_u32(word, PARKED) == s->s_seq)
		while (atomic_load_acq_u32(word) == parked) {
			error = mach_park(word, parked, deadline);
			if (error == ETIMEDOUT ||
			    (error == EINTR && (flags & PCATCH) != 0))
				break;
		}
	atomic_fetchadd_u32(word, -PARKED);
	return (error);
}

/*
 * Waits until woken, and leaves the queue unless the waker removed this
 * thread.  The word changes at a wakeup and at a signal (thread_interrupt).
 */
static int
sleep_wait(struct sleepq *sq, struct sleeper *s, int flags, nsec_t deadline)
{
	struct thread *td = s->s_thread;
	int error = 0;

	if (!spin_until(is_woken, s))
		error = park(s, flags, deadline);
	if (is_woken(s)) {
		if (atomic_load_u32(&td->td_interrupt) == 0)
			/* the waker removed this thread from the queue */
			return (0);
		error = (flags & PCATCH) != 0 ? EINTR : 0;
	}
	sleepq_lock(sq);
	if (s->s_queued) {
		TAILQ_REMOVE(&sq->sleepers, s, s_link);
		s->s_queued = false;
	} else
		error = 0;	/* woken at the same moment */
	sleepq_unlock(sq);
	return (error == ETIMEDOUT ? EWOULDBLOCK : error);
}

/*
 * Unparks the collected threads.  A struct thread may have ended; waking a
 * word without a parked thread is harmless.
 */
NOINLINE static void
wakeup_flush(struct thread *td)
{
	for (unsigned i = 0; i < td->td_nwoken; i++)
		mach_unpark(td->td_woken[i], 1);
	td->td_nwoken = 0;
}

void
wakeup_hold(void)
{
	curthread->td_wakehold++;
}

void
wakeup_release(void)
{
	struct thread *td = thread_known();

	KASSERT(td->td_wakehold > 0, ("wakeup_release: not held"));
	if (--td->td_wakehold == 0 && td->td_nwoken > 0)
		wakeup_flush(td);
}

/*
 * Runs deferred work, because it may cause the awaited wakeup.  If the work
 * slept, its wakeup changed the word, too.
 */
static void
work_off(struct sleepq *sq, struct sleeper *s)
{
	struct thread *td = s->s_thread;

	ast_run(td);
	if (!is_woken(s))
		return;
	sleepq_lock(sq);
	if (s->s_queued)
		s->s_seq = atomic_load_u32(&td->td_park);
	sleepq_unlock(sq);
}

int
msleep(const void *chan, struct mtx *m, int flags, const char *wmesg,
    nsec_t timeout)
{
	struct sleepq *sq = sleepq_of(chan);
	struct thread *td = curthread;
	struct sleeper s = { .s_chan = chan, .s_thread = td,
	    .s_seq = atomic_load_u32(&td->td_park), .s_queued = true };
	nsec_t deadline = NSEC_FOREVER, since = sleep_begins();
	unsigned depth, netdepth;
	int error;

	KASSERT(mtx_owned(m), ("msleep: %s: mutex is not held", wmesg));
	if (timeout != NSEC_FOREVER)
		deadline = mach_uptime() + timeout;
	if (!PLANTED(LOST_WAKEUP))
		enqueue(sq, &s);
	mtx_unlock(m);
	if (PLANTED(LOST_WAKEUP))
		enqueue(sq, &s);
	netdepth = net_drop();
	depth = giant_drop();
	witness_none(wmesg);
	if (td->td_asts != NULL)
		work_off(sq, &s);
	atomic_store_ptr(&td->td_wmesg, wmesg);
	if ((flags & PCATCH) != 0 && atomic_load_u32(&td->td_interrupt) != 0)
		s.s_seq -= ONE_WAKEUP;	/* a signal is pending: do not park */
	wakeup_flush(td);
	if ((flags & PDUE) != 0)
		watchdog_wait_begins(td);
	error = sleep_wait(sq, &s, flags, deadline);
	if ((flags & PDUE) != 0)
		watchdog_wait_ended(td);
	sleep_ended(wmesg, since);
	atomic_store_ptr(&td->td_wmesg, NULL);
	forget_uptime();
	giant_pickup(depth);
	net_pickup(netdepth);
	mtx_lock(m);
	return (error == EINTR && (flags & PCATCH) == 0 ? 0 : error);
}

/*
 * Removes up to n sleepers of a channel from the queue, oldest first, as far
 * as td_woken has room.
 */
static unsigned
dequeue(struct sleepq *sq, const void *chan, struct thread *td, unsigned n)
    REQUIRES(sq->lock, sleepq_role)
{
	struct sleeper *s, *next;
	atomic_u32 *word;
	unsigned count = 0;

	for (s = TAILQ_FIRST(&sq->sleepers); s != NULL && count < n &&
	    td->td_nwoken < TD_WOKEN_MAX; s = next) {
		next = TAILQ_NEXT(s, s_link);
		if (s->s_chan != chan)
			continue;
		TAILQ_REMOVE(&sq->sleepers, s, s_link);
		s->s_queued = false;
		word = &s->s_thread->td_park;
		count++;
		/* From here on the sleeper, on its own stack, may be gone. */
		if (atomic_fetchadd_u32(word, ONE_WAKEUP) & PARKED)
			td->td_woken[td->td_nwoken++] = word;
	}
	return (count);
}

/*
 * Unparks without the queue's lock, because the woken thread would contend for
 * it.  Returns how many of n did not sleep.
 */
static unsigned
wakeup_n(const void *chan, unsigned n)
{
	struct sleepq *sq = sleepq_of(chan);
	struct thread *td = curthread;
	bool full;

	do {
		sleepq_lock(sq);
		n -= dequeue(sq, chan, td, n);
		sleepq_unlock(sq);
		full = td->td_nwoken == TD_WOKEN_MAX;
		if (full || td->td_wakehold == 0)
			wakeup_flush(td);
	} while (full && n > 0);
	return (n);
}

void
wakeup(const void *chan)
{
	(void)wakeup_n(chan, UINT32_MAX);
}

bool
wakeup_one(const void *chan)
{
	return (wakeup_n(chan, 1) == 0);
}
