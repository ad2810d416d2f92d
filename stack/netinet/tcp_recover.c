/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP loss recovery: interprets ACKs and timeouts, and controls the congestion
 * window during recovery.
 *
 *	TR_OPEN		no loss; the window belongs to t_cc
 *	TR_CWR		nothing to retransmit, but the window is reduced
 *	TR_FAST		fast recovery (RFC 6675, RFC 6582)
 *	TR_TIMEOUT	slow start after a retransmission timeout (RFC 5681)
 *
 * All states but the first end when snd_recover is acknowledged.  With SACK,
 * RACK detects losses (tcp_rack.c); without it, three duplicate ACKs do.  In
 * CWR and FAST the window follows proportional rate reduction (RFC 6937).  A
 * spurious reduction is undone.
 */
#include <netinet/tcp.h>

#include "netinet/tcp_var.h"

#define	DUPTHRESH	3

/*
 * RFC 2883 section 4: whether the first block reports a duplicate.  It is
 * accepted only up to the amount that was retransmitted.
 */
static bool
is_dsack(struct tcpcb *tp, const struct tcpseg *sg)
{
	const struct tcp_sackblock *b = sg->sg_opt.sack;
	uint32_t len = b[0].end - b[0].start;

	if (__predict_true(sg->sg_opt.nsack == 0) ||
	    SEQ_GEQ(b[0].start, b[0].end) || SEQ_GT(b[0].end, tp->snd_max))
		return (false);
	if (SEQ_GT(b[0].end, sg->sg_ack) && (sg->sg_opt.nsack < 2 ||
	    SEQ_LT(b[0].start, b[1].start) || SEQ_GT(b[0].end, b[1].end)))
		return (false);
	if (tp->t_dsackbytes + len > tp->t_rexmitbytes)
		return (false);
	tp->t_dsackbytes += len;
	tp->t_undo.dsacked += len;
	TCPSTAT_INC(rcvdsack);
	return (true);
}

/* Processes the SACK blocks of a segment; impossible ones are ignored. */
void
tcp_sack_input(struct tcpcb *tp, const struct tcpseg *sg, struct tcp_acked *a)
{
	tcp_seq low = seq_max(tp->snd_una, sg->sg_ack);

	if (__predict_false((tp->t_flags & TF_SACK) == 0))
		return;
	a->dsack = is_dsack(tp, sg);
	for (unsigned i = 0; i < sg->sg_opt.nsack; i++) {
		const struct tcp_sackblock *b = &sg->sg_opt.sack[i];

		if (SEQ_LT(b->start, b->end) && SEQ_GEQ(b->start, low) &&
		    SEQ_LEQ(b->end, tp->snd_max))
			tcp_sent_sack(tp, b->start, b->end, a);
	}
}

/*
 * Estimated bytes in flight (RFC 6675's pipe).  Without SACK each duplicate
 * ACK counts as one delivered segment.
 */
uint32_t
tcp_pipe(const struct tcpcb *tp)
{
	uint32_t flight = tp->snd_max - tp->snd_una;
	uint32_t gone = tp->t_sackedbytes + tp->t_lostbytes;

	if (__predict_false((tp->t_flags & TF_SACK) == 0))
		gone += tp->t_dupacks * tp->t_maxseg;
	return (gone < flight ? flight - gone : 0);
}

void
tcp_recover_init(struct tcpcb *tp)
{
	tp->t_recovery = TR_OPEN;
	tp->t_undo.armed = false;
	tcp_rack_init(tp);
}

/* Saves the state that undo() restores, before a reduction. */
static void
arm_undo(struct tcpcb *tp)
{
	tp->t_undo = (struct tcp_undo){ .armed = true, .cwnd = tp->snd_cwnd,
	    .ssthresh = tp->snd_ssthresh, .ccstate = tp->t_ccstate };
}

/*
 * Starts a reduction from a window of flight bytes, which is what was used of
 * it (RFC 5681 equation 4, RFC 9438 section 4.6).  Linux starts from the
 * congestion window: tcp_reno_ssthresh(), cubictcp_recalc_ssthresh().
 */
__cold static void
reduce(struct tcpcb *tp, enum tcp_recovery state, enum cc_signal signal,
    uint32_t flight)
{
	tp->t_prr = (struct tcp_prr){
		.flight = atomic_load_u32(&tcp_reduce_cwnd) != 0 ?
		    tp->snd_cwnd : flight
	};
	tp->t_cc->cc_cong_signal(tp, signal);
	tp->snd_recover = tp->snd_max;
	tp->t_recovery = state;
	tp->t_tlp.pending = false;
	tp->t_flags |= TF_ECNCWR;
	tcp_timer_clear(tp, TT_PROBE);
}

