/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP input.  A segment is parsed into host byte order, and its socket is
 * looked up and locked as net.inet.tcp.input requires (tcp_lock.h).  Then it
 * passes through the steps of RFC 9293 section 3.10.7.4, one function each,
 * until one of them disposes of it.  The states before synchronization have
 * their own functions in tcp_syn.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "kern/planted.h"
#include "netinet/tcp_fastopen.h"
#include "netinet/tcp_lock.h"

/* RFC 7323 section 5.5: a timestamp older than this is invalid. */
#define	TS_STALE	(24ULL * 24 * 3600 * NSEC_PER_SEC)

/* Counts a bad segment and frees it. */
#define	BADSEG(stat) do {						\
	TCPSTAT_INC(stat);						\
	m_freem(m);							\
	return (false);							\
} while (0)

/*
 * Parses header and options into host byte order; m then holds only the data.
 * False: the segment was malformed and has been freed.
 */
__hot static bool
parse(struct mbuf *m, unsigned hlen, struct tcpseg *sg)
{
	uint8_t buf[TCP_HDRLEN + TCP_OPT_MAX];
	uint32_t len = m->m_pkthdr.len - hlen, off;
	const struct tcphdr *th;

	TCPSTAT_INC(rcvtotal);
	if (__predict_false(len < TCP_HDRLEN))
		BADSEG(rcvshort);
	th = m_peek(m, hlen, TCP_HDRLEN, buf);
	off = (uint32_t)th->th_off << 2;
	if (__predict_false(off < TCP_HDRLEN || off > len))
		BADSEG(rcvshort);
	if (__predict_false(!in_cksum_ok(m, hlen, IPPROTO_TCP)))
		BADSEG(rcvbadsum);
	th = m_peek(m, hlen, off, buf);
	if (!tcp_opt_parse((const uint8_t *)th + TCP_HDRLEN, off - TCP_HDRLEN,
	    (th->th_flags & TH_SYN) != 0, &sg->sg_opt)) {
		/* as in Linux and FreeBSD: the peer has a key, and we do not */
		if (sg->sg_opt.has_signature)
			BADSEG(rcvbadsig);
		TCPSTAT_INC(rcvbadopt);
	}
	sg->sg_conn.lport = th->th_dport;
	sg->sg_conn.fport = th->th_sport;
	sg->sg_seq = ntohl(th->th_seq);
	sg->sg_ack = ntohl(th->th_ack);
	sg->sg_len = len - off;
	sg->sg_win = ntohs(th->th_win);
	sg->sg_flags = th->th_flags;
	sg->sg_urgent = tcp_urgent_byte(th);
	sg->sg_ecn = tcp_ecn_field(m);
	sg->sg_segs = 1;
	if (m->m_pkthdr.tso_segsz > 0 && sg->sg_len > m->m_pkthdr.tso_segsz)
		sg->sg_segs = (sg->sg_len + m->m_pkthdr.tso_segsz - 1) /
		    m->m_pkthdr.tso_segsz;
	off += hlen;
	if (__predict_true(off <= m->m_len))
		m_strip(m, off);
	else
		m_adj(m, off);
	sg->sg_m = m;
	return (true);
}

/* Reports data left of the window as a duplicate (RFC 2883). */
__cold static void
report_duplicate(struct tcpcb *tp, const struct tcpseg *sg)
{
	tcp_dsack_report(tp, sg->sg_seq, seq_min(sg->sg_seq + sg->sg_len,
	    tp->rcv_nxt));
}

/* Protection against wrapped sequence numbers (RFC 7323 section 5.3). */
static enum tcp_step
check_paws(struct tcpcb *tp, struct tcpseg *sg)
{
	if ((tp->t_flags & TF_TS) == 0 || (sg->sg_flags & TH_RST))
		return (STEP_NEXT);
	if (!sg->sg_opt.has_ts)		/* RFC 7323 section 3.2 */
		return (atomic_load_u32(&tcp_tolerate_missing_ts) ?
		    STEP_NEXT : STEP_DROP);
	if ((int32_t)(sg->sg_opt.tsval - tp->ts_recent) >= 0 ||
	    tp->t_lastrecv - tp->ts_recent_time > TS_STALE)
		return (STEP_NEXT);
	TCPSTAT_INC(pawsdrop);
	report_duplicate(tp, sg);
	return (STEP_ACK);
}

/*
 * RFC 7323 section 4.3: records the timestamp to echo.  The timestamp of a
 * segment whose ACK will be refused is not recorded, because PAWS would then
 * drop valid segments (RFC 5961 section 5).
 */
