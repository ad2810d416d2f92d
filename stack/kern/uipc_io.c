/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data transfer: sosend() and soreceive().
 *
 * Bytes are copied between the program and mbufs with the socket unlocked.  A
 * writer builds its chain first and appends it by reference; a reader detaches
 * its chain and copies afterwards.  sblock keeps the order among several
 * readers (or writers) meanwhile.
 */
#include <errno.h>
#include <limits.h>
#include <netinet/ip.h>
#include <string.h>

#include "kern/socketvar.h"
#include "kern/synch.h"
#include "kern/thread.h"

/*
 * Max bytes copied in one turn of the sender's loop, so that sending starts
 * early.
 */
#define	SEND_TURN	(128 * 1024)
/* Up to this length the copy is made before locking, to lock only once. */
#define	SEND_SMALL	256
/* Space for link, IP and transport headers before a datagram. */
#define	SEND_HEADROOM	96

NOINLINE static int
iov_total(const struct msghdr *msg, size_t *len)
{
	*len = 0;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		if (__predict_false(msg->msg_iov[i].iov_len > SSIZE_MAX - *len))
			return (EINVAL);
		*len += msg->msg_iov[i].iov_len;
	}
	return (0);
}

static int
iov_length(const struct msghdr *msg, size_t *len)
{
	if (__predict_false(msg->msg_iovlen != 1))
		return (iov_total(msg, len));
	*len = msg->msg_iov->iov_len;
	return (__predict_true(*len <= SSIZE_MAX) ? 0 : EINVAL);
}

/* Copies len bytes, from byte skip of an iovec on, to a flat buffer. */
static void
iov_gather(const struct msghdr *msg, size_t skip, char *to, size_t len)
{
	if (__predict_true(msg->msg_iovlen == 1)) {
		copy_bytes(to, (const char *)msg->msg_iov->iov_base + skip,
		    len);
		return;
	}
	for (size_t i = 0; len > 0; i++) {
		const struct iovec *iov = &msg->msg_iov[i];
		size_t n;

		KASSERT(i < msg->msg_iovlen, ("iov_gather: %zu bytes left",
		    len));
		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		n = iov->iov_len - skip < len ? iov->iov_len - skip : len;
		copy_bytes(to, (const char *)iov->iov_base + skip, n);
		to += n;
		len -= n;
		skip = 0;
	}
}

size_t
soscatter(const struct msghdr *msg, size_t skip, const struct mbuf *m)
{
	const struct iovec *iov = msg->msg_iov;
	size_t done = 0;

	for (; m != NULL; m = m->m_next) {
		const char *from = m->m_data;
		size_t left = m->m_len, n;

		for (; left > 0; left -= n) {
			for (; skip >= iov->iov_len; iov++)
				skip -= iov->iov_len;
			n = iov->iov_len - skip;
			if (n > left)
				n = left;
			copy_bytes((char *)iov->iov_base + skip, from, n);
			from += n;
			skip += n;
		}
		done += m->m_len;
	}
	return (done);
}

/* Makes a chain with len bytes of the message; small ones in one mbuf. */
__hot struct mbuf *
somakechain(const struct msghdr *msg, size_t skip, size_t len)
{
	struct mbuf *m;

	m = m_gethdr(SEND_HEADROOM);
	if (len <= m_trailingspace(m)) {
		iov_gather(msg, skip, m->m_data, len);
		m->m_len = m->m_pkthdr.len = (uint32_t)len;
		return (m);
	}
	m_freem(m);
	return (m_uiotombuf(msg->msg_iov, (int)msg->msg_iovlen, skip, len));
}

/* Why a stream socket cannot take data: an errno value, or 0. */
static int
sosenderror(struct socket *so) REQUIRES(so->so_lock)
{
	int error;

	if (so->so_state & SS_NOFDREF)
		return (EBADF);
	if (so->so_error != 0) {
		error = so->so_error;
		so->so_error = 0;
		return (error);
	}
	if (so->so_state & SS_CANTSENDMORE)
		return (EPIPE);
	if ((so->so_state & (SS_ISCONNECTED | SS_ISCONNECTING)) == 0)
		return (so->so_proto->pr_local ? ENOTCONN : EPIPE);
	return (0);
}

