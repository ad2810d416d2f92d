/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP loss recovery: duplicate acknowledgements, fast retransmit and fast
 * recovery, with SACK (RFC 2018, RFC 6675) or without (RFC 5681, RFC 6582).
 *
 * With SACK everything between snd_una and the highest byte the peer
 * reported that it did not report is taken for lost, and is retransmitted
 * once, as fast as the congestion window lets packets into the pipe; what
 * is lost again is left to the timer.
 */
#include <netinet/tcp.h>
#include <string.h>

#include "netinet/tcp_var.h"

#define	DUPTHRESH	3

/* The end of the highest range reported. */
static tcp_seq
sack_highest(const struct tcpcb *tp)
{
	const struct tcp_sackboard *sb = &tp->t_sack;

	return (sb->n > 0 ? sb->range[sb->n - 1].end : tp->snd_una);
}

/* Forgets what lies below snd_una. */
static void
sack_trim(struct tcp_sackboard *sb, tcp_seq una)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sb->n; i++) {
		if (SEQ_LEQ(sb->range[i].end, una))
			continue;
		sb->range[n] = sb->range[i];
		if (SEQ_LT(sb->range[n].start, una))
			sb->range[n].start = una;
		n++;
	}
	sb->n = n;
}

/* Adds a range, merged with those it touches.  True if it told news. */
static bool
sack_add(struct tcp_sackboard *sb, struct tcp_sackblock b)
{
	unsigned first = 0, last;

	while (first < sb->n && SEQ_LT(sb->range[first].end, b.start))
		first++;
	last = first;
	while (last < sb->n && SEQ_LEQ(sb->range[last].start, b.end)) {
		if (SEQ_LEQ(sb->range[last].start, b.start) &&
		    SEQ_GEQ(sb->range[last].end, b.end))
			return (false);
		b.start = seq_min(b.start, sb->range[last].start);
		b.end = seq_max(b.end, sb->range[last].end);
		last++;
	}
	if (first == last && sb->n == TCP_SACKBOARD)
		return (false);		/* full: the peer will repeat it */
	memmove(&sb->range[first + 1], &sb->range[last],
	    (sb->n - last) * sizeof(b));
	sb->range[first] = b;
	sb->n = sb->n - (last - first) + 1;
	KASSERT(sb->n <= TCP_SACKBOARD, ("sack_add: %u ranges", sb->n));
	return (true);
}

/* The blocks of a segment; those that cannot be true are ignored. */
bool
tcp_sack_update(struct tcpcb *tp, const struct tcpseg *sg)
{
	tcp_seq low = seq_max(tp->snd_una, sg->sg_ack);
	bool news = false;

	if ((tp->t_flags & TF_SACK) == 0)
		return (false);
	for (unsigned i = 0; i < sg->sg_opt.nsack; i++) {
		struct tcp_sackblock b = sg->sg_opt.sack[i];

		if (SEQ_GEQ(b.start, b.end) || SEQ_LT(b.start, low) ||
		    SEQ_GT(b.end, tp->snd_max))
			continue;
		if (sack_add(&tp->t_sack, b))
			news = true;
	}
	return (news);
}

/* The first hole not retransmitted yet; at most one segment of it. */
bool
tcp_sack_hole(struct tcpcb *tp, tcp_seq *seqp, uint32_t *len)
{
	const struct tcp_sackboard *sb = &tp->t_sack;
	tcp_seq seq = seq_max(sb->rxtnext, tp->snd_una);

	for (unsigned i = 0; i < sb->n; i++) {
		if (SEQ_LT(seq, sb->range[i].start)) {
			*seqp = seq;
			*len = sb->range[i].start - seq;
			if (*len > tp->t_maxseg)
				*len = tp->t_maxseg;
			return (true);
		}
		seq = seq_max(seq, sb->range[i].end);
	}
	return (false);
}

/* Bytes thought to be on their way: RFC 6675's pipe. */
uint32_t
tcp_pipe(const struct tcpcb *tp)
{
	const struct tcp_sackboard *sb = &tp->t_sack;
	tcp_seq seq = tp->snd_una, end;
	uint32_t again = 0;

	/* what was retransmitted of the holes */
	for (unsigned i = 0; i < sb->n && SEQ_LT(seq, sb->rxtnext); i++) {
		end = seq_min(sb->range[i].start, sb->rxtnext);
		if (SEQ_GT(end, seq))
			again += end - seq;
		seq = sb->range[i].end;
	}
	return (tp->snd_max - sack_highest(tp) + again);
}

