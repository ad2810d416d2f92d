/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP acknowledgements: what was delivered, the send window, and the
 * round-trip time (RFC 9293 section 3.10.7.4, fifth step; RFC 6298).
 */
#include <errno.h>
#include <netinet/tcp.h>

#include "netinet/tcp_var.h"

/* Max back-off of probes to a closed window. */
#define	PROBE_SHIFT	8

/*
 * RFC 6298 (2.4).  As in Linux, the min of 200 ms applies to the variance and
 * not 1 s to the sum, so that both ends of a measurement recover in the same
 * way.
 */
void
tcp_setrto(struct tcpcb *tp)
{
	nsec_t least = tcp_msec(&tcp_rexmit_min), var = 4 * tp->t_rttvar;

	tp->t_rto = tp->t_srtt + (var > least ? var : least);
	if (tp->t_rto > TCP_RTO_MAX)
		tp->t_rto = TCP_RTO_MAX;
}

/* RFC 6298 (2.2) and (2.3). */
void
tcp_rttsample(struct tcpcb *tp, nsec_t rtt)
{
	nsec_t delta;

	if (rtt < tp->t_rttmin)
		tp->t_rttmin = rtt;
	if (__predict_false(tp->t_srtt == 0)) {
		tp->t_srtt = rtt > 0 ? rtt : 1;
		tp->t_rttvar = rtt / 2;
	} else {
		delta = rtt > tp->t_srtt ? rtt - tp->t_srtt :
		    tp->t_srtt - rtt;
		tp->t_rttvar = tp->t_rttvar - tp->t_rttvar / 4 + delta / 4;
		tp->t_srtt = tp->t_srtt - tp->t_srtt / 8 + rtt / 8;
	}
	tcp_setrto(tp);
}

/*
 * One segment is timed at a time.  While retransmissions are in flight, only
 * an echoed timestamp shows which transmission was acknowledged (RFC 7323
 * section 4.1).
 */
static void
measure(struct tcpcb *tp, const struct tcpseg *sg)
{
	if (tp->t_rttstart != 0) {
		if (SEQ_GEQ(sg->sg_ack, tp->t_rttseq)) {
			tcp_rttsample(tp, tp->t_lastrecv - tp->t_rttstart);
			tp->t_rttstart = 0;
		}
	} else if ((tp->t_flags & TF_TS) && sg->sg_opt.has_ts &&
	    sg->sg_opt.tsecr != 0) {
		/* +1: the timestamp clock has a resolution of 1 ms */
		uint32_t ms = tcp_now_ts(tp) - sg->sg_opt.tsecr + 1;

		if (ms < TCP_RTO_MAX / NSEC_PER_MSEC)
			tcp_rttsample(tp, ms * NSEC_PER_MSEC);
	}
}

/* RFC 9293 section 3.10.7.4: SND.WND comes from the newest segment. */
void
tcp_updatewindow(struct tcpcb *tp, const struct tcpseg *sg)
{
	if (SEQ_GT(tp->snd_wl1, sg->sg_seq) ||
	    (tp->snd_wl1 == sg->sg_seq && SEQ_GT(tp->snd_wl2, sg->sg_ack)))
		return;
	tp->snd_wnd = sg->sg_win;
	tp->snd_wl1 = sg->sg_seq;
	tp->snd_wl2 = sg->sg_ack;
	if (__predict_false(tp->snd_wnd > tp->max_sndwnd))
		tp->max_sndwnd = tp->snd_wnd;
}

static void
restart_timer(struct tcpcb *tp)
{
	tp->t_rxtshift = 0;
	tp->t_softerror = 0;
	if (tp->snd_una == tp->snd_max)
		tcp_timer_clear(tp, TT_REXMT);
	else
		tcp_timer_set(tp, TT_REXMT, tp->t_rto);
}

/*
 * A new ACK: drops the acknowledged bytes from the send buffer.  True: it
 * covers our FIN, too.
 */
