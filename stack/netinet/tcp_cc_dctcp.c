/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCTCP (RFC 8257): the window is reduced in proportion to the fraction of
 * marked bytes.  It is for datacenters only (section 5), because both ends
 * must use it and routers must mark at a low threshold.
 *
 * Without ECN on the connection it behaves like NewReno.
 */
#include "netinet/tcp_var.h"

/* Alpha, the estimated fraction of marked bytes, in units of 1/1024. */
#define	ALPHA_MAX	1024U
#define	ALPHA_SHIFT	4	/* g = 1/16 (section 4.2) */

struct dctcp {
	uint32_t	 alpha;
	uint32_t	 acked, marked;	/* bytes in this observation window */
	tcp_seq		 window_end;	/* the window ends when this is acked */
};

/* Section 3.3: alpha starts at 1, so the first mark halves the window. */
static void
dctcp_init(struct tcpcb *tp)
{
	*CC_STATE(tp, struct dctcp) = (struct dctcp){ .alpha = ALPHA_MAX,
	    .window_end = tp->snd_max };
}

/* Alpha = Alpha * (1 - g) + g * M; values below g are rounded to 0. */
static uint32_t
next_alpha(const struct dctcp *d)
{
	const uint32_t decay = d->alpha >> ALPHA_SHIFT;
	const uint64_t share = (uint64_t)d->marked * ALPHA_MAX / d->acked;

	return ((decay > 0 ? d->alpha - decay : 0) +
	    (uint32_t)(share >> ALPHA_SHIFT));
}

/* Section 3.3: updates the sender's estimate once a window. */
static void
dctcp_ack_marked(struct tcpcb *tp, uint32_t bytes, bool ece)
{
	struct dctcp *d = CC_STATE(tp, struct dctcp);

	d->acked += bytes;
	if (ece)
		d->marked += bytes;
	if (d->acked == 0 || SEQ_LT(tp->snd_una, d->window_end))
		return;
	d->alpha = next_alpha(d);
	d->acked = d->marked = 0;
	d->window_end = tp->snd_max;
}

/*
 * Section 3.2: ACKs carry ECE exactly while marked data arrive.  At a change,
 * the data received before it are acknowledged at once with the previous mark.
 */
static void
dctcp_data_marked(struct tcpcb *tp, bool ce)
{
	const bool echo = (tp->t_flags & TF_ECNECHO) != 0;

	if (ce == echo)
		return;
	if (tp->t_unacked > 0) {
		tp->t_flags |= TF_ACKNOW;
		(void)tcp_output(tp);
	}
	tp->t_flags ^= TF_ECNECHO;
}

/* Section 3.3: cwnd * (1 - alpha / 2); section 3.4: losses as in NewReno. */
static void
dctcp_cong_signal(struct tcpcb *tp, enum cc_signal signal)
{
	const uint32_t alpha = signal == CC_ECN ?
	    CC_STATE(tp, struct dctcp)->alpha : ALPHA_MAX;

	tp->snd_ssthresh = tcp_cc_reduced(tp, 2 * ALPHA_MAX - alpha,
	    2 * ALPHA_MAX);
	tp->t_cwndacked = 0;
}

const struct cc_algo tcp_cc_dctcp = {
	.cc_init = dctcp_init,
	.cc_ack_received = tcp_cc_reno,
	.cc_cong_signal = dctcp_cong_signal,
	.cc_ack_marked = dctcp_ack_marked,
	.cc_data_marked = dctcp_data_marked,
	.cc_wants_ecn = true,
};
