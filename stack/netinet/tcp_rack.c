/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RACK-TLP (RFC 8985).  RACK: a segment sent before a delivered one is lost
 * after a reordering window, whether it is an original or a retransmission.
 * TLP: if no ACK arrives, a probe at the end of the flight triggers one, so
 * that a lost tail need not wait for the RTO.
 *
 * Both need SACK; names in capitals are those of the RFC.
 */
#include "netinet/tcp_var.h"

#define	DUPTHRESH	3
#define	PERSIST_ROUNDS	16 /* recoveries for which a larger window is kept */
#define	MULT_MAX	250
#define	PTO_UNKNOWN	NSEC_PER_SEC

/* An original was overtaken; records the distance in segments (TCP_INFO). */
__cold static void
count_reordering(struct tcpcb *tp, const struct tcp_sent *r,
    struct tcp_acked *a)
{
	struct tcp_rack *rk = &tp->t_rack;
	const uint32_t segs = tcp_segments(tp, a->fack - r->seq);

	rk->reordered = true;
	/* the records of one ACK come in any order: the farthest counts */
	if (segs > rk->distance)
		rk->distance = segs;
	if (a->reordered)
		return;
	a->reordered = true;
	rk->reorderings++;
}

/* Section 6.2, steps 1 to 3, for a record that was just delivered. */
void
tcp_rack_delivered(struct tcpcb *tp, const struct tcp_sent *r,
    struct tcp_acked *a)
{
	struct tcp_rack *rk = &tp->t_rack;
	nsec_t rtt = a->now - r->time;

	/* one ACK may deliver several records, in any order */
	if (!r->again && SEQ_LT(r->end, a->fack))
		count_reordering(tp, r, a);
	rk->fack = seq_max(rk->fack, r->end);
	if (r->again) {
		/* the ACK may be for the original transmission */
		if (rtt < rk->min_rtt || (a->has_ts &&
		    (int32_t)(a->tsecr - tcp_ts_at(tp, r->time)) < 0))
			return;
	} else {
		tp->t_rttlast = rtt;
		if (rtt < rk->min_rtt)
			rk->min_rtt = rtt;
	}
	if (tcp_sent_after(r, rk->time, rk->end)) {
		rk->time = r->time;
		rk->end = r->end;
		rk->rtt = rtt;
	}
}

/* Section 6.2, step 4: a DSACK shows that the window was too small. */
void
tcp_rack_dsack(struct tcpcb *tp)
{
	struct tcp_rack *rk = &tp->t_rack;

	if (rk->dsack_round && SEQ_LT(tp->snd_una, rk->dsack_end))
		return;			/* once in a round trip */
	rk->dsack_round = true;
	rk->dsack_end = tp->snd_max;
	rk->persist = PERSIST_ROUNDS;
	if (rk->mult < MULT_MAX)
		rk->mult++;
}

void
tcp_rack_recovered(struct tcpcb *tp)
{
	struct tcp_rack *rk = &tp->t_rack;

	if (rk->persist > 0 && --rk->persist == 0)
		rk->mult = 1;
}

void
tcp_rack_init(struct tcpcb *tp)
{
	tp->t_rack = (struct tcp_rack){ .min_rtt = NSEC_FOREVER, .mult = 1,
	    .fack = tp->snd_una };
	tp->t_rttlast = NSEC_FOREVER;
}

/* RACK_update_reo_wnd(). */
static nsec_t
reorder_window(const struct tcpcb *tp)
{
	const struct tcp_rack *rk = &tp->t_rack;
	nsec_t wnd;

	if (!rk->reordered && (tp->t_recovery == TR_FAST ||
	    tp->t_recovery == TR_TIMEOUT ||
	    tp->t_sackedbytes >= DUPTHRESH * tp->t_maxseg))
		return (0);
	if (rk->min_rtt == NSEC_FOREVER)
		return (0);
	wnd = rk->min_rtt / 4 * rk->mult;
	return (wnd < tp->t_srtt ? wnd : tp->t_srtt);
}

/*
 * Section 6.2, step 5: marks overdue records lost and sets the timer for the
 * next one.  True: a record was lost.
 */
