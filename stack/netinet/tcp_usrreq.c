/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP's socket operations.
 */
#include <errno.h>
#include <netinet/ip.h>

#include "netinet/tcp_fastopen.h"
#include "netinet/tcp_record.h"
#include "netinet/tcp_socket.h"
#include "netinet/tcp_var.h"

static int
tcp_usr_attach(struct socket *so) REQUIRES(so->so_lock)
{
	(void)tcp_newtcpcb(so);
	soreserve(so, atomic_load_u32(&tcp_sendspace),
	    atomic_load_u32(&tcp_recvspace));
	return (0);
}

/* The program closed its side: sends FIN when the state permits. */
void
tcp_usrclosed(struct tcpcb *tp)
{
	tp->t_flags &= ~(unsigned)TF_NOPUSH;	/* no more will follow */
	switch (tp->t_state) {
	case TCPS_ESTABLISHED:
		tcp_setstate(tp, TCPS_FIN_WAIT_1);
		break;
	case TCPS_CLOSE_WAIT:
		tcp_setstate(tp, TCPS_LAST_ACK);
		break;
	default:
		/* SYN-RECEIVED: established() calls this again */
		break;
	}
}

/*
 * The descriptor was closed.  If data is unread, a reset informs the peer of
 * its loss (RFC 9293 section 3.6.1).
 */
static void
tcp_usr_detach(struct socket *so)
    REQUIRES(so->so_lock)
{
	struct tcpcb *tp = sototcpcb(so);

	so_assert_locked(tp->t_inp.inp_socket);
	KASSERT(so->so_state & SS_NOFDREF, ("tcp_usr_detach: still open"));
	switch (tp->t_state) {
	case TCPS_CLOSED:
		tcp_discard(tp);
		return;
	case TCPS_LISTEN:
	case TCPS_SYN_SENT:
		tcp_close(tp);
		return;
	case TCPS_TIME_WAIT:
		sbflush(so, &so->so_rcv);
		return;
	default:
		break;
	}
	if (so->so_rcv.sb_cc > 0) {
		tcp_drop(tp, ECONNRESET);
		return;
	}
	so->so_state |= SS_CANTSENDMORE;
	tcp_usrclosed(tp);
	if (tp->t_state != TCPS_FIN_WAIT_2 || tcp_timer_finwait2(tp))
		(void)tcp_output(tp);
}

static void
tcp_usr_abort(struct socket *so)
    REQUIRES(so->so_lock)
{
	struct tcpcb *tp = sototcpcb(so);

	so_assert_locked(tp->t_inp.inp_socket);
	if (tp->t_state == TCPS_CLOSED)
		tcp_discard(tp);
	else
		tcp_drop(tp, ECONNABORTED);
}

static int
tcp_usr_bind(struct socket *so, const struct sockname *name)
    REQUIRES(so->so_lock)
{
	struct tcpcb *tp = sototcpcb(so);
	struct in_endpoint ep;
	int error;

	so_assert_locked(tp->t_inp.inp_socket);
	error = in_bindname(tp->t_inp.inp_family, name, &ep);
	return (error != 0 ? error : in_pcbbind(&tp->t_inp, &ep));
}

static int
tcp_usr_listen(struct socket *so) REQUIRES(so->so_lock)
{
	struct tcpcb *tp = sototcpcb(so);
	int error;

	so_assert_locked(tp->t_inp.inp_socket);
	if (tp->t_state != TCPS_CLOSED || tp->t_used)
		return (EINVAL);
	error = in_pcblisten(&tp->t_inp);
	if (error == 0) {
		tcp_setstate(tp, TCPS_LISTEN);
		tcp_fastopen_listen(tp);
	}
	return (error);
}

/* Ends whatever the socket does (connect(2), AF_UNSPEC). */
static void
tcp_dissolve(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (tp->t_state == TCPS_CLOSED && !tp->t_used)
		return;
	if (tp->t_state != TCPS_CLOSED)
		tcp_drop(tp, ECONNRESET);
	tcp_renew(tp);
}

static int
tcp_usr_connect(struct socket *so, const struct sockname *name, int flags)
    REQUIRES(so->so_lock)
{
	struct tcpcb *tp = sototcpcb(so);
	struct in_endpoint ep;
	const bool fast = (tp->t_flags & TF_FOCONNECT) ||
	    (flags & MSG_FASTOPEN);
	int error;

	so_assert_locked(tp->t_inp.inp_socket);
	if (name == NULL) {
		tcp_dissolve(tp);
		return (0);
	}
	error = in_fromname(tp->t_inp.inp_family, name, &ep);
	if (error != 0)
		return (error);
	if (tp->t_state != TCPS_CLOSED)
		return (EISCONN);
	if ((flags & MSG_FASTOPEN) &&
	    (atomic_load_u32(&tcp_fastopen) & FASTOPEN_CLIENT) == 0)
		return (EOPNOTSUPP);
	if (tp->t_used)		/* reused after disconnect, as in Linux */
		tcp_renew(tp);
	return (tcp_connect(tp, &ep, fast));
}

