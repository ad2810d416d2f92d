/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Urgent data on the wire (RFC 9293 section 3.8.5, RFC 6093).  posix_urgent.c
 * tests it from a program.
 */
#include "tests/check.h"

#include <errno.h>
#include <poll.h>

#include "kern/socketvar.h"
#include "tests/peer.h"

#define	PORT	8080
#define	MSS	1000		/* the peer's window */

struct fixture {
	struct socket	*head, *so;
	struct peer	 p;
};

static uint8_t bytes[8 * MSS];

static void
set_up(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	memset(bytes, 'b', sizeof(bytes));
	f->so = peer_accept(&f->p, PORT, &f->head);
}

static void
take_down(struct fixture *f)
{
	peer_reset(&f->p, f->so, f->head);
}

static void
send_urgent(struct fixture *f, uint32_t len)
{
	size_t done;

	CHECK_EQ(t_trysend(f->so, bytes, len, MSG_OOB, &done), 0);
	CHECK_EQ(done, len);
}

/* Delivers the peer's segment of len bytes at off, with the urgent pointer. */
static void
arrive(struct fixture *f, uint32_t off, uint32_t len, uint16_t urgent)
{
	f->p.urgent = urgent;
	peer_send(&f->p, TH_ACK | TH_URG, f->p.snd_nxt + off, f->p.rcv_nxt,
	    bytes, len);
}

static void
expect_pointer(struct fixture *f, uint32_t off, uint32_t len, int urgent)
{
	struct peer_seg s;

	CHECK(peer_next(&s));
	CHECK_EQ(s.seq - f->p.rcv_nxt, off);
	CHECK_EQ(s.len, len);
	CHECK_EQ(s.segsz, len);
	CHECK_EQ(s.flags & TH_URG ? s.urgent : -1, urgent);
}

/* The error of a read of the urgent byte, or 0. */
static int
fetch(struct fixture *f)
{
	size_t done;
	char c;

	return (t_tryrecv(f->so, &c, 1, MSG_OOB, &done));
}

TEST(pointer_is_behind_the_byte)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f);
	send_urgent(&f, 3);
	expect_pointer(&f, 0, 3, 3);
	t_setint(f.so, IPPROTO_TCP, TCP_NODELAY, 1);
	t_send(f.so, bytes, 5);
	expect_pointer(&f, 3, 5, -1);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt + 8, NULL, 0);
	CHECK(!peer_next(&s));
	take_down(&f);
}

TEST(every_segment_before_it_says_so)
{
	struct fixture f;

	set_up(&f);
	send_urgent(&f, 3 * MSS + 10);
	expect_pointer(&f, 0, MSS, 3 * MSS + 10);
	expect_pointer(&f, MSS, MSS, 2 * MSS + 10);
	expect_pointer(&f, 2 * MSS, MSS, MSS + 10);
	expect_pointer(&f, 3 * MSS, 10, 10);
	take_down(&f);
}

TEST(what_is_sent_again_says_so_again)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f);
	send_urgent(&f, 2 * MSS);
	peer_forget();
	peer_await(&s, 10000);
	CHECK_EQ(s.seq, f.p.rcv_nxt);
	CHECK(s.flags & TH_URG);
	CHECK_EQ(s.urgent, 2 * MSS);
	CHECK_EQ(s.segsz, s.len);
	take_down(&f);
}

TEST(nagle_does_not_hold_it_back)
{
	struct fixture f;

	set_up(&f);
	t_send(f.so, bytes, 1);
	expect_pointer(&f, 0, 1, -1);
	send_urgent(&f, 1);
	expect_pointer(&f, 1, 1, 1);
	take_down(&f);
}

/* RFC 9293 MUST-62 */
TEST(shut_window_does_not_keep_it_secret)
{
	struct fixture f;

	set_up(&f);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt++, f.p.rcv_nxt, bytes, 1);
	f.p.window = 0;
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
	send_urgent(&f, 4);
	expect_pointer(&f, 0, 0, 4);
	take_down(&f);
}

/*
 * A probe of a shut window or of an idle connection begins below what is
 * acknowledged, but has a pointer only if something urgent is not (RFC 9293
 * sections 3.1, 3.8.4).
 */
