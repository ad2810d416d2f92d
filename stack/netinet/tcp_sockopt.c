/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP socket options, with the names and meanings of Linux's tcp(7).
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "netinet/tcp_fastopen.h"

/* Linux's limits: half of the min buffer, and tcp_fin_timeout's max. */
#define	WINDOW_CLAMP_MIN	1152
#define	LINGER2_MAX		120	/* s */
#define	COUNT_MAX		127
#define	CC_NAME_LEN		16	/* Linux: TCP_CA_NAME_MAX */

static int
keep_seconds(nsec_t own, atomic_u32 *common)
{
	return ((int)((own != 0 ? own : tcp_msec(common)) / NSEC_PER_SEC));
}

/* Sets or clears a flag; with pushes, sends data that it held back. */
static int
set_flag(struct tcpcb *tp, unsigned flag, bool on, bool pushes)
{
	if (on)
		tp->t_flags |= flag;
	else
		tp->t_flags &= ~flag;
	if (pushes && tp->t_state != TCPS_CLOSED)
		(void)tcp_output(tp);
	return (0);
}

/* tcp(7): setting it sends pending data, even with TCP_CORK. */
static int
set_nodelay(struct tcpcb *tp, bool on)
{
	unsigned cork = tp->t_flags & TF_CORK;

	if (on)
		tp->t_flags &= ~(unsigned)(TF_CORK | TF_MORE);
	(void)set_flag(tp, TF_NODELAY, on, on);
	tp->t_flags |= cork;
	return (0);
}

/* Enabling it sends a delayed ACK, too. */
static int
set_quickack(struct tcpcb *tp, bool on)
{
	if (on && tcp_timer_running(tp, TT_DELACK))
		tp->t_flags |= TF_ACKNOW;
	return (set_flag(tp, TF_QUICKACK, on, on));
}

static int
set_keep(struct tcpcb *tp, nsec_t *field, int seconds)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (seconds < 1 || seconds > 32767)
		return (EINVAL);
	*field = (nsec_t)seconds * NSEC_PER_SEC;
	if (tp->t_state >= TCPS_ESTABLISHED && tp->t_state != TCPS_TIME_WAIT)
		tcp_timer_keep(tp);
	return (0);
}

/* TCP_INQ: reads report how many bytes are left. */
static int
set_inq(struct tcpcb *tp, int num) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;

	if (num < 0 || num > 1)
		return (EINVAL);
	so->so_options = (so->so_options & ~(unsigned)SOO_INQ) |
	    (num != 0 ? SOO_INQ : 0);
	return (0);
}

static int
set_windowclamp(struct tcpcb *tp, int num)
{
	if (num == 0 && tp->t_state != TCPS_CLOSED)
		return (EINVAL);
	tp->t_windowclamp = num == 0 ? 0 : num < WINDOW_CLAMP_MIN ?
	    WINDOW_CLAMP_MIN : (uint32_t)num;
	return (0);
}

/* Negative: no FIN_WAIT_2 after close(). */
static int
set_linger2(struct tcpcb *tp, int num)
{
	if (num > LINGER2_MAX)
		num = LINGER2_MAX;
	tp->t_linger2 = num < 0 ? TCP_LINGER2_NONE :
	    (nsec_t)num * NSEC_PER_SEC;
	return (0);
}

static int
get_linger2(const struct tcpcb *tp)
{
	if (tp->t_linger2 == TCP_LINGER2_NONE)
		return (-1);
	return (keep_seconds(tp->t_linger2, &tcp_finwait2_timeout));
}

/* Sets a count between 1 and its max. */
static int
set_count(unsigned *field, int num)
{
	if (num < 1 || num > COUNT_MAX)
		return (EINVAL);
	*field = (unsigned)num;
	return (0);
}

/* Without effect; Linux keeps only the first. */
static int
set_thin(struct tcpcb *tp, int name, int num)
{
	if (num < 0 || num > 1)
		return (EINVAL);
	if (name == TCP_THIN_LINEAR_TIMEOUTS)
		tp->t_thin = num != 0;
	return (0);
}

