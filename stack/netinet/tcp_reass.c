/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP data and FIN: in-order data goes to the receive buffer, other data to a
 * sorted queue of contiguous blocks (RFC 9293 section 3.10.7.4, seventh and
 * eighth step).  They are our SACK blocks, too (RFC 2018).
 */
#include <errno.h>
#include <netinet/tcp.h>

#include "netinet/tcp_var.h"

#define	OO_FACTOR	8	/* max memory per byte of data, as in BSD */

/* Adds an empty block after another one (NULL: at the head). */
static struct tcp_ooblock *
block_add(struct tcpcb *tp, struct tcp_ooblock *before, tcp_seq seq)
{
	struct tcp_ooblock *b = kmalloc(sizeof(*b));

	*b = (struct tcp_ooblock){ .seq = seq };
	if (before != NULL)
		TAILQ_INSERT_AFTER(&tp->t_ooq, before, b, link);
	else
		TAILQ_INSERT_HEAD(&tp->t_ooq, b, link);
	TAILQ_INSERT_HEAD(&tp->t_oorecent, b, rlink);
	tp->t_oolen++;
	return (b);
}

__cold static void
block_free(struct tcpcb *tp, struct tcp_ooblock *b)
{
	TAILQ_REMOVE(&tp->t_ooq, b, link);
	TAILQ_REMOVE(&tp->t_oorecent, b, rlink);
	KASSERT(tp->t_oolen > 0 && tp->t_oobytes >= b->len &&
	    tp->t_oomemory >= b->memory, ("block_free: %u blocks, %u bytes",
	    tp->t_oolen, tp->t_oobytes));
	tp->t_oolen--;
	tp->t_oobytes -= b->len;
	tp->t_oomemory -= b->memory;
	m_freem(b->m);
	kfree(b);
}

/* Appends len bytes.  Short segments are copied, as in a socket buffer. */
static void
block_append(struct tcpcb *tp, struct tcp_ooblock *b, struct mbuf *m,
    uint32_t len)
{
	struct mbuf *last = b->last;
	uint64_t memory;

	if (last == NULL) {
		b->m = m;
		b->last = m_pack(m, m->m_next);
		memory = m_memory(m);
	} else {
		b->last = m_pack(last, m);
		memory = m_memory(last->m_next);
	}
	b->memory += memory;
	tp->t_oomemory += memory;
	b->len += len;
	tp->t_oobytes += len;
	b->m->m_pkthdr.len = b->len;
}

/*
 * Appends the block to which this one has grown.  A peer chooses how often, so
 * that the time must not depend on its length.
 */
static void
block_absorb(struct tcpcb *tp, struct tcp_ooblock *b, struct tcp_ooblock *next)
{
	b->fin = next->fin;
	if (next->m != NULL) {
		b->last->m_next = next->m;
		b->last = next->last;
		b->len += next->len;
		b->memory += next->memory;
		b->m->m_pkthdr.len = b->len;
		next->m = NULL;
		next->len = 0;
		next->memory = 0;
	}
	block_free(tp, next);
}

void
tcp_reass_flush(struct tcpcb *tp)
{
	struct tcp_ooblock *b;

	while ((b = TAILQ_FIRST(&tp->t_ooq)) != NULL)
		block_free(tp, b);
	KASSERT(tp->t_oolen == 0 && tp->t_oobytes == 0 && tp->t_oomemory == 0,
	    ("tcp_reass_flush: %u blocks, %u bytes left", tp->t_oolen,
	    tp->t_oobytes));
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
	if (__predict_false((so->so_state & SS_CANTRCVMORE) != 0) &&
	    atomic_load_u32(&tcp_shutrd_keeps) == 0) {
		m_freem(m);
		return;
	}
	if (so->so_oob == OOB_AWAITED)
		m = sooobtake(so, m, len);
	sbappendstream(&so->so_rcv, m);
}

/* The last block that begins at seq or before; most segments belong there. */
static struct tcp_ooblock *
block_before(const struct tcpcb *tp, tcp_seq seq)
{
	struct tcp_ooblock *b;

	TAILQ_FOREACH_REVERSE(b, &tp->t_ooq, tcp_ooblocks, link)
		if (SEQ_LEQ(b->seq, seq))
			break;
	return (b);
}

/*
 * Trims a new segment that belongs after before (NULL: at the head) to what is
 * not queued yet.  len is 0 if nothing is new.
 */