/* Waits for space in the send buffer; *n is the number of bytes that fit. */
int
sosendwait(struct socket *so, size_t resid, int flags, nsec_t deadline,
    size_t *n) REQUIRES(so->so_lock)
{
	struct sockbuf *sb = &so->so_snd;
	bool fill = true;
	int error;

	for (;;) {
		error = sosenderror(so);
		if (error != 0)
			return (error);
		*n = sosendspace(so, resid, fill);
		if (__predict_true((so->so_state & SS_ISCONNECTED) != 0) &&
		    __predict_true(*n > 0))
			break;
		so->so_state |= SS_NOSPACE;
		if (flags & MSG_DONTWAIT)
			return (EWOULDBLOCK);
		error = sbwait(so, sb, "sbwait", deadline);
		if (error != 0)
			return (error);
		fill = false;
	}
	if (*n > resid)
		*n = resid;
	if (*n > SEND_TURN)
		*n = SEND_TURN;
	return (0);
}

/*
 * Waits for space and copies what fits, with the socket unlocked.  small, if
 * not NULL, is a copy of the whole message, used if all of it fits.
 */
static int
sosend_copy(struct socket *so, const struct msghdr *msg, int flags,
    nsec_t deadline, size_t done, size_t resid, struct mbuf **small,
    struct mbuf **m, size_t *n) REQUIRES(so->so_lock)
{
	int error = sosendwait(so, resid, flags, deadline, n);

	if (error != 0)
		return (error);
	*m = *small;
	if (*m != NULL && *n == (*m)->m_pkthdr.len) {
		*small = NULL;
		return (0);
	}
	so_pause(so);
	*m = somakechain(msg, done, *n);
	so_resume(so);
	error = sosenderror(so);
	if (error != 0)
		m_freem(*m);
	return (error);
}

/*
 * The rest of a write follows its first part, unless the writer has to wait for
 * space: that comes when the first part was acknowledged, so it must be sent.
 */
static int
sosend_more(const struct socket *so, size_t resid, int flags)
    REQUIRES(so->so_lock)
{
	if (__predict_true(resid == 0))
		return (flags & (MSG_MORE | MSG_OOB | MSG_EOR));
	return (sosendspace(so, resid, true) > 0 ? MSG_MORE : 0);
}

NOINLINE static int sosend_first(struct socket *so, const struct msghdr *,
    int flags, size_t total, size_t *done) REQUIRES(so->so_lock);

static int
sosend_stream(struct socket *so, const struct msghdr *msg, int flags,
    struct mbuf **small, size_t resid, size_t *done) REQUIRES(so->so_lock)
{
	nsec_t deadline = sbdeadline(&so->so_snd);
	struct mbuf *m;
	size_t n;
	int error;

	do {
		error = sosend_copy(so, msg, flags, deadline, *done, resid,
		    small, &m, &n);
		if (error != 0)
			return (error);
		sbappendstream(&so->so_snd, m);
		*done += n;
		resid -= n;
		error = so->so_proto->pr_send(so, NULL, NULL, msg,
		    sosend_more(so, resid, flags));
		if (__predict_false(error != 0))
			return (sosend_first(so, msg, flags, resid + *done,
			    done));
	} while (resid > 0);
	return (0);
}

/*
 * The first data of a connection (SS_DEFERRED): so_snd has what was sent of it.
 * As in Linux, a call that may wait sends the rest when the connection is made.
 */
