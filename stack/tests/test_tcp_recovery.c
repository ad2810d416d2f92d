/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss recovery: what is sent again, when, and what becomes of the window
 * (RFC 8985 RACK-TLP, RFC 6937, RFC 3042, RFC 6582, RFC 5682, RFC 3522).
 *
 * Time is virtual: it passes only where a test waits.  The peer takes RTT
 * milliseconds for the handshake and for a first segment.
 */
#include "tests/check.h"

#include "machine/virtual/virtual.h"
#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	PORT	8082
#define	MSS	1000		/* what the peer offers */
#define	RTT	200		/* ms */
#define	SEGS	40
#define	NEVER	UINT32_MAX	/* EXPECT(): no segment */

#define	NO_SACK	0x1
#define	WITH_TS	0x2

static uint8_t bytes[SEGS * MSS];

struct fixture {
	struct socket	*head, *so;
	struct peer	 p;
	bool		 ts;
	uint32_t	 seg;		/* bytes of a full segment */
	uint8_t		 options[40];
	uint64_t	 timeouts, undone;
};

static struct tcpcb *
block(const struct fixture *f)
{
	return (sototcpcb(f->so));
}

static uint32_t
cwnd(const struct fixture *f)
{
	uint32_t n;

	mtx_lock(&f->so->so_lock);
	n = block(f)->snd_cwnd;
	mtx_unlock(&f->so->so_lock);
	return (n);
}

static uint8_t *
put32(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, 4);
	return (p + 4);
}

/* The options of the next segment; blocks of segments, as first and last. */
static void
options(struct fixture *f, uint32_t tsecr, const uint32_t *sack, unsigned n)
{
	uint8_t *p = f->options;

	if (f->ts) {
		memcpy(p, "\1\1\10\12", 4);
		p = put32(put32(p + 4, 1), tsecr);
	}
	if (n > 0) {
		memcpy(p, "\1\1\5", 3);
		p[3] = (uint8_t)(2 + 4 * n);
		p += 4;
		for (unsigned i = 0; i < n; i++)
			p = put32(p, f->p.rcv_nxt + sack[i]);
	}
	f->p.options = f->options;
	f->p.optlen = (unsigned)(p - f->options);
}

/* An ACK of upto bytes, reporting [sack[0], sack[1]) ... */
static void
ack_sack(struct fixture *f, uint32_t upto, const uint32_t *sack, unsigned n)
{
	options(f, 0, sack, n);
	peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt + upto, NULL, 0);
}

#define	SACK(f, upto, ...) do {						\
	const uint32_t blocks[] = { __VA_ARGS__ };			\
	ack_sack(f, upto, blocks, nitems(blocks));			\
} while (0)

static void
ack(struct fixture *f, uint32_t upto)
{
	ack_sack(f, upto, NULL, 0);
}

/* The same, echoing a timestamp. */
static void
ack_ts(struct fixture *f, uint32_t upto, uint32_t tsecr)
{
	options(f, tsecr, NULL, 0);
	peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt + upto, NULL, 0);
}

static uint32_t
tsval(const struct peer_seg *s)
{
	struct tcpopts to;

	CHECK(tcp_opt_parse(s->options, s->optlen, false, &to));
	CHECK(to.has_ts);
	return (to.tsval);
}

static void
handshake(struct fixture *f, unsigned how)
{
	static const uint8_t offers[] = { 2, 4, MSS >> 8, MSS & 0xff,
	    4, 2, 1, 1, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0 };
	static uint16_t port = 45000;
	struct peer_seg s;

	port++;
	f->p = (struct peer){ .port = port, .stack_port = PORT,
	    .snd_nxt = 7000, .window = 60000, .options = offers,
	    .optlen = how & NO_SACK ? 4 : how & WITH_TS ? 20 : 8 };
	peer_forget();
	peer_send(&f->p, TH_SYN, f->p.snd_nxt++, 0, NULL, 0);
	peer_await(&s, 1000);
	f->p.rcv_nxt = s.seq + 1;
	f->ts = (how & WITH_TS) != 0;
	f->seg = f->ts ? MSS - TCP_TS_LEN : MSS;
	t_sleep(RTT);
	if (f->ts)
		ack_ts(f, 0, tsval(&s));
	else
		ack(f, 0);
}

