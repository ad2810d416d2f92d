/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Giant, sleep and wakeup, workers, callouts, counters, work put off: with
 * several threads.
 */
#include "tests/check.h"

#include <errno.h>

#include "kern/ast.h"
#include "kern/callout.h"
#include "kern/counter.h"
#include "kern/kern_private.h"
#include "kern/mbuf_private.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/worker.h"
#include "tests/threads.h"

#define	TURNS		20000

static struct mtx lock;
static unsigned counter, other;

static void
count_giant(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS / 4; i++) {
		giant_lock();
		giant_lock();		/* recursion */
		counter++;
		giant_unlock();
		giant_unlock();
	}
}

TEST(giant_recurses_and_excludes)
{
	counter = 0;
	run_threads(count_giant);
	CHECK_EQ(counter, NTHREADS * (TURNS / 4));
}

static void
take_giant_and_wake(void *arg)
{
	giant_lock();		/* only possible while the sleeper is asleep */
	mtx_lock(&lock);
	counter = 1;
	wakeup(arg);
	mtx_unlock(&lock);
	giant_unlock();
}

TEST(giant_is_dropped_while_asleep_and_comes_back_as_deep)
{
	struct thread *td;

	counter = 0;
	giant_lock();
	giant_lock();
	CHECK_EQ(kthread_create("waker", MACH_CPU_ANY, take_giant_and_wake,
	    &counter, &td), 0);
	mtx_lock(&lock);
	while (counter == 0)
		CHECK_EQ(msleep(&counter, &lock, 0, "test", NSEC_FOREVER), 0);
	mtx_unlock(&lock);
	CHECK_EQ(curthread->td_giant, 2);
	giant_unlock();
	giant_unlock();
	kthread_join(td);
}

TEST(sleep_times_out)
{
	mtx_lock(&lock);
	CHECK_EQ(msleep(&counter, &lock, PCATCH, "test", NSEC_PER_MSEC),
	    EWOULDBLOCK);
	CHECK(mtx_owned(&lock));
	mtx_unlock(&lock);
}

/*
 * A signal before the sleep or during it ends the sleep; it is reported once.
 */
TEST(an_interrupt_ends_sleeps_until_it_is_cleared)
{
	mtx_lock(&lock);
	thread_interrupt();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(msleep(&counter, &lock, PCATCH, "test",
		    NSEC_FOREVER), EINTR);
	CHECK_EQ(msleep(&counter, &lock, 0, "test", NSEC_PER_MSEC),
	    EWOULDBLOCK);
	atomic_store_u32(&curthread->td_interrupt, 0);
	CHECK_EQ(msleep(&counter, &lock, PCATCH, "test", NSEC_PER_MSEC),
	    EWOULDBLOCK);
	mtx_unlock(&lock);
}

/* Two threads pass a token back and forth: a lost wakeup hangs the test. */
static void
ping_pong(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg % 2;

	mtx_lock(&lock);
	for (int i = 0; i < TURNS / 10; i++) {
		while (counter % 2 != me && other == 0)
			msleep(&counter, &lock, 0, "pingpong", NSEC_FOREVER);
		counter++;
		wakeup(&counter);
	}
	other = 1;
	wakeup(&counter);
	mtx_unlock(&lock);
}

TEST(no_wakeup_is_lost)
{
	counter = other = 0;
	run_threads(ping_pong);
	CHECK_EQ(counter, NTHREADS * (TURNS / 10));
}

static void
set_spin(const char *us)
{
	char why[64];

	CHECK_EQ(sysctl_set("machine.spin_us", us, why, sizeof(why)), 0);
}

TEST(no_wakeup_is_lost_without_spinning)
{
	set_spin("0");
	test_no_wakeup_is_lost();
	set_spin("20");
}

/*
 * Deferred output is sent before a sleep, because the awaited answer depends on
 * it.
 */
