/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control: the window against the formulas of RFC 9438 and
 * RFC 5681, HyStart++ (RFC 9406), and the choice of an algorithm.
 */
#include "boot/boot.h"
#include "tests/check.h"

#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>

#include "kern/sysctl.h"
#include "machine/virtual/virtual.h"
#include "netinet/tcp_cc_cubic.h"
#include "netinet/tcp_var.h"
#include "tests/net.h"

#define	MSS	1448
#define	RTT	(20 * NSEC_PER_MSEC)

/* A control block in congestion avoidance that uses its full window. */
static struct tcpcb *
new_block(const struct cc_algo *cc, uint32_t segments)
{
	struct tcpcb *tp = calloc(1, sizeof(*tp));

	tp->t_maxseg = MSS;
	tp->t_cc = cc;
	tcp_cc_init(tp);
	tcp_recover_init(tp);
	tp->t_srtt = tp->t_rttlast = RTT;
	tp->t_flags = TF_CWNDLIMITED;
	tp->snd_cwnd = segments * MSS;
	tp->snd_max = tp->snd_una + tp->snd_cwnd;
	return (tp);
}

/* A window's worth of ACKs, one for each two segments, an RTT later. */
static void
ack_window(struct tcpcb *tp)
{
	uint32_t left = tp->snd_cwnd / MSS;

	if (tp->t_cc == &tcp_cc_cubic)
		CC_STATE(tp, struct cubic)->last -= RTT;
	for (uint32_t n; left > 0; left -= n) {
		n = left < 2 ? left : 2;
		tp->snd_una += n * MSS;
		tcp_cc_acked(tp, n * MSS);
		tp->snd_max = tp->snd_una + tp->snd_cwnd;
	}
}

static void
lose(struct tcpcb *tp, enum cc_signal signal)
{
	tp->t_prr.flight = tp->snd_cwnd;
	tp->t_cc->cc_cong_signal(tp, signal);
	tp->snd_cwnd = signal == CC_TIMEOUT ? MSS : tp->snd_ssthresh;
	tp->snd_max = tp->snd_una + tp->snd_cwnd;
}

static void
check_near(double is, double wanted, double tolerance)
{
	if (fabs(is - wanted) > tolerance) {
		fprintf(stderr, "%f is not near %f\n", is, wanted);
		abort();
	}
}

TEST(cubic_curve_is_that_of_the_rfc)
{
	for (double wmax = 10; wmax < 100000; wmax *= 3.7) {
		double k = cbrt(wmax * (1 - 0.7) / 0.4);
		struct cubic cu = { .w_max = (uint32_t)(wmax * MSS) };

		cu.k = cubic_k(cu.w_max, (uint32_t)(wmax * 0.7 * MSS), MSS);
		check_near(cu.k, k * 1000, 2);
		for (double t = 0; t < 3 * k; t += k / 7)
			check_near((double)cubic_window(&cu, MSS,
			    (nsec_t)(t * 1e9)) / MSS,
			    0.4 * pow(t - k, 3) + wmax, 0.005 * wmax + 0.1);
	}
}

TEST(cubic_curve_does_not_overflow)
{
	struct cubic cu = { .w_max = UINT32_MAX / 4 };

	cu.k = cubic_k(cu.w_max, 0, TCP_MSS_MIN);
	for (nsec_t t = 0; t < 1000000 * NSEC_PER_SEC; t = t * 3 + 1)
		CHECK(cubic_window(&cu, 65495, t) <= UINT32_MAX / 4);
	CHECK_EQ(cubic_window(&cu, 65495, NSEC_FOREVER / 4), UINT32_MAX / 4);
	CHECK_EQ(cubic_k(100, 200, MSS), 0);
}

/* Sections 4.2 and 4.6: reduced to 0.7 at once, and back after K. */
TEST(cubic_returns_to_the_plateau_after_k)
{
	struct tcpcb *tp = new_block(&tcp_cc_cubic, 1000);
	double k = cbrt(1000 * 0.3 / 0.4);
	int rounds = (int)(k * NSEC_PER_SEC / RTT);

	lose(tp, CC_LOSS);
	CHECK_EQ(tp->snd_ssthresh, 700 * MSS);
	for (int i = 0; i < rounds / 2; i++)
		ack_window(tp);
	/* after half of K it has regained seven eighths */
	check_near((double)tp->snd_cwnd / MSS, 1000 - 300 / 8.0, 15);
	for (int i = 0; i < rounds / 2; i++)
		ack_window(tp);
	check_near((double)tp->snd_cwnd / MSS, 1000, 10);
	free(tp);
}

