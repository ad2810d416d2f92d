/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explicit congestion notification (RFC 3168 section 6.1): who agrees to it,
 * which packets may be marked, and what marks and echoes lead to.
 */
#include "tests/check.h"

#include <errno.h>

#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	PORT	8083
#define	MSS	1000		/* the peer's window */
#define	ASKS	(TH_ECE | TH_CWR)

static uint8_t bytes[60 * MSS];

struct fixture {
	struct socket	*head, *so;
	struct peer	 p;
};

/*
 * Sends the peer's SYN with these flags added; returns the flags of the answer.
 */
static uint8_t
handshake(struct fixture *f, uint8_t flags)
{
	static const uint8_t offers[] = { 2, 4, MSS >> 8, MSS & 0xff };
	struct peer_seg s;

	memset(f, 0, sizeof(*f));
	f->head = t_listen(PEER_STACK_IP, PORT, 5);
	f->p = (struct peer){ .window = 60000, .options = offers,
	    .optlen = sizeof(offers) };
	peer_syn(&f->p, PORT, flags, &s);
	CHECK_EQ(s.tos, 0);		/* never marked itself */
	peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt, NULL, 0);
	f->so = t_accept(f->head);
	return (s.flags);
}

static void
take_down(struct fixture *f)
{
	peer_reset(&f->p, f->so, f->head);
}

static void
ack(struct fixture *f, uint32_t upto, uint8_t flags)
{
	peer_send(&f->p, TH_ACK | flags, f->p.snd_nxt, f->p.rcv_nxt + upto,
	    NULL, 0);
}

static uint32_t
cwnd(const struct fixture *f)
{
	return (sototcpcb(f->so)->snd_cwnd);
}

TEST(listener_agrees_when_it_may)
{
	static const struct {
		const char *enable;
		uint8_t asked, answered;
	} cases[] = {
		{ "0", ASKS, 0 }, { "0", 0, 0 },
		{ "1", ASKS, TH_ECE }, { "1", 0, 0 },
		{ "2", ASKS, TH_ECE }, { "2", 0, 0 },
		{ "2", TH_ECE, 0 }, { "2", TH_CWR, 0 },
	};
	struct fixture f;

	for (size_t i = 0; i < nitems(cases); i++) {
		t_sysctl_set("net.inet.tcp.ecn.enable", cases[i].enable);
		CHECK_EQ(handshake(&f, cases[i].asked),
		    TH_SYN | TH_ACK | cases[i].answered);
		take_down(&f);
	}
	t_sysctl_set("net.inet.tcp.ecn.enable", "2");
}

/* Connects with net.inet.tcp.ecn.enable; returns the flags of the SYN. */
static struct socket *
call(const char *enable, struct peer_seg *syn)
{
	struct sockaddr_in sin = t_addr(PEER_IP, 9100);
	struct socket *so = t_socket(SOCK_STREAM);

	t_sysctl_set("net.inet.tcp.ecn.enable", enable);
	peer_forget();
	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin),
	    MSG_DONTWAIT), EINPROGRESS);
	t_sysctl_set("net.inet.tcp.ecn.enable", "2");
	peer_await(syn, 1000);
	CHECK_EQ(syn->tos, 0);
	return (so);
}

TEST(caller_asks_once_and_only_when_told)
{
	struct peer_seg s;
	struct socket *so = call("2", &s);

	CHECK_EQ(s.flags, TH_SYN);
	soclose(so);
	so = call("1", &s);
	CHECK_EQ(s.flags, TH_SYN | ASKS);
	/* ECN may be the reason why the SYN was lost (section 6.1.1.1) */
	peer_await(&s, 10000);
	CHECK_EQ(s.flags, TH_SYN);
	soclose(so);
}

TEST(callers_data_may_be_marked_if_the_peer_agreed)
{
	for (int agreed = 0; agreed < 2; agreed++) {
		struct peer_seg s;
		struct socket *so = call("1", &s);
		struct peer p = { .port = s.dport, .stack_port = s.sport,
		    .snd_nxt = 5000, .rcv_nxt = s.seq + 1, .window = 60000 };

		peer_send(&p, TH_SYN | TH_ACK | (agreed ? TH_ECE : ASKS),
		    p.snd_nxt, p.rcv_nxt, NULL, 0);
		CHECK(peer_next(&s));
		CHECK_EQ(s.flags, TH_ACK);
		CHECK_EQ(s.tos, 0);
		t_send(so, bytes, 100);
		CHECK(peer_next(&s));
		CHECK_EQ(s.tos, agreed ? IPTOS_ECN_ECT0 : 0);
		peer_send(&p, TH_RST | TH_ACK, p.snd_nxt + 1, 0, NULL, 0);
		soclose(so);
	}
}