/* A reduction in progress is not repeated. */
__cold static void
enter_fast(struct tcpcb *tp)
{
	TCPSTAT_INC(fastrexmit);
	if (tp->t_recovery == TR_CWR) {
		tp->t_recovery = TR_FAST;
		tp->snd_recover = tp->snd_max;
		return;
	}
	arm_undo(tp);
	reduce(tp, TR_FAST, CC_LOSS, tp->snd_max - tp->snd_una);
}

/* Called for each retransmission. */
void
tcp_recover_rexmit(struct tcpcb *tp, uint32_t len, nsec_t now)
{
	struct tcp_undo *u = &tp->t_undo;

	tp->t_rttstart = 0;		/* Karn's algorithm: no RTT sample */
	tp->t_rexmitbytes += len;
	if (tp->t_recovery == TR_OPEN)
		return;			/* a tail loss probe */
	if (u->rexmitted == 0)
		u->stamp = tcp_ts_at(tp, now);
	u->rexmitted += len;
}

/*
 * Whether the last reduction was spurious: an ACK of retransmitted data echoes
 * an older timestamp (Eifel, RFC 3522), or all retransmissions were duplicates
 * (RFC 2883, RFC 3708), or after a timeout data is acknowledged that was not
 * retransmitted (F-RTO, RFC 5682).
 */
static bool
was_spurious(const struct tcpcb *tp, const struct tcp_acked *a)
{
	const struct tcp_undo *u = &tp->t_undo;

	if (__predict_true(!u->armed))
		return (false);
	if (a->has_ts && a->again && u->rexmitted > 0 &&
	    tp->t_recovery != TR_OPEN && (int32_t)(a->tsecr - u->stamp) < 0)
		return (true);
	if (a->dsack && u->rexmitted > 0 && u->dsacked >= u->rexmitted)
		return (true);
	return (tp->t_frto == FRTO_NEW && a->original);
}

/* Restores the state (RFC 4015, RFC 9438 section 4.9). */
__cold static void
undo(struct tcpcb *tp)
{
	const struct tcp_undo *u = &tp->t_undo;

	TCPSTAT_INC(undone);
	tp->t_undo.armed = false;
	tp->t_recovery = TR_OPEN;
	tp->t_frto = FRTO_OFF;
	tp->t_dupacks = 0;
	tcp_sent_unlose(tp);
	if (tp->snd_cwnd < u->cwnd)
		tp->snd_cwnd = u->cwnd;
	tp->snd_ssthresh = u->ssthresh;
	tcp_cc_undo(tp, &u->ccstate);
}

/* Ends recovery: all data in flight at its start is acknowledged. */
__cold static void
leave(struct tcpcb *tp)
{
	if (tp->t_recovery != TR_TIMEOUT)
		tp->snd_cwnd = tp->snd_ssthresh;
	if (tp->t_recovery != TR_CWR)
		tcp_rack_recovered(tp);
	tp->t_recovery = TR_OPEN;
	tp->t_frto = FRTO_OFF;
	tp->t_dupacks = 0;
}

/* RFC 6582: loss detection without SACK.  True: a loss was detected. */
__cold static bool
count_duplicates(struct tcpcb *tp, const struct tcp_acked *a)
{
	const struct tcp_sent *first = TAILQ_FIRST(&tp->t_sent);
	uint32_t segs;

	if (tp->t_recovery == TR_TIMEOUT)
		return (false);
	if (a->acked > 0) {
		if (tp->t_recovery != TR_FAST) {
			tp->t_dupacks = 0;
			return (false);
		}
		/* one segment filled the hole, the others had been counted */
		segs = a->acked > tp->t_maxseg ? a->acked / tp->t_maxseg - 1 :
		    0;
		tp->t_dupacks -= segs < tp->t_dupacks ? segs : tp->t_dupacks;
		if (first == NULL || first->again)
			return (false);
		tcp_sent_lose(tp, tp->t_maxseg);
		return (true);
	}
	if (!a->duplicate)
		return (false);
	tp->t_dupacks++;
	/*
	 * section 3.2 step 2: ignore duplicates of a timeout's retransmissions
	 */
	if (tp->t_recovery == TR_FAST || tp->t_dupacks < DUPTHRESH ||
	    SEQ_LEQ(tp->snd_una, tp->snd_recover))
		return (false);
	tcp_sent_lose(tp, tp->t_maxseg);
	return (true);
}