/* A connection with one segment acknowledged after RTT. */
static void
set_up(struct fixture *f, unsigned how)
{
	struct peer_seg s;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	memset(f, 0, sizeof(*f));
	f->head = t_listen(PEER_STACK_IP, PORT, 5);
	handshake(f, how);
	f->so = t_accept(f->head);
	t_send(f->so, bytes, f->seg);
	peer_await(&s, 1000);
	t_sleep(RTT);
	if (f->ts)
		ack_ts(f, f->seg, tsval(&s));
	else
		ack(f, f->seg);
	f->p.rcv_nxt += f->seg;
	peer_forget();
	f->timeouts = t_sysctl("net.inet.tcp.stats.rexmttimeo");
	f->undone = t_sysctl("net.inet.tcp.stats.undone");
}

static void
take_down(struct fixture *f)
{
	f->p.optlen = 0;
	peer_send(&f->p, TH_RST | TH_ACK, f->p.snd_nxt, 0, NULL, 0);
	soclose(f->so);
	soclose(f->head);
	peer_forget();
}

static void
check_no_timeout(const struct fixture *f)
{
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.rexmttimeo"), f->timeouts);
}

/* Takes segment numbers of what was sent until now, NEVER at the end. */
static void
expect(struct fixture *f, const uint32_t *wanted)
{
	struct peer_seg s;

	for (; *wanted != NEVER; wanted++) {
		CHECK(peer_next(&s));
		for (uint32_t off = 0; off < s.len; off += f->seg) {
			CHECK_EQ((s.seq - f->p.rcv_nxt + off) / f->seg,
			    *wanted);
			if (off + f->seg < s.len)
				wanted++;
		}
	}
	if (peer_next(&s)) {
		fprintf(stderr, "sent besides: %u bytes from %u\n", s.len,
		    s.seq - f->p.rcv_nxt);
		abort();
	}
}

#define	EXPECT(f, ...) do {						\
	const uint32_t wanted[] = { __VA_ARGS__, NEVER };		\
	expect(f, wanted);						\
} while (0)

/* The next segment, whenever it comes, begins with this one. */
static void
expect_later(struct fixture *f, uint32_t wanted, struct peer_seg *s)
{
	peer_await(s, 10000);
	CHECK_EQ((s->seq - f->p.rcv_nxt) / f->seg, wanted);
}

/* Segments 0 to n - 1 are in flight. */
static void
send_segments(struct fixture *f, uint32_t n)
{
	t_send(f->so, bytes, n * f->seg);
	peer_forget();
}

TEST(holes_are_filled_at_once)
{
	struct fixture f;

	set_up(&f, 0);
	send_segments(&f, 8);
	SACK(&f, 0, 1 * MSS, 2 * MSS);
	EXPECT(&f, NEVER);
	SACK(&f, 0, 3 * MSS, 6 * MSS, 1 * MSS, 2 * MSS);
	EXPECT(&f, 0, 2);	/* three are reported: no window needed */
	ack(&f, 8 * MSS);
	EXPECT(&f, NEVER);
	check_no_timeout(&f);
	take_down(&f);
}

TEST(lost_retransmission_is_found_without_a_timeout)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f, 0);
	send_segments(&f, SEGS);	/* the window lets out ten */
	SACK(&f, 0, 1 * MSS, 5 * MSS);
	EXPECT(&f, 0, 10);
	/* what was sent after the retransmission arrives */
	SACK(&f, 0, 1 * MSS, 11 * MSS);
	CHECK_EQ(block(&f)->t_recovery, TR_FAST);
	CHECK(peer_next(&s));
	CHECK_EQ(s.seq, f.p.rcv_nxt);
	check_no_timeout(&f);
	take_down(&f);
}

TEST(lost_tail_is_probed)
{
	struct fixture f;
	struct peer_seg s;
	uint64_t probes = t_sysctl("net.inet.tcp.stats.tlpprobe");

	set_up(&f, 0);
	send_segments(&f, 4);
	expect_later(&f, 3, &s);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.tlpprobe"), probes + 1);
	check_no_timeout(&f);
	t_sleep(RTT + RTT / 4);		/* or it was not the probe's */
	SACK(&f, 2 * MSS, 3 * MSS, 4 * MSS);
	expect_later(&f, 2, &s);	/* when it cannot be reordering */
	ack(&f, 4 * MSS);
	check_no_timeout(&f);
	take_down(&f);
}