NOINLINE static int
sosend_first(struct socket *so, const struct msghdr *msg, int flags,
    size_t total, size_t *done) REQUIRES(so->so_lock)
{
	struct mbuf *none = NULL;
	int error = EINPROGRESS;

	*done = so->so_snd.sb_cc;
	if (flags & MSG_DONTWAIT)
		so->so_state |= SS_UNREPORTED;
	else
		error = soconnectwait(so);
	if (error == 0 && total > *done)
		error = sosend_stream(so, msg, flags, &none, total - *done,
		    done);
	else if (error != 0 && error != EINPROGRESS)
		*done = 0;
	return (error);
}

/* A write without data; it begins a connection whose SYN waits for data. */
NOINLINE static int
sosend_nothing(struct socket *so, const struct msghdr *msg, int flags)
    REQUIRES(so->so_lock)
{
	int error = sosenderror(so);
	size_t done;

	if (error == 0 && (so->so_state & SS_DEFERRED))
		error = so->so_proto->pr_send(so, NULL, NULL, msg,
		    MSG_FASTOPEN);
	return (error != EINPROGRESS ? error :
	    sosend_first(so, msg, flags, 0, &done));
}

NOINLINE static int
sosend_dgram(struct socket *so, const struct msghdr *msg, int flags,
    size_t len, size_t *done) REQUIRES(so->so_lock)
{
	const bool named = msg->msg_name != NULL && msg->msg_namelen > 0;
	struct sockname to;
	struct mbuf *m;
	int error = 0;

	if (named)
		error = sockname_get(&to, msg->msg_name, msg->msg_namelen);
	if (error != 0)
		return (error);
	if (len > so->so_snd.sb_hiwat || len > IP_MAXPACKET)
		return (EMSGSIZE);
	if (named && so->so_proto->pr_sendname != NULL)
		error = so->so_proto->pr_sendname(so, &to);
	if (error != 0)
		return (error);
	if (!so->so_proto->pr_sendanyway) {
		error = so->so_error;
		so->so_error = 0;
	}
	if (error != 0)
		return (error);
	if (so->so_state & SS_CANTSENDMORE)
		return (EPIPE);
	so_pause(so);
	m = somakechain(msg, 0, len);
	so_resume(so);
	error = so->so_proto->pr_send(so, m, named ? &to : NULL, msg, flags);
	if (error == 0)
		*done = len;
	return (error);
}

__hot int
sosend(struct socket *so, const struct msghdr *msg, int flags, size_t *done)
{
	const struct protosw *pr = so->so_proto;
	struct mbuf *small = NULL;
	size_t len;
	int error;

	*done = 0;
	error = iov_length(msg, &len);
	if (__predict_false(error != 0))
		return (error);
	if (__predict_false((flags & (MSG_OOB | MSG_ZEROCOPY |
	    MSG_FASTOPEN)) != 0)) {
		if ((flags & MSG_FASTOPEN) && pr->pr_stream && !pr->pr_local)
			return (sosend_fastopen(so, msg, flags, done));
		if ((flags & MSG_OOB) && (!pr->pr_stream || pr->pr_local))
			return (EOPNOTSUPP);
		if (flags & MSG_ZEROCOPY)
			return (sosend_zerocopy(so, msg, flags, done));
	}
	if (pr->pr_sosend != NULL)
		return (pr->pr_sosend(so, msg, flags, len, done));
	if (pr->pr_stream && len > 0 && len <= SEND_SMALL)
		small = somakechain(msg, 0, len);
	so_enter(so);
	if (!pr->pr_stream) {
		error = sosend_dgram(so, msg, flags, len, done);
	} else if (__predict_false(len == 0)) {
		error = sosend_nothing(so, msg, flags);
	} else if (__predict_true((error = sblock(so, &so->so_snd,
	    flags)) == 0)) {
		error = sosend_stream(so, msg, flags, &small, len, done);
		sbunlock(&so->so_snd);
	}
	so_leave(so);
	m_freem(small);
	/* a partial transfer succeeds; the next call returns the error */
	return (__predict_false(error != 0) && error != EINPROGRESS &&
	    *done > 0 && pr->pr_stream ? 0 : error);
}

