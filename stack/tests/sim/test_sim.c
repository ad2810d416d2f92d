/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated machine alone: threads, time, the cost of lines.
 */
#include "tests/check.h"

#include <errno.h>

#include "machine/sim/sim.h"

#define	NTHREADS	4
#define	TURNS		2000

/* Costs that are easy to add up, and one that avoids equal clocks. */
static const struct sim_preset preset = { .name = "test",
    .sockets = 2, .cores = 4, .threads = 2, .costs = { .instruction = 200,
    .rmw = 10000, .memory = 100000, .sibling = 20000, .socket = 51300,
    .remote = 200000, .relax = 10000, .yield = 10000, .park = 1000000,
    .unpark = 1000000, .wake = 1000000, .jitter = 100000, .timer = 1000000,
    .change = 1000000, .slice = 100000000 } };

static struct sim_report
run_logged(unsigned ncpus, uint64_t seed, void (*fn)(void *), void *arg,
    FILE *log)
{
	const struct sim_config config = { .machine = &preset,
	    .ncpus = ncpus, .seed = seed, .log = log };
	struct sim_report report;

	CHECK_EQ(sim_run(&config, fn, arg, &report), 0);
	return (report);
}

static struct sim_report
run(unsigned ncpus, uint64_t seed, void (*fn)(void *), void *arg)
{
	return (run_logged(ncpus, seed, fn, arg, NULL));
}

/* Threads that run the same function, each with its number. */
static void
all(void (*fn)(void *))
{
	struct mach_thread *mt[NTHREADS];

	for (uintptr_t i = 0; i < NTHREADS; i++)
		CHECK_EQ(mach_thread_create("test", MACH_CPU_ANY, fn,
		    (void *)i, &mt[i]), 0);
	for (unsigned i = 0; i < NTHREADS; i++)
		mach_thread_join(mt[i]);
}

/* A sleeping lock: 0 free, 1 held, 2 held with waiters. */
static atomic_u32 lock;
static unsigned protected;	/* by it */

static void
acquire(void)
{
	uint32_t was = 0;

	if (atomic_cmpset_u32(&lock, &was, 1))
		return;
	while (atomic_swap_u32(&lock, 2) != 0)
		(void)mach_park(&lock, 2, NSEC_FOREVER);
}

static void
release(void)
{
	if (atomic_swap_u32(&lock, 0) == 2)
		mach_unpark(&lock, 1);
}

static void
fight(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < TURNS; i++) {
		unsigned before;

		acquire();
		before = protected;
		mach_cpu_relax();
		protected = before + 1;
		release();
		mach_cpu_relax();
	}
}

static void
fight_all(void *arg)
{
	(void)arg;
	atomic_store_u32(&lock, 0);
	protected = 0;
	all(fight);
	CHECK_EQ(protected, NTHREADS * TURNS);
}

TEST(equal_seeds_are_equal_runs)
{
	struct sim_report a = run(3, 1, fight_all, NULL),
	    b = run(3, 1, fight_all, NULL), c = run(3, 2, fight_all, NULL);

	CHECK(a.hash == b.hash);
	CHECK_EQ(memcmp(&a, &b, sizeof(a)), 0);
	CHECK(a.hash != c.hash);
}

/* The thread that each CPU runs, from a log; 0: none. */
struct reading {
	unsigned	 running[SIM_CPUS_MAX];
	unsigned	 begins, ends;
};

static void
read_line(struct reading *r, const char *line)
{
	unsigned cpu, thread;
	char what[16];

	CHECK_EQ(sscanf(line, "%*u.%*u cpu%u thread%u %15s", &cpu, &thread,
	    what), 3);
	if (strcmp(what, "run") == 0) {
		CHECK_EQ(r->running[cpu], 0);
		for (unsigned i = 0; i < SIM_CPUS_MAX; i++)
			CHECK(r->running[i] != thread);
		r->running[cpu] = thread;
		r->begins++;
	} else if (strcmp(what, "preempt") == 0 ||
	    strcmp(what, "yield") == 0 || strcmp(what, "park") == 0 ||
	    strcmp(what, "exit") == 0) {
		CHECK_EQ(r->running[cpu], thread);
		r->running[cpu] = 0;
		r->ends++;
	}
}