TEST(probe_takes_the_place_of_an_early_timeout)
{
	struct fixture f;
	struct peer_seg s;
	nsec_t start;

	set_up(&f, 0);
	mtx_lock(&f.so->so_lock);
	block(&f)->t_srtt = 2 * RTT * NSEC_PER_MSEC;
	block(&f)->t_rttvar = 0;
	tcp_setrto(block(&f));		/* 600 ms, the probe's is 800 */
	mtx_unlock(&f.so->so_lock);
	send_segments(&f, 4);
	start = mach_uptime();
	expect_later(&f, 3, &s);
	CHECK(mach_uptime() - start < 700 * NSEC_PER_MSEC);
	check_no_timeout(&f);
	expect_later(&f, 0, &s);	/* then the timeout */
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.rexmttimeo"), f.timeouts + 1);
	take_down(&f);
}

TEST(probe_that_repairs_the_loss_reduces_the_window)
{
	struct fixture f;
	struct peer_seg s;
	uint32_t before;

	set_up(&f, 0);
	send_segments(&f, 4);
	before = cwnd(&f);
	expect_later(&f, 3, &s);
	ack(&f, 4 * MSS);	/* no DSACK: the probe filled the hole */
	t_send(f.so, bytes, MSS);
	ack(&f, 5 * MSS);
	CHECK(cwnd(&f) < before);
	take_down(&f);
}

TEST(needless_probe_does_not)
{
	struct fixture f;
	struct peer_seg s;
	uint32_t before;

	set_up(&f, 0);
	send_segments(&f, 4);
	before = cwnd(&f);
	expect_later(&f, 3, &s);
	ack(&f, 4 * MSS);
	SACK(&f, 4 * MSS, 3 * MSS, 4 * MSS);	/* had it twice */
	t_send(f.so, bytes, MSS);
	ack(&f, 5 * MSS);
	CHECK(cwnd(&f) >= before);
	take_down(&f);
}

TEST(probe_is_new_data_if_there_is_some)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f, 0);
	send_segments(&f, SEGS);
	expect_later(&f, cwnd(&f) / MSS, &s);
	CHECK_EQ(s.len, MSS);
	check_no_timeout(&f);
	take_down(&f);
}

TEST(reordering_is_not_loss)
{
	struct fixture f;

	set_up(&f, 0);
	send_segments(&f, 4);
	t_sleep(RTT);
	SACK(&f, 0, 1 * MSS, 2 * MSS);
	t_sleep(RTT / 8);
	EXPECT(&f, NEVER);
	ack(&f, 2 * MSS);
	CHECK(block(&f)->t_rack.reordered);
	SACK(&f, 2 * MSS, 3 * MSS, 4 * MSS);
	ack(&f, 4 * MSS);
	t_sleep(RTT);
	EXPECT(&f, NEVER);
	take_down(&f);
}

TEST(ack_that_tells_of_much_is_not_reordering)
{
	struct fixture f;

	set_up(&f, 0);
	send_segments(&f, 10);
	SACK(&f, 2 * MSS, 7 * MSS, 9 * MSS, 4 * MSS, 6 * MSS);
	CHECK(!block(&f)->t_rack.reordered);
	EXPECT(&f, 2, 3, 6);	/* at once */
	ack(&f, 10 * MSS);
	take_down(&f);
}

/* RFC 8985 section 6.2 step 4: it takes time now, not three segments. */
TEST(after_reordering_a_window_is_waited)
{
	struct fixture f;
	struct peer_seg s;
	nsec_t start;

	set_up(&f, 0);
	send_segments(&f, 8);
	mtx_lock(&f.so->so_lock);
	block(&f)->t_rack.reordered = true;
	mtx_unlock(&f.so->so_lock);
	t_sleep(RTT);
	start = mach_uptime();
	SACK(&f, 0, 1 * MSS, 6 * MSS);
	expect_later(&f, 0, &s);
	CHECK(mach_uptime() - start >= RTT / 5 * NSEC_PER_MSEC);
	check_no_timeout(&f);
	take_down(&f);
}