static void
enter_recovery(struct tcpcb *tp)
{
	tcp_seq seq;
	uint32_t len;

	TCPSTAT_INC(fastrexmit);
	tp->t_cc->cc_cong_signal(tp, CC_LOSS);
	tp->snd_cwnd = tp->snd_ssthresh;
	tp->snd_recover = tp->snd_max;
	tp->t_flags |= TF_RECOVERY;
	tp->t_rttstart = 0;
	tp->t_sack.rxtnext = tp->snd_una;
	if ((tp->t_flags & TF_SACK) == 0)
		tp->snd_cwnd += DUPTHRESH * tp->t_maxseg;
	/* the first retransmission goes whatever is in the pipe */
	if (!tcp_sack_hole(tp, &seq, &len) || seq != tp->snd_una)
		len = tp->t_maxseg;
	(void)tcp_sendat(tp, tp->snd_una, len);
}

void
tcp_dupack(struct tcpcb *tp)
{
	bool sack = (tp->t_flags & TF_SACK) != 0;

	TCPSTAT_INC(rcvdupack);
	tp->t_dupacks++;
	if (tp->t_flags & TF_RECOVERY) {
		if (!sack)
			tp->snd_cwnd += tp->t_maxseg;
		return;
	}
	if (tp->t_dupacks < DUPTHRESH)
		return;			/* limited transmit, RFC 3042 */
	/*
	 * RFC 6582 section 3.2 step 2: duplicates of what a timeout sent
	 * twice are no loss; SACK tells those apart.
	 */
	if (sack ? tp->t_sack.n > 0 : SEQ_GT(tp->snd_una, tp->snd_recover))
		enter_recovery(tp);
}

/* RFC 6582 section 3.2 step 3; the ACK has been taken off the buffer. */
static void
recovery_ack(struct tcpcb *tp, tcp_seq ack, uint32_t acked)
{
	uint32_t flight = tp->snd_max - ack;

	if (SEQ_GEQ(ack, tp->snd_recover)) {
		if (flight < tp->t_maxseg)
			flight = tp->t_maxseg;
		tp->snd_cwnd = flight + tp->t_maxseg < tp->snd_ssthresh ?
		    flight + tp->t_maxseg : tp->snd_ssthresh;
		tp->t_flags &= ~(unsigned)TF_RECOVERY;
		tp->t_dupacks = 0;
		return;
	}
	if (tp->t_sack.n > 0)
		return;			/* holes are sent by tcp_output() */
	if ((tp->t_flags & TF_SACK) == 0) {
		tp->snd_cwnd = tp->snd_cwnd > acked ? tp->snd_cwnd - acked : 0;
		tp->snd_cwnd += tp->t_maxseg;
	}
	(void)tcp_sendat(tp, tp->snd_una, tp->t_maxseg);
}

void
tcp_recover_ack(struct tcpcb *tp, tcp_seq ack, uint32_t acked)
{
	KASSERT(tp->snd_una == ack, ("tcp_recover_ack: una %u, ack %u",
	    tp->snd_una, ack));
	sack_trim(&tp->t_sack, ack);
	if (tp->t_flags & TF_RECOVERY) {
		recovery_ack(tp, ack, acked);
		return;
	}
	tp->t_dupacks = 0;
	tcp_cc_acked(tp, acked);
}

/*
 * RFC 5681 section 3.1: back to one segment, and everything again from
 * snd_una on.  What SACK told is forgotten, since the peer may have
 * discarded it (RFC 2018 section 8).
 */
void
tcp_recover_timeout(struct tcpcb *tp)
{
	if (tp->t_rxtshift == 1)
		tp->t_cc->cc_cong_signal(tp, CC_TIMEOUT);
	tp->snd_cwnd = tp->t_maxseg;
	tp->snd_recover = tp->snd_max;
	tp->snd_nxt = tp->snd_una;
	tp->t_flags &= ~(unsigned)TF_RECOVERY;
	tp->t_dupacks = 0;
	tp->t_sack.n = 0;
}