/* One turn of a wait for data.  True if the wait is over, as above. */
NOINLINE static bool
soreceive_blocked(struct socket *so, bool partial, int flags, nsec_t deadline,
    int *error) REQUIRES(so->so_lock)
{
	struct sockbuf *sb = &so->so_rcv;

	if (soreceive_ended(so, partial, flags, error))
		return (true);
	if (flags & MSG_DONTWAIT) {
		*error = sb->sb_cc > 0 ? 0 : EWOULDBLOCK;
		return (true);
	}
	*error = sbwait(so, sb, "sbwait", deadline);
	if (*error != 0 && *error != EBADF && sb->sb_cc > 0) {
		*error = 0;
		return (true);
	}
	return (*error != 0);
}

/*
 * Waits for want bytes or an event that ends the wait.  Returns 0 with data or
 * at the end of the stream.
 */
__hot int
soreceivewait(struct socket *so, uint32_t want, bool partial, int flags,
    nsec_t deadline) REQUIRES(so->so_lock)
{
	int error;

	while (so->so_rcv.sb_cc < sooobbound(so, want))
		if (soreceive_blocked(so, partial, flags, deadline, &error))
			return (error);
	return (0);
}

/* Copies a detached part of a stream to the reader. */
static void
sogive(const struct msghdr *msg, int flags, struct mbuf *m, size_t *done)
{
	*done += __predict_true((flags & MSG_TRUNC) == 0) ?
	    soscatter(msg, *done, m) : m_length(m);
	m_freem(m);
}

uint32_t
sbreadable(const struct sockbuf *sb)
{
	/* the peer's window may close before the buffer is full */
	const uint32_t most = sb->sb_hiwat / 2;

	return (sb->sb_lowat < most ? sb->sb_lowat : most);
}

/* How many bytes a stream reader waits for (POSIX recv(), SO_RCVLOWAT). */
uint32_t
sowant(const struct sockbuf *sb, size_t resid, int flags)
{
	uint32_t want = flags & MSG_WAITALL ? sb->sb_hiwat / 2 :
	    sbreadable(sb);

	if (want > resid)
		want = (uint32_t)resid;
	return (want);
}

/*
 * Detaches the available data.  The last part is left in *rest; the caller
 * copies it after it has unlocked the socket.
 */