TEST(dsack_widens_the_window_of_reordering)
{
	struct fixture f;
	uint64_t before = t_sysctl("net.inet.tcp.stats.rcvdsack");

	set_up(&f, 0);
	send_segments(&f, 8);
	/* sent only once: received twice it cannot be */
	SACK(&f, 0, 1 * MSS, 2 * MSS, 1 * MSS, 5 * MSS);
	EXPECT(&f, 0);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.rcvdsack"), before);
	SACK(&f, 5 * MSS, 0, MSS);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.rcvdsack"), before + 1);
	CHECK_EQ(block(&f)->t_rack.mult, 2);
	take_down(&f);
}

TEST(dsack_of_all_that_was_sent_again_undoes)
{
	struct fixture f;
	uint32_t before;

	set_up(&f, 0);
	send_segments(&f, 8);
	before = cwnd(&f);
	SACK(&f, 0, 1 * MSS, 5 * MSS);
	EXPECT(&f, 0);
	SACK(&f, 6 * MSS, 0, MSS);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone + 1);
	CHECK_EQ(block(&f)->t_recovery, TR_OPEN);
	CHECK(cwnd(&f) >= before);
	EXPECT(&f, NEVER);
	take_down(&f);
}

/* As send_segments(); the timestamp of the first. */
static uint32_t
send_stamped(struct fixture *f, uint32_t n)
{
	struct peer_seg s;

	t_send(f->so, bytes, n * f->seg);
	CHECK(peer_next(&s));
	peer_forget();
	return (tsval(&s));
}

TEST(echoed_timestamp_undoes_a_fast_retransmission)
{
	struct fixture f;
	uint32_t first, before;

	set_up(&f, WITH_TS);
	first = send_stamped(&f, 8);
	before = cwnd(&f);
	t_sleep(5);		/* the timestamps' clock ticks */
	SACK(&f, 0, 1 * f.seg, 5 * f.seg);
	EXPECT(&f, 0);
	ack_ts(&f, 5 * f.seg, first);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone + 1);
	CHECK(cwnd(&f) >= before);
	take_down(&f);
}

/* Sends until the retransmission timer has fired. */
static void
await_timeout(struct fixture *f, struct peer_seg *s)
{
	do {
		peer_await(s, 10000);
	} while (t_sysctl("net.inet.tcp.stats.rexmttimeo") == f->timeouts);
	CHECK_EQ(s->seq, f->p.rcv_nxt);
	CHECK_EQ(s->len, f->seg);
}

TEST(echoed_timestamp_undoes_a_timeout)
{
	struct fixture f;
	struct peer_seg s;
	uint32_t first, before;

	set_up(&f, WITH_TS);
	first = send_stamped(&f, 8);
	before = cwnd(&f);
	await_timeout(&f, &s);
	CHECK(cwnd(&f) <= 2 * f.seg);
	ack_ts(&f, 2 * f.seg, first);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone + 1);
	CHECK(cwnd(&f) >= before);
	EXPECT(&f, NEVER);	/* the other ACKs will come */
	take_down(&f);
}

TEST(timestamp_of_the_retransmission_does_not)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f, WITH_TS);
	send_segments(&f, 8);
	await_timeout(&f, &s);
	ack_ts(&f, f.seg, tsval(&s));
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone);
	CHECK(cwnd(&f) <= 2 * f.seg);
	CHECK(peer_next(&s));	/* the rest, by slow start */
	CHECK_EQ(s.seq, f.p.rcv_nxt + f.seg);
	take_down(&f);
}

/* RFC 5682: news of what was not sent again. */
TEST(timeout_is_undone_without_timestamps)
{
	struct fixture f;
	struct peer_seg s;
	uint32_t before, top;

	set_up(&f, 0);
	send_segments(&f, SEGS);
	before = cwnd(&f);
	await_timeout(&f, &s);
	peer_forget();
	top = block(&f)->snd_max;
	ack(&f, MSS);
	CHECK(peer_next(&s));	/* new data is tried */
	CHECK_EQ(s.seq, top);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone);
	ack(&f, 3 * MSS);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone + 1);
	CHECK(cwnd(&f) >= before);
	take_down(&f);
}

