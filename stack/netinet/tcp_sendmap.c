/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP's send map: records of data sent and not acknowledged, in sequence
 * order.  Each record has the data of one transmission.  It is in flight, or
 * reported by SACK (RFC 2018), or lost and to be retransmitted:
 *
 *	in flight	also in t_inflight, in the order of transmission,
 *			which RACK needs
 *	lost		also in t_lost, in sequence order
 *	reported	in neither list; adjacent ones are merged
 *
 * The records cover [snd_una, snd_max) without gaps, FIN included.
 */
#include "netinet/tcp_var.h"

#define	LENGTH(r)	((r)->end - (r)->seq)
/*
 * More records than this and than two a segment indicate an attack by the
 * peer.
 */
#define	RECORDS_MIN	128

/*
 * A program with one request at a time uses one record.  It is part of the
 * tcpcb, so that other CPUs do not write to its memory.
 */
static struct tcp_sent *
record_new(struct tcpcb *tp)
{
	if (tp->t_sentused)
		return (kmalloc(sizeof(struct tcp_sent)));
	tp->t_sentused = true;
	return (&tp->t_sentown);
}

static void
record_free(struct tcpcb *tp, struct tcp_sent *r)
{
	if (r == &tp->t_sentown)
		tp->t_sentused = false;
	else
		kfree(r);
}

/* Removes a record from the list and sum of its state. */
static void
leave_state(struct tcpcb *tp, struct tcp_sent *r)
{
	if (__predict_true(r->state == SENT_INFLIGHT)) {
		TAILQ_REMOVE(&tp->t_inflight, r, tlink);
	} else if (r->state == SENT_SACKED) {
		tp->t_sackedbytes -= LENGTH(r);
	} else {
		TAILQ_REMOVE(&tp->t_lost, r, tlink);
		tp->t_lostbytes -= LENGTH(r);
	}
}

/* RFC 8985 section 5.2: compares transmission times, then sequence numbers. */
bool
tcp_sent_after(const struct tcp_sent *r, nsec_t time, tcp_seq end)
{
	return (r->time > time || (r->time == time && SEQ_GT(r->end, end)));
}

static void
enter_inflight(struct tcpcb *tp, struct tcp_sent *r)
{
	struct tcp_sent *p = TAILQ_LAST(&tp->t_inflight, tcp_senttime);

	while (__predict_false(p != NULL && tcp_sent_after(p, r->time, r->end)))
		p = TAILQ_PREV(p, tcp_senttime, tlink);
	if (p != NULL)
		TAILQ_INSERT_AFTER(&tp->t_inflight, p, r, tlink);
	else
		TAILQ_INSERT_HEAD(&tp->t_inflight, r, tlink);
}

static void
enter_lost(struct tcpcb *tp, struct tcp_sent *r)
{
	struct tcp_sent *p = TAILQ_LAST(&tp->t_lost, tcp_senttime);

	while (p != NULL && SEQ_GT(p->seq, r->seq))
		p = TAILQ_PREV(p, tcp_senttime, tlink);
	if (p != NULL)
		TAILQ_INSERT_AFTER(&tp->t_lost, p, r, tlink);
	else
		TAILQ_INSERT_HEAD(&tp->t_lost, r, tlink);
	tp->t_lostbytes += LENGTH(r);
}

void
tcp_sent_set(struct tcpcb *tp, struct tcp_sent *r, enum tcp_sentstate state)
{
	leave_state(tp, r);
	r->state = state;
	if (state == SENT_SACKED)
		tp->t_sackedbytes += LENGTH(r);
	else if (state == SENT_LOST)
		enter_lost(tp, r);
	else
		enter_inflight(tp, r);
}

/* Splits a record; the right half follows it in all lists. */
NOINLINE static struct tcp_sent *
split(struct tcpcb *tp, struct tcp_sent *r, tcp_seq at)
{
	struct tcp_sent *right = record_new(tp);

	KASSERT(SEQ_LT(r->seq, at) && SEQ_LT(at, r->end),
	    ("split: [%u, %u) at %u", r->seq, r->end, at));
	*right = *r;
	r->end = right->seq = at;
	TAILQ_INSERT_AFTER(&tp->t_sent, r, right, link);
	tp->t_nsent++;
	if (r->state == SENT_INFLIGHT)
		TAILQ_INSERT_AFTER(&tp->t_inflight, r, right, tlink);
	else if (r->state == SENT_LOST)
		TAILQ_INSERT_AFTER(&tp->t_lost, r, right, tlink);
	return (right);
}

static void
discard(struct tcpcb *tp, struct tcp_sent *r)
{
	leave_state(tp, r);
	if (tp->t_senthint == r)
		tp->t_senthint = TAILQ_NEXT(r, link);
	TAILQ_REMOVE(&tp->t_sent, r, link);
	tp->t_nsent--;
	record_free(tp, r);
}

void
tcp_sent_init(struct tcpcb *tp)
{
	TAILQ_INIT(&tp->t_sent);
	TAILQ_INIT(&tp->t_inflight);
	TAILQ_INIT(&tp->t_lost);
}

void
tcp_sent_flush(struct tcpcb *tp)
{
	struct tcp_sent *r;

	while ((r = TAILQ_FIRST(&tp->t_sent)) != NULL)
		discard(tp, r);
	KASSERT(tp->t_nsent == 0 && tp->t_lostbytes == 0 &&
	    tp->t_sackedbytes == 0, ("tcp_sent_flush: %u left", tp->t_nsent));
}

