/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data transfer between UNIX-domain sockets.
 */
#include <errno.h>

#include "kern/bpf_filter.h"
#include "kern/uipc_filter.h"
#include "kern/unp_record.h"

#define	FILTERED	(-1)	/* the receiver's filter dropped the record */
/*
 * Up to this length the record is made before the socket is locked, so that
 * the strategy can lock both sockets only once.
 */
#define	TRY_MAX		1024

/* Returns n charged bytes to a sender; socket locked. */
static void
uncharge_locked(struct socket *so, uint32_t n)
{
	mtx_assert_owned(&so->so_lock);
	so->so_snd.sb_cc -= n < so->so_snd.sb_cc ? n : so->so_snd.sb_cc;
	sowwakeup(so);
}

static void
uncharge(struct socket *so, uint32_t n)
{
	mtx_lock(&so->so_lock);
	uncharge_locked(so, n);
	mtx_unlock(&so->so_lock);
}

/* Returns n charged bytes after a read; socket unlocked. */
static void
rcvd(struct unpcb *unp, struct socket *from, uint32_t n)
{
	struct unpcb *peer;

	if (from != NULL) {
		uncharge(from, n);
		return;
	}
	peer = unp_lockops->ulo_rcvd(unp);
	if (peer != NULL) {
		unp_solock(peer->unp_socket);
		uncharge_locked(peer->unp_socket, n);
		unp_sounlock(peer->unp_socket);
	}
	unp_lockops->ulo_rcvd_done(unp, peer);
}

void
unp_flush(struct socket *so)
{
	struct unp_record *rec;
	struct mbuf *h;

	mtx_lock(&so->so_lock);
	while (so->so_rcv.sb_head != NULL) {
		h = unp_record_remove(so);
		mtx_unlock(&so->so_lock);
		rec = mtorec(h);
		if (rec->rec_from != NULL)
			uncharge(rec->rec_from, rec->rec_charge);
		unp_rights_discard(rec->rec_control.uc_rights);
		unp_record_free(h);
		mtx_lock(&so->so_lock);
	}
	mtx_unlock(&so->so_lock);
}

/* Whether the receiver's filter drops the record, which it may cut. */
__cold static bool
filtered(const struct socket *so, struct mbuf *h) REQUIRES(so->so_lock)
{
	struct unp_record *rec = mtorec(h);
	const struct bpf_packet bp = { .bp_m = h->m_next,
	    .bp_len = rec->rec_len };
	const uint32_t keep = sofilter_run(so, &bp, 1);
	struct mbuf *all = h->m_next;

	if (keep == 0)
		return (true);
	if (keep < rec->rec_len) {
		h->m_next = m_copym(all, 0, keep);
		m_freem(all);
		rec->rec_len = keep;
	}
	return (false);
}

/*
 * Delivers a record to the peer, or to the socket with a datagram's address.
 * Returns an errno value, or FILTERED; then the caller owns the record again.
 */
static int
deliver(struct socket *so, struct mbuf *h)
{
	int error = 0;

	unp_solock(so);
	/* a receiver that is not accepted yet may enable them later */
	if (__predict_false((so->so_options & SOO_PASSCRED) != 0 ||
	    so->so_head != NULL))
		unp_identify(&mtorec(h)->rec_control);
	if (so->so_pcb == NULL)
		error = ECONNREFUSED;	/* closed meanwhile */
	else if (__predict_false(so->so_filter != NULL) && filtered(so, h))
		error = FILTERED;
	else if (so->so_state & SS_CANTRCVMORE)
		error = EPIPE;
	else
		unp_record_append(so, h);
	unp_sounlock(so);
	return (error);
}

static int
deliver_peer(struct unpcb *unp, struct mbuf *h)
{
	struct unpcb *peer = unp_lockops->ulo_send(unp);
	int error;

	if (peer != NULL) {
		error = deliver(peer->unp_socket, h);
	} else if (unp->unp_socket->so_proto->pr_stream) {
		error = EPIPE;
	} else {
		error = unp->unp_lost ? ECONNREFUSED : ENOTCONN;
		unp->unp_lost = false;
	}
	unp_lockops->ulo_sent(unp, peer);
	return (error);
}

