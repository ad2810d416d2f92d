/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss recovery: which segments are retransmitted, when, and the window (RFC
 * 8985 RACK-TLP, RFC 6937, RFC 3042, RFC 6582).
 */
#include "tests/check.h"

#include "tests/sacker.h"

TEST(holes_are_filled_at_once)
{
	struct sacker f;

	sacker_up(&f, 0);
	sacker_send(&f, 8);
	SACK(&f, 0, 1 * MSS, 2 * MSS);
	EXPECT(&f, NEVER);
	SACK(&f, 0, 3 * MSS, 6 * MSS, 1 * MSS, 2 * MSS);
	/* three segments were SACKed: no reordering window */
	EXPECT(&f, 0, 2);
	sacker_ack(&f, 8 * MSS);
	EXPECT(&f, NEVER);
	sacker_no_timeout(&f);
	sacker_down(&f);
}

TEST(lost_retransmission_is_found_without_a_timeout)
{
	struct sacker f;
	struct peer_seg s;

	sacker_up(&f, 0);
	sacker_send(&f, SEGS);	/* the window allows ten segments */
	SACK(&f, 0, 1 * MSS, 5 * MSS);
	EXPECT(&f, 0, 10);
	/* what was sent after the retransmission arrives */
	SACK(&f, 0, 1 * MSS, 11 * MSS);
	CHECK_EQ(sacker_block(&f)->t_recovery, TR_FAST);
	CHECK(peer_next(&s));
	CHECK_EQ(s.seq, f.p.rcv_nxt);
	sacker_no_timeout(&f);
	sacker_down(&f);
}

TEST(lost_tail_is_probed)
{
	struct sacker f;
	struct peer_seg s;
	uint64_t probes = t_sysctl("net.inet.tcp.stats.tlpprobe");

	sacker_up(&f, 0);
	sacker_send(&f, 4);
	sacker_expect_later(&f, 3, &s);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.tlpprobe"), probes + 1);
	sacker_no_timeout(&f);
	/* otherwise it was not the probe's ACK */
	t_sleep(RTT + RTT / 4);
	SACK(&f, 2 * MSS, 3 * MSS, 4 * MSS);
	sacker_expect_later(&f, 2, &s);	/* when it cannot be reordering */
	sacker_ack(&f, 4 * MSS);
	sacker_no_timeout(&f);
	sacker_down(&f);
}

TEST(probe_takes_the_place_of_an_early_timeout)
{
	struct sacker f;
	struct peer_seg s;
	nsec_t start;

	sacker_up(&f, 0);
	so_resume(f.so);
	sacker_block(&f)->t_srtt = 2 * RTT * NSEC_PER_MSEC;
	sacker_block(&f)->t_rttvar = 0;
	tcp_setrto(sacker_block(&f));		/* 600 ms, the probe's is 800 */
	so_pause(f.so);
	sacker_send(&f, 4);
	start = mach_uptime();
	sacker_expect_later(&f, 3, &s);
	CHECK(mach_uptime() - start < 700 * NSEC_PER_MSEC);
	sacker_no_timeout(&f);
	sacker_expect_later(&f, 0, &s);	/* then the timeout */
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.rexmttimeo"), f.timeouts + 1);
	sacker_down(&f);
}

TEST(probe_that_repairs_the_loss_reduces_the_window)
{
	struct sacker f;
	struct peer_seg s;
	uint32_t before;

	sacker_up(&f, 0);
	sacker_send(&f, 4);
	before = sacker_cwnd(&f);
	sacker_expect_later(&f, 3, &s);
	sacker_ack(&f, 4 * MSS);	/* no DSACK: the probe filled the hole */
	t_send(f.so, sacker_bytes, MSS);
	sacker_ack(&f, 5 * MSS);
	CHECK(sacker_cwnd(&f) < before);
	sacker_down(&f);
}

TEST(needless_probe_does_not)
{
	struct sacker f;
	struct peer_seg s;
	uint32_t before;

	sacker_up(&f, 0);
	sacker_send(&f, 4);
	before = sacker_cwnd(&f);
	sacker_expect_later(&f, 3, &s);
	sacker_ack(&f, 4 * MSS);
	SACK(&f, 4 * MSS, 3 * MSS, 4 * MSS);	/* had it twice */
	t_send(f.so, sacker_bytes, MSS);
	sacker_ack(&f, 5 * MSS);
	CHECK(sacker_cwnd(&f) >= before);
	sacker_down(&f);
}

TEST(probe_is_new_data_if_there_is_some)
{
	struct sacker f;
	struct peer_seg s;

	sacker_up(&f, 0);
	sacker_send(&f, SEGS);
	sacker_expect_later(&f, sacker_cwnd(&f) / MSS, &s);
	CHECK_EQ(s.len, MSS);
	sacker_no_timeout(&f);
	sacker_down(&f);
}

TEST(reordering_is_not_loss)
{
	struct sacker f;

	sacker_up(&f, 0);
	sacker_send(&f, 4);
	t_sleep(RTT);
	SACK(&f, 0, 1 * MSS, 2 * MSS);
	t_sleep(RTT / 8);
	EXPECT(&f, NEVER);
	sacker_ack(&f, 2 * MSS);
	CHECK(sacker_block(&f)->t_rack.reordered);
	SACK(&f, 2 * MSS, 3 * MSS, 4 * MSS);
	sacker_ack(&f, 4 * MSS);
	t_sleep(RTT);
	EXPECT(&f, NEVER);
	sacker_down(&f);
}

