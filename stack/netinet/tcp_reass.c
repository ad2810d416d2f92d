/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP data and FIN: in-order data goes to the receive buffer, other data to a
 * sorted queue (RFC 9293 section 3.10.7.4, seventh and eighth step).  The
 * queue also yields our SACK blocks (RFC 2018).
 */
#include <errno.h>
#include <netinet/tcp.h>

#include "netinet/tcp_var.h"

__cold static void
ooseg_free(struct tcpcb *tp, struct tcp_ooseg *q)
{
	TAILQ_REMOVE(&tp->t_ooq, q, link);
	KASSERT(tp->t_oolen > 0, ("ooseg_free: none counted"));
	tp->t_oolen--;
	m_freem(q->m);
	kfree(q);
}

void
tcp_reass_flush(struct tcpcb *tp)
{
	struct tcp_ooseg *q;

	while ((q = TAILQ_FIRST(&tp->t_ooq)) != NULL)
		ooseg_free(tp, q);
	KASSERT(tp->t_oolen == 0, ("tcp_reass_flush: %u left", tp->t_oolen));
}

/* Only the first duplicate before the next ACK is reported. */
void
tcp_dsack_report(struct tcpcb *tp, tcp_seq start, tcp_seq end)
{
	if ((tp->t_flags & TF_SACK) != 0 && SEQ_LT(start, end) &&
	    tp->t_dsack.start == tp->t_dsack.end)
		tp->t_dsack = (struct tcp_sackblock){ start, end };
}

/* Appends in-order data to the receive buffer.  Consumes m. */
static void
deliver(struct tcpcb *tp, struct mbuf *m, uint32_t len)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;

	tp->rcv_nxt += len;
	tp->t_bytes_received += len;
	TCPSTAT_ADD(rcvbyte, len);
	if (so->so_state & SS_CANTRCVMORE) {	/* shut down for reading */
		m_freem(m);
		return;
	}
	if (so->so_oob == OOB_AWAITED)
		m = sooobtake(so, m, len);
	sbappendstream(&so->so_rcv, m);
}

/*
 * Trims a new segment to what is not queued yet; data received first is kept.
 * Returns the entry to insert it after (NULL: at the head).  len is 0 if
 * nothing is new.
 */
static struct tcp_ooseg *
cut_overlap(struct tcpcb *tp, struct tcpseg *sg)
{
	struct tcp_ooseg *before = NULL, *q, *next;
	uint32_t n;

	TAILQ_FOREACH(q, &tp->t_ooq, link) {
		if (SEQ_GT(q->seq, sg->sg_seq))
			break;
		before = q;
	}
	if (before != NULL && SEQ_GT(before->seq + before->len, sg->sg_seq)) {
		n = before->seq + before->len - sg->sg_seq;
		if (n > sg->sg_len)
			n = sg->sg_len;
		tcp_dsack_report(tp, sg->sg_seq, sg->sg_seq + n);
		m_adj(sg->sg_m, n);
		sg->sg_seq += n;
		sg->sg_len -= n;
	}
	/* remove entries that the segment covers; trim it where one overlaps */
	for (; q != NULL && sg->sg_len > 0; q = next) {
		next = TAILQ_NEXT(q, link);
		if (SEQ_LEQ(sg->sg_seq + sg->sg_len, q->seq))
			break;
		tcp_dsack_report(tp, q->seq, seq_min(q->seq + q->len,
		    sg->sg_seq + sg->sg_len));
		if (SEQ_GEQ(sg->sg_seq + sg->sg_len, q->seq + q->len) &&
		    !q->fin) {
			ooseg_free(tp, q);
			continue;
		}
		n = sg->sg_seq + sg->sg_len - q->seq;
		m_adj(sg->sg_m, -(int64_t)n);
		sg->sg_len -= n;
		sg->sg_flags &= (uint8_t)~TH_FIN;
	}
	return (before);
}

/* Queues a segment that is out of order. */
static void
queue(struct tcpcb *tp, struct tcpseg *sg)
{
	struct tcp_ooseg *before, *q;
	bool fin;

	TCPSTAT_INC(rcvoo);
	tp->t_ooopack++;
	if (tp->t_oolen >= atomic_load_u32(&tcp_maxreass)) {
		TCPSTAT_INC(rcvoodrop);
		return;
	}
	tp->t_oolast = sg->sg_seq;
	before = cut_overlap(tp, sg);
	fin = (sg->sg_flags & TH_FIN) != 0;
	if (sg->sg_len == 0 && !fin)
		return;
	q = kmalloc(sizeof(*q));
	q->seq = sg->sg_seq;
	q->len = sg->sg_len;
	q->fin = fin;
	q->m = sg->sg_m;
	sg->sg_m = NULL;
	if (before != NULL)
		TAILQ_INSERT_AFTER(&tp->t_ooq, before, q, link);
	else
		TAILQ_INSERT_HEAD(&tp->t_ooq, q, link);
	tp->t_oolen++;
}