static bool
advance(struct tcpcb *tp, const struct tcpseg *sg, struct tcp_acked *a)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct sockbuf *sb = &tp->t_inp.inp_socket->so_snd;
	uint32_t acked = sg->sg_ack - tp->snd_una;
	bool fin = acked > sb->sb_cc;

	measure(tp, sg);
	a->acked = acked;
	if (fin)
		acked = sb->sb_cc;
	tp->t_bytes_acked += acked;
	sbdrop(sb, acked);
	tcp_sent_ack(tp, sg->sg_ack, a);
	tp->snd_una = sg->sg_ack;
	tp->snd_small = seq_max(tp->snd_small, tp->snd_una);
	tp->snd_up = seq_max(tp->snd_up, tp->snd_una);
	tp->snd_recover = seq_max(tp->snd_recover, tp->snd_una - 1);
	tcp_mtu_acked(tp);
	restart_timer(tp);
	return (fin);
}

/*
 * RFC 5681 section 2; with SACK, new SACK information counts (RFC 6675 section
 * 2).
 */
static bool
is_duplicate(const struct tcpcb *tp, const struct tcpseg *sg, bool sacked)
{
	if (tp->snd_una == tp->snd_max || sg->sg_ack != tp->snd_una)
		return (false);
	return (sacked || (sg->sg_len == 0 && sg->sg_win == tp->snd_wnd &&
	    (sg->sg_flags & TH_FIN) == 0));
}

/* Passes the ACK to recovery, and wakes a writer if there is space. */
static void
digest(struct tcpcb *tp, const struct tcpseg *sg, struct tcp_acked *a)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;

	if (a->acked == 0)
		a->duplicate = is_duplicate(tp, sg, a->delivered > 0);
	if (__predict_false(a->duplicate))
		TCPSTAT_INC(rcvdupack);
	tcp_recover(tp, sg->sg_ack, a);
	if (a->acked == 0)
		return;
	tp->t_flags &= ~(unsigned)TF_CWNDLIMITED;
	if (sbspace(&so->so_snd) >= so->so_snd.sb_lowat ||
	    so->so_snd.sb_cc == 0)
		sowwakeup(so);
}

/* Our FIN is acknowledged. */
NOINLINE static enum tcp_step
fin_acked(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const struct socket *so = tp->t_inp.inp_socket;

	switch (tp->t_state) {
	case TCPS_FIN_WAIT_1:
		tcp_setstate(tp, TCPS_FIN_WAIT_2);
		return ((so->so_state & SS_NOFDREF) == 0 ||
		    tcp_timer_finwait2(tp) ? STEP_NEXT : STEP_GONE);
	case TCPS_CLOSING:
		return (tcp_timewait(tp) ? STEP_NEXT : STEP_GONE);
	case TCPS_LAST_ACK:
		tcp_close(tp);
		return (STEP_GONE);
	default:
		panic("fin_acked: state %s", tcp_state_names[tp->t_state]);
	}
}

__hot enum tcp_step
tcp_ack_input(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_acked a = { .now = tp->t_lastrecv,
	    .marked = (tp->t_flags & TF_ECN) != 0 &&
	    (sg->sg_flags & TH_ECE) != 0,
	    .has_ts = (tp->t_flags & TF_TS) != 0 && sg->sg_opt.has_ts &&
	    sg->sg_opt.tsecr != 0, .tsecr = sg->sg_opt.tsecr,
	    .fack = tp->t_rack.fack };
	const bool shut = tp->snd_wnd == 0;
	bool fin = false;

	if (__predict_false(!tcp_ack_plausible(tp, sg->sg_ack))) {
		if (!SEQ_GT(sg->sg_ack, tp->snd_max))
			return (STEP_ACK);
		TCPSTAT_INC(rcvacktoomuch);
		return (atomic_load_u32(&tcp_answer_unsent) ? STEP_ACK :
		    STEP_DROP);
	}
	tcp_sack_input(tp, sg, &a);
	if (SEQ_GT(sg->sg_ack, tp->snd_una))
		fin = advance(tp, sg, &a);
	digest(tp, sg, &a);
	tcp_updatewindow(tp, sg);
	if (__predict_false(shut) && tp->snd_wnd > 0)
		tcp_recover_reopened(tp);
	if (__predict_false(tp->snd_wnd == 0) && tp->t_rxtshift > PROBE_SHIFT)
		/* the peer is alive, its buffer is full */
		tp->t_rxtshift = PROBE_SHIFT;
	return (__predict_false(fin) ? fin_acked(tp) : STEP_NEXT);
}
