/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What TCP sends by itself and what holds it back: retransmission, fast
 * retransmit, SACK, delayed ACKs, Nagle, shut windows, path MTU, keep-alive.
 */
#include "tests/check.h"

#include <errno.h>
#include <netinet/ip_icmp.h>

#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	PORT	8081
#define	MSS	1000		/* the peer's window */

static uint8_t bytes[20 * MSS];

struct fixture {
	struct socket	*head, *so;
	struct peer	 p;
};

static void
set_up(struct fixture *f)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	f->so = peer_accept(&f->p, PORT, &f->head);
}

static void
take_down(struct fixture *f)
{
	peer_reset(&f->p, f->so, f->head);
}

/* The next segment carries bytes [from, from + len). */
static void
expect_data(struct fixture *f, uint32_t from, uint32_t len, unsigned ms)
{
	struct peer_seg s;

	peer_await(&s, ms);
	CHECK_EQ(s.seq - f->p.rcv_nxt, from);
	CHECK_EQ(s.len, len);
	CHECK(memcmp(s.data, bytes + from, len < sizeof(s.data) ? len :
	    sizeof(s.data)) == 0);
}

static void
expect_nothing(unsigned ms)
{
	struct peer_seg s;

	t_sleep(ms);
	CHECK(!peer_next(&s));
}

static void
ack(struct fixture *f, uint32_t upto)
{
	peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt + upto, NULL, 0);
}

TEST(lost_data_is_sent_again_with_backoff)
{
	struct fixture f;
	nsec_t first, second;

	set_up(&f);
	t_send(f.so, bytes, 100);
	expect_data(&f, 0, 100, 1000);
	first = mach_uptime();
	expect_data(&f, 0, 100, 2000);
	second = mach_uptime();
	CHECK(second - first >= 190 * NSEC_PER_MSEC);
	expect_data(&f, 0, 100, 4000);
	/* RFC 6298 (5.5): twice as long the second time */
	CHECK(mach_uptime() - second >= 380 * NSEC_PER_MSEC);
	ack(&f, 100);
	expect_nothing(300);
	take_down(&f);
}

TEST(acks_after_a_timeout_are_in_the_peers_window)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f);
	t_send(f.so, bytes, 3 * MSS);
	t_sleep(20);
	peer_forget();
	expect_data(&f, 0, MSS, 1000);		/* the timeout's */
	for (uint32_t i = 0; i < 2; i++)
		peer_send(&f.p, TH_ACK, f.p.snd_nxt + i * 10, f.p.rcv_nxt,
		    bytes, 10);
	CHECK(peer_next(&s));
	CHECK_EQ(s.len, 0);
	CHECK_EQ(s.seq, f.p.rcv_nxt + 3 * MSS);
	take_down(&f);
}

TEST(three_duplicates_retransmit_at_once)
{
	struct fixture f;
	uint64_t before = t_sysctl("net.inet.tcp.stats.fastrexmit");
	struct peer_seg s;

	set_up(&f);
	t_send(f.so, bytes, 6 * MSS);
	peer_await(&s, 1000);
	peer_forget();
	ack(&f, MSS);		/* the second segment is lost */
	for (int i = 0; i < 3; i++)
		ack(&f, MSS);
	expect_data(&f, MSS, MSS, 100);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.fastrexmit"), before + 1);
	ack(&f, 6 * MSS);
	expect_nothing(300);
	take_down(&f);
}

TEST(acks_are_delayed_but_not_for_two_segments)
{
	struct fixture f;
	struct peer_seg s;
	nsec_t start;

	set_up(&f);
	start = mach_uptime();
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, bytes, 10);
	CHECK(!peer_next(&s));
	peer_await(&s, 1000);
	CHECK(mach_uptime() - start >= 35 * NSEC_PER_MSEC);
	CHECK_EQ(s.ack, f.p.snd_nxt + 10);
	/* an answer, which follows data at once: ACKs are delayed again */
	t_sysctl_set("net.inet.tcp.delacktime", "500");
	peer_send(&f.p, TH_ACK, f.p.snd_nxt + 10, f.p.rcv_nxt, bytes, 10);
	CHECK(peer_next(&s));
	t_send(f.so, bytes, 10);
	CHECK(peer_next(&s));
	for (uint32_t i = 0; i < 2; i++)
		peer_send(&f.p, TH_ACK, f.p.snd_nxt + 20 + i * MSS,
		    f.p.rcv_nxt + 10, bytes, MSS);
	CHECK(peer_next(&s));
	CHECK_EQ(s.ack, f.p.snd_nxt + 20 + 2 * MSS);
	t_sysctl_set("net.inet.tcp.delacktime", "40");
	take_down(&f);
}

