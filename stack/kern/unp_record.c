/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records in the buffers of UNIX-domain sockets: creating, queueing, peeking
 * and removing, whole or in parts.
 */
#include "kern/unp_record.h"

#include <string.h>

struct mbuf *
unp_record_make(struct socket *from, const struct unp_control *uc,
    struct mbuf *data, uint32_t len, uint32_t charge)
{
	struct mbuf *h = m_get();
	struct unp_record *rec = mtorec(h);

	_Static_assert(sizeof(*rec) <= sizeof(h->m_dat), "fits in an mbuf");
	memset(rec, 0, sizeof(*rec));
	rec->rec_control = *uc;
	rec->rec_len = len;
	rec->rec_charge = charge;
	if (from != NULL) {
		soref(from);
		rec->rec_from = from;
	}
	h->m_len = sizeof(*rec);
	h->m_next = data;
	return (h);
}

void
unp_record_free(struct mbuf *h)
{
	struct unp_record *rec = mtorec(h);

	if (rec->rec_from != NULL)
		sorele(rec->rec_from);
	m_freem(h);
}

static bool
same_sender(const struct unp_control *a, const struct unp_control *b)
{
	return (a->uc_rights == NULL && b->uc_rights == NULL &&
	    a->uc_cred.pid == b->uc_cred.pid &&
	    a->uc_cred.uid == b->uc_cred.uid &&
	    a->uc_cred.gid == b->uc_cred.gid);
}

/*
 * Adds a small record of a stream to the last one if they differ in nothing
 * that a reader sees.  Else a buffer of bytes that were written one by one would
 * have two mbufs for each.
 */
static bool
record_join(struct socket *so, struct mbuf *h)
{
	struct sockbuf *sb = &so->so_rcv;
	struct unp_record *rec = mtorec(h);
	struct mbuf *tail = sb->sb_tail, *last, *m = h->m_next;

	if (!unp_isstream(so) || tail == NULL || m == NULL ||
	    m->m_next != NULL || !same_sender(&rec->rec_control,
	    &mtorec(tail)->rec_control))
		return (false);
	last = tail->m_next;
	if (last == NULL || last->m_next != NULL || last->m_ext != NULL ||
	    m_trailingspace(last) < m->m_len)
		return (false);
	memcpy(mtod(last, char *) + last->m_len, mtod(m, char *), m->m_len);
	last->m_len += m->m_len;
	mtorec(tail)->rec_len += rec->rec_len;
	mtorec(tail)->rec_charge += rec->rec_charge;
	sb->sb_cc += rec->rec_charge;
	return (true);
}

void
unp_record_append(struct socket *so, struct mbuf *h)
{
	struct sockbuf *sb = &so->so_rcv;
	struct unp_record *rec = mtorec(h);

	mtx_assert_owned(&so->so_lock);
	if (record_join(so, h)) {
		m_freem(h);
		sorwakeup(so);
		return;
	}
	if (rec->rec_control.uc_rights != NULL)
		unp_rights_pass(sotounpcb(so), rec->rec_control.uc_rights);
	if (sb->sb_tail == NULL)
		sb->sb_head = h;
	else
		sb->sb_tail->m_nextpkt = h;
	sb->sb_tail = h;
	sb->sb_cc += rec->rec_charge;
	sorwakeup(so);
}

struct mbuf *
unp_record_remove(struct socket *so)
{
	struct sockbuf *sb = &so->so_rcv;
	struct mbuf *h = sb->sb_head;
	struct unp_record *rec = mtorec(h);

	mtx_assert_owned(&so->so_lock);
	KASSERT(sb->sb_cc >= rec->rec_charge,
	    ("unp_record_remove: %u of %u bytes", rec->rec_charge,
	    sb->sb_cc));
	if (rec->rec_control.uc_rights != NULL)
		unp_rights_take(rec->rec_control.uc_rights);
	sb->sb_head = h->m_nextpkt;
	if (sb->sb_head == NULL)
		sb->sb_tail = NULL;
	h->m_nextpkt = NULL;
	sb->sb_cc -= rec->rec_charge;
	return (h);
}

/* Removes the first n bytes of a record. */
static struct mbuf *
record_cut(struct mbuf *h, uint32_t n)
{
	struct unp_record *rec = mtorec(h);
	struct sockbuf sb = { .sb_head = h->m_next, .sb_cc = rec->rec_len };
	struct mbuf *m = sbcut(&sb, n);

	h->m_next = sb.sb_head;
	rec->rec_len -= n;
	return (m);
}

void
unp_record_peek(struct mbuf *h, uint32_t off, uint32_t n, struct unp_taken *t)
{
	struct unp_record *rec = mtorec(h);

	memset(t, 0, sizeof(*t));
	t->control = rec->rec_control;
	t->control.uc_rights = NULL;
	if (n > 0)
		t->data = m_copym(h->m_next, off, n);
	if (rec->rec_control.uc_rights != NULL && off == 0)
		t->control.uc_rights =
		    unp_rights_copy(rec->rec_control.uc_rights);
}

void
unp_record_take(struct socket *so, uint32_t n, bool whole, struct unp_taken *t)
    REQUIRES(so->so_lock)
{
	struct mbuf *h = so->so_rcv.sb_head;
	struct unp_record *rec = mtorec(h);

	mtx_assert_owned(&so->so_lock);
	t->control = rec->rec_control;
	t->from = rec->rec_from;
	t->charge = n;
	if (whole) {
		(void)unp_record_remove(so);
		t->charge = rec->rec_charge;
		t->data = h->m_next;
		m_free(h);
		return;
	}
	t->data = record_cut(h, n);
	rec->rec_charge -= n;
	so->so_rcv.sb_cc -= n;
	if (rec->rec_control.uc_rights != NULL)
		unp_rights_take(rec->rec_control.uc_rights);
	rec->rec_control.uc_rights = NULL; /* delivered with the first bytes */
}

struct mbuf *
unp_record_at(struct socket *so, size_t off, uint32_t *in) REQUIRES(so->so_lock)
{
	struct mbuf *h = so->so_rcv.sb_head;

	while (h != NULL && off >= mtorec(h)->rec_len) {
		off -= mtorec(h)->rec_len;
		h = h->m_nextpkt;
	}
	*in = (uint32_t)off;
	return (h);
}

uint32_t
unp_avail(struct socket *so)
{
	const struct sockbuf *sb = &so->so_rcv;

	mtx_assert_owned(&so->so_lock);
	if (unp_isstream(so) || sb->sb_head == NULL)
		return (sb->sb_cc);
	return (mtorec(sb->sb_head)->rec_len);
}
