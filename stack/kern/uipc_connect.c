/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of sockets: connect(), its result, and its undoing.
 */
#include <errno.h>

#include "kern/planted.h"
#include "kern/socopies.h"

static int sodissolve(struct socket *so) REQUIRES(so->so_lock);

/*
 * As in Linux, the socket is as before a connect() that has failed, unless
 * another thread has given it a new use meanwhile.
 */
static void
soforget(struct socket *so) REQUIRES(so->so_lock)
{
	if (so->so_proto->pr_stream && !so->so_proto->pr_local &&
	    (so->so_state & (SS_ISCONNECTED | SS_ISCONNECTING |
	    SS_LISTENING | SS_NOFDREF)) == 0)
		(void)sodissolve(so);
}

/*
 * Waits for the result of a connect.  If a signal ends the wait, the attempt
 * continues in the background (POSIX), also after a timeout, which Linux
 * reports as EINPROGRESS.
 */
int
soconnectwait(struct socket *so) REQUIRES(so->so_lock)
{
	nsec_t deadline = sbdeadline(&so->so_snd);
	int error = 0;

	while ((so->so_state & SS_ISCONNECTING) && so->so_error == 0) {
		so->so_state |= SS_UNREPORTED;
		error = sbwait(so, &so->so_snd, "connec", deadline);
		if (error != 0)
			return (error == EWOULDBLOCK ? EINPROGRESS : error);
	}
	so->so_state &= ~(unsigned)SS_UNREPORTED;
	error = so->so_error;
	so->so_error = 0;
	if (error == 0 && (so->so_state & SS_ISCONNECTED) == 0 &&
	    so->so_proto->pr_stream)
		error = ECONNABORTED;
	if (error != 0)
		soforget(so);
	return (error);
}

/*
 * connect() to AF_UNSPEC ends a connection, or listening; the socket is as
 * before, and keeps the address that it was bound to (connect(2)).
 */
static int
sodissolve(struct socket *so) REQUIRES(so->so_lock)
{
	int error;

	if (so->so_state & SS_LISTENING)
		sodrainqueues(so);
	error = so->so_proto->pr_connect(so, NULL, 0);
	sbflush(so, &so->so_rcv);
	so->so_oob = OOB_NONE;
	so->so_error = 0;
	so->so_state &= ~(unsigned)(SS_LISTENING | SS_CANTRCVMORE |
	    SS_CANTSENDMORE | SS_WASCONNECTED | SS_DEFERRED | SS_UNREPORTED);
	return (error);
}

static int
soconnect1(struct socket *so, const struct sockname *name, int flags)
    REQUIRES(so->so_lock)
{
	const struct protosw *pr = so->so_proto;
	int error;

	if (name == NULL && pr->pr_stream)
		return (sodissolve(so));
	if (so->so_state & SS_LISTENING)
		return (pr->pr_local ? EOPNOTSUPP : EISCONN);
	if (pr->pr_stream && (so->so_state & SS_ISCONNECTING)) {
		if (flags & MSG_DONTWAIT)
			return (EALREADY);
		return (soconnectwait(so));
	}
	if (pr->pr_stream && (so->so_state & SS_WASCONNECTED)) {
		/* as in Linux, also after a reset */
		return (so->so_state & SS_UNREPORTED ? soconnectwait(so) :
		    EISCONN);
	}
	if (pr->pr_stream && so->so_error != 0) {
		/* result of an earlier attempt, not returned yet */
		error = so->so_error;
		soforget(so);
		so->so_error = 0;
		return (error);
	}
	error = pr->pr_connect(so, name, flags);
	if (error != 0 || (so->so_state & SS_ISCONNECTING) == 0)
		return (error);
	if (flags & MSG_DONTWAIT) {
		so->so_state |= SS_UNREPORTED;
		return (EINPROGRESS);
	}
	return (soconnectwait(so));
}

int
soconnect(struct socket *so, const struct sockaddr *sa, socklen_t len,
    int flags)
{
	struct socopies *copies = NULL;
	struct sockname name;
	bool dissolve;
	int error;

	error = sockname_get(&name, sa, len);
	if (error != 0)
		return (error);
	dissolve = name.sn_sa.sa_family == AF_UNSPEC &&
	    !(so->so_proto->pr_stream && so->so_proto->pr_local);
	so_enter(so);
	if ((so->so_state & SS_NOFDREF) && !PLANTED(CONNECT_CLOSED))
		error = EBADF;		/* closed meanwhile */
	else
		error = soconnect1(so, dissolve ? NULL : &name, flags);
	if (dissolve)
		copies = socopies_detach(so);
	so_leave(so);
	socopies_close(copies);
	return (error);
}

int
soconnected(struct socket *so)
{
	int error;

	so_enter(so);
	if (so->so_state & SS_NOFDREF)
		error = EBADF;
	else if ((so->so_state & SS_ISCONNECTING) && so->so_error == 0)
		error = EINPROGRESS;
	else
		error = soconnectwait(so);
	so_leave(so);
	return (error);
}

/* connect() of a sendto() with MSG_FASTOPEN. */
static int
connect_to(struct socket *so, const struct msghdr *msg, int flags)
    REQUIRES(so->so_lock)
{
	struct sockname name;
	int error;

	if (so->so_state & SS_NOFDREF)
		return (EBADF);
	if (so->so_state & SS_DEFERRED)
		return (0);
	error = sockname_get(&name, msg->msg_name, msg->msg_namelen);
	if (error != 0)
		return (error);
	if (name.sn_sa.sa_family == AF_UNSPEC)
		return (EOPNOTSUPP);
	return (soconnect1(so, &name, flags));
}

/*
 * sendto() with MSG_FASTOPEN connects and sends.  As in Linux, a call that may
 * wait returns when the connection is made or not, and one that must not wait
 * sends only if the data is in the SYN; else it returns EINPROGRESS.
 */
int
sosend_fastopen(struct socket *so, const struct msghdr *msg, int flags,
    size_t *done)
{
	int error;

	so_enter(so);
	error = connect_to(so, msg, flags);
	so_leave(so);
	return (error != 0 ? error :
	    sosend(so, msg, flags & ~MSG_FASTOPEN, done));
}
