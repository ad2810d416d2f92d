/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutexes and reader-writer locks, with the strategy that $LOCK_MUTEX names,
 * and what watches them, as far as it is compiled in.
 */
#include "boot/boot.h"
#include "tests/check.h"

#include <errno.h>
#include <unistd.h>

#include "kern/kern_private.h"
#include "kern/lock_track.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "tests/console.h"
#include "tests/threads.h"
#include "tools/ctl_client.h"

#define	TURNS		20000

static char ctl_path[64];
static struct mtx lock;
static struct rwlock rwl;
static unsigned counter, other;

static void
set(const char *name, const char *value)
{
	char why[128] = "";
	int error = sysctl_set(name, value, why, sizeof(why));

	if (error != 0)
		fprintf(stderr, "%s: %s\n", name, why);
	CHECK_EQ(error, 0);
}

/* The output of stackctl; the caller frees it. */
static char *
ask(const char *command)
{
	char line[64], *text = NULL;
	size_t len;
	FILE *in, *out = open_memstream(&text, &len);

	snprintf(line, sizeof(line), "%s\n", command);
	in = ctl_ask("test", ctl_path, line);
	CHECK(in != NULL);
	CHECK_EQ(ctl_answer("test", in, out), 0);
	fclose(out);
	return (text);
}

static void
count_locked(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS; i++) {
		mtx_lock(&lock);
		counter++;
		mtx_unlock(&lock);
	}
}

TEST(mutex_excludes)
{
	counter = 0;
	run_threads(count_locked);
	CHECK_EQ(counter, NTHREADS * TURNS);
}

/* Held until the others have parked: each must be woken. */
static void
count_slowly(void *arg)
{
	(void)arg;
	for (int i = 0; i < 50; i++) {
		mtx_lock(&lock);
		counter++;
		usleep(100);
		mtx_unlock(&lock);
	}
}

TEST(nobody_is_left_parked)
{
	counter = 0;
	run_threads(count_slowly);
	CHECK_EQ(counter, NTHREADS * 50);
}

TEST(trylock_does_not_wait)
{
	CHECK(mtx_trylock(&lock));
	CHECK(mtx_owned(&lock));
	mtx_unlock(&lock);
	CHECK(!mtx_owned(&lock));
}

/* Writers keep two counters equal; readers must never see them differ. */
static void
read_and_write(void *arg)
{
	for (int i = 0; i < TURNS / 4; i++) {
		if ((uintptr_t)arg == 0) {
			rw_wlock(&rwl);
			counter++;
			other++;
			rw_wunlock(&rwl);
		} else {
			rw_rlock(&rwl);
			CHECK_EQ(counter, other);
			rw_runlock(&rwl);
		}
	}
}

TEST(readers_see_no_half_write)
{
	counter = other = 0;
	run_threads(read_and_write);
	CHECK_EQ(counter, TURNS / 4);
}

/*
 * Takes the rwlock as its argument requires, "r" or "w", and records the order
 * of acquisitions.
 */
static char got_it[8];
static struct mtx got_lock;

static void
note_got(const char *how)
{
	mtx_lock(&got_lock);
	strcat(got_it, how);
	mtx_unlock(&got_lock);
}

static void
get_rwlock(void *how)
{
	if (*(const char *)how == 'w') {
		rw_wlock(&rwl);
		note_got(how);
		rw_wunlock(&rwl);
	} else {
		rw_rlock(&rwl);
		note_got(how);
		rw_runlock(&rwl);
	}
}

/* A thread of get_rwlock() that waits, or has ended. */
static struct thread *
start_for_rwlock(const char *how, bool waits)
{
	struct thread *td;

	CHECK_EQ(kthread_create(how, MACH_CPU_ANY, get_rwlock,
	    (void *)(uintptr_t)how, &td), 0);
	while (waits && td->td_blocked == NULL)
		usleep(100);
	if (!waits)
		kthread_join(td);
	return (td);
}

TEST(readers_share_and_wait_behind_a_writer)
{
	struct thread *writer, *reader;

	got_it[0] = '\0';
	rw_rlock(&rwl);
	start_for_rwlock("r", false);
	writer = start_for_rwlock("w", true);
	/* waits although the lock is held by readers only */
	reader = start_for_rwlock("r", true);
	CHECK_STREQ(got_it, "r");
	rw_runlock(&rwl);
	kthread_join(writer);
	kthread_join(reader);
	CHECK_STREQ(got_it, "rwr");
}