TEST(timeout_of_a_real_loss_stays)
{
	struct fixture f;
	struct peer_seg s;
	uint32_t top;

	set_up(&f, 0);
	send_segments(&f, SEGS);
	await_timeout(&f, &s);
	peer_forget();
	top = block(&f)->snd_max - f.p.rcv_nxt;
	ack(&f, MSS);
	peer_forget();
	SACK(&f, MSS, top, top + MSS);	/* the new data, not the old */
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone);
	CHECK(peer_next(&s));
	CHECK_EQ(s.seq, f.p.rcv_nxt + MSS);
	take_down(&f);
}

TEST(rate_is_reduced_in_proportion)
{
	struct fixture f;
	uint32_t flight, thresh, pipe;

	set_up(&f, 0);
	send_segments(&f, SEGS);
	flight = block(&f)->snd_max - f.p.rcv_nxt;
	for (uint32_t n = 2; n * MSS <= flight; n++)
		SACK(&f, 0, MSS, n * MSS);
	/* before recovery begins two segments may go out (RFC 3042) */
	thresh = block(&f)->snd_ssthresh;
	CHECK(thresh >= flight * 7 / 10);
	CHECK(thresh <= (flight + 2 * MSS) * 7 / 10);
	pipe = tcp_pipe(block(&f));
	CHECK(pipe <= thresh + MSS);
	CHECK(pipe + 2 * MSS >= thresh);
	ack(&f, block(&f)->snd_max - f.p.rcv_nxt);
	CHECK_EQ(block(&f)->t_recovery, TR_OPEN);
	CHECK_EQ(cwnd(&f), thresh);
	check_no_timeout(&f);
	take_down(&f);
}

TEST(peer_that_reneges_gets_everything_again)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f, 0);
	send_segments(&f, 3);
	SACK(&f, 0, 0, 2 * MSS);	/* it reports its own left edge */
	await_timeout(&f, &s);
	ack(&f, MSS);
	CHECK(peer_next(&s));
	CHECK_EQ(s.seq, f.p.rcv_nxt + MSS);
	take_down(&f);
}

TEST(reports_of_single_bytes_do_not_fill_the_memory)
{
	struct fixture f;

	set_up(&f, 0);
	send_segments(&f, 8);
	for (uint32_t at = 1; at + 8 < 7 * MSS; at += 8)
		SACK(&f, 0, at, at + 1, at + 2, at + 3, at + 4, at + 5,
		    at + 6, at + 7);
	CHECK(block(&f)->t_nsent <= 200);
	peer_forget();
	ack(&f, 8 * MSS);
	CHECK_EQ(block(&f)->t_nsent, 0);
	take_down(&f);
}

TEST(first_duplicates_let_out_new_data)
{
	struct fixture f;
	uint32_t n;

	set_up(&f, NO_SACK);
	send_segments(&f, SEGS);
	n = (block(&f)->snd_max - f.p.rcv_nxt) / MSS;
	ack(&f, 0);
	EXPECT(&f, n);
	ack(&f, 0);
	EXPECT(&f, n + 1);
	ack(&f, 0);
	EXPECT(&f, 0);
	take_down(&f);
}

TEST(partial_ack_without_sack_fills_the_next_hole)
{
	struct fixture f;
	struct peer_seg s;

	set_up(&f, NO_SACK);
	send_segments(&f, 8);
	for (int i = 0; i < 3; i++)
		ack(&f, 0);
	EXPECT(&f, 0);
	ack(&f, 3 * MSS);
	EXPECT(&f, 3);
	ack(&f, 8 * MSS);
	CHECK_EQ(block(&f)->t_recovery, TR_OPEN);
	CHECK(!peer_next(&s));
	check_no_timeout(&f);
	take_down(&f);
}

/* The next segment has these blocks, in bytes of our stream. */
static void
expect_blocks(struct fixture *f, const uint32_t *wanted, unsigned n)
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
send_piece(struct fixture *f, uint32_t from, uint32_t len)
{
	options(f, 0, NULL, 0);
	peer_send(&f->p, TH_ACK, f->p.snd_nxt + from, f->p.rcv_nxt, bytes,
	    len);
}