TEST(ack_that_tells_of_much_is_not_reordering)
{
	struct sacker f;

	sacker_up(&f, 0);
	sacker_send(&f, 10);
	SACK(&f, 2 * MSS, 7 * MSS, 9 * MSS, 4 * MSS, 6 * MSS);
	CHECK(!sacker_block(&f)->t_rack.reordered);
	EXPECT(&f, 2, 3, 6);	/* at once */
	sacker_ack(&f, 10 * MSS);
	sacker_down(&f);
}

/*
 * RFC 8985 section 6.2 step 4: after reordering, loss is detected by time, not
 * by three segments.
 */
TEST(after_reordering_a_window_is_waited)
{
	struct sacker f;
	struct peer_seg s;
	nsec_t start;

	sacker_up(&f, 0);
	sacker_send(&f, 8);
	so_resume(f.so);
	sacker_block(&f)->t_rack.reordered = true;
	so_pause(f.so);
	t_sleep(RTT);
	start = mach_uptime();
	SACK(&f, 0, 1 * MSS, 6 * MSS);
	sacker_expect_later(&f, 0, &s);
	CHECK(mach_uptime() - start >= RTT / 5 * NSEC_PER_MSEC);
	sacker_no_timeout(&f);
	sacker_down(&f);
}

TEST(dsack_widens_the_window_of_reordering)
{
	struct sacker f;
	uint64_t before = t_sysctl("net.inet.tcp.stats.rcvdsack");

	sacker_up(&f, 0);
	sacker_send(&f, 8);
	/* sent only once, so a duplicate is impossible */
	SACK(&f, 0, 1 * MSS, 2 * MSS, 1 * MSS, 5 * MSS);
	EXPECT(&f, 0);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.rcvdsack"), before);
	SACK(&f, 5 * MSS, 0, MSS);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.rcvdsack"), before + 1);
	CHECK_EQ(sacker_block(&f)->t_rack.mult, 2);
	sacker_down(&f);
}

TEST(rate_is_reduced_in_proportion)
{
	struct sacker f;
	uint32_t flight, thresh, pipe;

	sacker_up(&f, 0);
	sacker_send(&f, SEGS);
	flight = sacker_block(&f)->snd_max - f.p.rcv_nxt;
	for (uint32_t n = 2; n * MSS <= flight; n++)
		SACK(&f, 0, MSS, n * MSS);
	/* before recovery begins two segments may go out (RFC 3042) */
	thresh = sacker_block(&f)->snd_ssthresh;
	CHECK(thresh >= flight * 7 / 10);
	CHECK(thresh <= (flight + 2 * MSS) * 7 / 10);
	pipe = tcp_pipe(sacker_block(&f));
	CHECK(pipe <= thresh + MSS);
	CHECK(pipe + 2 * MSS >= thresh);
	sacker_ack(&f, sacker_block(&f)->snd_max - f.p.rcv_nxt);
	CHECK_EQ(sacker_block(&f)->t_recovery, TR_OPEN);
	CHECK_EQ(sacker_cwnd(&f), thresh);
	sacker_no_timeout(&f);
	sacker_down(&f);
}

TEST(peer_that_reneges_gets_everything_again)
{
	struct sacker f;
	struct peer_seg s;

	sacker_up(&f, 0);
	sacker_send(&f, 3);
	/* the block reports the ACK number itself */
	SACK(&f, 0, 0, 2 * MSS);
	sacker_await_timeout(&f, &s);
	sacker_ack(&f, MSS);
	CHECK(peer_next(&s));
	CHECK_EQ(s.seq, f.p.rcv_nxt + MSS);
	sacker_down(&f);
}

TEST(reports_of_single_bytes_do_not_fill_the_memory)
{
	struct sacker f;

	sacker_up(&f, 0);
	sacker_send(&f, 8);
	for (uint32_t at = 1; at + 8 < 7 * MSS; at += 8)
		SACK(&f, 0, at, at + 1, at + 2, at + 3, at + 4, at + 5,
		    at + 6, at + 7);
	CHECK(sacker_block(&f)->t_nsent <= 200);
	peer_forget();
	sacker_ack(&f, 8 * MSS);
	CHECK_EQ(sacker_block(&f)->t_nsent, 0);
	sacker_down(&f);
}

TEST(first_duplicates_let_out_new_data)
{
	struct sacker f;
	uint32_t n;

	sacker_up(&f, NO_SACK);
	sacker_send(&f, SEGS);
	n = (sacker_block(&f)->snd_max - f.p.rcv_nxt) / MSS;
	sacker_ack(&f, 0);
	EXPECT(&f, n);
	sacker_ack(&f, 0);
	EXPECT(&f, n + 1);
	sacker_ack(&f, 0);
	EXPECT(&f, 0);
	sacker_down(&f);
}

TEST(partial_ack_without_sack_fills_the_next_hole)
{
	struct sacker f;
	struct peer_seg s;

	sacker_up(&f, NO_SACK);
	sacker_send(&f, 8);
	for (int i = 0; i < 3; i++)
		sacker_ack(&f, 0);
	EXPECT(&f, 0);
	sacker_ack(&f, 3 * MSS);
	EXPECT(&f, 3);
	sacker_ack(&f, 8 * MSS);
	CHECK_EQ(sacker_block(&f)->t_recovery, TR_OPEN);
	CHECK(!peer_next(&s));
	sacker_no_timeout(&f);
	sacker_down(&f);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
