/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostcosts: measures the costs of the simulated machine
 * (machine/sim/presets.h) on this host, and prints them as a machine file.  It
 * does not measure the cost of an instruction, which depends on the code.
 *
 * A rate is the best of several turns, because other load can only make it
 * slower.  A latency is the 10th percentile; the jitter of waking is the range
 * from the 10th to the 90th percentile.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define	TURNS		15
#define	CALLS		20000		/* calls in a turn */
#define	WAKES		400
#define	COPY		16384 /* bytes; fits the first or second level cache */
#define	CHAIN		(1U << 23)	/* words: larger than the caches */
#define	STEPS		200000
#define	ALLOC		2048		/* bytes */
#define	PAUSE_NS	200000
#define	SLICE		700000000ULL	/* Linux 6.12: sysctl_sched_base_slice */

static int cpus[CPU_SETSIZE], ncpus;
static _Alignas(64) _Atomic uint32_t word;
static _Alignas(64) _Atomic uint32_t turn;
static _Alignas(64) _Atomic bool stop;
static _Alignas(64) _Atomic uint64_t woken_at;

static uint64_t
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
}

static void
print_cost(const char *name, double ns)
{
	printf("%s %.0f\n", name, ns > 0 ? ns * 1000 : 0);
	fflush(stdout);
}

/* Nanoseconds of one call; a turn makes n calls. */
static double
best(void (*calls)(unsigned), unsigned n)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < TURNS; i++) {
		uint64_t start = now(), taken;

		calls(n);
		taken = now() - start;
		if (taken < least)
			least = taken;
	}
	return ((double)least / n);
}

static void
go_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static long
futex(_Atomic uint32_t *w, int op, uint32_t value, const struct timespec *ts)
{
	return (syscall(SYS_futex, w, op | FUTEX_PRIVATE_FLAG, value, ts, NULL,
	    0));
}

static void
rmws(unsigned n)
{
	while (n-- > 0)
		atomic_fetch_add(&word, 1);
}

static void
fences(unsigned n)
{
	while (n-- > 0)
		atomic_thread_fence(memory_order_seq_cst);
}

static void
clocks(unsigned n)
{
	while (n-- > 0)
		(void)now();
}

static void
relaxes(unsigned n)
{
	while (n-- > 0)
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("isb" ::: "memory");
#else
		atomic_signal_fence(memory_order_seq_cst);
#endif
}

static void
copies(unsigned n)
{
	static char from[COPY], to[COPY];

	while (n-- > 0) {
		memcpy(to, from, sizeof(to));
		__asm__ volatile("" :: "r" (to), "r" (from) : "memory");
	}
}

/* Allocation and freeing count as one call each. */
static void
allocs(unsigned n)
{
	for (; n > 0; n -= 2) {
		void *volatile p = calloc(1, ALLOC);

		free(p);
	}
}

static void
yields(unsigned n)
{
	while (n-- > 0)
		sched_yield();
}

static void
unparks(unsigned n)
{
	while (n-- > 0)
		futex(&word, FUTEX_WAKE, 1, NULL);
}

/* Each line contains the index of the next one. */
static double
memory_latency(void)
{
	uint64_t *chain = malloc(CHAIN * sizeof(*chain)), start, at = 0;

	if (chain == NULL)
		return (0);
	/* An odd step modulo a power of two visits every index. */
	for (uint64_t i = 0; i < CHAIN; i++)
		chain[i] = (i * 5 + 0x2545f491) % CHAIN;
	start = now();
	for (unsigned i = 0; i < STEPS; i++)
		at = chain[at];
	__asm__ volatile("" :: "r" (at));
	free(chain);
	return ((double)(now() - start) / STEPS);
}

/*
 * Two threads write to a word in turn: each turn loads its line and takes it.
 */
static void
take_turns(unsigned n, uint32_t mine)
{
	while (n-- > 0) {
		while (atomic_load(&turn) % 2 != mine)
			;
		atomic_fetch_add(&turn, 1);
	}
}

static void *
second_player(void *arg)
{
	go_to(cpus[1]);
	for (unsigned i = 0; i < TURNS; i++)
		take_turns(CALLS, 1);
	return (arg);
}

static void
first_player(unsigned n)
{
	take_turns(n, 0);
}

static pthread_t
start(void *(*fn)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, NULL) != 0) {
		fprintf(stderr, "hostcosts: cannot create a thread\n");
		exit(1);
	}
	return (thread);
}

/*
 * The cost to fetch a line from the other CPU.  A round has two loads and two
 * atomic operations; the operations' own cost is subtracted.
 */
static double
transfer(double rmw)
{
	pthread_t thread;
	double both;

	atomic_store(&turn, 0);
	thread = start(second_player);
	both = best(first_player, CALLS);
	pthread_join(thread, NULL);
	return ((both / 2 - rmw) / 2);
}

/* Sleeps until the word is incremented, and records the time of waking. */
static void *
sleeper(void *arg)
{
	go_to(cpus[1]);
	for (uint32_t seen = 0; !atomic_load(&stop); seen++) {
		while (atomic_load(&turn) == seen)
			futex(&turn, FUTEX_WAIT, seen, NULL);
		atomic_store(&woken_at, now());
	}
	return (arg);
}

