/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handshakes that are not completed: floods of SYNs, SYN cookies, unanswered
 * SYN-ACKs.
 */
#include "tests/check.h"

#include <errno.h>

#include "netinet/tcp_syncache.h"
#include "tests/peer.h"

#define	PORT	8086
#define	FLOOD	5000

/* MSS 1460, SACK permitted, timestamps of 100, window scale 7. */
static const uint8_t all_options[] = {
	2, 4, 1460 >> 8, 1460 & 0xff, 4, 2, 8, 10, 0, 0, 0, 100, 0, 0, 0, 0,
	1, 3, 3, 7
};
static const uint8_t timestamp[] = {
	1, 1, 8, 10, 0, 0, 0, 101, 0, 0, 0, 0
};

static struct socket *head;

static uint64_t
handshakes(void)
{
	return (t_sysctl("net.inet.tcp.syncache.count"));
}

static bool
no_handshakes(void *arg)
{
	(void)arg;
	return (handshakes() == 0);
}

/* Waits until all handshakes of a test have timed out. */
static void
settle(void)
{
	t_sysctl_set("net.inet.tcp.syncache.rexmtlimit", "0");
	CHECK(t_until(no_handshakes, NULL));
	t_sysctl_set("net.inet.tcp.syncache.rexmtlimit", "3");
	soclose(head);
	peer_forget();
}

static void
set_up(const char *cookies)
{
	t_sysctl_set("net.inet.tcp.syncookies", cookies);
	head = t_listen(PEER_STACK_IP, PORT, 5);
	peer_forget();
}

/* SYNs whose SYN-ACKs are not answered. */
static void
flood(void)
{
	struct peer p = { .stack_port = PORT, .window = 1000 };

	for (unsigned i = 0; i < FLOOD; i++) {
		p.port = (uint16_t)(50000 + i);
		peer_send(&p, TH_SYN, i * 7919, 0, NULL, 0);
		peer_forget();
	}
}

/* Sends the peer's SYN; checks our SYN-ACK. */
static void
syn(struct peer *p, struct peer_seg *s, const uint8_t *options,
    unsigned optlen)
{
	*p = (struct peer){ .window = 1000, .options = options,
	    .optlen = optlen };
	peer_syn(p, PORT, 0, s);
}

/* A client can connect, and its data arrives. */
static void
serve_one(void)
{
	struct socket *so;
	struct peer p;
	char text[5];

	peer_open(&p, PORT);
	so = t_accept(head);
	peer_send(&p, TH_ACK, p.snd_nxt, p.rcv_nxt, "hello", 5);
	t_recv(so, text, 5);
	CHECK(memcmp(text, "hello", 5) == 0);
	peer_send(&p, TH_RST | TH_ACK, p.snd_nxt + 5, 0, NULL, 0);
	soclose(so);
}

TEST(a_flood_costs_no_sockets_and_cookies_let_clients_in)
{
	uint64_t before, cookies;

	set_up("1");
	t_sysctl_set("net.inet.tcp.syncache.cachelimit", "1000");
	before = t_sysctl("kern.ipc.sockets");
	cookies = t_sysctl("net.inet.tcp.stats.syncookierecv");
	flood();
	CHECK_EQ(handshakes(), 1000);
	CHECK_EQ(t_sysctl("kern.ipc.sockets"), before);
	serve_one();
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.syncookierecv"), cookies + 1);
	t_sysctl_set("net.inet.tcp.syncache.cachelimit", "15360");
	settle();
}

TEST(without_cookies_the_newest_get_in)
{
	set_up("0");
	t_sysctl_set("net.inet.tcp.syncache.bucketlimit", "2");
	flood();
	CHECK(handshakes() <= 2 * 512);
	serve_one();
	t_sysctl_set("net.inet.tcp.syncache.bucketlimit", "30");
	settle();
}

