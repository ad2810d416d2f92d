/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watchdog reports hanging threads and queues, and nothing else; builds
 * without it contain none of its code.
 */
#include "tests/console.h"

#include <errno.h>
#include <unistd.h>

#include "kern/lock.h"
#include "kern/sysctl.h"
#include "tests/net.h"

#ifdef LOCK_TRACKING

static struct mtx lock;
static atomic_u32 may_go, locked;

static uint64_t
hangs(void)
{
	return (t_sysctl("debug.watchdog.hangs"));
}

/* True if the number has grown. */
static bool
more_hangs(void *before)
{
	return (hangs() > *(uint64_t *)before);
}

static void
be_the_holder(void *arg)
{
	(void)arg;
	mtx_lock(&lock);
	atomic_store_u32(&locked, 1);
	while (atomic_load_u32(&may_go) == 0)
		usleep(1000);
	mtx_unlock(&lock);
}

static void
be_the_waiter(void *arg)
{
	(void)arg;
	mtx_lock(&lock);
	mtx_unlock(&lock);
}

static void
hang_at_a_lock(void)
{
	uint64_t before = hangs();
	struct thread *holder, *waiter;

	mtx_init(&lock, LC_TEST);
	holder = t_thread(be_the_holder, NULL);
	while (atomic_load_u32(&locked) == 0)
		usleep(1000);
	waiter = t_thread(be_the_waiter, NULL);
	CHECK(t_until(more_hangs, &before));
	atomic_store_u32(&may_go, 1);
	t_join(holder);
	t_join(waiter);
}

/* The first hang: the complete report. */
TEST(a_lock_that_is_never_let_go_is_named)
{
	const char *text = console_of(hang_at_a_lock);
	static const char *const said[] = {
		"has waited for lock test for 1 s",	/* what hangs */
		"*test",				/* ps */
		"  holds test (0x", "  waits for test (0x",
		" @ tests/test_watchdog.c:",		/* show alllocks */
		" be_the_waiter+0x",			/* stacks */
		"end of report",
	};

	for (size_t i = 0; i < nitems(said); i++)
		if (strstr(text, said[i]) == NULL) {
			fprintf(stderr, "no '%s' in:\n%s", said[i], text);
			abort();
		}
}

static void
send_some(void *arg)
{
	struct sockaddr_in to = t_addr("127.0.0.1", 7900);
	struct socket *so = t_socket(SOCK_DGRAM);

	(void)arg;
	CHECK_EQ(soconnect(so, (struct sockaddr *)&to, sizeof(to), 0), 0);
	for (int i = 0; i < 20; i++)
		t_send(so, "x", 1);
	soclose(so);
}

/*
 * The worker waits for a socket, and the packets queued after it wait for the
 * worker.
 */
static void
hang_in_a_worker(void)
{
	struct sockaddr_in here = t_addr("127.0.0.1", 7900);
	struct socket *so = t_socket(SOCK_DGRAM);
	uint64_t before = hangs();

	t_sysctl_set("net.isr.dispatch", "deferred");
	CHECK_EQ(sobind(so, (struct sockaddr *)&here, sizeof(here)), 0);
	so_enter(so);
	t_join(t_thread(send_some, NULL));
	CHECK(t_until(more_hangs, &before));
	/* the worker may have taken these, but not the next packets */
	t_join(t_thread(send_some, NULL));
	before++;
	CHECK(t_until(more_hangs, &before));
	so_leave(so);
	soclose(so);
	t_sysctl_set("net.isr.dispatch", "direct");
}

TEST(packets_that_nobody_handles_are_told_of)
{
	const char *text = console_of(hang_in_a_worker);

	CHECK(strstr(text, "swi: netisr 0 (") != NULL);
	CHECK(strstr(text, "has waited for lock socket") != NULL);
	CHECK(strstr(text, "packets of netisr 0: ") != NULL);
	CHECK(strstr(text, "none handled for 1 s") != NULL);
}

static struct socket *head;

static void
look_at_it(void *arg)
{
	(void)arg;
	(void)soavail(head);
}

/* No lock: the owner of the socket has not released it. */
static void
hang_in_a_call(void)
{
	uint64_t before = hangs();
	struct thread *td;

	so_enter(head);
	td = t_thread(look_at_it, NULL);
	CHECK(t_until(more_hangs, &before));
	so_leave(head);
	t_join(td);
}

TEST(a_call_that_another_one_keeps_waiting_is_named)
{
	const char *text;

	head = t_listen("127.0.0.1", 7901, 5);
	text = console_of(hang_in_a_call);
	CHECK(strstr(text, "has waited for sockcall for 1 s") != NULL);
	soclose(head);
}

static void
accept_one(void *arg)
{
	struct socket *so = t_accept(head);

	(void)arg;
	t_expect(so, "at last");
	soclose(so);
}

/* Blocks in accept() and recv() for longer than the watchdog's limit. */
static void
wait_for_the_network(void)
{
	struct thread *td;
	struct socket *so;

	head = t_listen("127.0.0.1", 7902, 5);
	td = t_thread(accept_one, NULL);
	usleep(1500000);
	so = t_connect("127.0.0.1", 7902);
	usleep(1500000);
	t_send(so, "at last", 7);
	t_join(td);
	soclose(so);
	soclose(head);
}

TEST(who_waits_for_the_network_does_not_hang)
{
	const char *text = console_of(wait_for_the_network);

	CHECK(strstr(text, "has waited for accept") == NULL);
	CHECK(strstr(text, "has waited for sbwait") == NULL);
}

#else

TEST(this_build_has_no_watchdog)
{
	char value[16];

	CHECK_EQ(sysctl_get("debug.watchdog.seconds", value, sizeof(value)),
	    ENOENT);
}

#endif

int
main(int argc, char **argv)
{
#ifdef LOCK_TRACKING
	CHECK_EQ(setenv("STACK_TUNABLES", "debug.watchdog.seconds=1 "
	    "net.inet.tcp.input=backlog", 1), 0);
#endif
	t_boot();
	return (check_main(argc, argv));
}
