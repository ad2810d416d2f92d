/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual time: one CPU, and a clock that moves while nobody runs.
 *
 * A thread runs while it has the CPU, which it gives up only where it parks
 * or waits for the host.  Whoever is woken queues for the CPU.  When nobody
 * wants it, the clock jumps to the earliest deadline of those who are parked,
 * as in any simulation of discrete events: hours pass in no time, and two
 * runs of a program are alike.  It stands still while the program is not in
 * the stack: a thread of the program says so when it comes and goes (machine/
 * virtual/virtual.h).  Threads are POSIX threads still, so that the
 * code is the one that runs in real time.
 *
 * Takes the place of machine/posix/clock.c in the programs that use it.
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

#define	BOOT_DATE	(1 * NSEC_PER_SEC)	/* no date is zero */
#define	BOOT_WALLTIME	946684800		/* 2000-01-01 00:00 UTC */

/*
 * A thread that waits, for the CPU or parked.
 *	[c] cpu.lock
 */
struct cpu_turn {
	TAILQ_ENTRY(cpu_turn) link;	/* [c] */
	atomic_u32	*word;		/* [c] what it is parked on */
	nsec_t		 deadline;	/* [c] */
	int		 result;	/* [c] of mach_park() */
	bool		 granted;	/* [c] it has the CPU */
	pthread_cond_t	 cond;
};
TAILQ_HEAD(cpu_turns, cpu_turn);

static struct {
	pthread_mutex_t	 lock;
	struct cpu_turns queue;		/* [c] for the CPU, first come first */
	struct cpu_turns parked;	/* [c] */
	bool		 taken;		/* [c] somebody runs */
	bool		 draining;	/* [c] a thread leaves last */
	unsigned	 drivers;	/* [c] threads the clock moves for */
	unsigned	 holders;	/* [c] threads that stop it */
} cpu = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.queue = TAILQ_HEAD_INITIALIZER(cpu.queue),
	.parked = TAILQ_HEAD_INITIALIZER(cpu.parked),
};

static atomic_u64 now = BOOT_DATE;
static atomic_u64 random_state;

static _Thread_local bool has_cpu, drives_clock, holds_clock;

/* A look at the clock takes a microsecond, so that no duration is zero. */
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

/* The same numbers every time. */
void
mach_random(void *buf, size_t len)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)splitmix(atomic_fetchadd_u64(&random_state,
		    SPLITMIX_STEP));
}

/* The parked thread whose deadline comes first; the clock moves there. */
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

/* Gives the CPU, if it is free, to the next who wants it. */
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

/* A thread that ends has no CPU any more: it is told to look again. */
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
			acquire();	/* behind all who queue already */
		}
		cpu.draining = false;
	}
	release();
	pthread_mutex_unlock(&cpu.lock);
}

/* One that the host has not: all run on the first of the stack's. */
int
cpu_current(void)
{
	return (-1);
}