/* Section 4.3: if the window is small, Reno's is larger and is used. */
TEST(cubic_is_not_slower_than_reno)
{
	struct tcpcb *tp = new_block(&tcp_cc_cubic, 20);

	lose(tp, CC_LOSS);
	for (int i = 0; i < 20; i++)
		ack_window(tp);
	/* 9/17 segments a round, at most one */
	CHECK(tp->snd_cwnd >= (14 + 20 * 9 / 17 - 2) * MSS);
	CHECK(tp->snd_cwnd <= (14 + 20) * MSS);
	free(tp);
}

TEST(cubic_converges_fast)
{
	struct tcpcb *tp = new_block(&tcp_cc_cubic, 1000);

	lose(tp, CC_LOSS);
	CHECK_EQ(CC_STATE(tp, struct cubic)->w_max, 1000 * MSS);
	lose(tp, CC_LOSS);	/* below the plateau: fast convergence */
	check_near((double)CC_STATE(tp, struct cubic)->w_max / MSS, 700 * 1.7 / 2, 1);
	free(tp);
}

TEST(cubic_after_a_timeout_starts_at_its_plateau)
{
	struct tcpcb *tp = new_block(&tcp_cc_cubic, 100);

	lose(tp, CC_TIMEOUT);
	CHECK_EQ(tp->snd_ssthresh, 70 * MSS);
	while (tp->snd_cwnd < tp->snd_ssthresh)
		ack_window(tp);
	ack_window(tp);
	CHECK_EQ(CC_STATE(tp, struct cubic)->k, 0);
	CHECK(CC_STATE(tp, struct cubic)->w_max <= 72 * MSS);
	free(tp);
}

TEST(time_without_need_of_the_window_does_not_count)
{
	struct tcpcb *tp = new_block(&tcp_cc_cubic, 1000);
	uint32_t before;

	lose(tp, CC_LOSS);
	ack_window(tp);
	before = tp->snd_cwnd;
	tp->t_flags = 0;
	for (int i = 0; i < 1000; i++)
		ack_window(tp);
	CHECK_EQ(tp->snd_cwnd, before);
	CC_STATE(tp, struct cubic)->last -= 3600 * NSEC_PER_SEC;
	tcp_cc_afteridle(tp);
	tp->t_cc->cc_after_idle(tp);
	tp->t_flags = TF_CWNDLIMITED;
	ack_window(tp);
	CHECK(tp->snd_cwnd < before + before / 20);
	free(tp);
}

TEST(newreno_grows_a_segment_a_round_and_halves)
{
	struct tcpcb *tp = new_block(&tcp_cc_newreno, 100);

	lose(tp, CC_LOSS);
	CHECK_EQ(tp->snd_ssthresh, 50 * MSS);
	for (int i = 0; i < 10; i++)
		ack_window(tp);
	check_near((double)tp->snd_cwnd / MSS, 60, 1);
	free(tp);
}

TEST(slow_start_doubles_and_its_limit_holds)
{
	struct tcpcb *tp = new_block(&tcp_cc_newreno, 10);

	ack_window(tp);
	CHECK_EQ(tp->snd_cwnd, 20 * MSS);
	t_sysctl_set("net.inet.tcp.abc_l_var", "2");
	tcp_cc_acked(tp, 10 * MSS);
	CHECK_EQ(tp->snd_cwnd, 22 * MSS);
	t_sysctl_set("net.inet.tcp.abc_l_var", "0");
	tcp_cc_acked(tp, 10 * MSS);
	CHECK_EQ(tp->snd_cwnd, 32 * MSS);
	free(tp);
}