/* unix(7): a connected datagram socket receives only from its peer. */
static int
deliver_named(struct unpcb *unp, const struct sockname *to, struct mbuf *h)
{
	struct socket *so;
	struct unpcb *other;
	int error = unp_lookup(to, &so);

	if (error != 0)
		return (error);
	mtx_lock(&so->so_lock);
	other = unp_hold(so);
	mtx_unlock(&so->so_lock);
	if (other == NULL) {
		error = ECONNREFUSED;
	} else {
		unp_lockops->ulo_link(unp, other);
		if (so->so_type != unp->unp_socket->so_type)
			error = EPROTOTYPE;
		else if (other->unp_conn != NULL && other->unp_conn != unp)
			error = EPERM;
		else
			error = deliver(so, h);
		unp_lockops->ulo_linked(unp, other);
		unp_rele(other);
	}
	sorele(so);
	return (error);
}

/* True if the strategy can lock the peer, too; *error is the result. */
static bool
deliver_locked(struct unpcb *unp, struct mbuf *h, int *error)
{
	struct unpcb *peer;

	if (unp_lockops->ulo_try == NULL || !unp_lockops->ulo_try(unp, &peer))
		return (false);
	*error = deliver(peer->unp_socket, h);
	unp_lockops->ulo_tried(peer);
	return (true);
}

/* A record of a whole small message, if it may be used; or NULL. */
static struct mbuf *
make_small(const struct socket *so, const struct msghdr *msg,
    const struct unp_control *uc, size_t len)
{
	if (unp_lockops->ulo_try == NULL || !unp_isstream(so) || len == 0 ||
	    len > TRY_MAX)
		return (NULL);
	return (unp_record_make(NULL, uc, somakechain(msg, 0, len),
	    (uint32_t)len, (uint32_t)len));
}

/* small is a record of the whole message, or NULL; the caller frees it. */
static int
send_stream(struct socket *so, struct unpcb *unp, const struct msghdr *msg,
    struct unp_control *uc, struct mbuf **small, int flags, size_t resid,
    size_t *done) REQUIRES(so->so_lock)
{
	nsec_t deadline = sbdeadline(&so->so_snd);
	const size_t len = resid;
	struct mbuf *h;
	size_t n;
	int error = 0;

	while (resid > 0 && error == 0) {
		error = sosendwait(so, resid, flags, deadline, &n);
		if (error != 0)
			break;
		so->so_snd.sb_cc += (uint32_t)n;
		h = n == len ? *small : NULL;
		if (h != NULL)
			*small = NULL;
		if (h == NULL || !deliver_locked(unp, h, &error)) {
			mtx_unlock(&so->so_lock);
			if (h == NULL)
				h = unp_record_make(NULL, uc, somakechain(msg,
				    *done, n), (uint32_t)n, (uint32_t)n);
			error = deliver_peer(unp, h);
			mtx_lock(&so->so_lock);
		}
		if (error == 0) {
			uc->uc_rights = NULL;	/* sent with the first part */
			*done += n;
			resid -= n;
		} else {
			m_freem(h);
			uncharge_locked(so, (uint32_t)n);
		}
	}
	return (error);
}

/* Waits until a whole message can be charged, and charges it. */
static int
charge_message(struct socket *so, uint32_t charge, int flags)
    REQUIRES(so->so_lock)
{
	nsec_t deadline = sbdeadline(&so->so_snd);
	struct sockbuf *sb = &so->so_snd;
	int error;

	for (;;) {
		if (so->so_state & SS_NOFDREF)
			return (EBADF);
		if (so->so_state & SS_CANTSENDMORE)
			return (EPIPE);
		if (so->so_proto->pr_stream &&
		    (so->so_state & SS_ISCONNECTED) == 0)
			return (ENOTCONN);
		if (sbspace(sb) >= charge || sb->sb_cc == 0)
			break;
		if (flags & MSG_DONTWAIT)
			return (EWOULDBLOCK);
		error = sbwait(so, sb, "sbwait", deadline);
		if (error != 0)
			return (error);
	}
	sb->sb_cc += charge;
	return (0);
}