static void
cut_overlap(struct tcpcb *tp, struct tcp_ooblock *before, struct tcpseg *sg)
{
	struct tcp_ooblock *q, *next;
	uint32_t n;

	q = before != NULL ? TAILQ_NEXT(before, link) :
	    TAILQ_FIRST(&tp->t_ooq);
	if (before != NULL && SEQ_GT(before->seq + before->len, sg->sg_seq)) {
		n = before->seq + before->len - sg->sg_seq;
		if (n > sg->sg_len)
			n = sg->sg_len;
		tcp_dsack_report(tp, sg->sg_seq, sg->sg_seq + n);
		m_adj(sg->sg_m, n);
		sg->sg_seq += n;
		sg->sg_len -= n;
	}
	/* remove blocks that the segment covers; trim it where one overlaps */
	for (; q != NULL && sg->sg_len > 0; q = next) {
		next = TAILQ_NEXT(q, link);
		if (SEQ_LEQ(sg->sg_seq + sg->sg_len, q->seq))
			break;
		tcp_dsack_report(tp, q->seq, seq_min(q->seq + q->len,
		    sg->sg_seq + sg->sg_len));
		if (SEQ_GEQ(sg->sg_seq + sg->sg_len, q->seq + q->len) &&
		    !q->fin) {
			block_free(tp, q);
			continue;
		}
		n = sg->sg_seq + sg->sg_len - q->seq;
		m_adj(sg->sg_m, -(int64_t)n);
		sg->sg_len -= n;
		sg->sg_flags &= (uint8_t)~TH_FIN;
	}
}

/*
 * Whether a segment may be kept, in a new block or not.  The window bounds the
 * data, but not what short segments cost: time to search the blocks, and
 * memory.  Above the limit, blocks have the default MSS on average, and memory
 * is a small multiple of the data.
 */
static bool
has_room(const struct tcpcb *tp, const struct tcpseg *sg, bool block)
{
	const uint64_t least = atomic_load_u32(&tcp_maxreass);
	const uint64_t bytes = (uint64_t)tp->t_oobytes + sg->sg_len;
	const uint64_t memory = tp->t_oomemory +
	    (sg->sg_len > 0 ? m_memory(sg->sg_m) : 0);

	if (block && tp->t_oolen >= least &&
	    (tp->t_oolen + 1ULL) * TCP_DEFAULT_MSS > bytes)
		return (false);
	return (memory <= least * (MSIZE + MCLBYTES) ||
	    memory <= OO_FACTOR * bytes);
}

/* Adds what is new of a segment; before as in cut_overlap(). */
static struct tcp_ooblock *
insert(struct tcpcb *tp, struct tcp_ooblock *before, struct tcpseg *sg)
{
	const bool fin = (sg->sg_flags & TH_FIN) != 0;
	struct tcp_ooblock *b = before, *next;
	bool block;

	if ((sg->sg_len == 0 && !fin) || (b != NULL && b->fin))
		return (before);	/* nothing comes after a FIN */
	block = b == NULL || b->seq + b->len != sg->sg_seq;
	if (!has_room(tp, sg, block)) {
		TCPSTAT_INC(rcvoodrop);
		return (NULL);
	}
	if (block)
		b = block_add(tp, before, sg->sg_seq);
	b->fin = fin;
	if (sg->sg_len > 0) {
		block_append(tp, b, sg->sg_m, sg->sg_len);
		sg->sg_m = NULL;
	}
	next = TAILQ_NEXT(b, link);
	if (next != NULL && !fin && b->seq + b->len == next->seq)
		block_absorb(tp, b, next);
	return (b);
}

/* Queues a segment that is out of order. */
static void
queue(struct tcpcb *tp, struct tcpseg *sg)
{
	struct tcp_ooblock *before = block_before(tp, sg->sg_seq), *b;

	TCPSTAT_INC(rcvoo);
	tp->t_ooopack++;
	cut_overlap(tp, before, sg);
	b = insert(tp, before, sg);
	if (b == NULL)
		return;
	TAILQ_REMOVE(&tp->t_oorecent, b, rlink);
	TAILQ_INSERT_HEAD(&tp->t_oorecent, b, rlink);
}

/* Cuts the segment at the end of the window. */
static void
fit_window(struct tcpcb *tp, struct tcpseg *sg)
{
	const uint32_t wnd = tp->rcv_adv - tp->rcv_nxt;

	if (sg->sg_len > wnd) {
		m_adj(sg->sg_m, -(int64_t)(sg->sg_len - wnd));
		sg->sg_len = wnd;
		sg->sg_flags &= (uint8_t)~TH_FIN;
	}
}

