/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments of a burst keep their socket's lock (net.inet.tcp.input=
 * shared-socket-batch): the subtle cases of it, one test each.
 */
#include "tests/check.h"

#include <errno.h>
#include <poll.h>

#include "kern/netlock.h"
#include "net/burst.h"
#include "tests/states.h"

static uint16_t next_port = 5000;

/* What has been counted since counts_begin(). */
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

/* A connection of the peer's, accepted. */
struct conn {
	struct socket	*head, *so;
	struct peer	 p;
};

static void
open_conn(struct conn *c)
{
	c->so = peer_accept(&c->p, next_port++, &c->head);
}

static void
close_conn(struct conn *c)
{
	peer_reset(&c->p, c->so, c->head);
}

static void
send_data(struct peer *p, const char *text)
{
	const uint32_t len = (uint32_t)strlen(text);

	peer_send(p, PSH_ACK, p->snd_nxt, p->rcv_nxt, text, len);
	p->snd_nxt += len;
}

static void
expect(struct socket *so, const char *text)
{
	char buf[64];

	t_recv(so, buf, strlen(text));
	CHECK_EQ(memcmp(buf, text, strlen(text)), 0);
}

TEST(consecutive_segments_keep_the_lock)
{
	const uint64_t runs = t_sysctl("net.inet.tcp.lock.run4");
	struct conn c;

	open_conn(&c);
	counts_begin();
	burst_begin();
	send_data(&c.p, "one");
	send_data(&c.p, "two");
	send_data(&c.p, "three");
	burst_end();
	CHECK_COUNTS(2, 0, 1);
	CHECK_EQ(t_sysctl("net.inet.tcp.lock.run4") - runs, 1);
	expect(c.so, "onetwothree");
	close_conn(&c);
}

TEST(another_socket_takes_the_lock)
{
	struct conn a, b;

	open_conn(&a);
	open_conn(&b);
	counts_begin();
	burst_begin();
	send_data(&a.p, "a");
	send_data(&b.p, "b");
	send_data(&a.p, "a");
	burst_end();
	CHECK_COUNTS(0, 2, 1);
	expect(a.so, "aa");
	expect(b.so, "b");
	close_conn(&a);
	close_conn(&b);
}

/* 1 */
TEST(what_has_no_socket_leaves_the_lock)
{
	struct peer nobody = { .port = 4, .stack_port = 5, .window = 1000 };
	struct conn c;

	open_conn(&c);
	counts_begin();
	burst_begin();
	send_data(&c.p, "before");
	peer_send(&nobody, TH_ACK, 1, 1, NULL, 0);
	send_data(&c.p, "behind");
	burst_end();
	CHECK_COUNTS(1, 0, 1);
	expect(c.so, "beforebehind");
	close_conn(&c);
}

/* 2 */
TEST(a_socket_without_its_connection_never_matches)
{
	struct conn c;

	open_conn(&c);
	CHECK_EQ(soclose(c.so), 0);		/* FIN_WAIT_1, no descriptor */
	peer_forget();
	counts_begin();
	burst_begin();
	peer_send(&c.p, RST_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	send_data(&c.p, "late");	/* finds the listener */
	burst_end();
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
	burst_begin();
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	peer_send(&c.p, TH_SYN, c.p.snd_nxt + 100000, 0, NULL, 0);
	burst_end();
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.timewaitreuse") - before, 1);
	CHECK_COUNTS(1, 0, 2);
	CHECK_EQ(states_answer(), SYN_ACK);
	peer_send(&c.p, TH_RST, c.p.snd_nxt + 100001, 0, NULL, 0);
	states_leave(&c);
}

static void
set_up_handshake(struct conn *c, int backlog)
{
	struct peer_seg s;
	const uint16_t port = next_port++;

	*c = (struct conn){ .p = { .window = 60000 } };
	c->head = t_listen(PEER_STACK_IP, port, backlog);
	peer_syn(&c->p, port, 0, &s);
}

/* 4 */
TEST(a_child_keeps_the_lock_it_was_born_with)
{
	struct conn c;

	set_up_handshake(&c, 5);
	counts_begin();
	burst_begin();
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	send_data(&c.p, "first");
	send_data(&c.p, "second");
	burst_end();
	CHECK_COUNTS(2, 0, 1);
	c.so = t_accept(c.head);
	expect(c.so, "firstsecond");
	close_conn(&c);
}

/* 4: a handshake that fails leaves the listener locked, and nothing else. */
TEST(a_wrong_ack_makes_no_child)
{
	struct conn c;

	set_up_handshake(&c, 5);
	peer_forget();
	counts_begin();
	burst_begin();
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt + 7, NULL, 0);
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	burst_end();
	CHECK_COUNTS(1, 0, 1);
	CHECK_EQ(states_answer(), TH_RST);
	c.so = t_accept(c.head);
	close_conn(&c);
}