TEST(nagle_keeps_one_small_segment_in_flight)
{
	struct fixture f;

	set_up(&f);
	t_send(f.so, bytes, 10);
	expect_data(&f, 0, 10, 1000);
	t_send(f.so, bytes + 10, 10);
	t_send(f.so, bytes + 20, 10);
	expect_nothing(20);
	ack(&f, 10);
	expect_data(&f, 10, 20, 100);
	t_setint(f.so, IPPROTO_TCP, TCP_NODELAY, 1);
	t_send(f.so, bytes + 30, 5);
	expect_data(&f, 30, 5, 100);
	take_down(&f);
}

TEST(cork_holds_small_segments)
{
	struct fixture f;

	set_up(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_CORK, 1);
	t_send(f.so, bytes, 10);
	expect_nothing(20);
	t_setint(f.so, IPPROTO_TCP, TCP_CORK, 0);
	expect_data(&f, 0, 10, 100);
	take_down(&f);
}

TEST(nodelay_flushes_what_a_cork_holds)
{
	struct fixture f;

	set_up(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_CORK, 1);
	t_send(f.so, bytes, 10);
	expect_nothing(20);
	t_setint(f.so, IPPROTO_TCP, TCP_NODELAY, 1);
	expect_data(&f, 0, 10, 1);
	t_send(f.so, bytes + 10, 10);	/* TCP_CORK is still set */
	expect_nothing(20);
	take_down(&f);
}

TEST(shut_window_is_probed_and_reopened)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f);
	f.p.window = 0;
	ack(&f, 0);
	t_send(f.so, bytes, 100);
	peer_await(&s, 2000);
	CHECK_EQ(s.len, 0);	/* a probe: below the window, no data */
	CHECK(SEQ_LT(s.seq, f.p.rcv_nxt));
	peer_forget();
	f.p.window = 60000;
	ack(&f, 0);
	expect_data(&f, 0, 100, 100);
	ack(&f, 100);
	take_down(&f);
}

TEST(our_window_shuts_and_opens_when_it_is_worth_it)
{
	struct fixture f;
	struct peer_seg s = { .window = 1 };
	uint8_t sink[8 * MSS];
	uint32_t sent = 0;

	set_up(&f);
	t_setint(f.so, SOL_SOCKET, SO_RCVBUF, 16 * MSS);
	do {
		peer_send(&f.p, TH_ACK, f.p.snd_nxt + sent, f.p.rcv_nxt,
		    bytes, MSS);
		sent += MSS;
		while (peer_next(&s))
			continue;
	} while (s.window > 0 && sent < 200 * MSS);
	CHECK_EQ(s.window, 0);
	/* what was advertised before the buffer shrank still counts */
	CHECK(sent <= 80 * MSS);
	t_recv(f.so, sink, 10);
	expect_nothing(0);	/* silly window: no update */
	while (!peer_next(&s)) {
		CHECK(sent > 0);
		t_recv(f.so, sink, MSS);
		sent -= MSS;
	}
	CHECK(s.window >= 2 * MSS);
	take_down(&f);
}

/* A connection from a peer whose SYN has these options. */
static void
set_up_with(struct fixture *f, const uint8_t *syn, unsigned optlen)
{
	struct peer_seg s;

	*f = (struct fixture){ .p = { .window = 60000, .options = syn,
	    .optlen = optlen } };
	f->head = t_listen(PEER_STACK_IP, PORT, 5);
	peer_syn(&f->p, PORT, 0, &s);
}