/* Bytes that have left the network (RFC 6937 section 3, DeliveredData). */
static uint32_t
delivered(const struct tcpcb *tp, const struct tcp_acked *a)
{
	if (tp->t_flags & TF_SACK)
		return (a->delivered);
	if (a->acked == 0)
		return (a->duplicate ? tp->t_maxseg : 0);
	return (a->acked < tp->t_maxseg ? a->acked : tp->t_maxseg);
}

/*
 * RFC 6937 with the conservative bound.  As in its revision, slow start is
 * used when an ACK advances without another loss.
 */
__cold static void
reduce_rate(struct tcpcb *tp, const struct tcp_acked *a, bool lost)
{
	struct tcp_prr *prr = &tp->t_prr;
	const uint32_t pipe = tcp_pipe(tp), news = delivered(tp, a);
	int64_t send;

	prr->delivered += news;
	if (pipe > tp->snd_ssthresh) {
		send = (int64_t)(((uint64_t)prr->delivered *
		    tp->snd_ssthresh + prr->flight - 1) / prr->flight) -
		    prr->out;
	} else {
		send = (int64_t)prr->delivered - prr->out;
		if (send < news)
			send = news;
		if (a->acked > 0 && !lost && tp->t_recovery == TR_FAST)
			send += tp->t_maxseg;
		if (send > tp->snd_ssthresh - pipe)
			send = tp->snd_ssthresh - pipe;
	}
	/* fast retransmit is immediate; an empty pipe gives no ACK clock */
	if ((prr->out == 0 || pipe == 0) && send < tp->t_maxseg)
		send = tp->t_maxseg;
	tp->snd_cwnd = pipe + (send > 0 ? (uint32_t)send : 0);
}

/*
 * RFC 5682 section 3.1: the first ACK after a timeout sends new data instead
 * of retransmissions; the next ACK decides.
 */
static void
judge_timeout(struct tcpcb *tp, const struct tcp_acked *a)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	uint32_t cc = tp->t_inp.inp_socket->so_snd.sb_cc;
	uint32_t flight = tp->snd_max - tp->snd_una;

	if (tp->t_frto == FRTO_OFF || (a->acked == 0 && a->delivered == 0 &&
	    !a->duplicate))
		return;
	if (tp->t_frto == FRTO_SENT && a->acked > 0 &&
	    cc >= flight + tp->t_maxseg &&
	    tp->snd_wnd >= flight + tp->t_maxseg) {
		tp->t_frto = FRTO_NEW;
		tp->snd_cwnd = tcp_pipe(tp) + 2 * tp->t_maxseg;
	} else {
		tp->t_frto = FRTO_OFF;
	}
}

/*
 * Slow start after a timeout; an ACK counts as at most one segment (RFC 3465
 * section 2.3).
 */
__cold static void
grow_after_timeout(struct tcpcb *tp, const struct tcp_acked *a)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	judge_timeout(tp, a);
	if (tp->t_frto == FRTO_OFF && a->acked > 0)
		tcp_cc_acked(tp, a->acked < tp->t_maxseg ? a->acked :
		    tp->t_maxseg);
}

/*
 * Of acked bytes, those that duplicate ACKs had not reported: each stood for a
 * segment, and let another one be sent (RFC 3042).
 */
static uint32_t
not_counted(const struct tcpcb *tp, uint32_t acked, unsigned dupacks)
{
	const uint32_t counted = dupacks * tp->t_maxseg;

	if (__predict_true(dupacks == 0) || acked <= tp->t_maxseg)
		return (acked);
	return (acked - tp->t_maxseg > counted ? acked - counted :
	    tp->t_maxseg);
}

/*
 * Called after an ACK was applied to the send buffer and the send map.  ack is
 * its number, which may be less than snd_una.
 */