static int
set_number(struct tcpcb *tp, int name, int num)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	switch (name) {
	case TCP_NODELAY:
		return (set_nodelay(tp, num != 0));
	case TCP_CORK:
		return (set_flag(tp, TF_CORK, num != 0, num == 0));
	case TCP_MAXSEG:
		if (num != 0 && (num < TCP_MSS_MIN || num > 32767))
			return (EINVAL);
		tp->t_usermss = (uint16_t)num;
		if (tp->t_state >= TCPS_ESTABLISHED)
			tcp_setmss(tp);
		return (0);
	case TCP_KEEPIDLE:
		return (set_keep(tp, &tp->t_keepidle, num));
	case TCP_KEEPINTVL:
		return (set_keep(tp, &tp->t_keepintvl, num));
	case TCP_KEEPCNT:
		return (set_count(&tp->t_keepcnt, num));
	case TCP_SYNCNT:
		return (set_count(&tp->t_syncnt, num));
	case TCP_WINDOW_CLAMP:
		return (set_windowclamp(tp, num));
	case TCP_LINGER2:
		return (set_linger2(tp, num));
	case TCP_INQ:
		return (set_inq(tp, num));
	case TCP_USER_TIMEOUT:
		if (num < 0)
			return (EINVAL);
		tp->t_usertimeo = (nsec_t)num * NSEC_PER_MSEC;
		return (0);
	case TCP_QUICKACK:
		return (set_quickack(tp, num != 0));
	case TCP_DEFER_ACCEPT:
		tp->t_deferaccept = num > 0 ? (nsec_t)num * NSEC_PER_SEC : 0;
		return (0);
	case TCP_NOTSENT_LOWAT:
		tp->t_notsentmax = (uint32_t)num;
		sowwakeup(tp->t_inp.inp_socket);
		return (0);
	case TCP_FASTOPEN:
		return (tcp_fastopen_setlimit(tp, num));
	case TCP_FASTOPEN_CONNECT:
		return (tcp_fastopen_setconnect(tp, num));
	case TCP_FASTOPEN_NO_COOKIE:
		return (tcp_fastopen_setopen(tp, num));
	case TCP_THIN_LINEAR_TIMEOUTS:
	case TCP_THIN_DUPACK:
		return (set_thin(tp, name, num));
	default:
		return (ENOPROTOOPT);
	}
}

int
tcp_setopt(struct socket *so, int level, int name, const void *val,
    socklen_t len) REQUIRES(so->so_lock)
{
	struct tcpcb *tp = sototcpcb(so);
	const struct cc_algo *cc;
	int num;

	so_assert_locked(tp->t_inp.inp_socket);
	if (level == IPPROTO_IP || level == IPPROTO_IPV6)
		return (in_pcbsetopt(&tp->t_inp, level, name, val, len));
	if (level == SOL_SOCKET) {	/* SO_KEEPALIVE was changed */
		if (tp->t_state >= TCPS_ESTABLISHED &&
		    tp->t_state != TCPS_TIME_WAIT)
			tcp_timer_keep(tp);
		return (0);
	}
	if (level != IPPROTO_TCP)
		return (ENOPROTOOPT);
	if (name == TCP_CONGESTION) {
		if (len < 1)
			return (EINVAL);
		cc = tcp_cc_byname(val, len);
		if (cc == NULL)
			return (ENOENT);
		tcp_cc_choose(tp, cc);
		return (0);
	}
	if (name == TCP_FASTOPEN_KEY)
		return (tcp_fastopen_setkey(tp, val, len));
	if (len < sizeof(num))
		return (EINVAL);
	memcpy(&num, val, sizeof(num));
	return (set_number(tp, name, num));
}

