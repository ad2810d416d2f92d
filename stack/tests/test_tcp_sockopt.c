/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What TCP's socket options do, against single segments and in virtual
 * time.
 */
#include "tests/check.h"

#include <errno.h>
#include <poll.h>

#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	PORT	8087
#define	MSS	1000		/* what the peer offers */

static uint8_t bytes[8 * MSS];

struct fixture {
	struct socket	*head, *so;
	struct peer	 p;
};

static void
open_pair(struct fixture *f)
{
	f->so = peer_accept(&f->p, PORT, &f->head);
}

static void
close_pair(struct fixture *f)
{
	peer_reset(&f->p, f->so, f->head);
}

TEST(quickack_delays_nothing)
{
	struct fixture f;
	struct peer_seg s;

	open_pair(&f);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, bytes, 10);
	CHECK(!peer_next(&s));
	t_setint(f.so, IPPROTO_TCP, TCP_QUICKACK, 1);
	CHECK(peer_next(&s));		/* what was held back */
	CHECK_EQ(s.ack, f.p.snd_nxt + 10);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt + 10, f.p.rcv_nxt, bytes, 10);
	CHECK(peer_next(&s));
	CHECK_EQ(s.ack, f.p.snd_nxt + 20);
	t_setint(f.so, IPPROTO_TCP, TCP_QUICKACK, 0);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt + 20, f.p.rcv_nxt, bytes, 10);
	CHECK(!peer_next(&s));
	close_pair(&f);
}

/* The window takes one segment; of the next bytes a few may wait. */
TEST(notsent_lowat_bounds_what_waits)
{
	struct fixture f;
	size_t done;

	open_pair(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_NODELAY, 1);
	t_setint(f.so, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 500);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt++, f.p.rcv_nxt, bytes, 1);
	f.p.window = MSS;
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
	t_send(f.so, bytes, MSS);
	CHECK(sopoll(f.so, POLLOUT) & POLLOUT);
	t_send(f.so, bytes, 600);
	CHECK(!(sopoll(f.so, POLLOUT) & POLLOUT));
	CHECK_EQ(t_trysend(f.so, bytes, 1, MSG_DONTWAIT, &done), EWOULDBLOCK);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt + MSS, NULL, 0);
	CHECK(sopoll(f.so, POLLOUT) & POLLOUT);
	close_pair(&f);
}

static void
handshake(struct peer *p)
{
	struct peer_seg s;

	*p = (struct peer){ .window = 1000 };
	peer_syn(p, PORT, 0, &s);
	peer_send(p, TH_ACK, p->snd_nxt, p->rcv_nxt, NULL, 0);
}

TEST(defer_accept_waits_for_a_request)
{
	struct fixture f;

	f.head = t_listen(PEER_STACK_IP, PORT, 5);
	t_setint(f.head, IPPROTO_TCP, TCP_DEFER_ACCEPT, 5);
	peer_forget();
	handshake(&f.p);
	CHECK_EQ(soready(f.head), 0);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, "GET", 3);
	CHECK(sopoll(f.head, POLLIN) & POLLIN);
	f.so = t_accept(f.head);
	close_pair(&f);
}

/* After the time any ACK does: to a SYN-ACK that was sent again, say. */
TEST(defer_accept_ends)
{
	struct fixture f;

	f.head = t_listen(PEER_STACK_IP, PORT, 5);
	t_setint(f.head, IPPROTO_TCP, TCP_DEFER_ACCEPT, 5);
	peer_forget();
	handshake(&f.p);
	t_sleep(6000);
	CHECK_EQ(soready(f.head), 0);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
	f.so = t_accept(f.head);
	close_pair(&f);
}

/* Timeouts back off to 0.2, 0.6 and 1.4 seconds; the user's is met. */
TEST(user_timeout_is_met)
{
	struct fixture f;
	nsec_t start;
	size_t done;
	char c;

	open_pair(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_USER_TIMEOUT, 1000);
	t_send(f.so, bytes, 10);
	start = mach_uptime();
	CHECK_EQ(t_tryrecv(f.so, &c, 1, 0, &done), ETIMEDOUT);
	CHECK((mach_uptime() - start) / NSEC_PER_MSEC - 1000 < 100);
	close_pair(&f);
}

TEST(user_timeout_counts_instead_of_keepalive_probes)
{
	struct fixture f;
	nsec_t start;
	size_t done;
	char c;

	open_pair(&f);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPIDLE, 10);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPCNT, 100);
	t_setint(f.so, IPPROTO_TCP, TCP_USER_TIMEOUT, 13000);
	t_setint(f.so, SOL_SOCKET, SO_KEEPALIVE, 1);
	start = mach_uptime();
	CHECK_EQ(t_tryrecv(f.so, &c, 1, 0, &done), ETIMEDOUT);
	CHECK((mach_uptime() - start) / NSEC_PER_SEC < 15);
	close_pair(&f);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