/* Returns 20 ms after the thread that runs fn has begun to wait. */
static struct thread *
contend(void (*fn)(void *))
{
	struct thread *td;

	CHECK_EQ(kthread_create("waiter", MACH_CPU_ANY, fn, NULL, &td), 0);
	while (td->td_wmesg == NULL && td->td_blocked == NULL)
		usleep(100);
	usleep(20000);
	return (td);
}

static void
sleep_for_the_token(void *arg)
{
	(void)arg;
	mtx_lock(&lock);
	while (counter == 0)
		CHECK_EQ(msleep(&counter, &lock, 0, "token", NSEC_FOREVER), 0);
	mtx_unlock(&lock);
}

TEST(sleeps_are_counted_by_what_they_wait_for)
{
	unsigned long long count, total;
	double p50, p99;
	char *text, *line;
	struct thread *td;

	set("debug.sleepq.prof.enable", "1");
	set("debug.sleepq.prof.reset", "1");
	counter = 0;
	td = contend(sleep_for_the_token);
	text = ask("ps");
	CHECK(strstr(text, "sleep    token               waiter\n") != NULL);
	free(text);
	mtx_lock(&lock);
	counter = 1;
	wakeup(&counter);
	mtx_unlock(&lock);
	kthread_join(td);
	set("debug.sleepq.prof.enable", "0");
	text = ask("sleepprof");
	line = strstr(text, "\n          1 ");
	while (line != NULL && strncmp(strchr(line + 1, '\n') - 5, "token", 5))
		line = strstr(line + 1, "\n          1 ");
	CHECK(line != NULL);
	CHECK_EQ(sscanf(line, "%llu %llu %lf %lf", &count, &total, &p50, &p99),
	    4);
	CHECK_EQ(count, 1);
	/* One sleep is every percentile, to an eighth. */
	CHECK(p50 == p99 && p50 > 0.87 * (double)total &&
	    p50 < 1.14 * (double)total + 1);
	free(text);
	set("debug.sleepq.prof.reset", "1");
	text = ask("sleepprof");
	CHECK(strstr(text, "token") == NULL);
	free(text);
}

static void
take_giant(void *arg)
{
	(void)arg;
	giant_lock();
	giant_unlock();
}

/* Without ADAPTIVE_GIANT no thread spins for Giant, for any lock.mutex. */
TEST(giant_is_parked_for_unless_it_is_adaptive)
{
	struct thread *td;

	set("lock.giant_adaptive", "0");
	giant_lock();
	td = contend(take_giant);
	while (atomic_load_u32(&td->td_offcpu) == 0)
		usleep(100);
	giant_unlock();
	kthread_join(td);
	set("lock.giant_adaptive", "1");
}

#ifdef WITNESS
static unsigned long
get(const char *name)
{
	char value[64];

	CHECK_EQ(sysctl_get(name, value, sizeof(value)), 0);
	return (strtoul(value, NULL, 10));
}

static struct mtx socket_lock, table_lock;

static void
reverse(void)
{
	mtx_lock(&table_lock);
	mtx_lock(&socket_lock);
	mtx_unlock(&socket_lock);
	mtx_unlock(&table_lock);
}

TEST(a_reversal_is_reported_once_with_both_places)
{
	unsigned long before = get("debug.witness.reversals");
	const char *text;

	set("debug.witness.mode", "warn");
	text = console_of(reverse);
	CHECK(strstr(text, "lock order reversal") != NULL);
	CHECK(strstr(text, "1st pcbtable (0x") != NULL);
	CHECK(strstr(text, "2nd socket (0x") != NULL);
	CHECK(strstr(text, ") @ tests/test_lock.c:") != NULL);
	CHECK_STREQ(console_of(reverse), "");
	CHECK_EQ(get("debug.witness.reversals"), before + 2);
	set("debug.witness.mode", "panic");
}

static void
lock_two_of_a_class(void)
{
	static struct mtx another;

	mtx_init(&another, LC_PCBTABLE);
	mtx_lock(&table_lock);
	mtx_lock(&another);
	mtx_unlock(&another);
	mtx_unlock(&table_lock);
}

