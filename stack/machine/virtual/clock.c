/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual time: one CPU, and a clock that advances only while no thread runs.
 *
 * A thread runs while it has the CPU, and releases it only where it parks or
 * waits for the host.  A woken thread queues for the CPU.  When no thread is
 * queued, the clock jumps to the earliest deadline of the parked threads, as
 * in a discrete event simulation.  Hours therefore pass at once, and two runs
 * of a program are identical.
 *
 * The clock stands still while the program is outside the stack: its threads
 * report entry and exit (machine/virtual/virtual.h).  Threads are POSIX
 * threads, so that the code is the same as in real time.
 *
 * Replaces machine/posix/clock.c in the programs that use it.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "machine/machine.h"
#include "machine/posix/host.h"
#include "machine/splitmix.h"
#include "machine/virtual/virtual.h"

#define	BOOT_DATE	(1 * NSEC_PER_SEC)	/* no time is zero */
#define	BOOT_WALLTIME	946684800		/* 2000-01-01 00:00 UTC */

/*
 * A thread that waits for the CPU or is parked.
 *	[c] cpu.lock
 */
struct cpu_turn {
	TAILQ_ENTRY(cpu_turn) link;	/* [c] */
	atomic_u32	*word;		/* [c] word that it is parked on */
	nsec_t		 deadline;	/* [c] */
	int		 result;	/* [c] result of mach_park() */
	bool		 granted;	/* [c] it has the CPU */
	pthread_cond_t	 cond;
};
TAILQ_HEAD(cpu_turns, cpu_turn);

static struct {
	pthread_mutex_t	 lock;
	struct cpu_turns queue; /* [c] threads that wait for the CPU, FIFO */
	struct cpu_turns parked;	/* [c] */
	bool		 taken;		/* [c] a thread runs */
	/* [c] a leaving thread waits for all others */
	bool		 draining;
	unsigned	 drivers; /* [c] threads that let the clock advance */
	unsigned	 holders;	/* [c] threads that stop the clock */
} cpu = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.queue = TAILQ_HEAD_INITIALIZER(cpu.queue),
	.parked = TAILQ_HEAD_INITIALIZER(cpu.parked),
};

static atomic_u64 now = BOOT_DATE;
static atomic_u64 random_state;

static _Thread_local bool has_cpu, drives_clock, holds_clock;

/* Reading the clock takes a microsecond, so that no duration is zero. */
nsec_t
mach_uptime(void)
{
	return (atomic_fetchadd_u64(&now, NSEC_PER_USEC));
}

void
mach_walltime(struct timespec *ts)
{
	nsec_t date = mach_uptime();

	ts->tv_sec = (time_t)(BOOT_WALLTIME + date / NSEC_PER_SEC);
	ts->tv_nsec = (long)(date % NSEC_PER_SEC);
}

/* The same numbers in every run. */
void
mach_random(void *buf, size_t len)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)splitmix(atomic_fetchadd_u64(&random_state,
		    SPLITMIX_STEP));
}

/*
 * Removes the parked thread with the earliest deadline; the clock jumps there.
 */
static struct cpu_turn *
expire(void)
{
	struct cpu_turn *t, *first = NULL;

	TAILQ_FOREACH(t, &cpu.parked, link)
		if (t->deadline != NSEC_FOREVER &&
		    (first == NULL || t->deadline < first->deadline))
			first = t;
	if (first == NULL)
		return (NULL);
	TAILQ_REMOVE(&cpu.parked, first, link);
	first->result = ETIMEDOUT;
	if (atomic_load_u64(&now) < first->deadline)
		atomic_store_u64(&now, first->deadline);
	return (first);
}

/* Gives the CPU, if it is free, to the next queued thread. */
static void
dispatch(void)
{
	struct cpu_turn *t = TAILQ_FIRST(&cpu.queue);

	if (cpu.taken)
		return;
	if (t != NULL)
		TAILQ_REMOVE(&cpu.queue, t, link);
	else if (cpu.drivers == 0 || cpu.holders > 0 || (t = expire()) == NULL)
		return;
	cpu.taken = true;
	t->granted = true;
	pthread_cond_signal(&t->cond);
}

static void
release(void)
{
	cpu.taken = false;
	has_cpu = false;
	dispatch();
}