static int
tcp_usr_shutdown(struct socket *so) REQUIRES(so->so_lock)
{
	struct tcpcb *tp = sototcpcb(so);

	socantsendmore(so);
	if (tp != NULL && tp->t_state != TCPS_CLOSED) {
		tcp_usrclosed(tp);
		(void)tcp_output(tp);
	}
	return (0);
}

/*
 * Whether a reader that has emptied the buffer acknowledges what it took, as in
 * Linux: a small segment, whose sender may wait for the ACK (Nagle), and to
 * which the program sends no answer that would take the ACK along.
 */
static bool
read_acks(const struct socket *so) REQUIRES(so->so_lock)
{
	const struct tcpcb *tp = sototcpcb(so);

	return ((tp->t_flags & TF_ONEWAY) != 0 &&
	    tcp_timer_running(tp, TT_DELACK) &&
	    so->so_rcv.sb_cc == 0 &&
	    tp->rcv_nxt - tp->last_ack_sent < tp->t_maxseg);
}

/*
 * Whether a window of open bytes that grows by more is worth a segment to the
 * peer: two full segments and a quarter of the buffer, or half the buffer if
 * that is less than two segments (RFC 9293 section 3.8.6.2.2).
 *
 * A sender with a small window waits until it can send half the largest one
 * (section 3.8.6.2.1).  So a window that reaches half the buffer is offered,
 * even if the reader leaves data there: both ends would wait for a timer.
 */
static bool
worth_update(const struct tcpcb *tp, uint32_t size, uint32_t open,
    uint32_t more)
{
	if (more >= 2 * tp->t_maxseg)
		return (more >= size / 4 || open < size / 8);
	return (more >= size / 2 || (more >= size / 8 && open < size / 2 &&
	    open + more >= size / 2));
}

/*
 * The reader took data.
 *
 * No update is sent while an ACK is due and the peer may send two full
 * segments, because these trigger an ACK with the window (RFC 9293 section
 * 3.8.6.3).  The first read of a connection therefore sends no segment only to
 * advertise a window above 64 KB, which the SYN could not.
 */
__hot void
tcp_rcvd(struct socket *so) REQUIRES(so->so_lock)
{
	struct tcpcb *tp = sototcpcb(so);
	uint32_t size, open;

	if (tcp_has_fin(tp))
		return;
	tcp_recvbuf_tune(tp);
	if (__predict_false(read_acks(so))) {
		tp->t_flags |= TF_ACKNOW;
		(void)tcp_output(tp);
		return;
	}
	size = so->so_rcv.sb_hiwat;
	open = SEQ_GT(tp->rcv_adv, tp->rcv_nxt) ? tp->rcv_adv - tp->rcv_nxt :
	    0;
	if (open >= 2 * tp->t_maxseg && tcp_timer_running(tp, TT_DELACK))
		return;
	if (worth_update(tp, size, open, tcp_rcvwindow(tp) - open)) {
		TCPSTAT_INC(sndwinup);
		tp->t_flags |= TF_ACKNOW;
		(void)tcp_output(tp);
	}
}

uint32_t
tcp_notsentmax(const struct tcpcb *tp)
{
	return (__predict_false(tp->t_notsentmax != 0) ? tp->t_notsentmax :
	    atomic_load_u32(&tcp_notsent_lowat));
}

/*
 * The unit in which Linux appends data: half the peer's max window, in whole
 * segments.
 */
static uint32_t
write_unit(const struct tcpcb *tp)
{
	const uint32_t half = tp->max_sndwnd / 2 < IP_MAXPACKET ?
	    tp->max_sndwnd / 2 : IP_MAXPACKET;

	return (half < tp->t_maxseg ? tp->t_maxseg :
	    half - half % tp->t_maxseg);
}

/*
 * TCP_NOTSENT_LOWAT: a write begins no unit above this number of unsent bytes.
 * As in Linux it may fill the last one, unless it had to wait.
 */