TEST(a_cpu_runs_one_thread_and_a_thread_is_on_one_cpu)
{
	for (unsigned ncpus = 1; ncpus <= 3; ncpus++) {
		struct reading r = { .begins = 0 };
		char *text = NULL, *save = NULL, *line;
		size_t len;
		FILE *log = open_memstream(&text, &len);

		CHECK(log != NULL);
		(void)run_logged(ncpus, 1, fight_all, NULL, log);
		fclose(log);
		for (line = strtok_r(text, "\n", &save); line != NULL;
		    line = strtok_r(NULL, "\n", &save))
			read_line(&r, line);
		CHECK(r.begins > NTHREADS);
		CHECK(r.begins - r.ends <= ncpus);
		free(text);
	}
}

/*
 * All on one CPU: the owner of the lock is preempted while others spin for it.
 */
static void
spin(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 10; i++) {
		uint32_t was = 0;

		while (!atomic_cmpset_u32(&lock, &was, 1)) {
			was = 0;
			mach_cpu_relax();
		}
		for (unsigned k = 0; k < 20000; k++)	/* two slices */
			mach_cpu_relax();
		protected++;
		atomic_store_rel_u32(&lock, 0);
	}
}

static void
spin_all(void *arg)
{
	(void)arg;
	atomic_store_u32(&lock, 0);
	protected = 0;
	all(spin);
	CHECK_EQ(protected, NTHREADS * 10);
}

TEST(a_lock_whose_holder_is_preempted_is_released)
{
	struct sim_report r = run(1, 1, spin_all, NULL);

	CHECK(r.events[SIM_PREEMPT] > 10);
}

static void
wait_in_vain(void *arg)
{
	atomic_u32 word = 0;
	nsec_t deadline = mach_uptime() + NSEC_PER_SEC;

	(void)arg;
	CHECK_EQ(mach_park(&word, 1, deadline), 0);
	CHECK(mach_uptime() < deadline);
	CHECK_EQ(mach_park(&word, 0, deadline), ETIMEDOUT);
	CHECK(mach_uptime() >= deadline);
	CHECK(mach_uptime() < deadline + 3 * NSEC_PER_USEC);
	/* A deadline in the past. */
	CHECK_EQ(mach_park(&word, 0, deadline), ETIMEDOUT);
}

TEST(a_park_ends_at_its_deadline)
{
	(void)run(1, 1, wait_in_vain, NULL);
}

static atomic_u32 event;

static void
wait_for_event(void *arg)
{
	(void)arg;
	while (atomic_load_acq_u32(&event) == 0)
		CHECK_EQ(mach_park(&event, 0,
		    mach_uptime() + NSEC_PER_SEC), 0);
}

static void
cause_event(void *arg)
{
	struct mach_thread *mt;
	nsec_t start = mach_uptime();

	(void)arg;
	atomic_store_u32(&event, 0);
	CHECK_EQ(mach_thread_create("waiter", MACH_CPU_ANY, wait_for_event,
	    NULL, &mt), 0);
	for (unsigned i = 0; i < 1000; i++)
		mach_cpu_relax();
	atomic_store_rel_u32(&event, 1);
	mach_unpark(&event, 1);
	mach_thread_join(mt);
	CHECK(mach_uptime() - start < NSEC_PER_MSEC);
}

TEST(who_is_woken_before_its_deadline_does_not_wait_for_it)
{
	for (unsigned ncpus = 1; ncpus <= 2; ncpus++)
		(void)run(ncpus, 1, cause_event, NULL);
}

static nsec_t latest;

static void
look_at_clock(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < TURNS; i++) {
		nsec_t now = mach_uptime();

		CHECK(now >= latest);
		latest = now;
		for (unsigned k = i % 7; k > 0; k--)
			mach_cpu_relax();
	}
}

static void
look_all(void *arg)
{
	(void)arg;
	latest = 0;
	all(look_at_clock);
}

TEST(the_clocks_of_all_cpus_are_one)
{
	for (unsigned ncpus = 1; ncpus <= 5; ncpus++)
		(void)run(ncpus, 1, look_all, NULL);
}

static void
count_own(void *arg)
{
	for (unsigned i = 0; i < TURNS; i++) {
		atomic_fetchadd_u64((atomic_u64 *)arg, 1);
		mach_cpu_relax();	/* longer than the line stays */
	}
}

/* All threads count, each in a word at this distance in bytes (0: one word). */
static void
count_all(void *arg)
{
	const size_t stride = *(const size_t *)arg;
	char *memory = mach_alloc(64 * (NTHREADS + 1), 64);
	struct mach_thread *mt[NTHREADS];

	for (unsigned i = 0; i < NTHREADS; i++)
		CHECK_EQ(mach_thread_create("test", (int)i, count_own,
		    memory + i * stride, &mt[i]), 0);
	for (unsigned i = 0; i < NTHREADS; i++)
		mach_thread_join(mt[i]);
	mach_free(memory);
}