static void
ping_pong_holding(void *arg)
{
	wakeup_hold();
	ping_pong(arg);
	wakeup_release();
}

TEST(a_thread_that_sleeps_lets_held_wakeups_go)
{
	counter = other = 0;
	set_spin("0");
	run_threads(ping_pong_holding);
	set_spin("20");
	CHECK_EQ(counter, NTHREADS * (TURNS / 10));
}

#define	CROWD	(3 * TD_WOKEN_MAX)

static void
await_other(void *arg)
{
	(void)arg;
	mtx_lock(&lock);
	counter++;
	while (other == 0)
		msleep(&other, &lock, 0, "crowd", NSEC_FOREVER);
	mtx_unlock(&lock);
}

TEST(any_number_of_wakeups_can_be_held)
{
	struct thread *td[CROWD];

	counter = other = 0;
	set_spin("0");
	for (int i = 0; i < CROWD; i++)
		CHECK_EQ(kthread_create("crowd", MACH_CPU_ANY, await_other,
		    NULL, &td[i]), 0);
	mtx_lock(&lock);
	while (counter < CROWD)
		msleep(&counter, &lock, 0, "test", NSEC_PER_MSEC);
	wakeup_hold();
	other = 1;
	wakeup(&other);
	mtx_unlock(&lock);
	wakeup_release();
	for (int i = 0; i < CROWD; i++)
		kthread_join(td[i]);
	set_spin("20");
}

static struct callout co[64];
static atomic_u32 fired;

static void
fire(void *arg)
{
	(void)arg;
	atomic_fetchadd_u32(&fired, 1);
}

static void
wait_fired(uint32_t n)
{
	mtx_lock(&lock);
	while (atomic_load_acq_u32(&fired) < n)
		msleep(&fired, &lock, 0, "test", NSEC_PER_MSEC);
	mtx_unlock(&lock);
}

/* Consumes what other threads add to the counter. */
static nsec_t
collect(void *arg)
{
	mtx_assert_owned(&lock);
	if (counter == 0)
		return (NSEC_FOREVER);
	*(unsigned *)arg += counter;
	counter = 0;
	wakeup(arg);
	return (0);
}

static nsec_t
count_to_three(void *arg)
{
	mtx_assert_owned(&lock);
	wakeup(arg);
	return (++*(unsigned *)arg < 3 ? NSEC_PER_MSEC : NSEC_FOREVER);
}

static void
await_collected(const unsigned *collected, unsigned wanted)
{
	mtx_lock(&lock);
	while (*collected != wanted)
		msleep(collected, &lock, 0, "test", NSEC_FOREVER);
	mtx_unlock(&lock);
}

static struct worker collector;

static void
give_work(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS / 10; i++) {
		mtx_lock(&lock);
		counter++;
		worker_wake(&collector);
		mtx_unlock(&lock);
	}
}

TEST(a_worker_does_all_it_is_woken_for)
{
	unsigned collected = 0;

	counter = 0;
	collector = (struct worker){ .w_lock = &lock, .w_fn = collect,
	    .w_arg = &collected, .w_wmesg = "test" };
	worker_stop(&collector);	/* none runs */
	CHECK_EQ(worker_start(&collector, "worker", MACH_CPU_ANY), 0);
	run_threads(give_work);
	await_collected(&collected, NTHREADS * (TURNS / 10));
	worker_stop(&collector);
	give_work(NULL);		/* nobody is there */
	CHECK_EQ(collected, NTHREADS * (TURNS / 10));
	CHECK_EQ(worker_start(&collector, "worker", MACH_CPU_ANY), 0);
	await_collected(&collected, (NTHREADS + 1) * (TURNS / 10));
	worker_stop(&collector);
}