static int
send_message(struct socket *so, struct unpcb *unp, const struct msghdr *msg,
    struct unp_control *uc, int flags, size_t len, size_t *done)
    REQUIRES(so->so_lock)
{
	const uint32_t charge = (uint32_t)len + SB_DGRAM_OVERHEAD;
	const bool dgram = so->so_type == SOCK_DGRAM;
	struct sockname to = { .sn_len = 0 };
	struct mbuf *h;
	int error = 0;

	if (len > so->so_snd.sb_hiwat)
		return (EMSGSIZE);
	if (dgram && msg->msg_name != NULL && msg->msg_namelen > 0)
		error = sockname_get(&to, msg->msg_name, msg->msg_namelen);
	if (error == 0)
		error = charge_message(so, charge, flags);
	if (error != 0)
		return (error);
	mtx_unlock(&so->so_lock);
	h = unp_record_make(dgram ? so : NULL, uc, somakechain(msg, 0, len),
	    (uint32_t)len, charge);
	unp_getname(unp, &mtorec(h)->rec_name);
	error = to.sn_len > 0 ? deliver_named(unp, &to, h) :
	    deliver_peer(unp, h);
	if (error == 0) {
		uc->uc_rights = NULL;
		*done = len;
	} else {
		unp_record_free(h);
		uncharge(so, charge);
	}
	if (error == FILTERED) {
		error = 0;
		*done = len;
	}
	mtx_lock(&so->so_lock);
	return (error);
}

/* Why a stream cannot send, even zero bytes. */
static int
stream_error(const struct socket *so, const struct msghdr *msg)
    REQUIRES(so->so_lock)
{
	if (msg->msg_name != NULL && msg->msg_namelen > 0)
		return (so->so_state & SS_ISCONNECTED ? EISCONN : EOPNOTSUPP);
	if (so->so_state & SS_CANTSENDMORE)
		return (EPIPE);
	return (so->so_state & SS_ISCONNECTED ? 0 : ENOTCONN);
}

/* Entry and exit of a call that moves data. */
static void
io_enter(struct socket *so) ACQUIRES(so->so_lock)
{
	if (unp_lockops->ulo_giant)
		giant_lock();
	so_enter(so);
}

static void
io_leave(struct socket *so) RELEASES(so->so_lock)
{
	so_leave(so);
	if (unp_lockops->ulo_giant)
		giant_unlock();
}

int
unp_sosend(struct socket *so, const struct msghdr *msg, int flags, size_t len,
    size_t *done)
{
	struct unp_control uc;
	struct mbuf *small;
	struct unpcb *unp;
	int error;

	error = unp_internalize(msg, &uc);
	if (error != 0)
		return (error);
	small = make_small(so, msg, &uc, len);
	io_enter(so);
	if (__predict_false((so->so_options & SOO_PASSCRED) != 0)) {
		unp_identify(&uc);
		if (small != NULL)
			mtorec(small)->rec_control = uc;
	}
	unp = unp_hold(so);
	error = unp == NULL ? EBADF : sblock(so, &so->so_snd, flags);
	if (error == 0) {
		if (!unp_isstream(so))
			error = send_message(so, unp, msg, &uc, flags, len,
			    done);
		else if ((error = stream_error(so, msg)) == 0)
			error = send_stream(so, unp, msg, &uc, &small, flags,
			    len, done);
		sbunlock(&so->so_snd);
	}
	io_leave(so);
	m_freem(small);
	if (unp != NULL)
		unp_rele(unp);
	unp_rights_discard(uc.uc_rights);
	return (*done > 0 ? 0 : error);
}

/* Copies the data to the reader and returns the sender's charge. */
static void
taken_finish(struct unpcb *unp, struct unp_taken *t, const struct msghdr *msg,
    size_t skip, struct unp_control *uc)
{
	if (t->data != NULL)
		soscatter(msg, skip, t->data);
	m_freem(t->data);
	if (t->charge > 0)
		rcvd(unp, t->from, t->charge);
	if (t->from != NULL)
		sorele(t->from);
	*uc = t->control;
	uc->uc_came = true;
}

/* Returns the charge at once if the strategy can lock the peer, too. */
static void
rcvd_locked(struct unpcb *unp, struct unp_taken *t)
{
	struct unpcb *peer;

	if (unp_lockops->ulo_try == NULL || t->charge == 0 ||
	    t->from != NULL || !unp_lockops->ulo_try(unp, &peer))
		return;
	unp_solock(peer->unp_socket);
	uncharge_locked(peer->unp_socket, t->charge);
	unp_sounlock(peer->unp_socket);
	unp_lockops->ulo_tried(peer);
	t->charge = 0;
}

/*
 * Descriptors end a read, so that the program knows which bytes they belong to
 * (unix(7)).  Without MSG_WAITALL the read also ends with the available data.
 *
 * The last part is left in *last, for byte *skip on: the caller copies it
 * after it has unlocked the socket.
 */
