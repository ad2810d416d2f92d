/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACKs of a receive burst: one at its end.
 */
#include "tests/check.h"

#include "net/if_txbatch.h"
#include "net/if_var.h"
#include "tests/states.h"

#define	LEN	1000		/* segment size in bytes */
#define	SHORT	100		/* less than an MSS */
#define	WINDOW	65535		/* window of a SYN, not scaled */

static const char bytes[LEN];

static void
send_segments(struct peer *p, unsigned n)
{
	while (n-- > 0) {
		peer_send(p, TH_ACK, p->snd_nxt, p->rcv_nxt, bytes, LEN);
		p->snd_nxt += LEN;
	}
}

static void
send_short(struct peer *p)
{
	peer_send(p, TH_ACK | TH_PUSH, p->snd_nxt, p->rcv_nxt, bytes, SHORT);
	p->snd_nxt += SHORT;
}

static void
expect_ack(struct peer *p)
{
	struct peer_seg s;

	CHECK(peer_next(&s));
	CHECK_EQ(s.dport, p->port);
	CHECK_EQ(s.ack, p->snd_nxt);
}

static void
expect_nothing(void)
{
	struct peer_seg s;

	t_sleep(100);	/* no delayed ACK, either */
	CHECK(!peer_next(&s));
}

TEST(a_burst_is_acknowledged_at_its_end)
{
	struct tx_batch batch;
	struct peer_conn c;
	struct peer_seg s;

	peer_conn_open(&c);
	tx_batch_begin(&batch);
	send_segments(&c.p, 7);
	CHECK(!peer_next(&s));
	tx_batch_end(&batch);
	expect_ack(&c.p);
	expect_nothing();
	/* the next segment does not belong to the burst */
	send_segments(&c.p, 2);
	expect_ack(&c.p);
	peer_conn_close(&c);
}

TEST(a_quarter_of_the_window_is_acknowledged_at_once)
{
	struct tx_batch batch;
	struct peer_conn c;
	struct peer_seg s;

	peer_conn_open(&c);
	tx_batch_begin(&batch);
	send_segments(&c.p, WINDOW / 4 / LEN);
	CHECK(!peer_next(&s));
	send_segments(&c.p, 1);
	expect_ack(&c.p);
	tx_batch_end(&batch);
	expect_nothing();
	peer_conn_close(&c);
}

TEST(data_of_ours_is_the_ack)
{
	struct tx_batch batch;
	struct peer_conn c;
	struct peer_seg s;

	peer_conn_open(&c);
	tx_batch_begin(&batch);
	send_segments(&c.p, 4);
	t_send(c.so, bytes, 10);
	CHECK(peer_next(&s));
	CHECK_EQ(s.len, 10);
	CHECK_EQ(s.ack, c.p.snd_nxt);
	tx_batch_end(&batch);
	CHECK(!peer_next(&s));
	peer_conn_close(&c);
}

/*
 * A sender with Nagle's algorithm waits for the ACK of each small write: only
 * the first one is delayed, until this end has something to say.
 */
TEST(a_delay_in_vain_is_not_repeated)
{
	struct peer_conn c;
	struct peer_seg s;

	peer_conn_open(&c);
	send_segments(&c.p, 1);
	CHECK(!peer_next(&s));
	peer_await(&s, 5000);
	CHECK_EQ(s.ack, c.p.snd_nxt);
	for (unsigned i = 0; i < 10; i++) {
		send_segments(&c.p, 1);
		expect_ack(&c.p);
	}
	t_send(c.so, "answer", 6);
	CHECK(peer_next(&s));
	CHECK_EQ(s.len, 6);
	c.p.rcv_nxt += 6;
	send_segments(&c.p, 1);
	CHECK(!peer_next(&s));
	peer_await(&s, 5000);
	CHECK_EQ(s.ack, c.p.snd_nxt);
	peer_conn_close(&c);
}

/*
 * When the ACKs that follow such a delay are used up, the reader acknowledges a
 * small segment as soon as it has emptied the buffer, unless data goes back.
 */
TEST(a_reader_acknowledges_small_segments)
{
	char buf[SHORT];
	struct peer_conn c;
	struct peer_seg s;

	peer_conn_open(&c);
	send_short(&c.p);
	t_recv(c.so, buf, SHORT);
	CHECK(!peer_next(&s));		/* an answer could take it along */
	peer_await(&s, 5000);
	for (unsigned i = 0; i < 1000; i++) {
		send_short(&c.p);
		t_recv(c.so, buf, SHORT);
		expect_ack(&c.p);
		CHECK(!peer_next(&s));
	}
	send_short(&c.p);
	CHECK(!peer_next(&s));
	t_recv(c.so, buf, SHORT / 2);	/* more is there to read */
	CHECK(!peer_next(&s));
	t_recv(c.so, buf, SHORT / 2);
	expect_ack(&c.p);
	t_send(c.so, "answer", 6);
	CHECK(peer_next(&s));
	c.p.rcv_nxt += 6;
	send_short(&c.p);
	t_recv(c.so, buf, SHORT);
	CHECK(!peer_next(&s));
	peer_conn_close(&c);
}

TEST(a_gap_is_told_at_once)
{
	struct tx_batch batch;
	struct peer_conn c;
	struct peer_seg s;

	peer_conn_open(&c);
	tx_batch_begin(&batch);
	send_segments(&c.p, 2);
	peer_send(&c.p, TH_ACK, c.p.snd_nxt + LEN, c.p.rcv_nxt, bytes, LEN);
	expect_ack(&c.p);
	tx_batch_end(&batch);
	CHECK(!peer_next(&s));
	peer_conn_close(&c);
}

TEST(a_connection_may_end_before_its_burst)
{
	struct tx_batch batch;
	struct peer_conn c;
	struct peer_seg s;

	peer_conn_open(&c);
	tx_batch_begin(&batch);
	send_segments(&c.p, 4);
	peer_conn_close(&c);
	tx_batch_end(&batch);
	CHECK(!peer_next(&s));
}

TEST(more_connections_than_a_burst_remembers)
{
	struct peer_conn c[TX_CALLS_MAX + 1];
	struct tx_batch batch;
	struct peer_seg s;

	for (size_t i = 0; i < nitems(c); i++)
		peer_conn_open(&c[i]);
	tx_batch_begin(&batch);
	for (size_t i = 0; i < TX_CALLS_MAX; i++)
		send_segments(&c[i].p, 2);
	CHECK(!peer_next(&s));
	send_segments(&c[TX_CALLS_MAX].p, 2);
	expect_ack(&c[TX_CALLS_MAX].p);
	tx_batch_end(&batch);
	for (size_t i = 0; i < TX_CALLS_MAX; i++)
		expect_ack(&c[i].p);
	for (size_t i = 0; i < nitems(c); i++)
		peer_conn_close(&c[i]);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