TEST(a_worker_comes_again_when_it_said)
{
	unsigned called = 0;

	collector = (struct worker){ .w_lock = &lock, .w_fn = count_to_three,
	    .w_arg = &called, .w_wmesg = "test" };
	CHECK_EQ(worker_start(&collector, "worker", MACH_CPU_ANY), 0);
	await_collected(&called, 3);
	worker_stop(&collector);
	CHECK_EQ(called, 3);
}

TEST(callouts_fire_once_each)
{
	atomic_store_u32(&fired, 0);
	for (size_t i = 0; i < nitems(co); i++) {
		callout_init(&co[i]);
		CHECK(!callout_reset(&co[i], i * NSEC_PER_MSEC / 3, fire, NULL));
	}
	wait_fired(nitems(co));
	for (size_t i = 0; i < nitems(co); i++)
		CHECK(!callout_drain(&co[i]));
	CHECK_EQ(atomic_load_u32(&fired), nitems(co));
}

TEST(stopped_callouts_do_not_fire)
{
	atomic_store_u32(&fired, 0);
	callout_reset(&co[0], 3600 * NSEC_PER_SEC, fire, NULL);
	CHECK(callout_pending(&co[0]));
	CHECK(callout_reset(&co[0], 1800 * NSEC_PER_SEC, fire, NULL));
	CHECK(callout_stop(&co[0]));
	CHECK(!callout_stop(&co[0]));
	CHECK_EQ(atomic_load_u32(&fired), 0);
}

/* Resets and stops race with the clock thread; the sums must agree. */
static void
hammer(void *arg)
{
	struct callout *c = &co[(uintptr_t)arg];

	for (int i = 0; i < TURNS / 20; i++) {
		bool was = callout_reset(c, (uint64_t)(i % 3) * NSEC_PER_MSEC,
		    fire, NULL);

		if (was)
			atomic_fetchadd_u32(&fired, 1);
		if (i % 7 == 0 && callout_stop(c))
			atomic_fetchadd_u32(&fired, 1);
	}
	if (callout_drain(c))
		atomic_fetchadd_u32(&fired, 1);
}

TEST(each_reset_fires_or_is_cancelled)
{
	atomic_store_u32(&fired, 0);
	run_threads(hammer);
	CHECK_EQ(atomic_load_u32(&fired), NTHREADS * (TURNS / 20));
}

static struct {
	atomic_u64 turns, bytes;
} counted COUNTERS;

static void
count_own(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS; i++) {
		counter_add(&counted.turns, 1);
		counter_add(&counted.bytes, 3);
	}
	CHECK(counter_read(&counted.turns) >= TURNS);
}

TEST(counters_of_all_threads_add_up)
{
	static atomic_u64 plain = 5;

	/* this thread continues, the others have ended */
	count_own(NULL);
	run_threads(count_own);
	CHECK_EQ(counter_read(&counted.turns), (NTHREADS + 1) * TURNS);
	CHECK_EQ(counter_read(&counted.bytes), 3 * (NTHREADS + 1) * TURNS);
	CHECK_EQ(counter_read(&plain), 5);
}

static void
wake_counter(struct ast *a)
{
	(void)a;
	mtx_lock(&lock);
	counter++;
	wakeup(&counter);
	mtx_unlock(&lock);
}

static struct ast work = { .ast_fn = wake_counter };

static void
take_more(struct ast *a)
{
	(void)a;
	CHECK(ast_take(&work));
	CHECK_EQ(counter, 0);
}

TEST(work_put_off_is_done_at_the_end_of_the_outermost_call)
{
	struct ast first = { .ast_fn = take_more };

	CHECK(!ast_entered());
	CHECK(!ast_take(&work));	/* no other thread would do it */
	counter = 0;
	ast_enter();
	ast_enter();
	CHECK(ast_entered());
	CHECK(ast_take(&first));
	ast_leave();
	CHECK_EQ(counter, 0);
	ast_leave();			/* and its effect */
	CHECK_EQ(counter, 1);
	CHECK(!ast_take(&work));
}

