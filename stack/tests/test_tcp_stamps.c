/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timestamps (RFC 7323), and their use to reuse TIME-WAIT (RFC 6191).
 */
#include "tests/check.h"

#include "tests/sacker.h"

/* A segment of the peer with this timestamp. */
static void
stamped(struct sacker *f, uint8_t flags, tcp_seq seq, uint32_t tsval,
    uint32_t len)
{
	uint8_t options[12] = { 1, 1, 8, 10 };

	tsval = htonl(tsval);
	memcpy(options + 4, &tsval, sizeof(tsval));
	f->p.options = options;
	f->p.optlen = sizeof(options);
	peer_send(&f->p, flags, seq, flags & TH_ACK ? f->p.rcv_nxt : 0,
	    sacker_bytes, len);
	f->p.optlen = 0;
}

/* Section 3.2: a reset should have one too. */
TEST(reset_of_a_close_has_a_timestamp)
{
	struct sacker f;
	struct tcpopts to;
	struct peer_seg s;

	sacker_up(&f, WITH_TS);
	stamped(&f, TH_ACK, f.p.snd_nxt, 77, 100);
	peer_forget();
	soclose(f.so);			/* with unread data */
	CHECK(peer_next(&s));
	CHECK_EQ(s.flags, TH_RST | TH_ACK);
	CHECK(tcp_opt_parse(s.options, s.optlen, false, &to));
	CHECK(to.has_ts);
	CHECK_EQ(to.tsecr, 77);
	soclose(f.head);
}

/* Section 3.2: once negotiated, a segment without them is dropped. */
TEST(segment_without_one_is_dropped)
{
	struct sacker f;
	struct peer_seg s;

	sacker_up(&f, WITH_TS);
	f.p.optlen = 0;
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, sacker_bytes, 100);
	CHECK(!peer_next(&s));
	CHECK_EQ(soavail(f.so), 0);
	t_sysctl_set("net.inet.tcp.tolerate_missing_ts", "1");
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, sacker_bytes, 100);
	CHECK_EQ(soavail(f.so), 100);
	t_sysctl_set("net.inet.tcp.tolerate_missing_ts", "0");
	sacker_down(&f);
}

/* Section 5.3: an old timestamp is answered with an ACK, except in a reset. */
TEST(older_segment_is_not_of_this_time)
{
	struct sacker f;
	struct peer_seg s;

	sacker_up(&f, WITH_TS);
	stamped(&f, TH_ACK, f.p.snd_nxt, 100, 10);
	peer_forget();
	stamped(&f, TH_ACK, f.p.snd_nxt + 10, 99, 10);
	CHECK(peer_next(&s));
	CHECK_EQ(s.ack, f.p.snd_nxt + 10);
	CHECK_EQ(soavail(f.so), 10);
	stamped(&f, TH_RST, f.p.snd_nxt + 10, 99, 0);
	CHECK_EQ(sacker_block(&f)->t_state, TCPS_CLOSED);
	CHECK(!peer_next(&s));
	sacker_down(&f);
}

/* In TIME_WAIT: whether a SYN with this timestamp opens a new connection. */
static bool
begins_anew(uint32_t tsval, int seq)
{
	struct sacker f;
	struct peer_seg s;

	sacker_up(&f, WITH_TS);
	soclose(f.so);
	f.p.rcv_nxt++;
	stamped(&f, TH_FIN | TH_ACK, f.p.snd_nxt++, 1000, 0);
	peer_forget();
	stamped(&f, TH_SYN, f.p.snd_nxt + (tcp_seq)seq, tsval, 0);
	CHECK(peer_next(&s));
	stamped(&f, TH_RST, s.flags & TH_SYN ? s.ack : f.p.snd_nxt, tsval, 0);
	soclose(f.head);
	peer_forget();
	return ((s.flags & TH_SYN) != 0);
}

/* RFC 6191 section 2 */
TEST(syn_in_time_wait_needs_a_newer_timestamp)
{
	CHECK(begins_anew(1001, -500));
	CHECK(begins_anew(1001, 500));
	CHECK(!begins_anew(999, 500));
	CHECK(begins_anew(1000, 500));
	CHECK(!begins_anew(1000, -500));
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
