/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments of a burst keep their socket's lock (net.inet.tcp.input=
 * shared-socket-batch): the subtle cases of it, with their numbers in
 * docs/explanation/tcp-locking.md.
 */
#include "tests/check.h"

#include <errno.h>
#include <poll.h>

#include "kern/netlock.h"
#include "net/rx_burst.h"
#include "tests/states.h"

static uint16_t next_port = 5000;

/* Counts since counts_begin(). */
static uint64_t kept, switched, cold;

static void
counts_begin(void)
{
	kept = t_sysctl("net.inet.tcp.lock.kept");
	switched = t_sysctl("net.inet.tcp.lock.switched");
	cold = t_sysctl("net.inet.tcp.lock.cold");
}

#define	CHECK_COUNTS(k, s, c) do {					\
	CHECK_EQ(t_sysctl("net.inet.tcp.lock.kept") - kept, k);		\
	CHECK_EQ(t_sysctl("net.inet.tcp.lock.switched") - switched, s);	\
	CHECK_EQ(t_sysctl("net.inet.tcp.lock.cold") - cold, c);		\
} while (0)

TEST(consecutive_segments_keep_the_lock)
{
	const uint64_t runs = t_sysctl("net.inet.tcp.lock.run4");
	struct peer_conn c;

	peer_conn_open(&c);
	counts_begin();
	rx_burst_begin();
	peer_text(&c.p, "one");
	peer_text(&c.p, "two");
	peer_text(&c.p, "three");
	rx_burst_end();
	CHECK_COUNTS(2, 0, 1);
	CHECK_EQ(t_sysctl("net.inet.tcp.lock.run4") - runs, 1);
	t_expect(c.so, "onetwothree");
	peer_conn_close(&c);
}

TEST(another_socket_takes_the_lock)
{
	struct peer_conn a, b;

	peer_conn_open(&a);
	peer_conn_open(&b);
	counts_begin();
	rx_burst_begin();
	peer_text(&a.p, "a");
	peer_text(&b.p, "b");
	peer_text(&a.p, "a");
	rx_burst_end();
	CHECK_COUNTS(0, 2, 1);
	t_expect(a.so, "aa");
	t_expect(b.so, "b");
	peer_conn_close(&a);
	peer_conn_close(&b);
}

/* 1 */
TEST(what_has_no_socket_leaves_the_lock)
{
	struct peer nobody = { .port = 4, .stack_port = 5, .window = 1000 };
	struct peer_conn c;

	peer_conn_open(&c);
	counts_begin();
	rx_burst_begin();
	peer_text(&c.p, "before");
	peer_send(&nobody, TH_ACK, 1, 1, NULL, 0);
	peer_text(&c.p, "behind");
	rx_burst_end();
	CHECK_COUNTS(1, 0, 1);
	t_expect(c.so, "beforebehind");
	peer_conn_close(&c);
}

/* So many options that the header length overflows to zero. */
static void
send_damaged(const struct peer *p)
{
	static const uint8_t options[44];
	struct peer damaged = *p;

	damaged.options = options;
	damaged.optlen = sizeof(options);
	peer_send(&damaged, TH_ACK, p->snd_nxt, p->rcv_nxt, NULL, 0);
}

/* 1 */
TEST(what_is_damaged_leaves_the_lock)
{
	const uint64_t bad = t_sysctl("net.inet.tcp.stats.rcvshort");
	struct peer_conn c;

	peer_conn_open(&c);
	counts_begin();
	rx_burst_begin();
	peer_text(&c.p, "before");
	send_damaged(&c.p);
	peer_text(&c.p, "behind");
	rx_burst_end();
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.rcvshort"), bad + 1);
	CHECK_COUNTS(1, 0, 1);
	t_expect(c.so, "beforebehind");
	peer_conn_close(&c);
}

