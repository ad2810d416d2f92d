/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Out-of-band data of a stream, as in Linux's tcp(7): one byte, and the mark
 * at its position.  The byte is kept outside the stream for recv(MSG_OOB), or
 * stays in the stream after the mark (SO_OOBINLINE).  A read never crosses the
 * mark.  A read that begins at the mark passes it, and discards the byte.
 */
#include <errno.h>

#include "kern/sigio.h"

void
sooobmark(struct socket *so, uint32_t off)
{
	so_assert_locked(so);
	if (so->so_oob == OOB_AWAITED && off <= so->so_oobmark)
		return;		/* announced before */
	so->so_oob = OOB_AWAITED;
	so->so_oobmark = off;
	sosigurg(so);
}

struct mbuf *
sooobtake(struct socket *so, struct mbuf *m, uint32_t len) REQUIRES(so->so_lock)
{
	struct sockbuf *sb = &so->so_rcv;
	const uint32_t off = so->so_oobmark - sb->sb_cc;

	so_assert_locked(so);
	if (so->so_oob != OOB_AWAITED || off >= len)
		return (m);
	m_copydata(m, off, 1, &so->so_oobbyte);
	so->so_oob = OOB_HERE;
	if (so->so_options & SOO_OOBINLINE)
		return (m);
	if (off > 0)
		sbappendstream(sb, m_copym(m, 0, off));
	m_adj(m, (int64_t)off + 1);
	return (m);
}

uint32_t
sooobbound(const struct socket *so, uint32_t n) REQUIRES(so->so_lock)
{
	if (__predict_true(so->so_oob == OOB_NONE))
		return (n);
	return (so->so_oobmark > 0 && so->so_oobmark < n ? so->so_oobmark : n);
}

void
sooobpassed(struct socket *so, uint32_t n) REQUIRES(so->so_lock)
{
	if (n > so->so_oobmark)
		so->so_oob = OOB_NONE;
	else
		so->so_oobmark -= n;
}

bool
sooobnext(const struct socket *so) REQUIRES(so->so_lock)
{
	return (so->so_oob != OOB_NONE && so->so_oobmark == 0);
}

int
soatmark(struct socket *so)
{
	bool at;

	so_enter(so);
	at = sooobnext(so);
	so_leave(so);
	return (at);
}

/* As in Linux, MSG_OOB of UDP is an ordinary read. */
bool
sooobread(const struct socket *so)
{
	return (so->so_proto->pr_stream || so->so_proto->pr_local ||
	    so->so_proto->pr_sendanyway);
}

/*
 * Never waits (POSIX permits either): EINVAL if there is no byte, EWOULDBLOCK
 * if it was announced but has not arrived.  Messages have no such byte.
 */
static int
take_byte(struct socket *so, struct msghdr *msg, int flags, size_t len,
    size_t *done) REQUIRES(so->so_lock)
{
	char *to = NULL;

	if (!so->so_proto->pr_stream)
		return (EOPNOTSUPP);
	if (so->so_state & SS_LISTENING)
		return (ENOTCONN);
	if ((so->so_options & SOO_OOBINLINE) ||
	    so->so_oob == OOB_NONE || so->so_oob == OOB_READ)
		return (EINVAL);
	if (so->so_oob == OOB_AWAITED)
		return (so->so_state & SS_CANTRCVMORE ? 0 : EWOULDBLOCK);
	if ((flags & MSG_PEEK) == 0)
		so->so_oob = OOB_READ;
	msg->msg_flags |= MSG_OOB;
	if (len == 0) {
		msg->msg_flags |= MSG_TRUNC;
		return (0);
	}
	for (size_t i = 0; to == NULL; i++)
		if (msg->msg_iov[i].iov_len > 0)
			to = msg->msg_iov[i].iov_base;
	if ((flags & MSG_TRUNC) == 0)
		*to = so->so_oobbyte;
	*done = 1;
	return (0);
}

int
soreceiveoob(struct socket *so, struct msghdr *msg, int flags, size_t len,
    size_t *done)
{
	int error;

	so_enter(so);
	error = take_byte(so, msg, flags, len, done);
	so_leave(so);
	msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	return (error);
}