static void
await(struct cpu_turn *t)
{
	while (!t->granted)
		pthread_cond_wait(&t->cond, &cpu.lock);
	has_cpu = true;
}

static void
acquire(void)
{
	struct cpu_turn t = { .cond = PTHREAD_COND_INITIALIZER };

	TAILQ_INSERT_TAIL(&cpu.queue, &t, link);
	dispatch();
	await(&t);
}

/*
 * An ending thread has released the CPU; its call returns at once, to try
 * again.
 */
int
mach_park(atomic_u32 *word, uint32_t expected, nsec_t deadline)
{
	struct cpu_turn t = { .word = word, .deadline = deadline,
	    .cond = PTHREAD_COND_INITIALIZER };

	if (!has_cpu) {
		sched_yield();
		return (0);
	}
	pthread_mutex_lock(&cpu.lock);
	if (atomic_load_acq_u32(word) == expected) {
		TAILQ_INSERT_TAIL(&cpu.parked, &t, link);
		release();
		await(&t);
	}
	pthread_mutex_unlock(&cpu.lock);
	return (t.result);
}

void
mach_unpark(atomic_u32 *word, int nthreads)
{
	struct cpu_turn *t, *next;

	pthread_mutex_lock(&cpu.lock);
	for (t = TAILQ_FIRST(&cpu.parked); t != NULL && nthreads > 0;
	    t = next) {
		next = TAILQ_NEXT(t, link);
		if (t->word != word)
			continue;
		nthreads--;
		TAILQ_REMOVE(&cpu.parked, t, link);
		TAILQ_INSERT_TAIL(&cpu.queue, t, link);
	}
	dispatch();
	pthread_mutex_unlock(&cpu.lock);
}

struct cpu_turn *
cpu_queue(void)
{
	struct cpu_turn *t = calloc(1, sizeof(*t));

	if (t == NULL)
		abort();	/* as kmalloc() does */
	pthread_cond_init(&t->cond, NULL);
	pthread_mutex_lock(&cpu.lock);
	TAILQ_INSERT_TAIL(&cpu.queue, t, link);
	pthread_mutex_unlock(&cpu.lock);
	return (t);
}

void
cpu_cancel(struct cpu_turn *t)
{
	pthread_mutex_lock(&cpu.lock);
	TAILQ_REMOVE(&cpu.queue, t, link);
	pthread_mutex_unlock(&cpu.lock);
	free(t);
}

void
cpu_start(struct cpu_turn *t)
{
	pthread_mutex_lock(&cpu.lock);
	await(t);
	pthread_mutex_unlock(&cpu.lock);
	free(t);
}

/* The host's CPU stays with this thread: all others wait for their turn. */
void
mach_yield(void)
{
	pthread_mutex_lock(&cpu.lock);
	if (has_cpu && !TAILQ_EMPTY(&cpu.queue)) {
		cpu.taken = false;
		acquire();
	}
	pthread_mutex_unlock(&cpu.lock);
}

void
cpu_enter(void)
{
	pthread_mutex_lock(&cpu.lock);
	acquire();
	pthread_mutex_unlock(&cpu.lock);
}

void
cpu_leave(void)
{
	pthread_mutex_lock(&cpu.lock);
	release();
	pthread_mutex_unlock(&cpu.lock);
}

void
mach_virtual_enter(bool drive)
{
	pthread_mutex_lock(&cpu.lock);
	cpu.holders -= holds_clock;
	holds_clock = false;
	cpu.drivers += drive;
	drives_clock = drive;
	acquire();
	pthread_mutex_unlock(&cpu.lock);
}

void
mach_virtual_leave(bool hold)
{
	pthread_mutex_lock(&cpu.lock);
	cpu.drivers -= drives_clock;
	drives_clock = false;
	cpu.holders += hold;
	holds_clock = hold;
	if (!hold && !cpu.draining) {
		/* One thread only: two would wait for each other. */
		cpu.draining = true;
		while (!TAILQ_EMPTY(&cpu.queue)) {
			cpu.taken = false;
			acquire();	/* after all queued threads */
		}
		cpu.draining = false;
	}
	release();
	pthread_mutex_unlock(&cpu.lock);
}

/* The host's CPU is not used: all threads run on the first of the stack's. */
int
cpu_current(void)
{
	return (-1);
}