__hot static uint32_t
tcp_usr_sendroom(const struct socket *so, bool fill)
    REQUIRES(so->so_lock)
{
	const struct tcpcb *tp = sototcpcb(so);
	uint32_t max, unsent, unit, most;

	if (__predict_false(tp == NULL))
		return (UINT32_MAX);
	max = tcp_notsentmax(tp);
	if (__predict_true(max > INT32_MAX))
		return (UINT32_MAX);
	so_assert_locked(tp->t_inp.inp_socket);
	unsent = tcp_notsent(tp);
	unit = MJUMBYTES;
	if (atomic_load_u32(&tcp_notsent_fill) != 0)
		unit = write_unit(tp);
	else
		fill = false;
	if (unsent >= max && !fill)
		return (0);
	if (!fill)
		return (((max - unsent - 1) / unit + 1) * unit);
	most = ((max - 1) / unit + 1) * unit;
	return (most > unsent ? most - unsent : 0);
}

/*
 * The last byte that was written is urgent, or ends a record, or a SYN does not
 * wait for data any longer.
 */
__cold static void
mark_end(struct tcpcb *tp, int flags) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (flags & MSG_OOB)
		tcp_urgent_send(tp);
	if (flags & MSG_EOR)
		tcp_record_end(tp);
	if (flags & MSG_FASTOPEN)
		tcp_fastopen_begin(tp);
}

__hot static int
tcp_usr_send(struct socket *so, struct mbuf *m, const struct sockname *to,
    const struct msghdr *msg, int flags)
    REQUIRES(so->so_lock)
{
	struct tcpcb *tp = sototcpcb(so);

	so_assert_locked(tp->t_inp.inp_socket);
	(void)to;
	(void)msg;
	KASSERT(m == NULL, ("tcp_usr_send: data without the buffer"));
	if (flags & MSG_MORE)
		tp->t_flags |= TF_MORE | TF_NOPUSH;
	else
		tp->t_flags &= ~(unsigned)(TF_MORE | TF_NOPUSH);
	if (__predict_false(flags & (MSG_OOB | MSG_EOR | MSG_FASTOPEN)))
		mark_end(tp, flags);
	/* if sending failed, a timer retries */
	(void)tcp_output(tp);
	if ((flags & MSG_MORE) && atomic_load_u32(&tcp_more_acked))
		tp->t_flags &= ~(unsigned)TF_MORE;
	tcp_sendbuf_tune(tp);
	/* the SYN has just been sent (TF_FODEFER) */
	return (__predict_false(so->so_state & SS_ISCONNECTING) ?
	    EINPROGRESS : 0);
}

static uint32_t
tcp_usr_notsent(const struct socket *so) REQUIRES(so->so_lock)
{
	const struct tcpcb *tp = sototcpcb(so);

	so_assert_locked(tp->t_inp.inp_socket);
	return (tcp_notsent(tp));
}

static bool
tcp_usr_unacked(const struct socket *so) REQUIRES(so->so_lock)
{
	return (tcp_sends_fin(sototcpcb(so)->t_state));
}

static int
tcp_usr_sockaddr(struct socket *so, struct sockname *name) REQUIRES(so->so_lock)
{
	return (in_pcbsockaddr(&sototcpcb(so)->t_inp, name));
}

static int
tcp_usr_peeraddr(struct socket *so, struct sockname *name) REQUIRES(so->so_lock)
{
	const struct tcpcb *tp = sototcpcb(so);

	/* a child in the accept queue may have been reset: return its peer */
	if (so->so_state & (SS_ISCONNECTED | SS_ISDISCONNECTING))
		return (in_pcbpeeraddr(&tp->t_inp, name));
	if (so->so_head != NULL || tp->t_state == TCPS_SYN_SENT)
		(void)in_pcbpeeraddr(&tp->t_inp, name);
	return (ENOTCONN);
}

const struct protosw tcp_protosw = {
	.pr_sosize = sizeof(struct tcp_socket),
	.pr_readcontrol = tcp_readcontrol,
	.pr_name = "tcp",
	.pr_domain = AF_INET,
	.pr_type = SOCK_STREAM,
	.pr_protocol = IPPROTO_TCP,
	.pr_namelen = sizeof(struct sockaddr_in),
	.pr_stream = true,
	.pr_attach = tcp_usr_attach,
	.pr_detach = tcp_usr_detach,
	.pr_abort = tcp_usr_abort,
	.pr_bind = tcp_usr_bind,
	.pr_listen = tcp_usr_listen,
	.pr_copy = tcp_usr_copy,
	.pr_connect = tcp_usr_connect,
	.pr_shutdown = tcp_usr_shutdown,
	.pr_rcvd = tcp_rcvd,
	.pr_sendroom = tcp_usr_sendroom,
	.pr_send = tcp_usr_send,
	.pr_notsent = tcp_usr_notsent,
	.pr_unacked = tcp_usr_unacked,
	.pr_setopt = tcp_setopt,
	.pr_getopt = tcp_getopt,
	.pr_sockaddr = tcp_usr_sockaddr,
	.pr_peeraddr = tcp_usr_peeraddr,
};