TEST(only_new_data_may_be_marked)
{
	struct fixture f;
	struct peer_seg s;

	(void)handshake(&f, ASKS);
	t_setint(f.so, IPPROTO_IP, IP_TOS, 0xb8);
	t_send(f.so, bytes, 100);
	CHECK(peer_next(&s));
	CHECK_EQ(s.tos, 0xb8 | IPTOS_ECN_ECT0);
	peer_await(&s, 10000);		/* again, after the timeout */
	CHECK_EQ(s.len, 100);
	CHECK_EQ(s.tos, 0xb8);
	ack(&f, 100, 0);
	for (uint32_t i = 0; i < 2; i++)
		peer_send(&f.p, TH_ACK, f.p.snd_nxt + 10 * i,
		    f.p.rcv_nxt + 100, bytes, 10);
	CHECK(peer_next(&s));
	CHECK_EQ(s.len, 0);
	CHECK_EQ(s.tos, 0xb8);
	take_down(&f);
}

TEST(mark_is_echoed_until_the_peer_has_reduced)
{
	struct fixture f;
	struct peer_seg s;
	uint32_t at = 0;

	(void)handshake(&f, ASKS);
	f.p.tos = IPTOS_ECN_CE;
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, bytes, 10);
	CHECK(peer_next(&s));		/* at once */
	CHECK_EQ(s.flags, TH_ACK | TH_ECE);
	f.p.tos = IPTOS_ECN_ECT0;
	for (at = 10; at < 50; at += 10)
		peer_send(&f.p, TH_ACK, f.p.snd_nxt + at, f.p.rcv_nxt, bytes,
		    10);
	while (peer_next(&s))
		CHECK_EQ(s.flags, TH_ACK | TH_ECE);
	t_send(f.so, bytes, 10);	/* data carries the echo, too */
	CHECK(peer_next(&s));
	CHECK_EQ(s.flags, TH_ACK | TH_ECE | TH_PUSH);
	for (unsigned i = 0; i < 2; i++, at += 10)
		peer_send(&f.p, TH_ACK | TH_CWR, f.p.snd_nxt + at,
		    f.p.rcv_nxt + 10, bytes, 10);
	CHECK(peer_next(&s));
	CHECK_EQ(s.flags, TH_ACK);
	/* both in one packet: a new mark */
	f.p.tos = IPTOS_ECN_CE;
	peer_send(&f.p, TH_ACK | TH_CWR, f.p.snd_nxt + at, f.p.rcv_nxt + 10,
	    bytes, 10);
	CHECK(peer_next(&s));
	CHECK_EQ(s.flags, TH_ACK | TH_ECE);
	take_down(&f);
}

/* Takes the sent segments; returns their bytes and the number with CWR. */
static uint32_t
take_sent(unsigned *cwr)
{
	struct peer_seg s;
	uint32_t sent = 0;

	for (*cwr = 0; peer_next(&s); sent += s.len)
		if (s.flags & TH_CWR) {
			CHECK(s.len > 0 && s.len <= MSS);
			++*cwr;
		}
	return (sent);
}

TEST(echo_reduces_once_for_a_window)
{
	struct fixture f;
	unsigned cwr;
	uint32_t sent, window, upto = 0, again;
	uint64_t rexmits = t_sysctl("net.inet.tcp.stats.sndrexmitpack");

	(void)handshake(&f, ASKS);
	t_send(f.so, bytes, sizeof(bytes));
	sent = take_sent(&cwr);
	CHECK_EQ(cwr, 0);
	window = cwnd(&f);
	while (upto < window) {
		upto += MSS;
		ack(&f, upto, TH_ECE);
		sent += take_sent(&again);
		cwr += again;
	}
	CHECK_EQ(cwr, 1);
	CHECK_EQ(sototcpcb(f.so)->snd_ssthresh, window * 7 / 10);
	CHECK_EQ(cwnd(&f), window * 7 / 10);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.ecnreductions"), 1);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.sndrexmitpack"), rexmits);
	/* marks in the next window count again */
	ack(&f, upto + MSS, TH_ECE);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.ecnreductions"), 2);
	CHECK(sototcpcb(f.so)->snd_ssthresh <= window / 2);
	CHECK(sent <= sizeof(bytes));
	take_down(&f);
}

TEST(echo_without_agreement_means_nothing)
{
	struct fixture f;
	uint32_t before;

	(void)handshake(&f, 0);
	t_send(f.so, bytes, 5 * MSS);
	before = cwnd(&f);
	ack(&f, MSS, TH_ECE);
	CHECK(cwnd(&f) >= before);
	take_down(&f);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