static int
soreceive_stream(struct socket *so, struct msghdr *msg, int flags,
    size_t resid, size_t *done, struct mbuf **rest) REQUIRES(so->so_lock)
{
	const bool all = (flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL;
	struct sockbuf *sb = &so->so_rcv;
	nsec_t deadline = sbdeadline(sb);
	struct mbuf *m;
	uint32_t n;
	int error;

	for (;;) {
		error = soreceivewait(so, sowant(sb, resid, flags), *done > 0,
		    flags, deadline);
		if (__predict_false(error != 0) ||
		    __predict_false(sb->sb_cc == 0))
			return (error);
		n = sooobbound(so, sb->sb_cc < resid ? sb->sb_cc :
		    (uint32_t)resid);
		if (__predict_false(flags & MSG_PEEK)) {
			m = m_copym(sb->sb_head, 0, n);
		} else {
			m = sbcut(sb, n);
			sooobpassed(so, n);
			if (so->so_pcb != NULL)
				so->so_proto->pr_rcvd(so);
		}
		resid -= n;
		if (resid == 0 || !all || sooobnext(so)) {
			*rest = m;
			return (0);
		}
		so_pause(so);
		sogive(msg, flags, m, done);
		so_resume(so);
		if (sooobnext(so))	/* the mark was reached meanwhile */
			return (0);
	}
}

/*
 * Copies a datagram to the program, truncated if it does not fit (MSG_TRUNC);
 * returns its arrival time, see above.
 */
static nsec_t
sodeliver(const struct protosw *pr, struct mbuf *m, struct msghdr *msg,
    int flags, size_t room, size_t *done)
{
	struct socontrol control;
	struct sockname from;
	nsec_t stamp;
	size_t len;

	sbheader(m, &from, &control);
	if (msg->msg_name != NULL)
		sockname_put(&from, msg->msg_name, &msg->msg_namelen);
	len = m->m_pkthdr.len;
	if (pr->pr_control != NULL)
		pr->pr_control(m, &control);
	stamp = socontrol_deliver(msg, &control);
	*done = len;
	if (len > room) {
		msg->msg_flags |= MSG_TRUNC;
		m_adj(m, (int64_t)room - (int64_t)len);
		if ((flags & MSG_TRUNC) == 0)
			*done = room;
	}
	soscatter(msg, 0, m);
	m_freem(m);
	return (stamp);
}

NOINLINE static int
soreceive_dgram(struct socket *so, struct msghdr *msg, int flags,
    size_t room, size_t *done) REQUIRES(so->so_lock)
{
	struct sockbuf *sb = &so->so_rcv;
	struct mbuf *m;
	nsec_t stamp;
	int error;

	error = soreceivewait(so, 1, false, flags, sbdeadline(sb));
	if (error != 0 || sb->sb_head == NULL)
		return (error);
	if (flags & MSG_PEEK)
		m = m_copym(sb->sb_head, 0, sb->sb_head->m_pkthdr.len);
	else
		m = sbdetachaddr(sb);
	so_pause(so);
	stamp = sodeliver(so->so_proto, m, msg, flags, room, done);
	so_resume(so);
	so->so_stamp = stamp;
	return (0);
}

/* Returns a queued error and its datagram (ip(7)); never waits. */
__cold static int
soreceive_error(struct socket *so, struct msghdr *msg, size_t room,
    size_t *done)
{
	struct mbuf *m;

	so_enter(so);
	m = sbdetachaddr(&so->so_errors);
	/* a stream's error is no queued one */
	if (m != NULL && so->so_errors.sb_head == NULL &&
	    !so->so_proto->pr_stream)
		so->so_error = 0;
	so_leave(so);
	if (m == NULL)
		return (EWOULDBLOCK);
	(void)sodeliver(so->so_proto, m, msg, 0, room, done);
	msg->msg_flags |= MSG_ERRQUEUE;
	return (0);
}

__hot int
soreceive(struct socket *so, struct msghdr *msg, int flags, size_t *done)
{
	const bool stream = so->so_proto->pr_stream;
	const size_t room = msg->msg_control != NULL ? msg->msg_controllen : 0;
	struct mbuf *rest = NULL;
	size_t len;
	int error;

	*done = 0;
	msg->msg_flags = 0;
	error = iov_length(msg, &len);
	if (__predict_false(error != 0))
		return (error);
	if (__predict_false(flags & MSG_ERRQUEUE))
		return (soreceive_error(so, msg, len, done));
	if (__predict_false(flags & MSG_OOB) && sooobread(so))
		return (soreceiveoob(so, msg, flags, len, done));
	if (so->so_proto->pr_soreceive != NULL)
		return (so->so_proto->pr_soreceive(so, msg, flags, len, done));
	so_enter(so);
	error = sblock(so, &so->so_rcv, flags);
	if (__predict_true(error == 0)) {
		if (stream && len > 0)
			error = soreceive_stream(so, msg, flags, len, done,
			    &rest);
		else if (stream)	/* waits for data, and takes none */
			error = soreceivewait(so, 1, false, flags,
			    sbdeadline(&so->so_rcv));
		else
			error = soreceive_dgram(so, msg, flags, len, done);
		sbunlock(&so->so_rcv);
	}
	if (stream)
		msg->msg_namelen = 0;
	if (stream || error != 0)
		msg->msg_controllen = 0;
	if (__predict_false(so->so_options & SOO_INQ) && stream && error == 0)
		so->so_proto->pr_readcontrol(so, msg, room);
	so_leave(so);
	if (rest != NULL)
		sogive(msg, flags, rest, done);
	return (*done > 0 ? 0 : error);
}