/* Delivers data that has become contiguous.  True: a FIN was reached. */
static bool
drain(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_ooseg *q;
	bool fin = false;

	while (!fin && (q = TAILQ_FIRST(&tp->t_ooq)) != NULL &&
	    SEQ_LEQ(q->seq, tp->rcv_nxt)) {
		uint32_t old = tp->rcv_nxt - q->seq;

		fin = q->fin && SEQ_GEQ(q->seq + q->len, tp->rcv_nxt);
		if (old < q->len) {
			m_adj(q->m, old);
			deliver(tp, q->m, q->len - old);
			q->m = NULL;
		}
		ooseg_free(tp, q);
	}
	return (fin);
}

/*
 * Blocks of the SACK option: first a duplicate (RFC 2883 section 4), then the
 * block with the most recent segment, then from the left edge up (RFC 2018
 * section 4).
 */
unsigned
tcp_reass_sack(const struct tcpcb *tp, struct tcp_sackblock *blocks)
{
	struct tcp_sackblock b, tmp;
	const struct tcp_ooseg *q = TAILQ_FIRST(&tp->t_ooq);
	unsigned n = 0, first;
	bool recent;

	if (tp->t_dsack.start != tp->t_dsack.end)
		blocks[n++] = tp->t_dsack;
	first = n;
	while (q != NULL) {
		b.start = q->seq;
		b.end = q->seq + q->len;
		while ((q = TAILQ_NEXT(q, link)) != NULL && q->seq == b.end)
			b.end += q->len;
		if (b.start == b.end)
			continue;	/* only a FIN */
		recent = SEQ_LEQ(b.start, tp->t_oolast) &&
		    SEQ_LT(tp->t_oolast, b.end);
		if (recent && n > first) {
			tmp = blocks[first];
			blocks[first] = b;
			b = tmp;
		}
		if (n < TCP_SACK_MAX)
			blocks[n++] = b;
	}
	return (n);
}

/* RFC 9293 section 3.10.7.4, eighth step: the peer has closed its side. */
NOINLINE static enum tcp_step
fin_received(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	tp->rcv_nxt++;
	tp->t_flags |= TF_ACKNOW;
	tcp_reass_flush(tp);
	socantrcvmore(tp->t_inp.inp_socket);
	switch (tp->t_state) {
	case TCPS_ESTABLISHED:
		tcp_setstate(tp, TCPS_CLOSE_WAIT);
		return (STEP_NEXT);
	case TCPS_FIN_WAIT_1:
		tcp_setstate(tp, TCPS_CLOSING);
		return (STEP_NEXT);
	case TCPS_FIN_WAIT_2:
		return (tcp_timewait(tp) ? STEP_NEXT : STEP_GONE);
	default:
		panic("fin_received: state %s", tcp_state_names[tp->t_state]);
	}
}

/*
 * RFC 9293 section 3.8.6.3: at least every second segment is acknowledged at
 * once, others within the delay.  A merged segment counts as its wire
 * segments.
 */
static void
schedule_ack(struct tcpcb *tp, const struct tcpseg *sg)
{
	uint32_t full = sg->sg_len < 2 * tp->t_maxseg ? 0 :
	    sg->sg_len / tp->t_maxseg;

	tp->t_unacked += full > sg->sg_segs ? full : sg->sg_segs;
	if ((tp->t_flags & TF_QUICKACK) || tp->t_quickacks > 0)
		tp->t_flags |= TF_ACKNOW;
	else if (tp->t_unacked >= 2)
		tp->t_flags |= tcp_ack_defer(tp) ? 0 : TF_ACKNOW;
	else if (!tcp_timer_running(tp, TT_DELACK))
		tcp_timer_set(tp, TT_DELACK, tcp_msec(&tcp_delacktime));
}

/*
 * Data after the program has closed: no reader is left (RFC 9293 section
 * 3.6.1, SHLD-3).
 */
static bool
is_orphaned(const struct tcpcb *tp, const struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	return ((tp->t_inp.inp_socket->so_state & SS_NOFDREF) != 0 &&
	    sg->sg_len > 0 &&
	    tp->t_inp.inp_socket->so_head == NULL);
}

/* Input step: data and FIN. */
__hot enum tcp_step
tcp_data_input(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	bool fin = (sg->sg_flags & TH_FIN) != 0;

	if (sg->sg_len == 0 && !fin)
		return (STEP_NEXT);
	if (__predict_false(tcp_has_fin(tp)))
		return (STEP_NEXT);
	if (__predict_false(is_orphaned(tp, sg))) {
		TCPSTAT_INC(rcvafterclose);
		tcp_drop(tp, ECONNRESET);
		return (STEP_GONE);
	}
	if (__predict_false(sg->sg_seq != tp->rcv_nxt)) {
		tp->t_flags |= TF_ACKNOW;	/* RFC 5681 section 4.2 */
		queue(tp, sg);
		return (STEP_NEXT);
	}
	if (__predict_true(sg->sg_len > 0)) {
		TCPSTAT_INC(rcvdata);
		deliver(tp, sg->sg_m, sg->sg_len);
		sg->sg_m = NULL;
		schedule_ack(tp, sg);
	}
	if (__predict_false(!TAILQ_EMPTY(&tp->t_ooq))) {
		tp->t_flags |= TF_ACKNOW;	/* a gap was filled */
		fin = drain(tp) || fin;
	}
	sorwakeup(tp->t_inp.inp_socket);
	return (__predict_false(fin) ? fin_received(tp) : STEP_NEXT);
}