void
tcp_reass_later(struct tcpcb *tp, struct tcpseg *sg)
{
	fit_window(tp, sg);
	queue(tp, sg);
}

void
tcp_reass_fast(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	fit_window(tp, sg);
	if (sg->sg_len == 0)
		return;
	TCPSTAT_INC(rcvdata);
	tp->t_lastdata = getuptime();
	tp->t_data_segs_in += sg->sg_segs;
	tp->t_flags |= TF_SYNDATA;
	deliver(tp, sg->sg_m, sg->sg_len);
	sg->sg_m = NULL;
}

/*
 * Delivers data that has become contiguous, and reports what came before it in
 * order, too (RFC 2883 section 4).  True: a FIN was reached.
 */
static bool
drain(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_ooblock *q;
	bool fin = false;

	while (!fin && (q = TAILQ_FIRST(&tp->t_ooq)) != NULL &&
	    SEQ_LEQ(q->seq, tp->rcv_nxt)) {
		const uint32_t old = tp->rcv_nxt - q->seq;

		tcp_dsack_report(tp, q->seq, q->seq +
		    (old < q->len ? old : q->len));
		fin = q->fin && SEQ_GEQ(q->seq + q->len, tp->rcv_nxt);
		if (old < q->len) {
			m_adj(q->m, old);
			deliver(tp, q->m, q->len - old);
			q->m = NULL;
		}
		block_free(tp, q);
	}
	return (fin);
}

/*
 * Blocks of the SACK option: first a duplicate (RFC 2883 section 4), then the
 * block with the most recent segment, then those before it, so that each is
 * reported several times (RFC 2018 section 4).
 */
unsigned
tcp_reass_sack(const struct tcpcb *tp, struct tcp_sackblock *blocks)
{
	const struct tcp_ooblock *q;
	unsigned n = 0;

	if (tp->t_dsack.start != tp->t_dsack.end)
		blocks[n++] = tp->t_dsack;
	TAILQ_FOREACH(q, &tp->t_oorecent, rlink) {
		if (n == TCP_SACK_MAX)
			break;
		if (q->len > 0)		/* else only a FIN */
			blocks[n++] = (struct tcp_sackblock){ q->seq,
			    q->seq + q->len };
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

bool
tcp_isanswer(const struct tcpcb *tp)
{
	if (tp->rcv_nxt == tp->irs + 1 && (tp->t_flags & TF_FOWAIT) == 0)
		return (false);
	return (getuptime() - tp->t_lastdata < tcp_msec(&tcp_delacktime));
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

/* Data of the peer's SYN, queued until the handshake was complete. */
static bool
is_ready(const struct tcpcb *tp)
{
	const struct tcp_ooblock *q = TAILQ_FIRST(&tp->t_ooq);

	return (q != NULL && q->seq == tp->rcv_nxt);
}

__cold static enum tcp_step
take_ready(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	bool fin;

	if (!is_ready(tp))
		return (STEP_NEXT);
	tp->t_flags |= TF_ACKNOW;
	fin = drain(tp);
	sorwakeup(tp->t_inp.inp_socket);
	return (fin ? fin_received(tp) : STEP_NEXT);
}

/* Input step: data and FIN. */
__hot enum tcp_step
tcp_data_input(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	bool fin = (sg->sg_flags & TH_FIN) != 0;

	if (sg->sg_len == 0 && !fin)
		return (__predict_false(is_ready(tp)) ? take_ready(tp) :
		    STEP_NEXT);
	/* beyond the peer's FIN: ignored, but TIME_WAIT acknowledges it again */
	if (__predict_false(tcp_has_fin(tp)))
		return (tp->t_state == TCPS_TIME_WAIT ? STEP_ACK : STEP_NEXT);
	if (__predict_false(is_orphaned(tp, sg))) {
		TCPSTAT_INC(rcvafterclose);
		tcp_reset(sg, &tp->t_inp.inp_opts);	/* as all systems */
		tcp_close(tp);
		return (STEP_GONE);
	}
	if (__predict_false(sg->sg_seq != tp->rcv_nxt)) {
		tp->t_flags |= TF_ACKNOW;	/* RFC 5681 section 4.2 */
		queue(tp, sg);
		return (take_ready(tp));
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
