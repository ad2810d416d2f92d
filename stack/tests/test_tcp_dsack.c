/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SACK blocks that the stack sends (RFC 2018, RFC 2883), and peers whose
 * blocks make no sense.
 */
#include "tests/check.h"

#include "tests/sacker.h"

/* The next segment has these blocks, in bytes of our stream. */
static void
expect_blocks(struct sacker *f, const uint32_t *wanted, unsigned n)
{
	struct tcpopts to;
	struct peer_seg s;

	CHECK(peer_next(&s));
	CHECK(tcp_opt_parse(s.options, s.optlen, false, &to));
	CHECK_EQ(to.nsack, n / 2);
	for (unsigned i = 0; i < n / 2; i++) {
		CHECK_EQ(to.sack[i].start - f->p.snd_nxt, wanted[2 * i]);
		CHECK_EQ(to.sack[i].end - f->p.snd_nxt, wanted[2 * i + 1]);
	}
}

#define	EXPECT_BLOCKS(f, ...) do {					\
	const uint32_t wanted[] = { __VA_ARGS__ };			\
	expect_blocks(f, wanted, nitems(wanted));			\
} while (0)

static void
send_piece(struct sacker *f, uint32_t from, uint32_t len)
{
	sacker_options(f, 0, NULL, 0);
	peer_send(&f->p, TH_ACK, f->p.snd_nxt + from, f->p.rcv_nxt,
	    sacker_bytes, len);
}

/* RFC 2883 section 4, its three kinds of examples. */
TEST(data_received_twice_is_reported_once)
{
	struct sacker f;

	sacker_up(&f, 0);
	send_piece(&f, 0, 100);
	peer_forget();
	send_piece(&f, 0, 100);
	EXPECT_BLOCKS(&f, 0, 100);
	send_piece(&f, 50, 100);	/* its first half is a duplicate */
	EXPECT_BLOCKS(&f, 50, 100);
	send_piece(&f, 300, 100);
	EXPECT_BLOCKS(&f, 300, 400);
	send_piece(&f, 400, 100);
	EXPECT_BLOCKS(&f, 300, 500);
	send_piece(&f, 350, 50);	/* a duplicate, out of order */
	EXPECT_BLOCKS(&f, 350, 400, 300, 500);
	send_piece(&f, 250, 100);
	EXPECT_BLOCKS(&f, 300, 350, 250, 500);
	send_piece(&f, 600, 100);
	EXPECT_BLOCKS(&f, 600, 700, 250, 500);
	sacker_down(&f);
}

/* RFC 2883 section 4: also if the segment that repeats it is in order. */
TEST(data_that_fill_a_gap_and_more_are_reported)
{
	struct sacker f;

	sacker_up(&f, 0);
	send_piece(&f, 100, 100);
	EXPECT_BLOCKS(&f, 100, 200);
	send_piece(&f, 0, 300);		/* covers the block */
	EXPECT_BLOCKS(&f, 100, 200);
	send_piece(&f, 400, 100);
	EXPECT_BLOCKS(&f, 400, 500);
	send_piece(&f, 600, 100);
	EXPECT_BLOCKS(&f, 600, 700, 400, 500);
	send_piece(&f, 300, 150);	/* half of it */
	EXPECT_BLOCKS(&f, 400, 450, 600, 700);
	send_piece(&f, 500, 300);
	EXPECT_BLOCKS(&f, 600, 700);
	sacker_down(&f);
}

/* RFC 2018 section 4: the most recent block first, then those before it. */
TEST(each_block_is_reported_several_times)
{
	struct sacker f;

	sacker_up(&f, 0);
	for (uint32_t at = 100; at <= 700; at += 200) {
		peer_forget();
		send_piece(&f, at, 100);
	}
	EXPECT_BLOCKS(&f, 700, 800, 500, 600, 300, 400, 100, 200);
	send_piece(&f, 900, 100);
	EXPECT_BLOCKS(&f, 900, 1000, 700, 800, 500, 600, 300, 400);
	send_piece(&f, 400, 50);	/* a block grows */
	EXPECT_BLOCKS(&f, 300, 450, 900, 1000, 700, 800, 500, 600);
	send_piece(&f, 800, 100);	/* two become one */
	EXPECT_BLOCKS(&f, 700, 1000, 300, 450, 500, 600, 100, 200);
	send_piece(&f, 0, 100);		/* the first is delivered */
	EXPECT_BLOCKS(&f, 700, 1000, 300, 450, 500, 600);
	sacker_down(&f);
	sacker_up(&f, WITH_TS);		/* leaves room for three */
	for (uint32_t at = 100; at <= 700; at += 200) {
		peer_forget();
		send_piece(&f, at, 100);
	}
	EXPECT_BLOCKS(&f, 700, 800, 500, 600, 300, 400);
	sacker_down(&f);
}