static void
update_ts(struct tcpcb *tp, const struct tcpseg *sg)
{
	if (__predict_false(!tcp_ack_plausible(tp, sg->sg_ack)) &&
	    (sg->sg_flags & TH_ACK))
		return;
	if (__predict_true((tp->t_flags & TF_TS) != 0) &&
	    __predict_true(sg->sg_opt.has_ts) &&
	    SEQ_LEQ(sg->sg_seq, tp->last_ack_sent)) {
		tp->ts_recent = sg->sg_opt.tsval;
		tp->ts_recent_time = tp->t_lastrecv;
	}
}

/* Trims the segment to the receive window. */
static void
trim(struct tcpcb *tp, struct tcpseg *sg, uint32_t wnd)
{
	uint32_t n;

	if (__predict_false(SEQ_LT(sg->sg_seq, tp->rcv_nxt))) {
		n = tp->rcv_nxt - sg->sg_seq;
		if (n > sg->sg_len)
			n = sg->sg_len;
		report_duplicate(tp, sg);
		m_adj(sg->sg_m, n);
		sg->sg_len -= n;
		sg->sg_seq = tp->rcv_nxt;
		tp->t_flags |= TF_ACKNOW;
	}
	if (__predict_false(SEQ_GT(sg->sg_seq + sg->sg_len,
	    tp->rcv_nxt + wnd))) {
		n = sg->sg_seq + sg->sg_len - (tp->rcv_nxt + wnd);
		TCPSTAT_INC(rcvafterwin);
		m_adj(sg->sg_m, -(int64_t)n);
		sg->sg_len -= n;
		sg->sg_flags &= (uint8_t)~TH_FIN;
		tp->t_flags |= TF_ACKNOW;
	}
}

/*
 * Whether any of len sequence numbers, or the position of an empty segment, is
 * in the window.  An empty segment may stand at its end, as in Linux and BSD: a
 * peer that has filled the window acknowledges from there, and while one of its
 * segments is missing that is beyond what RFC 9293 section 3.4 accepts.
 */
static bool
is_in_window(const struct tcpcb *tp, const struct tcpseg *sg, uint32_t len,
    uint32_t wnd)
{
	if (len == 0)
		return (SEQ_GT(sg->sg_seq, tp->rcv_nxt) &&
		    SEQ_LEQ(sg->sg_seq, tp->rcv_nxt + wnd));
	return (SEQ_LT(sg->sg_seq, tp->rcv_nxt + wnd) &&
	    SEQ_GT(sg->sg_seq + len, tp->rcv_nxt));
}

/* First step: is any part in the window? */
static enum tcp_step
check_seq(struct tcpcb *tp, struct tcpseg *sg)
{
	uint32_t wnd = SEQ_GT(tp->rcv_adv, tp->rcv_nxt) ?
	    tp->rcv_adv - tp->rcv_nxt : 0;
	uint32_t len = sg->sg_len + (sg->sg_flags & TH_FIN ? 1 : 0) +
	    (sg->sg_flags & TH_SYN ? 1 : 0);
	/* simultaneous open: the peer's SYN again, with an ACK */
	if (__predict_false(tp->t_state == TCPS_SYN_RECEIVED) &&
	    sg->sg_seq == tp->irs &&
	    (sg->sg_flags & (TH_SYN | TH_ACK)) == (TH_SYN | TH_ACK)) {
		sg->sg_flags &= (uint8_t)~TH_SYN;
		sg->sg_seq++;
		len--;
	}
	/* zero window: ACK, URG and RST are still processed */
	if (__predict_false(sg->sg_seq != tp->rcv_nxt) &&
	    !is_in_window(tp, sg, len, wnd)) {
		TCPSTAT_INC(rcvdup);
		report_duplicate(tp, sg);
		return (sg->sg_flags & TH_RST ? STEP_DROP : STEP_ACK);
	}
	/* nothing else of these is used */
	if (__predict_false(sg->sg_flags & (TH_RST | TH_SYN)))
		return (STEP_NEXT);
	update_ts(tp, sg);
	trim(tp, sg, wnd);
	return (STEP_NEXT);
}

/* Second step: RST, accepted only at the left edge (RFC 5961 section 3). */
static enum tcp_step
check_rst(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;

	if (__predict_true((sg->sg_flags & TH_RST) == 0))
		return (STEP_NEXT);
	if (sg->sg_seq != tp->rcv_nxt) {
		TCPSTAT_INC(badrst);
		return (STEP_ACK);
	}
	TCPSTAT_INC(drops);
	switch (tp->t_state) {
	case TCPS_SYN_RECEIVED:
		so->so_error = tp->t_flags & TF_FASTOPEN ? ECONNRESET :
		    ECONNREFUSED;
		tcp_fastopen_ended(tp, true);
		break;
	case TCPS_CLOSE_WAIT:	/* as in Linux: the peer had sent all */
		so->so_error = EPIPE;
		break;
	case TCPS_CLOSING:
	case TCPS_LAST_ACK:
	case TCPS_TIME_WAIT:
		break;
	default:
		so->so_error = ECONNRESET;
	}
	tcp_close(tp);
	return (STEP_GONE);
}