/* RFC 2883 section 4, its three kinds of examples. */
TEST(data_received_twice_is_reported_once)
{
	struct fixture f;

	set_up(&f, 0);
	send_piece(&f, 0, 100);
	peer_forget();
	send_piece(&f, 0, 100);
	EXPECT_BLOCKS(&f, 0, 100);
	send_piece(&f, 50, 100);	/* half of it is news */
	EXPECT_BLOCKS(&f, 50, 100);
	send_piece(&f, 300, 100);
	EXPECT_BLOCKS(&f, 300, 400);
	send_piece(&f, 400, 100);
	EXPECT_BLOCKS(&f, 300, 500);
	send_piece(&f, 350, 50);	/* twice, and out of order */
	EXPECT_BLOCKS(&f, 350, 400, 300, 500);
	send_piece(&f, 250, 100);
	EXPECT_BLOCKS(&f, 300, 350, 250, 500);
	send_piece(&f, 600, 100);
	EXPECT_BLOCKS(&f, 600, 700, 250, 500);
	take_down(&f);
}

TEST(old_timestamp_does_not_hide_what_came_twice)
{
	struct fixture f;

	set_up(&f, WITH_TS);
	send_piece(&f, 0, 100);
	peer_forget();
	f.options[7] = 0;		/* TSval goes back */
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, bytes, 100);
	EXPECT_BLOCKS(&f, 0, 100);
	take_down(&f);
}

/* The sums of the send map are those of its records. */
static void
check_books(const struct fixture *f)
{
	const struct tcpcb *tp = block(f);
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

/* A peer that says whatever comes to its mind, within the protocol or not. */
static void
babble(struct fixture *f, uint64_t seed, unsigned times)
{
	uint32_t sack[8], flight, n, r[12];
	size_t done;

	for (unsigned i = 0; i < times; i++) {
		t_stream_fill(seed, i * sizeof(r), (uint8_t *)r, sizeof(r));
		f->p.rcv_nxt = block(f)->snd_una;
		flight = block(f)->snd_max - block(f)->snd_una;
		n = r[0] % 4 == 0 ? 0 : 2 * (1 + r[1] % 4);
		for (unsigned k = 0; k < n; k += 2) {
			sack[k] = r[2 + k / 2] % (flight + MSS) - 100;
			sack[k + 1] = sack[k] + r[6] % (3 * MSS) * (k + 1) -
			    (r[7] % 10 == 0 ? MSS : 0);
		}
		options(f, r[8] % 2 ? 0 : tcp_now_ts(block(f)), sack, n);
		peer_send(&f->p, TH_ACK | (r[9] & (TH_ECE | TH_CWR)),
		    f->p.snd_nxt, f->p.rcv_nxt + (r[10] % 3 == 0 ?
		    r[11] % (flight + 10) : 0), NULL, 0);
		check_books(f);
		peer_forget();
		(void)t_trysend(f->so, bytes, r[0] % (4 * MSS), MSG_DONTWAIT,
		    &done);
		if (r[1] % 16 == 0)
			t_sleep(r[2] % 600);
	}
}

TEST(books_balance_whatever_the_peer_says)
{
	static const unsigned hows[] = { 0, WITH_TS, NO_SACK };
	struct fixture f;

	for (unsigned i = 0; i < 9; i++) {
		set_up(&f, hows[i % 3]);
		babble(&f, i, 2000);
		/* and when it comes to its senses all data flows */
		for (unsigned k = 0; f.so->so_snd.sb_cc > 0; k++) {
			CHECK(k < 10000);
			f.p.rcv_nxt = block(&f)->snd_max;
			ack(&f, 0);
			t_sleep(1);
		}
		check_books(&f);
		CHECK_EQ(block(&f)->t_nsent, 0);
		CHECK_EQ(block(&f)->t_state, TCPS_ESTABLISHED);
		take_down(&f);
	}
}

int
main(int argc, char **argv)
{
	mach_virtual_enter(true);
	CHECK_EQ(stack_boot(NULL), 0);
	peer_attach();
	return (check_main(argc, argv));
}
