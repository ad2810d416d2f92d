/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic buffer sizes: when they grow, how far, and that a size set by the
 * program is kept.
 */
#include "tests/check.h"

#include <poll.h>

#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	PORT	8085
#define	SMALL	"8192"
#define	PIECE	1000

static uint8_t bytes[1 << 20];

struct fixture {
	struct socket	*head, *so;
	struct peer	 p;
};

/* A connection over a path whose round trip is at least rtt milliseconds. */
static void
set_up(struct fixture *f, unsigned rtt, uint16_t window)
{
	struct peer_seg s;

	t_sysctl_set("net.inet.tcp.recvspace", SMALL);
	t_sysctl_set("net.inet.tcp.sendspace", SMALL);
	f->head = t_listen(PEER_STACK_IP, PORT, 5);
	f->p = (struct peer){ .window = window };
	peer_syn(&f->p, PORT, 0, &s);
	t_sleep(rtt);
	peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt, NULL, 0);
	f->so = t_accept(f->head);
	peer_forget();
}

static void
take_down(struct fixture *f)
{
	peer_reset(&f->p, f->so, f->head);
}

/*
 * The peer sends and the program reads; returns whether the buffer has grown.
 */
static bool
read_grows(struct fixture *f, unsigned pieces)
{
	int before = t_getint(f->so, SOL_SOCKET, SO_RCVBUF);

	for (unsigned i = 0; i < pieces; i++) {
		peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt, bytes,
		    PIECE);
		f->p.snd_nxt += PIECE;
		t_recv(f->so, bytes, PIECE);
	}
	peer_forget();
	return (t_getint(f->so, SOL_SOCKET, SO_RCVBUF) > before);
}

/* Fills the send buffer; returns the number of bytes. */
static size_t
fill(struct fixture *f)
{
	size_t total = 0, done;

	while (total < sizeof(bytes) && t_trysend(f->so, bytes, 1024,
	    MSG_DONTWAIT, &done) == 0)
		total += done;
	return (total);
}

TEST(a_fast_reader_gets_a_larger_buffer)
{
	struct fixture f;
	bool grew = false;

	set_up(&f, 500, 60000);
	for (int i = 0; i < 20 && !grew; i++)
		grew = read_grows(&f, 20);
	CHECK(grew);
	take_down(&f);
}

TEST(receive_buffers_end_at_their_maximum)
{
	struct fixture f;

	set_up(&f, 500, 60000);
	t_sysctl_set("net.inet.tcp.recvbuf_max", "16384");
	for (int i = 0; i < 20; i++)
		(void)read_grows(&f, 20);
	CHECK(t_getint(f.so, SOL_SOCKET, SO_RCVBUF) <= 2 * 16384);
	t_sysctl_set("net.inet.tcp.recvbuf_max", "6291456");
	take_down(&f);
}

TEST(what_was_set_stays)
{
	struct fixture f;

	set_up(&f, 500, 60000);
	t_setint(f.so, SOL_SOCKET, SO_RCVBUF, 12000);
	t_setint(f.so, SOL_SOCKET, SO_SNDBUF, 12000);
	for (int i = 0; i < 5; i++)
		CHECK(!read_grows(&f, 20));
	CHECK(fill(&f) <= 12000);
	take_down(&f);
}

TEST(tuning_can_be_switched_off)
{
	struct fixture f;

	t_sysctl_set("net.inet.tcp.recvbuf_auto", "0");
	t_sysctl_set("net.inet.tcp.sendbuf_auto", "0");
	set_up(&f, 500, 60000);
	for (int i = 0; i < 5; i++)
		CHECK(!read_grows(&f, 20));
	CHECK(fill(&f) <= 8192);
	t_sysctl_set("net.inet.tcp.recvbuf_auto", "1");
	t_sysctl_set("net.inet.tcp.sendbuf_auto", "1");
	take_down(&f);
}

static void
ack_all(struct fixture *f)
{
	struct peer_seg s;

	while (peer_next(&s))
		peer_send(&f->p, TH_ACK, f->p.snd_nxt, s.seq + s.len, NULL,
		    0);
}

TEST(a_writer_gets_more_when_the_windows_allow)
{
	struct fixture f;
	bool grew = false;

	set_up(&f, 1, 60000);
	/* ten segments of 536 bytes: the congestion window is smaller */
	CHECK(fill(&f) <= 8192);
	for (int i = 0; i < 20 && !grew; i++) {
		ack_all(&f);
		grew = fill(&f) > 8192;
	}
	CHECK(grew);
	take_down(&f);
}

TEST(a_writer_gets_no_more_than_the_peer_takes)
{
	struct fixture f;

	set_up(&f, 1, 5000);
	for (int i = 0; i < 5; i++) {
		CHECK(fill(&f) <= 8192);
		ack_all(&f);
	}
	CHECK_EQ(t_getint(f.so, SOL_SOCKET, SO_SNDBUF), 2 * 8192);
	take_down(&f);
}

static bool
is_writeable(struct fixture *f, uint32_t acked)
{
	peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt + acked, NULL, 0);
	return ((sopoll(f->so, POLLOUT) & POLLOUT) != 0);
}

/*
 * Poll reports space when a third of the buffer is free; a write may use less.
 */
TEST(a_writer_hears_of_room_for_several_blocks)
{
	struct fixture f;
	size_t done;

	set_up(&f, 0, 60000);
	t_setint(f.so, SOL_SOCKET, SO_SNDBUF, 12000);
	t_send(f.so, bytes, 8000);
	CHECK(is_writeable(&f, 0));
	t_send(f.so, bytes, 1000);
	CHECK(!is_writeable(&f, 0));
	CHECK(!is_writeable(&f, 999));
	CHECK(is_writeable(&f, 1000));
	CHECK_EQ(t_trysend(f.so, bytes, 500, MSG_DONTWAIT, &done), 0);
	CHECK(!is_writeable(&f, 1000));
	CHECK_EQ(t_trysend(f.so, bytes, 500, MSG_DONTWAIT, &done), 0);
	CHECK_EQ(done, 500);
	take_down(&f);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