/* Fourth step: a SYN is an error or an attack (RFC 5961 section 4). */
static enum tcp_step
check_syn(const struct tcpseg *sg)
{
	if (__predict_true((sg->sg_flags & TH_SYN) == 0))
		return (STEP_NEXT);
	TCPSTAT_INC(badsyn);
	return (STEP_ACK);
}

/* Fifth step, first half: a segment without ACK is dropped. */
static enum tcp_step
check_ack(const struct tcpseg *sg)
{
	return (__predict_true(sg->sg_flags & TH_ACK) ? STEP_NEXT : STEP_DROP);
}

/*
 * RFC 9293 section 3.10.7.4, in its order.  The steps are called by name, so
 * that the compiler inlines them.
 */
static enum tcp_step
follow_steps(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	enum tcp_step step;

	if ((step = check_paws(tp, sg)) != STEP_NEXT ||
	    (step = check_seq(tp, sg)) != STEP_NEXT ||
	    (step = check_rst(tp, sg)) != STEP_NEXT ||
	    (step = check_syn(sg)) != STEP_NEXT ||
	    (step = check_ack(sg)) != STEP_NEXT ||
	    (step = tcp_synreceived_ack(tp, sg)) != STEP_NEXT ||
	    (step = tcp_ecn_input(tp, sg)) != STEP_NEXT ||
	    (step = tcp_ack_input(tp, sg)) != STEP_NEXT ||
	    (step = tcp_urgent_input(tp, sg)) != STEP_NEXT)
		return (step);
	return (tcp_data_input(tp, sg));
}

/* Max segment size received; for merged segments their mean. */
static void
learn_rcvmss(struct tcpcb *tp, const struct tcpseg *sg)
{
	const uint32_t mss = sg->sg_len / sg->sg_segs;

	if (mss > tp->t_rcvmss)
		tp->t_rcvmss = mss;
}

__hot static enum tcp_step
synchronised_input(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	enum tcp_step step;

	tp->t_lastrecv = getuptime();
	tp->t_segs_in += sg->sg_segs;
	if (sg->sg_len > 0) {
		tp->t_lastdata = tp->t_lastrecv;
		tp->t_data_segs_in += sg->sg_segs;
		if (sg->sg_len > tp->t_rcvmss)
			learn_rcvmss(tp, sg);
	}
	if ((sg->sg_flags & TH_SYN) == 0)
		sg->sg_win <<= tp->snd_scale;
	step = follow_steps(tp, sg);
	if (step == STEP_NEXT)
		(void)tcp_output(tp);
	return (step);
}

/*
 * RFC 9293 section 3.10.7.4 (SYN in TIME-WAIT) with the conditions of RFC
 * 6191: a new connection may reuse the ports at once.
 */
static bool
timewait_reusable(const struct tcpcb *tp, const struct tcpseg *sg)
{
	if (__predict_true(tp->t_state != TCPS_TIME_WAIT) ||
	    (sg->sg_flags & (TH_SYN | TH_ACK | TH_RST)) != TH_SYN)
		return (false);
	if ((tp->t_flags & TF_TS) && sg->sg_opt.has_ts &&
	    sg->sg_opt.tsval != tp->ts_recent)
		return ((int32_t)(sg->sg_opt.tsval - tp->ts_recent) > 0);
	return (SEQ_GT(sg->sg_seq, tp->rcv_nxt));
}

/* Sends the response that a step requested. */
__cold static void
answer(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (tp->t_state == TCPS_TIME_WAIT)	/* our ACK was lost */
		tcp_timer_set(tp, TT_2MSL, 2 * tcp_msec(&tcp_msl));
	/*
	 * Rate-limited (RFC 5961 section 7): two hosts must not answer each
	 * other's ACKs without end, and an attacker's guesses must not cause
	 * one ACK each.
	 */
	if ((sg->sg_len == 0 || (sg->sg_flags & (TH_SYN | TH_RST)) != 0) &&
	    !tcp_challenge_ok(tp))
		return;
	if (tp->t_state == TCPS_SYN_RECEIVED) {
		tcp_synreceived_answer(tp, sg);
		return;
	}
	TCPSTAT_INC(challenge);
	tp->t_flags |= TF_ACKNOW;
	(void)tcp_output(tp);
}