TEST(a_line_that_all_write_to_goes_round_and_others_do_not)
{
	size_t own = 64, beside = 8, same = 0;
	struct sim_report a = run(NTHREADS, 1, count_all, &own),
	    b = run(NTHREADS, 1, count_all, &beside),
	    c = run(NTHREADS, 1, count_all, &same);

	CHECK(a.events[SIM_SOCKET] < 20);
	CHECK(b.events[SIM_SOCKET] > NTHREADS * TURNS * 9 / 10);
	CHECK(c.events[SIM_SOCKET] > NTHREADS * TURNS * 9 / 10);
	/* 20 ns each, at the same time; 60 ns each, one after another */
	CHECK(a.clock < TURNS * 20 + 50 * NSEC_PER_USEC);
	CHECK(c.clock > (nsec_t)NTHREADS * TURNS * 55);
	CHECK(c.clock < (nsec_t)NTHREADS * TURNS * 75 + 50 * NSEC_PER_USEC);
}

/* Counts with a load and a compare-and-swap, as locks do. */
static struct {
	_Alignas(64) atomic_u64 word;
	_Alignas(64) uint64_t failures;
} swapped;

static void
count_by_swapping(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < TURNS; i++) {
		uint64_t seen = atomic_load_u64(&swapped.word);

		while (!atomic_cmpset_u64(&swapped.word, &seen, seen + 1))
			swapped.failures++;
		mach_cpu_relax();
	}
}

static void
swap_all(void *arg)
{
	(void)arg;
	atomic_store_u64(&swapped.word, 0);
	swapped.failures = 0;
	all(count_by_swapping);
	CHECK_EQ(atomic_load_u64(&swapped.word), NTHREADS * TURNS);
}

TEST(a_line_stays_from_a_load_to_the_swap_after_it)
{
	for (unsigned ncpus = 2; ncpus <= NTHREADS; ncpus++) {
		(void)run(ncpus, 1, swap_all, NULL);
		CHECK(swapped.failures < NTHREADS * TURNS / 20);
	}
}

/* Two CPUs write to a word in turn. */
static void
bounce(void *arg)
{
	atomic_u64 *word = arg;
	const unsigned self = mach_curcpu() != 0;

	for (unsigned i = 0; i < TURNS; i++) {
		while (atomic_load_acq_u64(word) % 2 != self)
			mach_cpu_relax();
		atomic_fetchadd_u64(word, 1);
	}
}