static int
get_number(const struct tcpcb *tp, int name, int *num)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	switch (name) {
	case TCP_NODELAY:
		*num = (tp->t_flags & TF_NODELAY) != 0;
		break;
	case TCP_CORK:
		*num = (tp->t_flags & TF_CORK) != 0;
		break;
	case TCP_MAXSEG:
		*num = tp->t_state < TCPS_ESTABLISHED && tp->t_usermss != 0 ?
		    tp->t_usermss : (int)tp->t_maxseg;
		break;
	case TCP_KEEPIDLE:
		*num = keep_seconds(tp->t_keepidle, &tcp_keepidle);
		break;
	case TCP_KEEPINTVL:
		*num = keep_seconds(tp->t_keepintvl, &tcp_keepintvl);
		break;
	case TCP_KEEPCNT:
		*num = (int)(tp->t_keepcnt != 0 ? tp->t_keepcnt :
		    atomic_load_u32(&tcp_keepcnt));
		break;
	case TCP_SYNCNT:
		*num = (int)tcp_synlimit(tp);
		break;
	case TCP_WINDOW_CLAMP:
		*num = (int)tp->t_windowclamp;
		break;
	case TCP_LINGER2:
		*num = get_linger2(tp);
		break;
	case TCP_INQ:
		*num = (tp->t_inp.inp_socket->so_options & SOO_INQ) != 0;
		break;
	case TCP_USER_TIMEOUT:
		*num = (int)(tp->t_usertimeo / NSEC_PER_MSEC);
		break;
	case TCP_QUICKACK:
		*num = (tp->t_flags & TF_QUICKACK) != 0;
		break;
	case TCP_DEFER_ACCEPT:
		*num = (int)(tp->t_deferaccept / NSEC_PER_SEC);
		break;
	case TCP_NOTSENT_LOWAT:
		*num = (int)tp->t_notsentmax;
		break;
	case TCP_FASTOPEN:
		*num = tcp_fastopen_limit(tp);
		break;
	case TCP_FASTOPEN_CONNECT:
		*num = (tp->t_flags & TF_FOCONNECT) != 0;
		break;
	case TCP_FASTOPEN_NO_COOKIE:
		*num = (tp->t_flags & TF_FONOCOOKIE) != 0;
		break;
	case TCP_THIN_LINEAR_TIMEOUTS:
		*num = tp->t_thin;
		break;
	case TCP_THIN_DUPACK:	/* Linux has removed it */
		*num = 0;
		break;
	default:
		return (ENOPROTOOPT);
	}
	return (0);
}

static int
put(void *val, socklen_t *len, const void *from, size_t size)
{
	if (*len > size)
		*len = (socklen_t)size;
	memcpy(val, from, *len);
	return (0);
}

int
tcp_getopt(struct socket *so, int level, int name, void *val, socklen_t *len)
    REQUIRES(so->so_lock)
{
	char algorithm[CC_NAME_LEN] = "";	/* padded, as on Linux */
	struct tcpcb *tp = sototcpcb(so);
	int error, num;

	so_assert_locked(tp->t_inp.inp_socket);
	if (level == IPPROTO_IP || level == IPPROTO_IPV6)
		return (in_pcbgetopt(&tp->t_inp, level, name, val, len));
	if (level != IPPROTO_TCP)
		return (ENOPROTOOPT);
	if (name == TCP_FASTOPEN_KEY)
		return (tcp_fastopen_getkey(tp, val, len));
	if (name == TCP_INFO)
		return (tcp_getinfo(tp, val, len));
	if (name == TCP_CC_INFO) {	/* these algorithms have no more data */
		*len = 0;
		return (0);
	}
	if (name == TCP_CONGESTION) {
		strncpy(algorithm, tcp_cc_name(tp->t_cc),
		    sizeof(algorithm) - 1);
		return (put(val, len, algorithm, sizeof(algorithm)));
	}
	error = get_number(tp, name, &num);
	return (error != 0 ? error : put(val, len, &num, sizeof(num)));
}

/*
 * TCP_INQ: the bytes left to read.  After a FIN there is always something to
 * read, its end (as on Linux).
 */
void
tcp_readcontrol(struct socket *so, struct msghdr *msg, size_t room)
    REQUIRES(so->so_lock)
{
	int inq = (int)so->so_rcv.sb_cc;
	size_t used = 0;

	if (inq == 0 && (so->so_state & SS_CANTRCVMORE))
		inq = 1;
	socontrol_put(msg, room, &used, IPPROTO_TCP, TCP_CM_INQ, &inq,
	    sizeof(inq));
	msg->msg_controllen = used;
}