/* An ACK that is due anyway advertises the window above the SYN's limit. */
TEST(the_first_read_tells_no_window)
{
	static const uint8_t syn[] = { 2, 4, MSS >> 8, MSS & 0xff, 1, 3, 3, 7 };
	struct fixture f = { .p = { .window = 60000, .options = syn,
	    .optlen = sizeof(syn) } };
	const uint64_t before = t_sysctl("net.inet.tcp.stats.sndwinup");
	struct tcpopts to;
	struct peer_seg s;
	char sink[10];

	t_sysctl_set("net.inet.tcp.delacktime", "500");
	f.head = t_listen(PEER_STACK_IP, PORT, 5);
	peer_syn(&f.p, PORT, 0, &s);
	CHECK(tcp_opt_parse(s.options, s.optlen, true, &to));
	ack(&f, 0);
	f.so = t_accept(f.head);
	f.p.optlen = 0;
	peer_text(&f.p, "0123456789");
	t_recv(f.so, sink, sizeof(sink));
	peer_await(&s, 5000);	/* one segment, the delayed ACK */
	CHECK_EQ(s.ack, f.p.snd_nxt);
	CHECK((uint32_t)s.window << to.wscale > 65535);
	expect_nothing(0);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.sndwinup"), before);
	t_sysctl_set("net.inet.tcp.delacktime", "40");
	take_down(&f);
}

/* RFC 9293 section 3.8.6.1: probes back off, and end if none is answered. */
TEST(a_window_that_never_opened_does_not_keep_a_socket)
{
	static const uint8_t syn[] = { 2, 4, 3, 232 };
	struct fixture f;
	struct peer_seg s;
	nsec_t last, gap, shortest = 0;
	uint32_t before;

	before = so_count();
	set_up_with(&f, syn, sizeof(syn));
	f.p.window = 0;
	ack(&f, 0);
	f.so = t_accept(f.head);
	t_send(f.so, bytes, 100);
	soclose(f.so);
	peer_forget();
	peer_await(&s, 5000);
	last = mach_uptime();
	for (int i = 0; i < 4; i++) {
		peer_await(&s, 120000);
		gap = mach_uptime() - last;
		CHECK(gap >= shortest);
		shortest = gap * 3 / 2;
		last = mach_uptime();
	}
	soclose(f.head);
	t_sleep(30 * 60 * 1000);
	CHECK_EQ(so_count(), before);
	peer_forget();
}

TEST(merged_segments_are_acknowledged_at_once)
{
	static const uint8_t syn[] = { 2, 4, 500 >> 8, 500 & 0xff };
	struct fixture f;
	struct peer_seg s;

	set_up_with(&f, syn, sizeof(syn));
	ack(&f, 0);
	f.so = t_accept(f.head);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, bytes, 1000);
	CHECK(peer_next(&s));
	CHECK_EQ(s.ack, f.p.snd_nxt + 1000);
	/* segments of one write may be sent as one (TSO) */
	t_send(f.so, bytes, 3000);
	CHECK(peer_next(&s));
	CHECK(s.len > 500);
	CHECK(s.flags & TH_PUSH);
	take_down(&f);
}

/* NOP NOP timestamps: value, and an echo of zero. */
#define	TIMESTAMP(v)							\
	1, 1, 8, 10, (v) >> 24, (v) >> 16 & 0xff, (v) >> 8 & 0xff,	\
	(v) & 0xff, 0, 0, 0, 0

TEST(timestamps_of_impossible_acks_are_not_remembered)
{
	static const uint8_t syn[] = { 2, 4, 3, 232, TIMESTAMP(100) };
	static const uint8_t first[] = { TIMESTAMP(101) };
	static const uint8_t forged[] = { TIMESTAMP(200000) };
	static const uint8_t next[] = { TIMESTAMP(102) };
	struct fixture f;
	struct peer_seg s;

	set_up_with(&f, syn, sizeof(syn));
	f.p.optlen = sizeof(first);
	f.p.options = first;
	ack(&f, 0);
	f.so = t_accept(f.head);
	f.p.options = forged;
	ack(&f, 9999);
	ack(&f, (uint32_t)-70000);
	peer_forget();
	f.p.options = next;
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, bytes, 10);
	peer_await(&s, 1000);
	CHECK_EQ(s.ack, f.p.snd_nxt + 10);
	CHECK_EQ(s.options[11], 102);
	take_down(&f);
}

TEST(sack_blocks_name_what_arrived)
{
	static const uint8_t syn[] = { 2, 4, 3, 232, 4, 2, 1, 1 };
	struct fixture f;
	struct peer_seg s;
	uint32_t edge[2];

	set_up_with(&f, syn, sizeof(syn));
	ack(&f, 0);
	f.so = t_accept(f.head);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt + 500, f.p.rcv_nxt, bytes, 100);
	CHECK(peer_next(&s));
	CHECK_EQ(s.ack, f.p.snd_nxt);
	CHECK_EQ(s.optlen, 12);
	CHECK_EQ(s.options[2], 5);
	memcpy(edge, s.options + 4, sizeof(edge));
	CHECK_EQ(ntohl(edge[0]), f.p.snd_nxt + 500);
	CHECK_EQ(ntohl(edge[1]), f.p.snd_nxt + 600);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, bytes, 500);
	CHECK(peer_next(&s));
	CHECK_EQ(s.ack, f.p.snd_nxt + 600);
	CHECK_EQ(s.optlen, 0);
	take_down(&f);
}