/* Finds the record of seq, starting where the last search ended. */
static struct tcp_sent *
find(struct tcpcb *tp, tcp_seq seq)
{
	struct tcp_sent *r = tp->t_senthint;

	if (r == NULL)
		r = TAILQ_FIRST(&tp->t_sent);
	while (r != NULL && SEQ_GT(r->seq, seq))
		r = TAILQ_PREV(r, tcp_sentlist, link);
	while (r != NULL && SEQ_LEQ(r->end, seq))
		r = TAILQ_NEXT(r, link);
	if (r != NULL)
		tp->t_senthint = r;
	return (r);
}

/* Records that [seq, end) was sent or retransmitted. */
__hot void
tcp_sent_add(struct tcpcb *tp, tcp_seq seq, tcp_seq end, nsec_t now)
{
	struct tcp_sent *r;

	if (__predict_false(SEQ_LT(seq, tp->snd_max))) {
		r = find(tp, seq);
		KASSERT(r != NULL && r->state != SENT_SACKED,
		    ("tcp_sent_add: %u is not missing", seq));
		if (SEQ_LT(r->seq, seq))
			r = split(tp, r, seq);
		if (SEQ_LT(end, r->end))
			(void)split(tp, r, end);
		r->again = true;
		leave_state(tp, r);
	} else {
		r = record_new(tp);
		*r = (struct tcp_sent){ .seq = seq, .end = end };
		TAILQ_INSERT_TAIL(&tp->t_sent, r, link);
		tp->t_nsent++;
	}
	r->time = now;
	r->state = SENT_INFLIGHT;
	enter_inflight(tp, r);
}

/* The peer reports a record for the first time. */
static void
deliver(struct tcpcb *tp, const struct tcp_sent *r, struct tcp_acked *a)
{
	a->delivered += LENGTH(r);
	if (!r->again && SEQ_LEQ(r->end, tp->snd_recover))
		a->original = true;
	tcp_rack_delivered(tp, r, a);
}

/* The cumulative acknowledgement has reached ack. */
__hot void
tcp_sent_ack(struct tcpcb *tp, tcp_seq ack, struct tcp_acked *a)
{
	struct tcp_sent *r;

	while ((r = TAILQ_FIRST(&tp->t_sent)) != NULL &&
	    SEQ_LT(r->seq, ack)) {
		if (__predict_false(SEQ_LT(ack, r->end)))
			(void)split(tp, r, ack);
		if (__predict_false(r->again))
			a->again = true;
		if (__predict_true(r->state != SENT_SACKED))
			deliver(tp, r, a);
		discard(tp, r);
	}
}

/* Merges a reported record with its predecessor if that is reported, too. */
static struct tcp_sent *
merge(struct tcpcb *tp, struct tcp_sent *r)
{
	struct tcp_sent *left = TAILQ_PREV(r, tcp_sentlist, link);

	if (left == NULL || left->state != SENT_SACKED ||
	    r->state != SENT_SACKED)
		return (r);
	tp->t_sackedbytes += LENGTH(r); /* subtracted again by discard() */
	left->end = r->end;
	discard(tp, r);
	return (left);
}

/* SACK reports [start, end), which lies between snd_una and snd_max. */
void
tcp_sent_sack(struct tcpcb *tp, tcp_seq start, tcp_seq end,
    struct tcp_acked *a)
{
	const unsigned most = RECORDS_MIN +
	    2 * ((tp->snd_max - tp->snd_una) / tp->t_maxseg);
	struct tcp_sent *r = find(tp, start);

	if (r != NULL && r->state != SENT_SACKED && SEQ_LT(r->seq, start)) {
		if (tp->t_nsent >= most)
			return;
		r = split(tp, r, start);
	}
	while (r != NULL && SEQ_LT(r->seq, end)) {
		if (r->state != SENT_SACKED) {
			if (SEQ_LT(end, r->end) && tp->t_nsent >= most)
				break;
			if (SEQ_LT(end, r->end))
				(void)split(tp, r, end);
			deliver(tp, r, a);
			tcp_sent_set(tp, r, SENT_SACKED);
		}
		r = TAILQ_NEXT(merge(tp, r), link);
	}
	if (r != NULL)
		(void)merge(tp, r);
}

/* Marks len bytes from snd_una lost, or all there are. */
void
tcp_sent_lose(struct tcpcb *tp, uint32_t len)
{
	struct tcp_sent *r;
	tcp_seq end = tp->snd_una + len;

	TAILQ_FOREACH(r, &tp->t_sent, link) {
		if (SEQ_GEQ(r->seq, end))
			break;
		if (SEQ_GT(r->end, end))
			(void)split(tp, r, end);
		if (r->state == SENT_INFLIGHT)
			tcp_sent_set(tp, r, SENT_LOST);
	}
}

/* Marks all lost records in flight again. */
void
tcp_sent_unlose(struct tcpcb *tp)
{
	struct tcp_sent *r;

	while ((r = TAILQ_FIRST(&tp->t_lost)) != NULL)
		tcp_sent_set(tp, r, SENT_INFLIGHT);
}

/* The peer has discarded reported data (RFC 2018 section 8). */
void
tcp_sent_renege(struct tcpcb *tp)
{
	struct tcp_sent *r;

	TAILQ_FOREACH(r, &tp->t_sent, link)
		if (r->state == SENT_SACKED)
			tcp_sent_set(tp, r, SENT_LOST);
}
