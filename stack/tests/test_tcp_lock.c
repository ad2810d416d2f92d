/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Properties of each value of net.inet.tcp.input that the others do not have;
 * $STEP is the value.
 */
#include "tests/check.h"

#include <errno.h>

#include "kern/netlock.h"
#include "tests/states.h"

static const char *step;

static bool
is_step(const char *name)
{
	return (strcmp(step, name) == 0);
}

TEST(giant_is_over_the_whole_stack)
{
	if (!is_step("giant"))
		return;
	CHECK_EQ(t_sysctl("debug.mpsafenet"), 0);
	CHECK_EQ(t_sysctl("net.lock.exclusive"), 0);
}

TEST(the_net_lock_is_taken_as_the_step_says)
{
	const bool exclusive = is_step("exclusive") ||
	    is_step("exclusive-socket");
	const bool shared = is_step("shared-socket") ||
	    is_step("shared-socket-batch");
	struct peer_conn c;

	peer_conn_open(&c);
	peer_text(&c.p, "x");
	t_expect(c.so, "x");
	CHECK_EQ(t_sysctl("net.lock.exclusive") > 0, exclusive);
	CHECK_EQ(t_sysctl("net.lock.shared") > 0, shared);
	CHECK(!net_held());
	peer_conn_close(&c);
}

/* Header prediction releases the lock over all connections. */
TEST(only_what_is_expected_leaves_the_others_alone)
{
	uint64_t before;
	struct peer_conn c;

	if (!is_step("pcbinfo"))
		return;
	peer_conn_open(&c);
	before = t_sysctl("net.inet.tcp.lock.predicted");
	peer_text(&c.p, "one");
	peer_text(&c.p, "two");
	CHECK_EQ(t_sysctl("net.inet.tcp.lock.predicted"), before + 2);
	peer_send(&c.p, PSH_ACK, c.p.snd_nxt + 1, c.p.rcv_nxt, "ahead", 5);
	peer_send(&c.p, FIN_ACK, c.p.snd_nxt + 7, c.p.rcv_nxt, NULL, 0);
	CHECK_EQ(t_sysctl("net.inet.tcp.lock.predicted"), before + 2);
	t_expect(c.so, "onetwo");
	peer_conn_close(&c);
}

TEST(a_segment_waits_for_a_socket_call)
{
	uint64_t before = t_sysctl("net.inet.tcp.lock.backlogged");
	struct peer_conn c;

	if (!is_step("backlog"))
		return;
	peer_conn_open(&c);
	so_enter(c.so);
	peer_text(&c.p, "one");
	peer_text(&c.p, "two");
	CHECK_EQ(c.so->so_rcv.sb_cc, 0);
	CHECK_EQ(t_sysctl("net.inet.tcp.lock.backlogged"), before + 2);
	so_leave(c.so);
	CHECK_EQ(soavail(c.so), 6);
	peer_text(&c.p, "three");
	CHECK_EQ(t_sysctl("net.inet.tcp.lock.backlogged"), before + 2);
	t_expect(c.so, "onetwothree");
	peer_conn_close(&c);
}

TEST(who_sleeps_in_a_call_takes_in_what_was_left)
{
	struct peer_conn c;
	size_t n;
	char buf[8];

	if (!is_step("backlog"))
		return;
	peer_conn_open(&c);
	so_enter(c.so);
	peer_text(&c.p, "left");
	CHECK_EQ(sbwait(c.so, &c.so->so_rcv, "test", NSEC_FOREVER), 0);
	CHECK_EQ(c.so->so_rcv.sb_cc, 4);
	so_leave(c.so);
	CHECK_EQ(t_tryrecv(c.so, buf, sizeof(buf), 0, &n), 0);
	CHECK_EQ(n, 4);
	peer_conn_close(&c);
}

/* A connection that is reset while its socket is owned. */
TEST(what_was_left_may_end_the_connection)
{
	struct peer_conn c;
	size_t n;
	char x;

	if (!is_step("backlog"))
		return;
	peer_conn_open(&c);
	so_enter(c.so);
	peer_send(&c.p, RST_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	peer_text(&c.p, "late");
	so_leave(c.so);
	CHECK_EQ(t_tryrecv(c.so, &x, 1, 0, &n), ECONNRESET);
	CHECK_EQ(states_answer(), TH_RST);
	soclose(c.so);
	soclose(c.head);
}

/*
 * The segment that completes a handshake, and later ones, wait for the
 * listener's owner.
 */
TEST(data_that_came_with_the_listener_owned_are_the_childs)
{
	struct peer_conn c = { .head = t_listen(PEER_STACK_IP, 2999, 5) };
	struct peer_seg s;

	if (is_step("backlog")) {
		c.p = (struct peer){ .window = 60000 };
		peer_syn(&c.p, 2999, 0, &s);
		so_enter(c.head);
		peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
		peer_text(&c.p, "early");
		so_leave(c.head);
		c.so = t_accept(c.head);
		t_expect(c.so, "early");
		soclose(c.so);
	}
	soclose(c.head);
	peer_forget();
}

TEST(too_many_segments_left_are_dropped)
{
	uint64_t before = t_sysctl("net.inet.tcp.lock.backlogdrops");
	struct peer_conn c;

	if (!is_step("backlog"))
		return;
	peer_conn_open(&c);
	so_enter(c.so);
	for (int i = 0; i < 1024 + 3; i++)
		peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	so_leave(c.so);
	CHECK_EQ(t_sysctl("net.inet.tcp.lock.backlogdrops"), before + 3);
	peer_text(&c.p, "still there");
	t_expect(c.so, "still there");
	peer_conn_close(&c);
}

struct call {
	struct socket	*so;
	bool		 done;
};

static void
call_once(void *arg)
{
	struct call *call = arg;

	(void)soavail(call->so);
	call->done = true;
}

TEST(one_call_at_a_time_works_on_a_socket)
{
	struct thread *td;
	struct call call;
	struct peer_conn c;

	peer_conn_open(&c);
	call = (struct call){ .so = c.so };
	so_enter(c.so);
	td = t_thread(call_once, &call);
	t_sleep(10);
	CHECK(!call.done);
	so_leave(c.so);
	t_join(td);
	CHECK(call.done);
	peer_conn_close(&c);
}

static void
lock_once(void *arg)
{
	struct call *call = arg;

	solock(call->so);	/* as a timer does */
	call->done = true;
	sounlock(call->so);
}

TEST(a_timer_and_a_call_that_wait_are_both_woken)
{
	struct call timer, other;
	struct thread *td[2];
	struct peer_conn c;

	if (!is_step("backlog"))
		return;
	peer_conn_open(&c);
	timer = other = (struct call){ .so = c.so };
	so_enter(c.so);
	td[0] = t_thread(lock_once, &timer);
	t_sleep(10);
	td[1] = t_thread(call_once, &other);
	t_sleep(10);
	CHECK(!timer.done && !other.done);
	so_leave(c.so);
	t_join(td[0]);
	t_join(td[1]);
	CHECK(timer.done && other.done);
	peer_conn_close(&c);
}

int
main(int argc, char **argv)
{
	char tunables[64];

	step = getenv("STEP") != NULL ? getenv("STEP") : "socket";
	snprintf(tunables, sizeof(tunables), "net.inet.tcp.input=%s", step);
	CHECK_EQ(setenv("STACK_TUNABLES", tunables, 1), 0);
	peer_boot();
	return (check_main(argc, argv));
}