/* 2 */
TEST(a_socket_without_its_connection_never_matches)
{
	struct peer_conn c;

	peer_conn_open(&c);
	CHECK_EQ(soclose(c.so), 0);		/* FIN_WAIT_1, no descriptor */
	peer_forget();
	counts_begin();
	rx_burst_begin();
	peer_send(&c.p, RST_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	peer_text(&c.p, "late");	/* finds the listener */
	rx_burst_end();
	CHECK_COUNTS(0, 0, 2);
	CHECK_EQ(states_answer(), TH_RST);
	CHECK_EQ(soclose(c.head), 0);
}

/* 3 */
TEST(time_wait_ends_for_a_new_connection)
{
	const uint64_t before = t_sysctl("net.inet.tcp.stats.timewaitreuse");
	struct connection c;

	states_reach(&c, TCPS_TIME_WAIT);
	(void)states_answer();
	counts_begin();
	rx_burst_begin();
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	peer_send(&c.p, TH_SYN, c.p.snd_nxt + 100000, 0, NULL, 0);
	rx_burst_end();
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.timewaitreuse") - before, 1);
	CHECK_COUNTS(1, 0, 2);
	CHECK_EQ(states_answer(), SYN_ACK);
	peer_send(&c.p, TH_RST, c.p.snd_nxt + 100001, 0, NULL, 0);
	states_leave(&c);
}

static void
set_up_handshake(struct peer_conn *c, int backlog)
{
	struct peer_seg s;
	const uint16_t port = next_port++;

	*c = (struct peer_conn){ .p = { .window = 60000 } };
	c->head = t_listen(PEER_STACK_IP, port, backlog);
	peer_syn(&c->p, port, 0, &s);
}

/* 4 */
TEST(a_child_keeps_the_lock_it_was_born_with)
{
	struct peer_conn c;

	set_up_handshake(&c, 5);
	counts_begin();
	rx_burst_begin();
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	peer_text(&c.p, "first");
	peer_text(&c.p, "second");
	rx_burst_end();
	CHECK_COUNTS(2, 0, 1);
	c.so = t_accept(c.head);
	t_expect(c.so, "firstsecond");
	peer_conn_close(&c);
}

/* 4: a handshake that fails leaves the listener locked, and nothing else. */
TEST(a_wrong_ack_makes_no_child)
{
	struct peer_conn c;

	set_up_handshake(&c, 5);
	peer_forget();
	counts_begin();
	rx_burst_begin();
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt + 7, NULL, 0);
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	rx_burst_end();
	CHECK_COUNTS(1, 0, 1);
	CHECK_EQ(states_answer(), TH_RST);
	c.so = t_accept(c.head);
	peer_conn_close(&c);
}

/* 5 */
TEST(the_timer_of_a_handshake_finds_it_finished)
{
	struct peer_seg s;
	struct peer_conn c;

	set_up_handshake(&c, 5);
	peer_await(&s, 5000);		/* the timer sent the SYN-ACK again */
	CHECK_EQ(s.flags, SYN_ACK);
	rx_burst_begin();
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	rx_burst_end();
	CHECK_EQ(t_sysctl("net.inet.tcp.syncache.count"), 0);
	t_sleep(20000);
	CHECK(!peer_next(&s));
	c.so = t_accept(c.head);
	peer_conn_close(&c);
}

static void
accept_one(void *arg)
{
	struct peer_conn *c = arg;

	c->so = t_accept(c->head);
}

/* 6 */
TEST(who_waits_in_accept_is_woken_when_the_child_is_let_go)
{
	struct thread *td;
	struct peer_conn c;

	set_up_handshake(&c, 5);
	td = t_thread(accept_one, &c);
	t_sleep(10);
	rx_burst_begin();
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	peer_text(&c.p, "hello");
	CHECK_EQ(sopoll(c.head, POLLIN), 0);
	rx_burst_end();
	t_join(td);
	t_expect(c.so, "hello");
	peer_conn_close(&c);
}

#define	PIECES	200

static void
read_pieces(void *arg)
{
	struct peer_conn *c = arg;

	for (int i = 0; i < PIECES; i++)
		t_expect(c->so, "0123456789");
}

/* 7: a reader copies data with its socket unlocked. */
TEST(a_reader_goes_on_between_bursts)
{
	struct thread *td;
	struct peer_conn c;

	peer_conn_open(&c);
	td = t_thread(read_pieces, &c);
	for (int i = 0; i < PIECES; i += 4) {
		rx_burst_begin();
		for (int k = 0; k < 4; k++)
			peer_text(&c.p, "0123456789");
		rx_burst_end();
	}
	t_join(td);
	peer_conn_close(&c);
}