__hot void
tcp_recover(struct tcpcb *tp, tcp_seq ack, const struct tcp_acked *a)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const bool calm = tp->t_recovery == TR_OPEN;
	const unsigned dupacks = tp->t_dupacks;
	bool repaired = false, lost;

	if (tcp_tlp_acked(tp, ack, a) && calm)
		reduce(tp, TR_CWR, CC_LOSS, tp->snd_max - tp->snd_una +
		    a->acked);
	if (__predict_false(tp->t_cc->cc_ack_marked != NULL))
		tp->t_cc->cc_ack_marked(tp, a->acked, a->marked);
	/* RFC 3168 section 6.1.2: once a window */
	if (a->marked && tp->t_recovery == TR_OPEN &&
	    SEQ_GT(ack, tp->snd_recover)) {
		TCPSTAT_INC(ecnreductions);
		reduce(tp, TR_CWR, CC_ECN, tp->snd_max - tp->snd_una +
		    a->acked);
	}
	if (a->dsack)
		tcp_rack_dsack(tp);
	if (was_spurious(tp, a))
		undo(tp);
	if (__predict_false(tp->t_recovery != TR_OPEN) &&
	    SEQ_GEQ(tp->snd_una, tp->snd_recover)) {
		repaired = tp->t_recovery == TR_TIMEOUT;
		leave(tp);
	}
	lost = tp->t_flags & TF_SACK ? tcp_rack_detect(tp, a->now) :
	    count_duplicates(tp, a);
	if (lost && (tp->t_recovery == TR_OPEN || tp->t_recovery == TR_CWR))
		enter_fast(tp);
	if (tp->t_recovery == TR_TIMEOUT || repaired)
		grow_after_timeout(tp, a);
	else if (tp->t_recovery != TR_OPEN)
		reduce_rate(tp, a, lost);
	else if (calm && a->acked > 0)
		tcp_cc_acked(tp, tp->t_flags & TF_SACK ? a->delivered :
		    not_counted(tp, a->acked, dupacks));
	if (__predict_true(a->acked > 0) || a->delivered > 0)
		tcp_tlp_schedule(tp);
}

/* The reordering timer fired: late segments are lost. */
void
tcp_recover_reorder(struct tcpcb *tp)
{
	const struct tcp_acked none = { .now = getuptime() };

	if (!tcp_rack_detect(tp, none.now))
		return;
	if (tp->t_recovery == TR_OPEN || tp->t_recovery == TR_CWR)
		enter_fast(tp);
	if (tp->t_recovery == TR_FAST)
		reduce_rate(tp, &none, true);
	(void)tcp_output(tp);
}

/*
 * The retransmission timer fired: one segment (RFC 5681 section 3.1).  If SACK
 * had reported the first segment, the peer has discarded reported data.
 */
void
tcp_recover_timeout(struct tcpcb *tp)
{
	const struct tcp_sent *first = TAILQ_FIRST(&tp->t_sent);
	bool calm = tp->t_recovery == TR_OPEN;

	if (tp->t_rxtshift == 1) {
		arm_undo(tp);
		reduce(tp, TR_TIMEOUT, CC_TIMEOUT,
		    tp->snd_max - tp->snd_una);
		tp->t_frto = calm ? FRTO_SENT : FRTO_OFF;
	} else {
		tp->t_recovery = TR_TIMEOUT;
		tp->snd_recover = tp->snd_max;
		tp->t_frto = FRTO_OFF;
	}
	tp->t_tlp.pending = false;
	tp->t_dupacks = 0;
	tcp_timer_clear(tp, TT_PROBE);
	tcp_timer_clear(tp, TT_REORDER);
	if (first != NULL && first->state == SENT_SACKED)
		tcp_sent_renege(tp);
	if (tp->t_flags & TF_SACK)
		tcp_rack_timeout(tp, getuptime());
	else
		tcp_sent_lose(tp, tp->snd_max - tp->snd_una);
	tp->snd_cwnd = tcp_pipe(tp) + tp->t_maxseg;
}

/*
 * The peer has opened a window that was shut.  It refused what was sent
 * meanwhile, the last probe included: the next one need not wait for the timer,
 * whose delay has grown.
 */
void
tcp_recover_reopened(struct tcpcb *tp)
{
	if (tp->t_recovery != TR_TIMEOUT || tp->t_rxtshift == 0 ||
	    tp->snd_una == tp->snd_max)
		return;
	tp->t_frto = FRTO_OFF;
	tcp_sent_lose(tp, tp->t_maxseg);
	tp->snd_cwnd = tcp_pipe(tp) + tp->t_maxseg;
	tp->t_rxtshift = 1;
	tcp_timer_set(tp, TT_REXMT, tp->t_rto);
}

/* The segment size was reduced (RFC 1191): retransmits what is in flight. */
void
tcp_recover_resend(struct tcpcb *tp)
{
	tcp_sent_lose(tp, tp->snd_max - tp->snd_una);
	(void)tcp_output(tp);
}