/* In the wrong order of addresses.  The analysis takes both for one lock. */
static void
lock_against_addresses(void) NO_LOCK_ANALYSIS
{
	static struct mtx two[2];

	mtx_init(&two[0], LC_UNPCB);
	mtx_init(&two[1], LC_UNPCB);
	mtx_lock(&two[1]);
	mtx_lock(&two[0]);
	mtx_unlock(&two[0]);
	mtx_unlock(&two[1]);
}

/* In the right order of addresses, and a listener before its child. */
static void
lock_by_address(void) NO_LOCK_ANALYSIS
{
	static struct mtx two[2];

	mtx_init(&two[0], LC_SOCKET);
	mtx_init(&two[1], LC_SOCKET);
	mtx_lock(&two[0]);
	mtx_lock(&two[1]);
	mtx_unlock(&two[0]);
	mtx_lock_child(&two[0]);
	mtx_unlock(&two[0]);
	CHECK(mtx_trylock(&two[0]));
	mtx_unlock(&two[0]);
	mtx_unlock(&two[1]);
}

TEST(locks_of_a_class_are_taken_by_address)
{
	const char *text;

	set("debug.witness.mode", "warn");
	text = console_of(lock_against_addresses);
	CHECK(strstr(text, "against the order of addresses") != NULL);
	CHECK(strstr(text, "1st unp_mtx (0x") != NULL);
	CHECK_STREQ(console_of(lock_by_address), "");
	set("debug.witness.mode", "panic");
}

static void
sleep_with_a_lock(void)
{
	mtx_lock(&socket_lock);
	mtx_lock(&table_lock);
	CHECK_EQ(msleep(&counter, &table_lock, 0, "napping", NSEC_PER_MSEC),
	    EWOULDBLOCK);
	mtx_unlock(&table_lock);
	mtx_unlock(&socket_lock);
}

static void
read_twice(void) NO_LOCK_ANALYSIS
{
	rw_rlock(&rwl);
	rw_rlock(&rwl);
	rw_runlock(&rwl);
	rw_runlock(&rwl);
}

/*
 * A recursive read lock deadlocks only if a writer waits; it is always
 * reported.
 */
TEST(a_recursive_read_is_reported)
{
	set("debug.witness.mode", "warn");
	CHECK(strstr(console_of(read_twice), "acquiring a lock that is held")
	    != NULL);
	set("debug.witness.mode", "panic");
}

TEST(duplicates_and_sleepers_with_locks_are_reported)
{
	set("debug.witness.mode", "warn");
	CHECK(strstr(console_of(lock_two_of_a_class),
	    "duplicate lock of same class") != NULL);
	CHECK(strstr(console_of(sleep_with_a_lock), "napping: ") != NULL);
	set("debug.witness.mode", "panic");
}
#endif

#ifdef LOCK_TRACKING
TEST(a_look_at_the_locks_shows_who_holds_them)
{
	char *text, command[32];

	mtx_lock(&lock);
	text = ask("show alllocks");
	CHECK(strstr(text, "  holds test (0x") != NULL);
	free(text);
	snprintf(command, sizeof(command), "show locks %u",
	    atomic_load_u32(&curthread->td_id));
	text = ask(command);
	CHECK(strstr(text, " @ tests/test_lock.c:") != NULL);
	free(text);
	mtx_unlock(&lock);
	text = ask(command);
	CHECK(strstr(text, " holds no lock\n") != NULL);
	free(text);
	text = ask("show stacks");
	CHECK(strstr(text, " ctl_main+0x") != NULL);
	free(text);
}
#endif

#ifdef LOCK_PROFILING
static unsigned wait_line, hold_line;

static void
get_it_once(void *arg)
{
	(void)arg;
	mtx_lock(&lock); wait_line = __LINE__;
	mtx_unlock(&lock);
}

/* One mutex, held for 20 ms while a thread wants it. */
static void
hold_against_a_waiter(void)
{
	struct thread *td;
	char *text;

	mtx_lock(&lock); hold_line = __LINE__;
	td = contend(get_it_once);
	text = ask("ps");
	CHECK(strstr(text, "lock     *test               waiter\n") != NULL);
	free(text);
	mtx_unlock(&lock);
	kthread_join(td);
}

