/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual time: the clock jumps to the next deadline, and does not advance
 * while a thread runs.
 */
#include "boot/boot.h"
#include "tests/check.h"

#include "kern/callout.h"
#include "kern/synch.h"
#include "machine/virtual/virtual.h"
#include "tests/net.h"

#define	HOUR	(3600 * NSEC_PER_SEC)

static char order[8];
static unsigned norder;

static void
note(void *arg)
{
	order[norder++] = *(const char *)arg;
}

static void
sleep_and_note(void *arg)
{
	const char *name = arg;

	t_sleep((unsigned)(*name - 'a' + 1) * 1000);
	note(arg);
}

TEST(sleeps_take_exactly_as_long_as_they_say)
{
	nsec_t start = mach_uptime();

	t_sleep(3600 * 1000);
	CHECK(mach_uptime() - start >= HOUR);
	CHECK(mach_uptime() - start < HOUR + NSEC_PER_MSEC);
}

TEST(sleepers_wake_in_the_order_of_their_deadlines)
{
	static const char names[] = "cab";
	struct thread *td[3];

	norder = 0;
	for (int i = 0; i < 3; i++)
		td[i] = t_thread(sleep_and_note,
		    (void *)(uintptr_t)&names[i]);
	for (int i = 0; i < 3; i++)
		t_join(td[i]);
	CHECK_EQ(norder, 3);
	CHECK(memcmp(order, "abc", 3) == 0);
}

TEST(callouts_run_while_the_main_thread_sleeps)
{
	struct callout late, soon;

	norder = 0;
	callout_init(&late);
	callout_init(&soon);
	callout_reset(&late, 2 * HOUR, note, (void *)(uintptr_t)"l");
	callout_reset(&soon, HOUR, note, (void *)(uintptr_t)"s");
	CHECK_EQ(norder, 0);
	t_sleep(3 * 3600 * 1000);
	CHECK_EQ(norder, 2);
	CHECK(memcmp(order, "sl", 2) == 0);
}

TEST(time_stands_still_outside_the_stack)
{
	struct callout c;
	nsec_t start;

	norder = 0;
	callout_init(&c);
	callout_reset(&c, NSEC_PER_MSEC, note, (void *)(uintptr_t)"c");
	start = mach_uptime();
	mach_virtual_leave(false);
	mach_virtual_enter(true);
	CHECK(mach_uptime() - start < NSEC_PER_MSEC);
	CHECK_EQ(norder, 0);
	t_sleep(3);
	CHECK_EQ(norder, 1);
}

static void
count_run(void *arg)
{
	atomic_fetchadd_u32(arg, 1);
}

/* Waiting threads yield often: that must give no CPU to other programs. */
TEST(a_yield_runs_the_next_thread_and_takes_no_time)
{
	atomic_u32 runs = 0;
	struct thread *td = t_thread(count_run, &runs);
	struct callout c;
	nsec_t start;

	norder = 0;
	callout_init(&c);
	callout_reset(&c, NSEC_PER_SEC, note, (void *)(uintptr_t)"c");
	start = mach_uptime();
	mach_yield();
	CHECK_EQ(atomic_load_u32(&runs), 1);
	for (unsigned i = 0; i < 100; i++)
		mach_yield();
	CHECK(mach_uptime() - start < NSEC_PER_MSEC);
	CHECK_EQ(norder, 0);
	CHECK(callout_stop(&c));
	t_join(td);
}

int
main(int argc, char **argv)
{
	mach_virtual_enter(true);
	CHECK_EQ(stack_boot(NULL), 0);
	return (check_main(argc, argv));
}