__hot bool
tcp_rack_detect(struct tcpcb *tp, nsec_t now)
{
	const struct tcp_rack *rk = &tp->t_rack;
	nsec_t wait, left = 0;
	struct tcp_sent *r, *next;
	bool lost = false;

	tcp_timer_clear(tp, TT_REORDER);
	if ((tp->t_flags & TF_SACK) == 0 || rk->time == 0 ||
	    TAILQ_EMPTY(&tp->t_inflight))
		return (false);
	wait = rk->rtt + reorder_window(tp);
	for (r = TAILQ_FIRST(&tp->t_inflight); r != NULL &&
	    !tcp_sent_after(r, rk->time, rk->end); r = next) {
		next = TAILQ_NEXT(r, tlink);
		if (r->time + wait <= now) {
			tcp_sent_set(tp, r, SENT_LOST);
			lost = true;
		} else if (r->time + wait - now > left) {
			left = r->time + wait - now;
		}
	}
	if (left > 0)
		tcp_timer_set(tp, TT_REORDER, left);
	return (lost);
}

/*
 * Section 6.3: after an RTO, marks the first record and all overdue ones lost.
 */
void
tcp_rack_timeout(struct tcpcb *tp, nsec_t now)
{
	const nsec_t wait = tp->t_rack.rtt + reorder_window(tp);
	struct tcp_sent *r, *next;

	tcp_sent_lose(tp, tp->t_maxseg);
	for (r = TAILQ_FIRST(&tp->t_inflight); r != NULL; r = next) {
		next = TAILQ_NEXT(r, tlink);
		if (r->time + wait <= now)
			tcp_sent_set(tp, r, SENT_LOST);
	}
}

/*
 * Section 7.2: runs after new data or an ACK of data, outside recovery.  The
 * peer may delay the ACK of a single segment.  The probe replaces an RTO that
 * would fire before it.
 */
__hot void
tcp_tlp_schedule(struct tcpcb *tp)
{
	nsec_t pto = PTO_UNKNOWN;

	tcp_timer_clear(tp, TT_PROBE);
	if ((tp->t_flags & TF_SACK) == 0 || tp->t_recovery != TR_OPEN ||
	    tp->t_sackedbytes > 0 || tp->snd_una == tp->snd_max ||
	    tp->t_tlp.pending || tp->t_rxtshift > 0)
		return;
	if (tp->t_srtt != 0) {
		pto = 2 * tp->t_srtt;
		if (tp->snd_max - tp->snd_una <= tp->t_maxseg)
			pto += tcp_msec(&tcp_tlp_ackdelay);
		/* a busy host may answer later than 2 SRTT */
		if (pto < tcp_msec(&tcp_tlp_min))
			pto = tcp_msec(&tcp_tlp_min);
	}
	tcp_timer_set(tp, TT_PROBE, pto);
	if (tp->t_deadline[TT_PROBE] > tp->t_deadline[TT_REXMT])
		tp->t_deadline[TT_PROBE] = tp->t_deadline[TT_REXMT];
}

/* Section 7.3: the timer has fired. */
void
tcp_tlp_probe(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_tlp *tlp = &tp->t_tlp;

	if (tp->snd_una == tp->snd_max || tp->t_recovery != TR_OPEN ||
	    tp->t_sackedbytes > 0)
		return;
	TCPSTAT_INC(tlpprobe);
	tlp->again = !tcp_sendtail(tp);
	tlp->pending = true;
	tlp->end = tp->snd_max;
	tcp_timer_set(tp, TT_REXMT, tp->t_rto);
}

/*
 * Section 7.4: ends the episode.  True: the probe repaired a loss that no
 * other signal reported.
 */
bool
tcp_tlp_acked(struct tcpcb *tp, tcp_seq ack, const struct tcp_acked *a)
{
	struct tcp_tlp *tlp = &tp->t_tlp;

	if (__predict_true(!tlp->pending) || SEQ_LT(ack, tlp->end))
		return (false);
	if (!tlp->again || a->dsack) {
		tlp->pending = false;
		return (false);
	}
	if (SEQ_GT(ack, tlp->end)) {
		tlp->pending = false;
		return (true);
	}
	/* the same ACK twice: the peer has both, and does not send DSACK */
	if (a->acked == 0 && a->delivered == 0)
		tlp->pending = false;
	return (false);
}
