/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUBIC (RFC 9438): the window is a cubic function of the time since the last
 * reduction.  It is flat near the size at that reduction, and is never below
 * Reno's estimate.
 *
 * The RFC counts windows in segments and time in seconds.  This file uses
 * bytes and milliseconds in integers: C = 0.4 segments/s^3 and beta = 0.7.
 */
#include "netinet/tcp_cc_cubic.h"
#include "netinet/tcp_var.h"

#define	BETA_NUM	7
#define	BETA_DEN	10
/* alpha_cubic = 3 * (1 - beta) / (1 + beta) = 9/17 (section 4.3) */
#define	ALPHA_NUM	9
#define	ALPHA_DEN	17
/* Max time on the curve: the cube fits into 64 bits. */
#define	T_MAX		100000		/* ms */

/* Integer cube root, rounded down, bit by bit. */
static uint32_t
cube_root(uint64_t x)
{
	uint64_t r = 0, next;

	for (int bit = 20; bit >= 0; bit--) {
		next = r | 1ULL << bit;
		if (next * next * next <= x)
			r = next;
	}
	return ((uint32_t)r);
}

/* Equation 2: K = cbrt((W_max - cwnd_epoch) / C). */
uint32_t
cubic_k(uint32_t w_max, uint32_t cwnd_epoch, uint32_t mss)
{
	if (w_max <= cwnd_epoch)
		return (0);
	/* 1 s^3 = 10^9 ms^3, and 1 / C = 5/2 */
	return (cube_root((uint64_t)(w_max - cwnd_epoch) * 2500000000ULL /
	    mss));
}

/* Equation 1: W_cubic(t) = C * (t - K)^3 + W_max. */
uint32_t
cubic_window(const struct cubic *cu, uint32_t mss, nsec_t t)
{
	int64_t ms = (int64_t)(t / NSEC_PER_MSEC) - cu->k, w;

	if (ms > T_MAX)
		ms = T_MAX;
	else if (ms < -T_MAX)
		ms = -T_MAX;
	w = ms * ms * ms / 1000 * mss / 1000000 * 2 / 5 + cu->w_max;
	return (w < 0 ? 0 : w < UINT32_MAX / 4 ? (uint32_t)w :
	    UINT32_MAX / 4);
}

/*
 * Section 4.2; after a timeout the epoch starts at the plateau (section 4.8).
 */
__cold static void
begin_epoch(struct tcpcb *tp)
{
	struct cubic *cu = CC_STATE(tp, struct cubic);

	cu->epoch = true;
	cu->t = 0;
	cu->w_est = tp->snd_cwnd;
	cu->w_est_acked = 0;
	if (cu->timeout || cu->w_max < tp->snd_cwnd)
		cu->w_max = tp->snd_cwnd;
	cu->timeout = false;
	cu->k = cubic_k(cu->w_max, tp->snd_cwnd, tp->t_maxseg);
}

/* Section 4.3: the Reno estimate, W_est. */
static void
grow_estimate(struct tcpcb *tp, uint32_t bytes)
{
	struct cubic *cu = CC_STATE(tp, struct cubic);
	uint32_t num = ALPHA_NUM, den = ALPHA_DEN, share;

	if (cu->w_est >= cu->cwnd_prior)
		num = den = 1;
	share = (uint32_t)((uint64_t)tp->snd_cwnd * den / num);
	cu->w_est_acked += bytes;
	while (cu->w_est_acked >= share) {
		cu->w_est_acked -= share;
		cu->w_est += tp->t_maxseg;
	}
}

/* Sections 4.2 to 4.5; t advances only while the window is fully used. */
__hot static void
cubic_ack_received(struct tcpcb *tp, uint32_t bytes)
{
	struct cubic *cu = CC_STATE(tp, struct cubic);
	nsec_t now = getuptime();
	uint32_t target, most;

	if (!tcp_cc_validated(tp)) {
		cu->last = now;
		return;
	}
	bytes = tcp_cc_slowstart(tp, bytes);
	if (tp->snd_cwnd < tp->snd_ssthresh || bytes == 0)
		return;
	if (!cu->epoch)
		begin_epoch(tp);
	else
		cu->t += now - cu->last;
	cu->last = now;
	grow_estimate(tp, bytes);
	if (cubic_window(cu, tp->t_maxseg, cu->t) < cu->w_est) {
		if (tp->snd_cwnd < cu->w_est)
			tp->snd_cwnd = cu->w_est;
		return;
	}
	target = cubic_window(cu, tp->t_maxseg, cu->t + tp->t_srtt);
	most = tp->snd_cwnd + tp->snd_cwnd / 2;
	if (target > most)
		target = most;
	if (target > tp->snd_cwnd)
		tp->snd_cwnd += (uint32_t)((uint64_t)(target - tp->snd_cwnd) *
		    bytes / tp->snd_cwnd);
}

/* Sections 4.6 (decrease), 4.7 (fast convergence) and 4.8 (timeout). */
static void
cubic_cong_signal(struct tcpcb *tp, enum cc_signal signal)
{
	struct cubic *cu = CC_STATE(tp, struct cubic);
	uint32_t cwnd = tp->snd_cwnd;

	cu->cwnd_prior = cwnd;
	if (cwnd < cu->w_max)
		cu->w_max = (uint32_t)((uint64_t)cwnd *
		    (BETA_DEN + BETA_NUM) / (2 * BETA_DEN));
	else
		cu->w_max = cwnd;
	cu->epoch = false;
	cu->timeout = signal == CC_TIMEOUT;
	tp->snd_ssthresh = tcp_cc_reduced(tp, BETA_NUM, BETA_DEN);
}

/* Section 5.8: idle time does not count. */
__hot static void
cubic_after_idle(struct tcpcb *tp)
{
	CC_STATE(tp, struct cubic)->last = getuptime();
}

const struct cc_algo tcp_cc_cubic = {
	.cc_ack_received = cubic_ack_received,
	.cc_cong_signal = cubic_cong_signal,
	.cc_after_idle = cubic_after_idle,
	.cc_undo = cubic_after_idle,	/* section 4.9.2 */
};