/* 8 */
TEST(timers_of_a_connection_that_has_gone_do_nothing)
{
	const uint64_t before = t_sysctl("net.inet.tcp.stats.rexmttimeo");
	struct peer_conn c;

	peer_conn_open(&c);
	t_send(c.so, "never acknowledged", 18);
	rx_burst_begin();
	peer_text(&c.p, "x");		/* a delayed ACK is due, too */
	peer_send(&c.p, RST_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	rx_burst_end();
	peer_forget();
	CHECK_EQ(soclose(c.so), 0);
	CHECK_EQ(soclose(c.head), 0);
	t_sleep(10000);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.rexmttimeo"), before);
	CHECK_EQ(states_answer(), NONE);
}

/* 9 */
TEST(closing_a_listener_resets_who_waits)
{
	const uint64_t before = t_sysctl("kern.ipc.sockets");
	struct peer_conn a, b;
	struct peer_seg s;
	unsigned resets = 0;

	set_up_handshake(&a, 5);
	b.p = (struct peer){ .window = 60000 };
	peer_syn(&b.p, a.p.stack_port, 0, &s);
	rx_burst_begin();
	peer_send(&a.p, TH_ACK, a.p.snd_nxt, a.p.rcv_nxt, NULL, 0);
	peer_send(&b.p, TH_ACK, b.p.snd_nxt, b.p.rcv_nxt, NULL, 0);
	rx_burst_end();
	peer_forget();
	CHECK_EQ(soclose(a.head), 0);
	while (peer_next(&s))
		resets += (s.flags & TH_RST) != 0;
	CHECK_EQ(resets, 2);
	CHECK_EQ(t_sysctl("kern.ipc.sockets"), before);
}

/* 10: data and the FIN under one acquisition. */
TEST(the_end_comes_behind_the_data)
{
	struct peer_conn c;

	peer_conn_open(&c);
	rx_burst_begin();
	peer_text(&c.p, "last");
	peer_send(&c.p, FIN_ACK, c.p.snd_nxt++, c.p.rcv_nxt, NULL, 0);
	rx_burst_end();
	t_expect(c.so, "last");
	t_expect_eof(c.so);
	peer_conn_close(&c);
}

/* 11 */
TEST(tcp_comes_behind_all_else_of_a_burst)
{
	struct sockaddr_in sin = t_addr(PEER_STACK_IP, next_port++);
	struct socket *udp = t_socket(SOCK_DGRAM);
	struct peer_conn c;

	CHECK_EQ(sobind(udp, (struct sockaddr *)&sin, sizeof(sin)), 0);
	peer_conn_open(&c);
	rx_burst_begin();
	peer_text(&c.p, "first");
	peer_udp(7, ntohs(sin.sin_port), "second", 6);
	CHECK_EQ(soavail(udp), 6);
	CHECK_EQ(soavail(c.so), 0);
	rx_burst_end();
	CHECK_EQ(soavail(c.so), 5);
	t_expect(c.so, "first");
	soclose(udp);
	peer_conn_close(&c);
}

static void
be_alone(void *arg)
{
	net_enter_exclusive();
	CHECK(net_is_exclusive());
	*(bool *)arg = true;
	net_exit();
}

/*
 * 12: a recursive reader does not wait for a waiting writer, which is seen to
 * wait for the lock.
 */
TEST(the_net_lock_may_be_asked_for_again)
{
	const uint64_t waits = t_sysctl("net.lock.exclusivewaits");
	bool alone = false;
	struct thread *td;

	net_enter();
	td = t_thread(be_alone, &alone);
	t_sleep(10);
	net_enter();
	CHECK(net_held() && !net_is_exclusive());
	CHECK(!alone);
	CHECK(td->td_blocked != NULL);
	CHECK_STREQ(td->td_blocked, "net");
	net_exit();
	CHECK(net_held());
	net_exit();
	t_join(td);
	CHECK(alone);
	CHECK_EQ(t_sysctl("net.lock.exclusivewaits"), waits + 1);
	CHECK(!net_held());
}

int
main(int argc, char **argv)
{
	CHECK_EQ(setenv("STACK_TUNABLES",
	    "net.inet.tcp.input=shared-socket-batch", 1), 0);
	peer_boot();
	return (check_main(argc, argv));
}