static void
bounce_with(void *arg)
{
	const int cpus[] = { 0, *(const int *)arg };
	atomic_u64 *word = mach_alloc(64, 64);
	struct mach_thread *mt[2];

	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(mach_thread_create("test", cpus[i], bounce, word,
		    &mt[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		mach_thread_join(mt[i]);
	mach_free(word);
}

TEST(where_a_line_comes_from_depends_on_who_has_it)
{
	int core = 1, socket = 4, sibling = 8;
	struct sim_report near = run(16, 1, bounce_with, &sibling),
	    same = run(16, 1, bounce_with, &core),
	    far = run(16, 1, bounce_with, &socket);

	CHECK(near.events[SIM_SIBLING] > 2 * TURNS * 9 / 10);
	CHECK(same.events[SIM_SOCKET] > 2 * TURNS * 9 / 10);
	CHECK(far.events[SIM_REMOTE] > 2 * TURNS * 9 / 10);
	CHECK(near.clock < same.clock);
	CHECK(same.clock < far.clock);
}

static void
work(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 50000; i++)
		mach_cpu_relax();
}

static void
work_all(void *arg)
{
	(void)arg;
	all(work);
}

/* Four threads with half a millisecond of work each. */
TEST(threads_share_the_cpus_that_there_are)
{
	const nsec_t each = 50000 * 10;
	nsec_t one = run(1, 1, work_all, NULL).clock,
	    two = run(2, 1, work_all, NULL).clock,
	    three = run(3, 1, work_all, NULL).clock,
	    four = run(4, 1, work_all, NULL).clock;

	CHECK(one >= 4 * each && one < 4 * each + each / 4);
	CHECK(two >= 2 * each && two < 2 * each + each / 4);
	CHECK(three >= 4 * each / 3 && three < 2 * each);
	CHECK(four >= each && four < each + each / 4);
}

static void
use_some_cpus(void *arg)
{
	(void)arg;
	CHECK_EQ(mach_ncpus(), 16);
	CHECK_EQ(mach_cpus_set("0-16"), ENODEV);
	CHECK_EQ(mach_cpus_set("x"), EINVAL);
	CHECK_EQ(mach_cpus_set("3-6,12"), 0);
	CHECK_EQ(mach_ncpus(), 5);
	mach_cpus_nosmt();	/* CPUs 4 and 12 share a core */
	CHECK_EQ(mach_ncpus(), 4);
	all(work);
	CHECK_EQ(mach_cpus_confine(), 0);
	CHECK_EQ(mach_ncpus(), 1);
	CHECK(mach_up());
}

TEST(the_stack_uses_the_cpus_that_it_was_told_to)
{
	struct sim_report r = run(16, 1, use_some_cpus, NULL);

	CHECK(r.clock < 50000 * 10 * 5 / 4);
}

static void
note_memory(void *arg)
{
	void **where = arg;
	char *p = mach_alloc(100, 0), *q;

	where[0] = p;
	memset(p, 1, 100);
	mach_free(p);
	q = mach_alloc(97, 0);
	CHECK(q == p);		/* the block freed last, zeroed */
	for (unsigned i = 0; i < 97; i++)
		CHECK_EQ(q[i], 0);
	where[1] = mach_alloc(4096, 4096);
	CHECK_EQ((uintptr_t)where[1] % 4096, 0);
	where[2] = &p;
	for (size_t size = 1; size < 1 << 20; size += size / 3 + 1) {
		q = mach_alloc(size, 0);
		memset(q, 1, size);
	}
	CHECK_EQ(*p, 0);
}

TEST(memory_is_where_it_was_in_the_run_before)
{
	void *first[3], *second[3];

	(void)run(1, 1, note_memory, first);
	(void)run(2, 2, note_memory, second);
	CHECK_EQ(memcmp(first, second, sizeof(first)), 0);
}

/* Two threads increment a counter without a lock: one increment may be lost. */
static void
count_badly(void *arg)
{
	(void)arg;
	atomic_store_u32(&lock, atomic_load_u32(&lock) + 1);
}

static void
count_in_search(void *arg)
{
	struct mach_thread *mt[2];

	atomic_store_u32(&lock, 0);
	sim_search(arg);
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(mach_thread_create("test", MACH_CPU_ANY, count_badly,
		    NULL, &mt[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		mach_thread_join(mt[i]);
	CHECK(sim_search_points() > 4);
	sim_memory_check();
}

/*
 * Some schedules lose an increment and some do not; a schedule's result is
 * always the same.
 */
static void
search_count(struct sim_search *s)
{
	unsigned lost = 0;

	for (s->seed = 1; s->seed <= 100; s->seed++) {
		struct sim_report a = run(2, 1, count_in_search, s), b;
		const uint32_t counted = atomic_load_u32(&lock);

		b = run(2, 1, count_in_search, s);
		CHECK_EQ(memcmp(&a, &b, sizeof(a)), 0);
		CHECK_EQ(atomic_load_u32(&lock), counted);
		lost += counted == 1;
	}
	CHECK(lost > 0 && lost < 100);
}

TEST(a_search_finds_what_only_some_schedules_lose)
{
	struct sim_search s = { .order = SIM_RANDOM, .depth = 2, .points = 20,
	    .limit = 1000, .hangs = NSEC_PER_SEC };

	search_count(&s);
	s.order = SIM_PCT;
	search_count(&s);
}

static void
nothing(void *arg)
{
	(void)arg;
}

TEST(a_machine_has_no_more_cpus_than_it_has)
{
	struct sim_config config = { .machine = &preset, .ncpus = 17 };
	struct sim_report report;

	CHECK_EQ(sim_run(&config, nothing, NULL, &report), EINVAL);
	config.ncpus = 0;
	CHECK_EQ(sim_run(&config, nothing, NULL, &report), EINVAL);
	for (unsigned i = 0; i < sim_npresets; i++) {
		config.machine = &sim_presets[i];
		config.ncpus = sim_preset_cpus(config.machine);
		CHECK(sim_preset_find(config.machine->name) == config.machine);
		CHECK_EQ(sim_run(&config, nothing, NULL, &report), 0);
	}
	CHECK(sim_preset_find("") == NULL);
}

int
main(int argc, char **argv)
{
	return (check_main(argc, argv));
}