/* The limit of all buckets: the newest get in, wherever the oldest are. */
TEST(without_cookies_a_low_limit_leaves_room)
{
	set_up("0");
	t_sysctl_set("net.inet.tcp.syncache.cachelimit", "5");
	flood();
	CHECK(handshakes() <= 5);
	for (unsigned i = 0; i < 5; i++)
		serve_one();
	t_sysctl_set("net.inet.tcp.syncache.cachelimit", "15360");
	settle();
}

TEST(a_cookie_carries_the_options)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);
	struct socket *so;
	struct peer_seg s;
	struct peer p;

	set_up("2");
	syn(&p, &s, all_options, sizeof(all_options));
	CHECK_EQ(handshakes(), 0);
	p.options = timestamp;
	p.optlen = sizeof(timestamp);
	peer_send(&p, TH_ACK, p.snd_nxt, p.rcv_nxt, NULL, 0);
	so = t_accept(head);
	CHECK_EQ(sogetopt(so, IPPROTO_TCP, TCP_INFO, &ti, &len), 0);
	CHECK_EQ(ti.tcpi_options, TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK |
	    TCPI_OPT_WSCALE);
	CHECK_EQ(ti.tcpi_snd_wscale, 7);
	CHECK_EQ(ti.tcpi_snd_mss, 1460 - TCP_TS_LEN);
	peer_send(&p, TH_RST | TH_ACK, p.snd_nxt, 0, NULL, 0);
	soclose(so);
	settle();
}

TEST(only_the_cookie_that_was_sent_opens)
{
	struct peer_seg s;
	struct peer p, other;

	set_up("2");
	syn(&p, &s, NULL, 0);
	other = p;
	other.port++;
	peer_send(&p, TH_ACK, p.snd_nxt, p.rcv_nxt + 256, NULL, 0);
	peer_send(&p, TH_ACK, p.snd_nxt, p.rcv_nxt ^ 0x40, NULL, 0);
	peer_send(&p, TH_ACK, p.snd_nxt + 1, p.rcv_nxt, NULL, 0);
	peer_send(&other, TH_ACK, p.snd_nxt, p.rcv_nxt, NULL, 0);
	for (int i = 0; i < 4; i++) {
		CHECK(peer_next(&s));
		CHECK_EQ(s.flags, TH_RST);
	}
	CHECK_EQ(soready(head), 0);
	settle();
}

TEST(a_syn_ack_is_sent_again_and_then_given_up)
{
	uint64_t before = t_sysctl("net.inet.tcp.stats.syntimeout");
	struct peer_seg s, again;
	struct peer p;

	set_up("1");
	t_sysctl_set("net.inet.tcp.rexmit_initial", "50");
	t_sysctl_set("net.inet.tcp.syncache.rexmtlimit", "2");
	syn(&p, &s, NULL, 0);
	for (int i = 0; i < 2; i++) {
		peer_await(&again, 10000);
		CHECK_EQ(again.flags, TH_SYN | TH_ACK);
		CHECK_EQ(again.seq, s.seq);
		CHECK_EQ(again.ack, s.ack);
	}
	CHECK(t_until(no_handshakes, NULL));
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.syntimeout"), before + 1);
	CHECK(!peer_next(&s));
	t_sysctl_set("net.inet.tcp.rexmit_initial", "1000");
	settle();
}

/* The ACK of the handshake was lost; the first data completes it. */
TEST(data_finish_a_handshake)
{
	struct socket *so;
	struct peer_seg s;
	struct peer p;
	char text[4];

	set_up("1");
	syn(&p, &s, NULL, 0);
	peer_send(&p, TH_ACK, p.snd_nxt, p.rcv_nxt, "data", 4);
	so = t_accept(head);
	t_recv(so, text, 4);
	CHECK(memcmp(text, "data", 4) == 0);
	peer_send(&p, TH_RST | TH_ACK, p.snd_nxt + 4, 0, NULL, 0);
	soclose(so);
	settle();
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