/* 5 */
TEST(the_timer_of_a_handshake_finds_it_finished)
{
	struct peer_seg s;
	struct conn c;

	set_up_handshake(&c, 5);
	peer_await(&s, 5000);		/* the timer sent the SYN-ACK again */
	CHECK_EQ(s.flags, SYN_ACK);
	burst_begin();
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	burst_end();
	CHECK_EQ(t_sysctl("net.inet.tcp.syncache.count"), 0);
	t_sleep(20000);
	CHECK(!peer_next(&s));
	c.so = t_accept(c.head);
	close_conn(&c);
}

static void
accept_one(void *arg)
{
	struct conn *c = arg;

	c->so = t_accept(c->head);
}

/* 6 */
TEST(who_waits_in_accept_is_woken_when_the_child_is_let_go)
{
	struct thread *td;
	struct conn c;

	set_up_handshake(&c, 5);
	td = t_thread(accept_one, &c);
	t_sleep(10);
	burst_begin();
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	send_data(&c.p, "hello");
	CHECK_EQ(sopoll(c.head, POLLIN), 0);
	burst_end();
	t_join(td);
	expect(c.so, "hello");
	close_conn(&c);
}

#define	PIECES	200

static void
read_pieces(void *arg)
{
	struct conn *c = arg;

	for (int i = 0; i < PIECES; i++)
		expect(c->so, "0123456789");
}

/* 7: what a reader copies it copies with its socket unlocked. */
TEST(a_reader_goes_on_between_bursts)
{
	struct thread *td;
	struct conn c;

	open_conn(&c);
	td = t_thread(read_pieces, &c);
	for (int i = 0; i < PIECES; i += 4) {
		burst_begin();
		for (int k = 0; k < 4; k++)
			send_data(&c.p, "0123456789");
		burst_end();
	}
	t_join(td);
	close_conn(&c);
}

/* 8 */
TEST(timers_of_a_connection_that_has_gone_do_nothing)
{
	const uint64_t before = t_sysctl("net.inet.tcp.stats.rexmttimeo");
	struct conn c;

	open_conn(&c);
	t_send(c.so, "never acknowledged", 18);
	burst_begin();
	send_data(&c.p, "x");		/* a delayed ACK is due, too */
	peer_send(&c.p, RST_ACK, c.p.snd_nxt, c.p.rcv_nxt, NULL, 0);
	burst_end();
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
	struct conn a, b;
	struct peer_seg s;
	unsigned resets = 0;

	set_up_handshake(&a, 5);
	b.p = (struct peer){ .window = 60000 };
	peer_syn(&b.p, a.p.stack_port, 0, &s);
	burst_begin();
	peer_send(&a.p, TH_ACK, a.p.snd_nxt, a.p.rcv_nxt, NULL, 0);
	peer_send(&b.p, TH_ACK, b.p.snd_nxt, b.p.rcv_nxt, NULL, 0);
	burst_end();
	peer_forget();
	CHECK_EQ(soclose(a.head), 0);
	while (peer_next(&s))
		resets += (s.flags & TH_RST) != 0;
	CHECK_EQ(resets, 2);
	CHECK_EQ(t_sysctl("kern.ipc.sockets"), before);
}

/* 10: data and the end of them in one hold. */
TEST(the_end_comes_behind_the_data)
{
	struct conn c;

	open_conn(&c);
	burst_begin();
	send_data(&c.p, "last");
	peer_send(&c.p, FIN_ACK, c.p.snd_nxt++, c.p.rcv_nxt, NULL, 0);
	burst_end();
	expect(c.so, "last");
	t_expect_eof(c.so);
	close_conn(&c);
}

/* 11 */
TEST(tcp_comes_behind_all_else_of_a_burst)
{
	struct sockaddr_in sin = t_addr(PEER_STACK_IP, next_port++);
	struct socket *udp = t_socket(SOCK_DGRAM);
	struct conn c;

	CHECK_EQ(sobind(udp, (struct sockaddr *)&sin, sizeof(sin)), 0);
	open_conn(&c);
	burst_begin();
	send_data(&c.p, "first");
	peer_udp(7, ntohs(sin.sin_port), "second", 6);
	CHECK_EQ(soavail(udp), 6);
	CHECK_EQ(soavail(c.so), 0);
	burst_end();
	CHECK_EQ(soavail(c.so), 5);
	expect(c.so, "first");
	soclose(udp);
	close_conn(&c);
}

static void
be_alone(void *arg)
{
	net_enter_alone();
	CHECK(net_alone());
	*(bool *)arg = true;
	net_exit();
}

/* 12: a reader that asks again does not wait for the writer that waits. */
TEST(the_net_lock_may_be_asked_for_again)
{
	bool alone = false;
	struct thread *td;

	net_enter();
	td = t_thread(be_alone, &alone);
	t_sleep(10);
	net_enter();
	CHECK(net_held() && !net_alone());
	CHECK(!alone);
	net_exit();
	CHECK(net_held());
	net_exit();
	t_join(td);
	CHECK(alone);
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