/*
 * Whether the segment still belongs to the socket that was looked up.  The
 * lookup was done before the listener was locked: another thread may have made
 * the connection meanwhile.
 */
static bool
still_matches(const struct tcpcb *tp, const struct tcpseg *sg)
{
	if (__predict_false(tp == NULL && !PLANTED(TCP_CLOSED)) ||
	    __predict_false(tp->t_state == TCPS_CLOSED))
		return (false);
	so_assert_locked(tp->t_inp.inp_socket);
	if (__predict_false(tp->t_state == TCPS_LISTEN))
		return ((sg->sg_flags & (TH_ACK | TH_RST)) == 0 ||
		    !in_pcbconnected(&tcp_table, &sg->sg_conn));
	return (in_connequal(&tp->t_inp.inp_conn, &sg->sg_conn));
}

/*
 * Input for a locked listener.  If the segment completes a handshake, its
 * child replaces the listener in *sop; the checker cannot see that.
 */
NOINLINE static enum tcp_step
listener_input(struct socket **sop, struct tcpseg *sg) REQUIRES((*sop)->so_lock)
{
	struct socket *child;
	struct tcpcb *tp;
	enum tcp_step step = tcp_listen_input(*sop, sg, &child);

	if (child == NULL)
		return (step);
	sounlock_input(*sop);
	sorele(*sop);
	*sop = child;
	so_assert_locked(*sop);
	forget_uptime();
	tp = sototcpcb(*sop);
	so_assert_locked(tp->t_inp.inp_socket);
	step = tp->t_flags & TF_FASTOPEN ? tcp_listen_fast(tp, sg) :
	    synchronised_input(tp, sg);
	tp = sototcpcb(*sop);
	/* no handshake was completed: wait for another segment */
	if (tp != NULL && tp->t_state == TCPS_SYN_RECEIVED)
		tcp_timer_set(tp, TT_KEEP, tcp_msec(&tcp_keepinit));
	return (step);
}

/*
 * Input for a locked socket.  False: the socket no longer matches, look it up
 * again.
 */
__hot bool
tcp_socket_input(struct socket **sop, struct tcpseg *sg)
    REQUIRES((*sop)->so_lock)
{
	struct tcpcb *tp = sototcpcb(*sop);
	enum tcp_step step;

	if (!still_matches(tp, sg))
		return (false);
	so_assert_locked(tp->t_inp.inp_socket);
	if (timewait_reusable(tp, sg)) {
		TCPSTAT_INC(timewaitreuse);
		tcp_close(tp);
		return (false);
	}
	if (__predict_false(tp->t_state == TCPS_LISTEN))
		step = listener_input(sop, sg);
	else if (__predict_false(tp->t_state == TCPS_SYN_SENT))
		step = tcp_synsent_input(tp, sg);
	else
		step = synchronised_input(tp, sg);
	if (__predict_true(step != STEP_ACK && step != STEP_RESET))
		return (true);
	tp = sototcpcb(*sop);
	so_assert_locked(tp->t_inp.inp_socket);
	if (step == STEP_ACK)
		answer(tp, sg);
	else
		tcp_reset(sg, &tp->t_inp.inp_opts);
	return (true);
}

struct socket *
tcp_find(const struct tcpseg *sg)
{
	struct socket *so = in_pcblookup(&tcp_table, &sg->sg_conn);

	if (so == NULL) {
		TCPSTAT_INC(noport);
		tcp_reset(sg, NULL);
	}
	return (so);
}

__hot bool
tcp_input_locked(struct socket *so, struct tcpseg *sg)
{
	bool done;

	so_check_time(so);
	done = tcp_socket_input(&so, sg);
	sounlock_input(so);
	sorele(so);
	return (done);
}

__hot void
tcp_input_single(struct tcpseg *sg)
{
	struct socket *so;

	do {
		so = tcp_find(sg);
		if (so == NULL)
			return;
		solock(so);
	} while (__predict_false(!tcp_input_locked(so, sg)));
}

__hot void
tcp_input(struct mbuf *m, unsigned hlen)
{
	const struct in_family *af = in_packetfamily(m);
	struct tcpseg sg;

	af_endpoints(af, m, &sg.sg_conn);
	/* RFC 9293 section 3.9.2.3: TCP has no multicast */
	if (af_ismany(af, m, &sg.sg_conn.laddr)) {
		m_freem(m);
		return;
	}
	in_pcblookup_prefetch(&tcp_table);
	if (!parse(m, hlen, &sg))
		return;
	if (__predict_true(tcp_lockops.tlo_input == NULL))
		tcp_input_single(&sg);
	else
		tcp_lockops.tlo_input(&sg);
	m_freem(sg.sg_m);
}