TEST(work_put_off_is_done_before_a_sleep)
{
	counter = 0;
	ast_enter();
	CHECK(ast_take(&work));
	mtx_lock(&lock);
	while (counter == 0)
		msleep(&counter, &lock, 0, "test", NSEC_FOREVER);
	mtx_unlock(&lock);
	ast_leave();
	CHECK_EQ(counter, 1);
}

/* Waits for another thread, which this thread must wake. */
static void
wait_for_other(struct ast *a)
{
	(void)a;
	mtx_lock(&lock);
	counter++;
	wakeup(&counter);
	while (other == 0)
		msleep(&other, &lock, PDUE, "inner", NSEC_FOREVER);
	mtx_unlock(&lock);
}

static void
wake_other(void *arg)
{
	(void)arg;
	mtx_lock(&lock);
	while (counter == 0)
		msleep(&counter, &lock, 0, "test", NSEC_FOREVER);
	other = 1;
	wakeup(&other);
	mtx_unlock(&lock);
}

/* The work's wakeup is not the one that the sleep waits for. */
TEST(work_before_a_sleep_may_sleep_itself)
{
	struct ast sleeps = { .ast_fn = wait_for_other };
	const char *spins[] = { "0", "20" };
	struct thread *td;

	for (size_t i = 0; i < nitems(spins); i++) {
		set_spin(spins[i]);
		counter = other = 0;
		CHECK_EQ(kthread_create("waker", MACH_CPU_ANY, wake_other,
		    NULL, &td), 0);
		ast_enter();
		CHECK(ast_take(&sleeps));
		mtx_lock(&lock);
		CHECK_EQ(msleep(&fired, &lock, 0, "outer",
		    20 * NSEC_PER_MSEC), EWOULDBLOCK);
		/* the sleep queue has no entry of it */
		wakeup(&fired);
		CHECK_EQ(msleep(&fired, &lock, 0, "test", NSEC_PER_MSEC),
		    EWOULDBLOCK);
		mtx_unlock(&lock);
		ast_leave();
		kthread_join(td);
	}
	set_spin("20");
}

/* All lengths, inline and by a call; bytes outside the range stay unchanged. */
TEST(a_few_bytes_are_copied_and_no_more)
{
	char from[40], to[42], want[42];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(i + 1);
	for (size_t len = 0; len <= sizeof(from); len++) {
		memset(to, 'x', sizeof(to));
		memset(want, 'x', sizeof(want));
		for (size_t i = 0; i < len; i++)
			want[1 + i] = from[i];
		copy_bytes(to + 1, from, len);
		CHECK_EQ(memcmp(to, want, sizeof(to)), 0);
	}
}

TEST(loader_conf_errors_name_line_and_reason)
{
	char good[] = "# comment\n\ndebug.mpsafenet=\"1\" # text\r\n";
	char unknown[] = "no.such.name=\"1\"\n";
	char unquoted[] = "debug.mpsafenet=1\n";
	char open[] = "debug.mpsafenet=\"1\n";
	char range[] = "debug.mpsafenet=\"2\"\n";
	char junk[] = "debug.mpsafenet=\"1\" x\n";

	CHECK_EQ(loader_parse("t", good), 0);
	CHECK_EQ(loader_parse("t", unknown), ENOENT);
	CHECK_EQ(loader_parse("t", unquoted), EINVAL);
	CHECK_EQ(loader_parse("t", open), EINVAL);
	CHECK_EQ(loader_parse("t", range), EINVAL);
	CHECK_EQ(loader_parse("t", junk), EINVAL);
}

int
main(int argc, char **argv)
{
	int status;

	counter_init();
	sysctl_init();
	lock_init();
	giant_init();
	synch_init();
	callout_subsys_init();
	mbuf_init();
	mtx_init(&lock, LC_TEST);
	CHECK_EQ(callout_start(), 0);
	status = check_main(argc, argv);
	callout_shutdown();
	return (status);
}
