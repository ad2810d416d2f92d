/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spurious reductions of the window are undone: detected by DSACK (RFC 3708),
 * timestamps (Eifel, RFC 3522) or F-RTO (RFC 5682).
 */
#include "tests/check.h"

#include "tests/sacker.h"

TEST(dsack_of_all_that_was_sent_again_undoes)
{
	struct sacker f;
	uint32_t before;

	sacker_up(&f, 0);
	sacker_send(&f, 8);
	before = sacker_cwnd(&f);
	/* otherwise the ACK of segment 0 could be of its retransmission */
	t_sleep(RTT);
	SACK(&f, 0, 1 * MSS, 5 * MSS);
	EXPECT(&f, 0);
	SACK(&f, 6 * MSS, 0, MSS);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone + 1);
	CHECK_EQ(sacker_block(&f)->t_recovery, TR_OPEN);
	CHECK(sacker_cwnd(&f) >= before);
	EXPECT(&f, NEVER);
	sacker_down(&f);
}

/* Like sacker_send(); returns the timestamp of the first segment. */
static uint32_t
send_stamped(struct sacker *f, uint32_t n)
{
	struct peer_seg s;

	t_send(f->so, sacker_bytes, n * f->seg);
	CHECK(peer_next(&s));
	peer_forget();
	return (sacker_tsval(&s));
}

TEST(echoed_timestamp_undoes_a_fast_retransmission)
{
	struct sacker f;
	uint32_t first, before;

	sacker_up(&f, WITH_TS);
	first = send_stamped(&f, 8);
	before = sacker_cwnd(&f);
	t_sleep(5);		/* the timestamps' clock ticks */
	SACK(&f, 0, 1 * f.seg, 5 * f.seg);
	EXPECT(&f, 0);
	sacker_ack_ts(&f, 5 * f.seg, first);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone + 1);
	CHECK(sacker_cwnd(&f) >= before);
	sacker_down(&f);
}

/*
 * An algorithm's private state was saved before its reduction: after
 * TCP_CONGESTION it is another algorithm's, so nothing is restored.
 */
TEST(reduction_of_another_algorithm_is_not_undone)
{
	static const struct cc_state none;
	struct sacker f;
	uint32_t first, before;

	sacker_up(&f, WITH_TS);
	first = send_stamped(&f, 8);
	before = sacker_cwnd(&f);
	t_sleep(5);		/* the timestamps' clock ticks */
	SACK(&f, 0, 1 * f.seg, 5 * f.seg);
	EXPECT(&f, 0);
	CHECK_EQ(sosetopt(f.so, IPPROTO_TCP, TCP_CONGESTION, "newreno", 7), 0);
	sacker_ack_ts(&f, 5 * f.seg, first);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone);
	CHECK(sacker_cwnd(&f) < before);
	CHECK_EQ(memcmp(&sacker_block(&f)->t_ccstate, &none, sizeof(none)), 0);
	sacker_down(&f);
}

TEST(echoed_timestamp_undoes_a_timeout)
{
	struct sacker f;
	struct peer_seg s;
	uint32_t first, before;

	sacker_up(&f, WITH_TS);
	first = send_stamped(&f, 8);
	before = sacker_cwnd(&f);
	sacker_await_timeout(&f, &s);
	CHECK(sacker_cwnd(&f) <= 2 * f.seg);
	sacker_ack_ts(&f, 2 * f.seg, first);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone + 1);
	CHECK(sacker_cwnd(&f) >= before);
	EXPECT(&f, NEVER);	/* the other ACKs arrive later */
	sacker_down(&f);
}

TEST(timestamp_of_the_retransmission_does_not)
{
	struct sacker f;
	struct peer_seg s;

	sacker_up(&f, WITH_TS);
	sacker_send(&f, 8);
	sacker_await_timeout(&f, &s);
	sacker_ack_ts(&f, f.seg, sacker_tsval(&s));
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone);
	CHECK(sacker_cwnd(&f) <= 2 * f.seg);
	CHECK(peer_next(&s));	/* the rest, by slow start */
	CHECK_EQ(s.seq, f.p.rcv_nxt + f.seg);
	sacker_down(&f);
}

/* RFC 5682: an ACK of data that was not retransmitted. */
TEST(timeout_is_undone_without_timestamps)
{
	struct sacker f;
	struct peer_seg s;
	uint32_t before, top;

	sacker_up(&f, 0);
	sacker_send(&f, SEGS);
	before = sacker_cwnd(&f);
	sacker_await_timeout(&f, &s);
	peer_forget();
	top = sacker_block(&f)->snd_max;
	sacker_ack(&f, MSS);
	CHECK(peer_next(&s));	/* new data is sent */
	CHECK_EQ(s.seq, top);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone);
	sacker_ack(&f, 3 * MSS);
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone + 1);
	CHECK(sacker_cwnd(&f) >= before);
	sacker_down(&f);
}

TEST(timeout_of_a_real_loss_stays)
{
	struct sacker f;
	struct peer_seg s;
	uint32_t top;

	sacker_up(&f, 0);
	sacker_send(&f, SEGS);
	sacker_await_timeout(&f, &s);
	peer_forget();
	top = sacker_block(&f)->snd_max - f.p.rcv_nxt;
	sacker_ack(&f, MSS);
	peer_forget();
	SACK(&f, MSS, top, top + MSS);	/* the new data, not a retransmission */
	CHECK_EQ(t_sysctl("net.inet.tcp.stats.undone"), f.undone);
	CHECK(peer_next(&s));
	CHECK_EQ(s.seq, f.p.rcv_nxt + MSS);
	sacker_down(&f);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