TEST(segments_shrink_to_the_path)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f);
	t_send(f.so, bytes, MSS);
	expect_data(&f, 0, MSS, 1000);
	/* about data that is not in flight: ignored (RFC 5927) */
	peer_icmp(&f.p, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, 600,
	    f.p.rcv_nxt + 100000);
	CHECK(!peer_next(&s));
	peer_icmp(&f.p, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, 600,
	    f.p.rcv_nxt);
	CHECK(peer_next(&s));
	CHECK_EQ(s.seq, f.p.rcv_nxt);
	CHECK_EQ(t_getint(f.so, IPPROTO_TCP, TCP_MAXSEG), 560);
	take_down(&f);
}

TEST(unreachable_ends_a_connect)
{
	struct sockaddr_in sin = t_addr(PEER_IP, 9001);
	struct socket *so = t_socket(SOCK_STREAM);
	struct peer p = { .port = 9001 };
	struct peer_seg s;

	peer_forget();
	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin),
	    MSG_DONTWAIT), EINPROGRESS);
	peer_await(&s, 1000);
	p.stack_port = s.sport;
	peer_icmp(&p, ICMP_DEST_UNREACH, ICMP_HOST_UNREACH, 0, s.seq);
	CHECK_EQ(t_getint(so, SOL_SOCKET, SO_ERROR), EHOSTUNREACH);
	soclose(so);
}

/* RFC 9293 MUST-56, with net.inet.tcp.icmp_drops_syn=0. */
TEST(unreachable_may_not_end_a_connect)
{
	struct sockaddr_in sin = t_addr(PEER_IP, 9001);
	struct socket *so = t_socket(SOCK_STREAM);
	struct peer p = { .port = 9001 };
	struct peer_seg s;

	peer_forget();
	t_sysctl_set("net.inet.tcp.icmp_drops_syn", "0");
	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin),
	    MSG_DONTWAIT), EINPROGRESS);
	peer_await(&s, 1000);
	p.stack_port = s.sport;
	peer_icmp(&p, ICMP_DEST_UNREACH, ICMP_HOST_UNREACH, 0, s.seq);
	CHECK_EQ(t_getint(so, SOL_SOCKET, SO_ERROR), 0);
	peer_await(&s, 1100);
	CHECK_EQ(s.flags, TH_SYN);	/* again */
	peer_icmp(&p, ICMP_DEST_UNREACH, ICMP_PORT_UNREACH, 0, s.seq);
	CHECK_EQ(t_getint(so, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	t_sysctl_set("net.inet.tcp.icmp_drops_syn", "1");
	soclose(so);
}

TEST(keepalive_drops_a_dead_peer)
{
	struct fixture f;
	struct peer_seg s;
	char c;
	size_t n;

	set_up(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPCNT, 1);
	t_setint(f.so, SOL_SOCKET, SO_KEEPALIVE, 1);
	peer_await(&s, 3000);
	CHECK_EQ(s.seq, f.p.rcv_nxt - 1);
	CHECK_EQ(t_tryrecv(f.so, &c, 1, 0, &n), ETIMEDOUT);
	take_down(&f);
}

TEST(user_timeout_gives_up_early)
{
	struct fixture f;
	char c;
	size_t n;

	set_up(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_USER_TIMEOUT, 300);
	t_send(f.so, bytes, 10);
	CHECK_EQ(t_tryrecv(f.so, &c, 1, 0, &n), ETIMEDOUT);
	take_down(&f);
}

TEST(data_after_close_is_refused)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f);
	soclose(f.so);
	CHECK(peer_next(&s));
	CHECK_EQ(s.flags, TH_FIN | TH_ACK);
	ack(&f, 1);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt + 1, bytes, 10);
	CHECK(peer_next(&s));
	CHECK(s.flags & TH_RST);
	soclose(f.head);
}

TEST(unread_data_at_close_resets)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, bytes, 10);
	soclose(f.so);
	CHECK(peer_next(&s));
	CHECK(s.flags & TH_RST);
	soclose(f.head);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
