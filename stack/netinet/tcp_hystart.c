/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HyStart++ (RFC 9406): ends slow start before it overfills the path.  When
 * the min RTT of a round has risen, growth slows to a quarter (conservative
 * slow start).  If the rise was not spurious, congestion avoidance begins
 * after five rounds.  The limit L of section 4.2 is net.inet.tcp.abc_l_var.
 */
#include "netinet/tcp_var.h"

/* RFC 9406 section 4.3 */
#define	MIN_RTT_THRESH		(4 * NSEC_PER_MSEC)
#define	MAX_RTT_THRESH		(16 * NSEC_PER_MSEC)
#define	MIN_RTT_DIVISOR		8
#define	N_RTT_SAMPLE		8
#define	CSS_GROWTH_DIVISOR	4
#define	CSS_ROUNDS		5

void
hystart_init(struct hystart *hs)
{
	*hs = (struct hystart){ .now_min = NSEC_FOREVER,
	    .last_min = NSEC_FOREVER };
}

static nsec_t
rtt_threshold(nsec_t last_min)
{
	nsec_t thresh = last_min / MIN_RTT_DIVISOR;

	if (thresh < MIN_RTT_THRESH)
		return (MIN_RTT_THRESH);
	return (thresh < MAX_RTT_THRESH ? thresh : MAX_RTT_THRESH);
}

/* A round ends when the data sent before its start has been acknowledged. */
static void
next_round(struct tcpcb *tp, struct hystart *hs)
{
	if (SEQ_LT(tp->snd_una, hs->window_end))
		return;
	hs->window_end = tp->snd_max;
	hs->last_min = hs->now_min;
	hs->now_min = NSEC_FOREVER;
	hs->samples = 0;
	if (hs->baseline != 0 && ++hs->css_rounds >= CSS_ROUNDS)
		tp->snd_ssthresh = tp->snd_cwnd;
}

static void
judge_delay(struct hystart *hs)
{
	if (hs->samples < N_RTT_SAMPLE)
		return;
	if (hs->baseline != 0) {
		if (hs->now_min < hs->baseline)
			hs->baseline = 0;	/* the rise was spurious */
	} else if (hs->last_min != NSEC_FOREVER &&
	    hs->now_min >= hs->last_min + rtt_threshold(hs->last_min)) {
		hs->baseline = hs->now_min;
		hs->css_rounds = 0;
	}
}

uint32_t
hystart_increase(struct tcpcb *tp, uint32_t bytes)
{
	struct hystart *hs = &tp->t_hystart;

	if (tp->snd_ssthresh < UINT32_MAX / 2)
		return (bytes);		/* initial slow start only */
	if (hs->window_end == 0)
		hs->window_end = tp->snd_una;
	if (tp->t_rttlast < hs->now_min)
		hs->now_min = tp->t_rttlast;
	hs->samples++;
	judge_delay(hs);
	next_round(tp, hs);
	if (hs->baseline == 0)
		return (bytes);
	hs->rest += bytes;
	bytes = hs->rest / CSS_GROWTH_DIVISOR;
	hs->rest %= CSS_GROWTH_DIVISOR;
	return (bytes);
}