/* The line of a profile that is about a line of this file. */
static const char *
line_about(const char *text, unsigned line)
{
	static char copy[256];
	char name[64];
	const char *at, *start;

	snprintf(name, sizeof(name), " tests/test_lock.c:%u (test)\n", line);
	at = strstr(text, name);
	CHECK(at != NULL);
	for (start = at; start > text && start[-1] != '\n'; start--)
		continue;
	snprintf(copy, sizeof(copy), "%.*s", (int)(at - start), start);
	return (copy);
}

TEST(profile_of_2006_credits_the_holder_and_the_waiter)
{
	unsigned long long max, total, count, avg, hold, waited;
	char *text;

	set("debug.mutex.prof.enable", "1");
	hold_against_a_waiter();
	set("debug.mutex.prof.enable", "0");
	text = ask("mutexprof");
	CHECK(strstr(text, "    max        total       count   avg     cnt_hold"
	    "     cnt_lock name\n") != NULL);
	CHECK_EQ(sscanf(line_about(text, hold_line),
	    "%llu %llu %llu %llu %llu %llu", &max, &total, &count, &avg, &hold,
	    &waited), 6);
	CHECK_EQ(count, 1);
	CHECK(max >= 10000 && total == max && avg == max);
	CHECK(hold >= 1);
	CHECK_EQ(waited, 0);
	CHECK_EQ(sscanf(line_about(text, wait_line),
	    "%llu %llu %llu %llu %llu %llu", &max, &total, &count, &avg, &hold,
	    &waited), 6);
	CHECK_EQ(count, 1);
	CHECK_EQ(hold, 0);
	CHECK_EQ(waited, 1);
	free(text);
	set("debug.mutex.prof.reset", "1");
	text = ask("mutexprof");
	CHECK(strstr(text, "test_lock") == NULL);
	free(text);
}

TEST(profile_of_2007_knows_how_long_was_waited)
{
	unsigned long long max, wait_max, total, wait_total, count, avg,
	    wait_avg, hold, contested;
	char *text;

	set("debug.lock.prof.enable", "1");
	hold_against_a_waiter();
	counter = 0;
	run_threads(count_locked);
	set("debug.lock.prof.enable", "0");
	text = ask("lockprof");
	/* The waiter has ended; its counts are kept. */
	CHECK_EQ(sscanf(line_about(text, wait_line),
	    "%llu %llu %llu %llu %llu %llu %llu %llu %llu", &max, &wait_max,
	    &total, &wait_total, &count, &avg, &wait_avg, &hold, &contested),
	    9);
	CHECK_EQ(count, 1);
	CHECK_EQ(contested, 1);
	CHECK(wait_max >= 5000 && wait_total == wait_max);
	CHECK_EQ(sscanf(line_about(text, hold_line),
	    "%llu %llu %llu %llu %llu", &max, &wait_max, &total, &wait_total,
	    &count), 5);
	CHECK(max >= 10000);
	CHECK_EQ(wait_max, 0);
	CHECK(strstr(text, " 80000 ") != NULL);
	free(text);
	set("debug.lock.prof.reset", "1");
	text = ask("lockprof");
	CHECK(strstr(text, "test_lock") == NULL);
	free(text);
}
#endif

static int
configure(const char *strategy)
{
	char text[256];

	snprintf(text, sizeof(text), "boot_mute=\"1\"\nctl.path=\"%s\"\n"
	    "lock.mutex=\"%s\"\n", ctl_path, strategy);
	return (loader_parse("test", text));
}

int
main(int argc, char **argv)
{
	const char *strategy = getenv("LOCK_MUTEX");
	int status;

	snprintf(ctl_path, sizeof(ctl_path), "/tmp/stack-test-%d.sock",
	    (int)getpid());
	mtx_init(&lock, LC_TEST);
	rw_init(&rwl, LC_TEST);
	mtx_init(&got_lock, LC_TEST);
#ifdef WITNESS
	mtx_init(&socket_lock, LC_SOCKET);
	mtx_init(&table_lock, LC_PCBTABLE);
#endif
	CHECK_EQ(stack_boot_config(configure,
	    strategy != NULL ? strategy : "adaptive"), 0);
	status = check_main(argc, argv);
	stack_shutdown();
	return (status);
}