TEST(old_timestamp_does_not_hide_what_came_twice)
{
	struct sacker f;

	sacker_up(&f, WITH_TS);
	send_piece(&f, 0, 100);
	peer_forget();
	f.options[7] = 0;		/* TSval goes back */
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, sacker_bytes, 100);
	EXPECT_BLOCKS(&f, 0, 100);
	sacker_down(&f);
}

/* Checks the sums of the send map against its records. */
static void
check_books(const struct sacker *f)
{
	const struct tcpcb *tp = sacker_block(f);
	uint32_t sacked = 0, lost = 0, records = 0;
	tcp_seq at = tp->snd_una;
	const struct tcp_sent *r;

	TAILQ_FOREACH(r, &tp->t_sent, link) {
		CHECK_EQ(r->seq, at);
		at = r->end;
		sacked += r->state == SENT_SACKED ? r->end - r->seq : 0;
		lost += r->state == SENT_LOST ? r->end - r->seq : 0;
		records++;
	}
	CHECK_EQ(at, tp->snd_max);
	CHECK_EQ(tp->t_sackedbytes, sacked);
	CHECK_EQ(tp->t_lostbytes, lost);
	CHECK_EQ(tp->t_nsent, records);
	CHECK(tp->snd_cwnd > 0);
}

/* Sends random segments, valid or not. */
static void
babble(struct sacker *f, uint64_t seed, unsigned times)
{
	uint32_t sack[8], flight, n, r[12];
	size_t done;

	for (unsigned i = 0; i < times; i++) {
		t_stream_fill(seed, i * sizeof(r), (uint8_t *)r, sizeof(r));
		f->p.rcv_nxt = sacker_block(f)->snd_una;
		flight = sacker_block(f)->snd_max - sacker_block(f)->snd_una;
		n = r[0] % 4 == 0 ? 0 : 2 * (1 + r[1] % 4);
		for (unsigned k = 0; k < n; k += 2) {
			sack[k] = r[2 + k / 2] % (flight + MSS) - 100;
			sack[k + 1] = sack[k] + r[6] % (3 * MSS) * (k + 1) -
			    (r[7] % 10 == 0 ? MSS : 0);
		}
		sacker_options(f, r[8] % 2 ? 0 :
		    tcp_now_ts(sacker_block(f)), sack, n);
		peer_send(&f->p, TH_ACK | (r[9] & (TH_ECE | TH_CWR)),
		    f->p.snd_nxt, f->p.rcv_nxt + (r[10] % 3 == 0 ?
		    r[11] % (flight + 10) : 0), NULL, 0);
		check_books(f);
		peer_forget();
		(void)t_trysend(f->so, sacker_bytes, r[0] % (4 * MSS), MSG_DONTWAIT,
		    &done);
		if (r[1] % 16 == 0)
			t_sleep(r[2] % 600);
	}
}

TEST(books_balance_whatever_the_peer_says)
{
	static const unsigned hows[] = { 0, WITH_TS, NO_SACK };
	struct sacker f;

	for (unsigned i = 0; i < 9; i++) {
		sacker_up(&f, hows[i % 3]);
		babble(&f, i, 2000);
		/*
		 * when the peer sends valid blocks again, all data is
		 * transferred
		 */
		for (unsigned k = 0; f.so->so_snd.sb_cc > 0; k++) {
			CHECK(k < 10000);
			f.p.rcv_nxt = sacker_block(&f)->snd_max;
			sacker_ack(&f, 0);
			t_sleep(1);
		}
		check_books(&f);
		CHECK_EQ(sacker_block(&f)->t_nsent, 0);
		CHECK_EQ(sacker_block(&f)->t_state, TCPS_ESTABLISHED);
		sacker_down(&f);
	}
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
