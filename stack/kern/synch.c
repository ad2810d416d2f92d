/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep and wakeup on wait channels (msleep(9), wakeup(9)).
 *
 * A sleeper hangs itself on a hashed queue before it lets its mutex go, so
 * a wakeup that follows the change it waits for finds it.  It then parks on
 * its own word, which the waker changes.
 */
#include "kern/synch.h"

#include <errno.h>
#include <sys/queue.h>

#include "kern/kern_private.h"
#include "kern/thread.h"

#define	SLEEPQ_HASH	256

/*
 * Locks used to protect struct sleeper members:
 *	[I] immutable while queued
 *	[q] the queue's lock
 */
struct sleeper {
	TAILQ_ENTRY(sleeper) s_link;	/* [q] */
	const void	*s_chan;	/* [I] */
	struct thread	*s_thread;	/* [I] */
	bool		 s_queued;	/* [q] */
};

static struct sleepq {
	struct mtx	 lock;
	TAILQ_HEAD(, sleeper) sleepers;	/* [q] in order of arrival */
} sleepqs[SLEEPQ_HASH];

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
		TAILQ_INIT(&sleepqs[i].sleepers);
	}
}

/*
 * Parks until woken; takes the sleeper off the queue if nobody has.  The
 * word changes when a waker has taken us off the queue, and when a signal
 * came (thread_interrupt).
 */
static int
sleep_wait(struct sleepq *sq, struct sleeper *s, uint32_t seq, int flags,
    nsec_t deadline)
{
	struct thread *td = s->s_thread;
	int error = 0;

	while (atomic_load_acq_u32(&td->td_park) == seq) {
		error = mach_park(&td->td_park, seq, deadline);
		if (error == ETIMEDOUT ||
		    (error == EINTR && (flags & PCATCH) != 0))
			break;
	}
	if (atomic_load_acq_u32(&td->td_park) != seq) {
		if (atomic_load_u32(&td->td_interrupt) == 0)
			return (0);	/* the waker took us off the queue */
		error = (flags & PCATCH) != 0 ? EINTR : 0;
	}
	mtx_lock(&sq->lock);
	if (s->s_queued) {
		TAILQ_REMOVE(&sq->sleepers, s, s_link);
		s->s_queued = false;
	} else
		error = 0;	/* woken at the same moment */
	mtx_unlock(&sq->lock);
	return (error == ETIMEDOUT ? EWOULDBLOCK : error);
}

int
msleep(const void *chan, struct mtx *m, int flags, const char *wmesg,
    nsec_t timeout)
{
	struct sleepq *sq = sleepq_of(chan);
	struct thread *td = curthread;
	struct sleeper s = { .s_chan = chan, .s_thread = td, .s_queued = true };
	nsec_t deadline = NSEC_FOREVER;
	uint32_t seq = atomic_load_u32(&td->td_park);
	unsigned depth;
	int error;

	KASSERT(mtx_owned(m), ("msleep: %s: mutex is not held", wmesg));
	if (timeout != NSEC_FOREVER)
		deadline = mach_uptime() + timeout;
	mtx_lock(&sq->lock);
	TAILQ_INSERT_TAIL(&sq->sleepers, &s, s_link);
	mtx_unlock(&sq->lock);
	td->td_wmesg = wmesg;
	mtx_unlock(m);
	depth = giant_drop();
	KASSERT(td->td_locks == 0, ("msleep: %s: %s sleeps with %u locks held",
	    wmesg, td->td_name, td->td_locks));
	if ((flags & PCATCH) != 0 && atomic_load_u32(&td->td_interrupt) != 0)
		seq--;		/* a signal waits already: do not park */
	error = sleep_wait(sq, &s, seq, flags, deadline);
	td->td_wmesg = NULL;
	giant_pickup(depth);
	mtx_lock(m);
	return (error == EINTR && (flags & PCATCH) == 0 ? 0 : error);
}

#define	WAKE_BATCH	16

/* Takes up to n sleepers of a channel off the queue, longest asleep first. */
static unsigned
dequeue(struct sleepq *sq, const void *chan, struct thread *woken[],
    unsigned n) REQUIRES(sq->lock)
{
	struct sleeper *s, *next;
	unsigned count = 0;

	for (s = TAILQ_FIRST(&sq->sleepers); s != NULL && count < n; s = next) {
		next = TAILQ_NEXT(s, s_link);
		if (s->s_chan != chan)
			continue;
		TAILQ_REMOVE(&sq->sleepers, s, s_link);
		s->s_queued = false;
		woken[count++] = s->s_thread;
		/* From here on the sleeper, on its own stack, may be gone. */
		atomic_fetchadd_u32(&s->s_thread->td_park, 1);
	}
	return (count);
}

/*
 * Unparks without the queue's lock, or the woken thread would run into it.
 * Its struct thread may be gone by then; waking a word where nobody parks is
 * harmless.
 */
static void
wakeup_n(const void *chan, unsigned n)
{
	struct sleepq *sq = sleepq_of(chan);
	struct thread *woken[WAKE_BATCH];
	unsigned count;

	do {
		mtx_lock(&sq->lock);
		count = dequeue(sq, chan, woken, n < WAKE_BATCH ? n :
		    WAKE_BATCH);
		mtx_unlock(&sq->lock);
		for (unsigned i = 0; i < count; i++)
			mach_unpark(&woken[i]->td_park, 1);
		n -= count;
	} while (count == WAKE_BATCH);
}

void
wakeup(const void *chan)
{
	wakeup_n(chan, UINT32_MAX);
}

void
wakeup_one(const void *chan)
{
	wakeup_n(chan, 1);
}
