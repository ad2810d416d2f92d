/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The segments of a connection leave in the order in which they were made,
 * although a thread that receives batches frames while another sends.
 */
#include "tests/check.h"

#include <netinet/tcp.h>

#include "net/if_txbatch.h"
#include "tests/peer.h"

#define	MSS	1000		/* the peer's window */
#define	ROOM	3		/* segments that a receive buffer takes */

static const char bytes[2 * MSS];

static void
write_more(void *so)
{
	t_send(so, bytes, MSS / 2);
}

/* One segment of two fits into the window and is in flight. */
static void
open_narrow(struct peer_conn *c)
{
	peer_conn_open(c);
	t_setint(c->so, IPPROTO_TCP, TCP_NODELAY, 1);
	peer_send(&c->p, TH_ACK, c->p.snd_nxt++, c->p.rcv_nxt, bytes, 1);
	c->p.window = MSS;
	peer_send(&c->p, TH_ACK, c->p.snd_nxt, c->p.rcv_nxt, NULL, 0);
	t_send(c->so, bytes, 2 * MSS);
	peer_forget();
}

/* The peer acknowledges it and has space for more. */
static void
let_out(struct peer_conn *c)
{
	c->p.window = 60000;
	peer_send(&c->p, TH_ACK, c->p.snd_nxt, c->p.rcv_nxt + MSS, NULL, 0);
}

TEST(a_writer_does_not_overtake_what_an_ack_let_out)
{
	struct tx_batch batch;
	struct peer_conn c;
	struct peer_seg s;

	open_narrow(&c);
	tx_batch_begin(&batch);
	let_out(&c);
	t_join(t_thread(write_more, c.so));
	tx_batch_end(&batch);
	CHECK(peer_next(&s));
	CHECK_EQ(s.seq, c.p.rcv_nxt + MSS);
	CHECK_EQ(s.len, MSS);
	CHECK(peer_next(&s));
	CHECK_EQ(s.seq, c.p.rcv_nxt + 2 * MSS);
	CHECK_EQ(s.len, MSS / 2);
	CHECK(!peer_next(&s));
	/* the next segment is sent at once */
	write_more(c.so);
	CHECK(peer_next(&s));
	CHECK_EQ(s.len, MSS / 2);
	peer_conn_close(&c);
}

static void
read_all(void *so)
{
	char got[ROOM * MSS];

	t_recv(so, got, sizeof(got));
}

/*
 * Of two windows at one ACK a peer takes the one that comes last (RFC 9293
 * section 3.10.7.4), and would wait for a window that is open.
 */
TEST(a_reader_does_not_overtake_the_ack_of_a_shut_window)
{
	struct tx_batch batch;
	struct peer_conn c;
	struct peer_seg s;

	c.head = t_listen(PEER_STACK_IP, 80, 1);
	t_setint(c.head, SOL_SOCKET, SO_RCVBUF, ROOM * MSS);
	peer_open(&c.p, 80);
	c.so = t_accept(c.head);
	t_setint(c.so, IPPROTO_TCP, TCP_QUICKACK, 1);
	peer_forget();
	tx_batch_begin(&batch);
	for (int i = 0; i < ROOM; i++, c.p.snd_nxt += MSS)
		peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt, bytes, MSS);
	t_join(t_thread(read_all, c.so));
	tx_batch_end(&batch);
	for (int i = 0; i < ROOM; i++) {
		CHECK(peer_next(&s));
		CHECK_EQ(s.window, (ROOM - 1 - i) * MSS);
	}
	CHECK(peer_next(&s));
	CHECK_EQ(s.ack, c.p.snd_nxt);
	CHECK_EQ(s.window, ROOM * MSS);
	CHECK(!peer_next(&s));
	peer_conn_close(&c);
}

TEST(more_connections_than_a_batch_remembers)
{
	struct peer_conn c[TX_CALLS_MAX + 1];
	struct tx_batch batch;
	struct peer_seg s;

	for (size_t i = 0; i < nitems(c); i++)
		open_narrow(&c[i]);
	tx_batch_begin(&batch);
	for (size_t i = 0; i < TX_CALLS_MAX; i++)
		let_out(&c[i]);
	/*
	 * If a lock may wait for the end of a call, each segment is sent at
	 * once.
	 */
	if (!so_lockwaits())
		CHECK(!peer_next(&s));
	let_out(&c[TX_CALLS_MAX]);
	for (size_t i = 0; i < nitems(c); i++) {
		CHECK(peer_next(&s));
		CHECK_EQ(s.dport, c[i].p.port);
		CHECK_EQ(s.len, MSS);
	}
	tx_batch_end(&batch);
	CHECK(!peer_next(&s));
	for (size_t i = 0; i < nitems(c); i++)
		peer_conn_close(&c[i]);
}

int
main(int argc, char **argv)
{
	peer_boot();
	peer_takelists();
	return (check_main(argc, argv));
}