TEST(slow_start_ends_when_delay_rises)
{
	struct tcpcb *tp = new_block(&tcp_cc_cubic, 32);

	ack_window(tp);
	CHECK_EQ(tp->snd_cwnd, 64 * MSS);
	tp->t_rttlast = RTT + 6 * NSEC_PER_MSEC;
	/* a round that began before still doubles the window */
	ack_window(tp);
	ack_window(tp);		/* conservative slow start */
	CHECK(tp->snd_cwnd < 200 * MSS);
	CHECK_EQ(tp->snd_ssthresh, UINT32_MAX / 2);
	for (int i = 0; i < 6; i++)
		ack_window(tp);
	CHECK(tp->snd_ssthresh < UINT32_MAX / 2);
	free(tp);
}

TEST(rise_of_delay_that_passes_does_not_end_slow_start)
{
	struct tcpcb *tp = new_block(&tcp_cc_cubic, 32);
	uint32_t before;

	ack_window(tp);
	tp->t_rttlast = RTT + 6 * NSEC_PER_MSEC;
	ack_window(tp);
	tp->t_rttlast = RTT;
	for (int i = 0; i < 2; i++)
		ack_window(tp);
	before = tp->snd_cwnd;
	ack_window(tp);
	CHECK_EQ(tp->snd_ssthresh, UINT32_MAX / 2);
	CHECK(tp->snd_cwnd >= 2 * before - 2 * MSS);
	free(tp);
}

static void
check_congestion(struct socket *so, const char *wanted)
{
	char name[16] = "";
	socklen_t len = sizeof(name);

	CHECK_EQ(sogetopt(so, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
	CHECK_STREQ(name, wanted);
}

TEST(algorithm_is_chosen_for_all_or_for_a_socket)
{
	struct socket *so = t_socket(SOCK_STREAM);

	check_congestion(so, "cubic");
	CHECK_EQ(sosetopt(so, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
	check_congestion(so, "newreno");
	CHECK_EQ(sosetopt(so, IPPROTO_TCP, TCP_CONGESTION, "cubic", 6), 0);
	check_congestion(so, "cubic");
	CHECK_EQ(sosetopt(so, IPPROTO_TCP, TCP_CONGESTION, "vegas", 5),
	    ENOENT);
	CHECK_EQ(sosetopt(so, IPPROTO_TCP, TCP_CONGESTION, "", 0), EINVAL);
	soclose(so);
	t_sysctl_set("net.inet.tcp.cc.algorithm", "newreno");
	so = t_socket(SOCK_STREAM);
	check_congestion(so, "newreno");
	soclose(so);
	t_sysctl_set("net.inet.tcp.cc.algorithm", "cubic");
}

TEST(unknown_algorithm_is_refused)
{
	char why[256] = "";

	CHECK_EQ(sysctl_set("net.inet.tcp.cc.algorithm", "vegas", why,
	    sizeof(why)), EINVAL);
	CHECK(strstr(why, "vegas") != NULL);
}

/* RFC 7661 section 4.2: half of the window, but in slow start only. */
TEST(window_that_is_half_used_grows_in_slow_start)
{
	const struct cc_algo *const algos[] = { &tcp_cc_newreno,
	    &tcp_cc_cubic };

	for (size_t i = 0; i < nitems(algos); i++) {
		struct tcpcb *tp = new_block(algos[i], 10);

		tp->t_flags = 0;
		tp->snd_max = tp->snd_una + 5 * MSS;
		tcp_cc_sent(tp);
		tcp_cc_acked(tp, MSS);
		CHECK_EQ(tp->snd_cwnd, 10 * MSS);
		tp->snd_max = tp->snd_una + 6 * MSS;
		tcp_cc_sent(tp);
		tcp_cc_acked(tp, MSS);
		CHECK_EQ(tp->snd_cwnd, 11 * MSS);
		tp->snd_ssthresh = tp->snd_cwnd;
		for (int n = 0; n < 50; n++)
			tcp_cc_acked(tp, MSS);
		CHECK_EQ(tp->snd_cwnd, 11 * MSS);
		free(tp);
	}
}

int
main(int argc, char **argv)
{
	mach_virtual_enter(true);
	CHECK_EQ(stack_boot(NULL), 0);
	return (check_main(argc, argv));
}
