/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCTCP (RFC 8257): the exact echo of marks, the estimate of their share, and
 * a reduction in proportion to it.
 */
#include "tests/check.h"

#include <errno.h>

#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	PORT	8084
#define	MSS	1000		/* the peer's window */
#define	ASKS	(TH_ECE | TH_CWR)

static uint8_t bytes[4 * MSS];

/* A connection of the peer to a listener, with ECN. */
static void
establish(struct peer_conn *c)
{
	static const uint8_t offers[] = { 2, 4, MSS >> 8, MSS & 0xff };
	struct peer_seg s;

	memset(c, 0, sizeof(*c));
	c->head = t_listen(PEER_STACK_IP, PORT, 5);
	c->p = (struct peer){ .window = 60000, .options = offers,
	    .optlen = sizeof(offers) };
	peer_syn(&c->p, PORT, ASKS, &s);
	CHECK_EQ(s.flags, TH_SYN | TH_ACK | TH_ECE);
	peer_send(&c->p, TH_ACK, c->p.snd_nxt, c->p.rcv_nxt, NULL, 0);
	c->so = t_accept(c->head);
	CHECK_EQ(sosetopt(c->so, IPPROTO_TCP, TCP_CONGESTION, "dctcp", 5), 0);
}

/* Delivers the next data of the peer, marked or not. */
static void
data(struct peer_conn *c, uint8_t ecn)
{
	c->p.tos = ecn;
	peer_send(&c->p, TH_ACK, c->p.snd_nxt, c->p.rcv_nxt, bytes, 10);
	c->p.snd_nxt += 10;
}

/* Checks that the stack has acknowledged all but this many bytes. */
static void
check_ack(const struct peer_conn *c, uint8_t flags, uint32_t before)
{
	struct peer_seg s;

	CHECK(peer_next(&s));
	CHECK_EQ(s.flags, flags);
	CHECK_EQ(s.ack, c->p.snd_nxt - before);
}

/* Section 3.2: ACKs have ECE for marked data and for no other. */
TEST(change_of_marks_is_acknowledged_at_once)
{
	struct peer_conn c;
	struct peer_seg s;

	establish(&c);
	sototcpcb(c.so)->t_quickacks = 0;
	peer_forget();
	data(&c, IPTOS_ECN_ECT0);
	CHECK(!peer_next(&s));		/* delayed */
	data(&c, IPTOS_ECN_CE);
	check_ack(&c, TH_ACK, 10);	/* the data received without a mark */
	CHECK(!peer_next(&s));
	data(&c, IPTOS_ECN_CE);
	check_ack(&c, TH_ACK | TH_ECE, 0);	/* every second segment */
	data(&c, IPTOS_ECN_CE);
	data(&c, IPTOS_ECN_ECT0);
	check_ack(&c, TH_ACK | TH_ECE, 10);
	data(&c, IPTOS_ECN_ECT0);
	check_ack(&c, TH_ACK, 0);	/* without CWR of the peer */
	CHECK(!peer_next(&s));
	peer_conn_close(&c);
}

/* A window of ACKs, of which the first marked bytes have ECE. */
static void
ack_window(struct peer_conn *c, uint32_t marked)
{
	struct tcpcb *tp = sototcpcb(c->so);
	const tcp_seq end = tp->snd_max;
	tcp_seq upto = tp->snd_una;

	while (SEQ_LT(upto, end)) {
		const uint32_t left = end - upto;

		upto += left < MSS ? left : MSS;
		peer_send(&c->p, TH_ACK | (marked > 0 ? TH_ECE : 0),
		    c->p.snd_nxt, upto, NULL, 0);
		marked -= marked < MSS ? marked : MSS;
		peer_forget();
	}
}

/* Sends as much as the windows of both ends allow. */
static void
send_window(struct peer_conn *c)
{
	struct tcpcb *tp = sototcpcb(c->so);
	const uint32_t most = tp->snd_cwnd < 50 * MSS ? tp->snd_cwnd :
	    50 * MSS;

	while (tp->snd_max - tp->snd_una + MSS <= most)
		t_send(c->so, bytes, MSS);
	peer_forget();
}

/* Section 3.3, with g = 1/16. */
TEST(window_falls_by_half_the_share_of_marked_bytes)
{
	struct peer_conn c;
	struct tcpcb *tp;
	uint32_t before, first;

	establish(&c);
	tp = sototcpcb(c.so);
	tp->snd_ssthresh = tp->snd_cwnd;	/* congestion avoidance */
	/* alpha begins at 1: as RFC 3168 */
	send_window(&c);
	before = tp->snd_max - tp->snd_una;
	ack_window(&c, MSS);
	CHECK(tp->snd_ssthresh <= before * 6 / 10);
	CHECK(tp->snd_ssthresh >= before * 5 / 10);
	first = before - tp->snd_ssthresh;
	/* windows without a mark: (15/16)^60 is 0.02 */
	for (int i = 0; i < 60; i++) {
		send_window(&c);
		ack_window(&c, 0);
	}
	send_window(&c);
	before = tp->snd_max - tp->snd_una;
	ack_window(&c, MSS);
	CHECK(tp->snd_ssthresh >= before * 9 / 10);
	CHECK(before - tp->snd_ssthresh < first);
	/* all marked for a long time: the window is halved */
	for (int i = 0; i < 60; i++) {
		send_window(&c);
		before = tp->snd_max - tp->snd_una;
		ack_window(&c, before);
	}
	CHECK(tp->snd_cwnd <= 4 * MSS);
	peer_conn_close(&c);
}

/* Section 3.4: as without DCTCP. */
TEST(loss_halves_the_window)
{
	struct peer_conn c;
	struct tcpcb *tp;
	uint32_t flight;

	establish(&c);
	tp = sototcpcb(c.so);
	for (int i = 0; i < 60; i++) {
		send_window(&c);
		ack_window(&c, 0);
	}
	send_window(&c);
	flight = tp->snd_max - tp->snd_una;
	for (int i = 0; i < 4; i++)
		peer_send(&c.p, TH_ACK, c.p.snd_nxt, tp->snd_una, NULL, 0);
	CHECK_EQ(tp->snd_ssthresh, flight / 2);
	peer_conn_close(&c);
}

/* connect() requests ECN, unless net.inet.tcp.ecn.enable is 0. */
TEST(caller_asks_for_marks)
{
	for (int enable = 0; enable <= 2; enable += 2) {
		struct sockaddr_in sin = t_addr(PEER_IP, 9100);
		struct socket *so = t_socket(SOCK_STREAM);
		struct peer_seg s;

		t_sysctl_set("net.inet.tcp.ecn.enable", enable ? "2" : "0");
		CHECK_EQ(sosetopt(so, IPPROTO_TCP, TCP_CONGESTION, "dctcp",
		    5), 0);
		peer_forget();
		CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin),
		    MSG_DONTWAIT), EINPROGRESS);
		peer_await(&s, 1000);
		CHECK_EQ(s.flags, TH_SYN | (enable ? ASKS : 0));
		soclose(so);
	}
	t_sysctl_set("net.inet.tcp.ecn.enable", "2");
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