static int
receive_stream(struct socket *so, struct unpcb *unp, struct msghdr *msg,
    int flags, size_t resid, size_t *done, struct unp_control *uc,
    struct unp_taken *last, size_t *skip) REQUIRES(so->so_lock)
{
	const bool peek = (flags & MSG_PEEK) != 0;
	const bool all = (flags & MSG_WAITALL) != 0 && !peek;
	nsec_t deadline = sbdeadline(&so->so_rcv);
	struct unp_taken t;
	uint32_t n, in = 0;
	struct mbuf *h;
	int error;

	if (resid == 0)
		return (soreceivewait(so, 1, false, flags, deadline));
	while (resid > 0 && uc->uc_rights == NULL) {
		if (*done == 0 || all) {
			/* as in Linux, a peek does not wait for all */
			error = soreceivewait(so, all ? 1 :
			    sowant(&so->so_rcv, resid, flags & ~MSG_WAITALL),
			    *done > 0, flags, deadline);
			if (error != 0)
				return (error);
		}
		h = unp_record_at(so, peek ? *done : 0, &in);
		if (h == NULL)
			break;
		n = mtorec(h)->rec_len - in < resid ?
		    mtorec(h)->rec_len - in : (uint32_t)resid;
		if (peek)
			unp_record_peek(h, in, n, &t);
		else
			unp_record_take(so, n, n == mtorec(h)->rec_len, &t);
		rcvd_locked(unp, &t);
		if (!peek && (n == resid || (!all &&
		    so->so_rcv.sb_head == NULL))) {
			*last = t;
			*skip = *done;
			*done += n;
			return (0);
		}
		mtx_unlock(&so->so_lock);
		taken_finish(unp, &t, msg, *done, uc);
		mtx_lock(&so->so_lock);
		*done += n;
		resid -= n;
	}
	return (0);
}

static int
receive_message(struct socket *so, struct unpcb *unp, struct msghdr *msg,
    int flags, size_t room, size_t *done, struct unp_control *uc)
    REQUIRES(so->so_lock)
{
	struct unp_record *rec;
	struct sockname from;
	struct unp_taken t;
	uint32_t len;
	int error;

	error = soreceivewait(so, 1, false, flags, sbdeadline(&so->so_rcv));
	if (error != 0 || so->so_rcv.sb_head == NULL)
		return (error);
	rec = mtorec(so->so_rcv.sb_head);
	len = rec->rec_len;
	from = rec->rec_name;
	if (flags & MSG_PEEK)
		unp_record_peek(so->so_rcv.sb_head, 0, len, &t);
	else
		unp_record_take(so, len, true, &t);
	mtx_unlock(&so->so_lock);
	*done = len;
	if (len > room) {
		msg->msg_flags |= MSG_TRUNC;
		t.data->m_pkthdr.len = len;
		m_adj(t.data, (int64_t)room - (int64_t)len);
		if ((flags & MSG_TRUNC) == 0)
			*done = room;
	}
	taken_finish(unp, &t, msg, 0, uc);
	if (msg->msg_name != NULL)
		sockname_put(&from, msg->msg_name, &msg->msg_namelen);
	mtx_lock(&so->so_lock);
	return (0);
}

int
unp_soreceive(struct socket *so, struct msghdr *msg, int flags, size_t len,
    size_t *done)
{
	const size_t room = msg->msg_controllen;
	struct unp_control uc = { .uc_came = false };
	struct unp_taken last = { .data = NULL };
	struct unpcb *unp;
	bool passcred;
	size_t skip = 0;
	int error;

	io_enter(so);
	unp = unp_hold(so);
	error = unp == NULL ? EBADF : sblock(so, &so->so_rcv, flags);
	if (error == 0) {
		if (unp_isstream(so))
			error = receive_stream(so, unp, msg, flags, len, done,
			    &uc, &last, &skip);
		else
			error = receive_message(so, unp, msg, flags, len,
			    done, &uc);
		sbunlock(&so->so_rcv);
	}
	passcred = (so->so_options & SOO_PASSCRED) != 0;
	io_leave(so);
	if (last.data != NULL)
		taken_finish(unp, &last, msg, skip, &uc);
	if (unp != NULL)
		unp_rele(unp);
	if (unp_isstream(so))
		msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	if (uc.uc_came)
		unp_externalize(passcred, msg, room, &uc, flags);
	return (*done > 0 ? 0 : error);
}