static int
compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return ((*x > *y) - (*x < *y));
}

/* Sorts the values; returns the given percentile. */
static double
percentile(double *values, unsigned n, unsigned hundredths)
{
	qsort(values, n, sizeof(*values), compare);
	return (values[n * hundredths / 100]);
}

static void
rest(void)
{
	const struct timespec ts = { 0, PAUSE_NS };

	nanosleep(&ts, NULL);
}

/* Wakes a thread on the other CPU: cost of the call, and the latency. */
static void
measure_wakes(void)
{
	static double calls[WAKES], wakes[WAKES];
	pthread_t thread;

	atomic_store(&stop, false);
	atomic_store(&turn, 0);
	thread = start(sleeper);
	for (unsigned i = 0; i < WAKES; i++) {
		uint64_t before, after;

		rest();
		atomic_store(&woken_at, 0);
		before = now();
		atomic_fetch_add(&turn, 1);
		futex(&turn, FUTEX_WAKE, 1, NULL);
		after = now();
		while (atomic_load(&woken_at) == 0)
			;
		calls[i] = (double)(after - before);
		wakes[i] = atomic_load(&woken_at) > after ?
		    (double)(atomic_load(&woken_at) - after) : 0;
	}
	atomic_store(&stop, true);
	atomic_fetch_add(&turn, 1);
	futex(&turn, FUTEX_WAKE, 1, NULL);
	pthread_join(thread, NULL);
	print_cost("unpark", percentile(calls, WAKES, 10));
	print_cost("wake", percentile(wakes, WAKES, 10));
	print_cost("jitter", percentile(wakes, WAKES, 90) -
	    percentile(wakes, WAKES, 10));
}

static double
timer_latency(void)
{
	static double late[WAKES];

	for (unsigned i = 0; i < WAKES; i++) {
		const struct timespec ts = { 0, PAUSE_NS };
		uint64_t before = now();

		futex(&word, FUTEX_WAIT, atomic_load(&word), &ts);
		late[i] = (double)(now() - before) - PAUSE_NS;
	}
	return (percentile(late, WAKES, 10));
}

/*
 * Two threads on one CPU: they yield to each other, or park and wake in turn.
 */
static void *
yielder(void *arg)
{
	go_to(cpus[0]);
	while (!atomic_load(&stop))
		sched_yield();
	return (arg);
}

static double
yield_to_other(void)
{
	pthread_t thread;
	double cost;

	atomic_store(&stop, false);
	thread = start(yielder);
	rest();
	cost = best(yields, CALLS) / 2;	/* both threads' yields are in it */
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	return (cost);
}

static void
park_in_turns(unsigned n, uint32_t mine)
{
	while (n-- > 0) {
		uint32_t seen;

		while ((seen = atomic_load(&turn)) % 2 != mine)
			futex(&turn, FUTEX_WAIT, seen, NULL);
		atomic_fetch_add(&turn, 1);
		futex(&turn, FUTEX_WAKE, 1, NULL);
	}
}

static void *
second_parker(void *arg)
{
	go_to(cpus[0]);
	for (unsigned i = 0; i < TURNS; i++)
		park_in_turns(CALLS, 1);
	return (arg);
}

static void
first_parker(unsigned n)
{
	park_in_turns(n, 0);
}

/* A handover between threads by parking: park, wake, and switch. */
static double
hand_over(void)
{
	pthread_t thread;
	double both;

	atomic_store(&turn, 0);
	thread = start(second_parker);
	both = best(first_parker, CALLS);
	pthread_join(thread, NULL);
	return (both / 2);
}

static void
find_cpus(void)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cpus[ncpus++] = i;
	if (ncpus < 2) {
		fprintf(stderr, "hostcosts: needs two CPUs\n");
		exit(1);
	}
}

/*
 * The time slice of a CPU with several runnable threads, as Linux scales it,
 * up to 8 CPUs.
 */
static uint64_t
slice(void)
{
	uint64_t factor = 1;

	for (int n = ncpus < 8 ? ncpus : 8; n > 1; n /= 2)
		factor++;
	return (factor * SLICE);
}

int
main(void)
{
	double rmw, yield, change, line;

	find_cpus();
	go_to(cpus[0]);
	printf("cpus %d\n", ncpus);
	rmw = best(rmws, CALLS);
	print_cost("rmw", rmw);
	print_cost("fence", best(fences, CALLS));
	printf("load 0\t# included in its instruction\nstore 0\t# included: "
	    "it waits in the store buffer\n");
	print_cost("clock", best(clocks, CALLS));
	print_cost("relax", best(relaxes, CALLS));
	print_cost("copy", best(copies, CALLS) / COPY);
	print_cost("alloc", best(allocs, CALLS));
	print_cost("memory", memory_latency());
	line = transfer(rmw);
	print_cost("sibling", line);
	print_cost("socket", line);
	print_cost("remote", line);
	yield = best(yields, CALLS);
	print_cost("yield", yield);
	change = yield_to_other() - yield;
	print_cost("change", change);
	print_cost("park", hand_over() - best(unparks, CALLS) -
	    (change > 0 ? change : 0));
	measure_wakes();
	print_cost("timer", timer_latency());
	printf("slice %llu\n", (unsigned long long)slice());
	return (0);
}