TEST(probes_have_no_pointer_to_what_was_acknowledged)
{
	struct fixture f;

	set_up(&f);
	t_send(f.so, bytes, 100);
	expect_pointer(&f, 0, 100, -1);
	f.p.rcv_nxt += 100;
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
	t_setint(f.so, SOL_SOCKET, SO_KEEPALIVE, 1);
	t_setint(f.so, IPPROTO_TCP, TCP_KEEPIDLE, 5);
	t_sleep(5100);
	expect_pointer(&f, (uint32_t)-1, 0, -1);
	/* a window may shut only with something new */
	peer_send(&f.p, TH_ACK, f.p.snd_nxt++, f.p.rcv_nxt, bytes, 1);
	f.p.window = 0;
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
	t_sleep(100);
	peer_forget();
	t_send(f.so, bytes, 100);
	t_sleep(300);
	expect_pointer(&f, (uint32_t)-1, 0, -1);
	send_urgent(&f, 1);
	expect_pointer(&f, 0, 0, 101);
	t_sleep(400);
	expect_pointer(&f, (uint32_t)-1, 0, 102);
	take_down(&f);
}

TEST(pointer_too_far_away_comes_later)
{
	struct fixture f;
	struct peer_seg s;
	tcp_seq top;

	set_up(&f);
	for (int i = 0; i < 9; i++)
		t_send(f.so, bytes, sizeof(bytes));
	send_urgent(&f, 1);
	CHECK(peer_next(&s));
	CHECK((s.flags & TH_URG) == 0);
	for (top = s.seq + s.len; (s.flags & TH_URG) == 0;
	    top = s.seq + s.len) {
		while (peer_next(&s) && (s.flags & TH_URG) == 0)
			top = s.seq + s.len;
		if ((s.flags & TH_URG) == 0)
			peer_send(&f.p, TH_ACK, f.p.snd_nxt, top, NULL, 0);
	}
	CHECK_EQ(s.seq + s.urgent - f.p.rcv_nxt, 9 * sizeof(bytes) + 1);
	take_down(&f);
}

TEST(announced_byte_is_waited_for)
{
	struct fixture f;

	set_up(&f);
	CHECK_EQ(fetch(&f), EINVAL);
	arrive(&f, 0, 0, 5);
	CHECK_EQ(fetch(&f), EWOULDBLOCK);
	CHECK(!(sopoll(f.so, POLLPRI) & POLLPRI));
	arrive(&f, 0, 4, 5);
	CHECK_EQ(fetch(&f), EWOULDBLOCK);
	arrive(&f, 4, 4, 1);
	CHECK(sopoll(f.so, POLLPRI) & POLLPRI);
	CHECK_EQ(fetch(&f), 0);
	CHECK_EQ(fetch(&f), EINVAL);
	CHECK_EQ(soavail(f.so), 4);
	take_down(&f);
}

TEST(byte_that_came_out_of_order)
{
	struct fixture f;

	set_up(&f);
	arrive(&f, 10, 10, 5);		/* its byte 4, byte 14 of the stream */
	CHECK_EQ(fetch(&f), EWOULDBLOCK);
	arrive(&f, 0, 10, 15);
	CHECK_EQ(fetch(&f), 0);
	CHECK_EQ(soavail(f.so), 14);
	take_down(&f);
}

TEST(pointer_that_came_before_is_no_news)
{
	struct fixture f;

	set_up(&f);
	arrive(&f, 0, 10, 5);
	CHECK_EQ(fetch(&f), 0);
	arrive(&f, 0, 10, 5);
	CHECK_EQ(fetch(&f), EINVAL);
	arrive(&f, 10, 10, 5);
	CHECK_EQ(fetch(&f), 0);
	take_down(&f);
}

TEST(newer_byte_takes_the_place_of_an_older_one)
{
	struct fixture f;
	uint8_t got[32];
	size_t done;

	set_up(&f);
	arrive(&f, 0, 10, 5);
	arrive(&f, 10, 10, 5);
	CHECK_EQ(t_tryrecv(f.so, got, sizeof(got), 0, &done), 0);
	CHECK_EQ(done, 13);		/* without the two urgent bytes */
	CHECK(soatmark(f.so));
	CHECK_EQ(fetch(&f), 0);
	CHECK_EQ(t_tryrecv(f.so, got, sizeof(got), 0, &done), 0);
	CHECK_EQ(done, 5);
	take_down(&f);
}

TEST(shut_down_reader_is_not_told)
{
	struct fixture f;

	set_up(&f);
	CHECK_EQ(soshutdown(f.so, SHUT_RD), 0);
	arrive(&f, 0, 10, 5);
	CHECK(!(sopoll(f.so, POLLPRI) & POLLPRI));
	CHECK_EQ(fetch(&f), EINVAL);
	take_down(&f);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
