/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP handshake from either side: SYN out, SYN in, SYN-ACK and the
 * ACK that completes it, simultaneous open included.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "netinet/tcp_var.h"

#define	SYN_HEADROOM	64

/* Numbers of a new connection, when its addresses are known. */
static void
init_sequence(struct tcpcb *tp)
{
	const struct sockbuf *sb = &tp->t_inp.inp_socket->so_rcv;
	uint32_t most = atomic_load_u32(&tcp_recvbuf_max);

	tp->t_used = true;
	tp->iss = tcp_newiss(&tp->t_inp.inp_conn);
	tp->snd_una = tp->snd_max = tp->iss;
	tp->snd_small = tp->snd_recover = tp->iss;
	mach_random(&tp->ts_offset, sizeof(tp->ts_offset));
	/* RFC 7323 section 2.3: for the largest buffer there may be */
	if (most < sb->sb_hiwat)
		most = sb->sb_hiwat;
	tp->rcv_scale = 0;
	while ((tp->t_flags & TF_WSCALE) && tp->rcv_scale < TCP_WSCALE_MAX &&
	    (65535U << tp->rcv_scale) < most)
		tp->rcv_scale++;
}

static void
receive_sequence(struct tcpcb *tp, tcp_seq irs)
{
	tp->irs = irs;
	tp->rcv_nxt = tp->rcv_adv = tp->last_ack_sent = irs + 1;
}

/* The options of the peer's SYN: what it did not offer is off. */
static void
learn_options(struct tcpcb *tp, const struct tcpopts *to)
{
	tp->t_peermss = to->has_mss ? to->mss :
	    tcp_defaultmss(&tp->t_inp.inp_conn);
	if (to->has_wscale && (tp->t_flags & TF_WSCALE)) {
		tp->snd_scale = to->wscale;
	} else {
		tp->t_flags &= ~(unsigned)TF_WSCALE;
		tp->rcv_scale = 0;
	}
	if (!to->has_sackok)
		tp->t_flags &= ~(unsigned)TF_SACK;
	if (to->has_ts) {
		tp->ts_recent = to->tsval;
		tp->ts_recent_date = mach_uptime();
	} else {
		tp->t_flags &= ~(unsigned)TF_TS;
	}
	tcp_setmss(tp);
}

static void
fill_syn(struct tcpcb *tp, struct mbuf *m, uint8_t flags)
{
	const struct in_conninfo *c = &tp->t_inp.inp_conn;
	const struct tcpopts to = {
		.has_mss = true,
		.mss = (uint16_t)tcp_mymss(tp),
		.has_wscale = (tp->t_flags & TF_WSCALE) != 0,
		.wscale = tp->rcv_scale,
		.has_sackok = (tp->t_flags & TF_SACK) != 0,
		.has_ts = (tp->t_flags & TF_TS) != 0,
		.tsval = tcp_now_ts(tp),
		.tsecr = flags & TH_ACK ? tp->ts_recent : 0,
	};
	struct tcphdr *th = mtod(m, struct tcphdr *);
	uint32_t win = sbspace(&tp->t_inp.inp_socket->so_rcv);
	unsigned optlen;

	/* RFC 7323 section 2.2: the window of a SYN is not scaled */
	if (win > 65535)
		win = 65535;
	memset(th, 0, TCP_HDRLEN);
	optlen = tcp_opt_build((uint8_t *)m->m_data + TCP_HDRLEN, &to);
	m->m_len = m->m_pkthdr.len = TCP_HDRLEN + optlen;
	th->th_sport = c->lport;
	th->th_dport = c->fport;
	th->th_seq = htonl(tp->iss);
	th->th_ack = flags & TH_ACK ? htonl(tp->rcv_nxt) : 0;
	th->th_off = (TCP_HDRLEN + optlen) >> 2 & 0xf;
	th->th_flags = flags;
	th->th_win = htons((uint16_t)win);
	th->th_sum = in_family(&c->faddr)->af_pseudo(c, IPPROTO_TCP,
	    m->m_pkthdr.len);
	m->m_pkthdr.csum_flags = CSUM_TX;
	m->m_pkthdr.csum_offset = offsetof(struct tcphdr, th_sum);
	if (flags & TH_ACK)
		tp->rcv_adv = seq_max(tp->rcv_adv, tp->rcv_nxt + win);
}

/* Sends, or sends again, the SYN or SYN-ACK that the state asks for. */
int
tcp_sendsyn(struct tcpcb *tp)
{
	struct inpcb *inp = &tp->t_inp;
	struct mbuf *m = m_gethdr(SYN_HEADROOM);

	KASSERT(tp->t_state == TCPS_SYN_SENT ||
	    tp->t_state == TCPS_SYN_RECEIVED, ("tcp_sendsyn: state %s",
	    tcp_state_names[tp->t_state]));
	fill_syn(tp, m, tp->t_state == TCPS_SYN_SENT ? TH_SYN :
	    TH_SYN | TH_ACK);
	if (tp->snd_max == tp->iss) {
		tp->t_rttstart = mach_uptime();
		tp->t_rttseq = tp->iss + 1;
	} else {
		tp->t_rttstart = 0;
		tp->t_total_retrans++;
	}
	tp->snd_max = tp->iss + 1;
	tp->t_flags &= ~(unsigned)TF_ACKNOW;
	if (!tcp_timer_running(tp, TT_REXMT))
		tcp_timer_set(tp, TT_REXMT, tp->t_rto);
	tp->t_segs_out++;
	TCPSTAT_INC(sndtotal);
	return (in_pcboutput(inp, m, IPPROTO_TCP));
}

int
tcp_connect(struct tcpcb *tp, const struct in_endpoint *ep)
{
	int error;

	if (in_family(&ep->addr)->af_ismany(NULL, &ep->addr))
		return (ENETUNREACH);
	error = in_pcbconnect(&tp->t_inp, ep);
	if (error != 0)
		return (error);
	TCPSTAT_INC(connattempt);
	init_sequence(tp);
	tcp_setmss(tp);
	tcp_setstate(tp, TCPS_SYN_SENT);
	soisconnecting(tp->t_inp.inp_socket);
	tcp_timer_set(tp, TT_KEEP, tcp_msec(&tcp_keepinit));
	(void)tcp_sendsyn(tp);		/* lost: the timer repeats it */
	return (0);
}

/* Both SYNs are acknowledged. */
static void
established(struct tcpcb *tp)
{
	struct socket *so = tp->t_inp.inp_socket;

	TCPSTAT_INC(connects);
	tp->snd_una = tp->iss + 1;
	if (tp->t_rttstart != 0)
		tcp_rttsample(tp, mach_uptime() - tp->t_rttstart);
	tp->t_rttstart = 0;
	tp->t_rxtshift = 0;
	tp->t_lastrecv = mach_uptime();
	tcp_timer_clear(tp, TT_REXMT);
	tcp_setstate(tp, TCPS_ESTABLISHED);
	tcp_cc_init(tp);
	tcp_recover_init(tp);
	tcp_timer_keep(tp);
	soisconnected(so);
	if (so->so_state & SS_CANTSENDMORE)
		tcp_usrclosed(tp);	/* closed before it was open */
}

static void
first_window(struct tcpcb *tp, const struct tcpseg *sg)
{
	tp->snd_wnd = tp->max_sndwnd = sg->sg_win;
	tp->snd_wl1 = sg->sg_seq;
	tp->snd_wl2 = sg->sg_ack;
}

/* What a child has from its listener's block. */
static void
inherit(struct tcpcb *tp, const struct tcpcb *from)
{
	tp->t_flags |= from->t_flags & (TF_NODELAY | TF_CORK);
	tp->t_usermss = from->t_usermss;
	tp->t_cc = from->t_cc;
	tp->t_keepidle = from->t_keepidle;
	tp->t_keepintvl = from->t_keepintvl;
	tp->t_keepcnt = from->t_keepcnt;
	tp->t_usertimeo = from->t_usertimeo;
	tp->t_inp.inp_opts = from->t_inp.inp_opts;
	tp->t_inp.inp_mtudiscover = from->t_inp.inp_mtudiscover;
	tp->t_inp.inp_v6only = from->t_inp.inp_v6only;
}

/*
 * RFC 9293 section 3.10.7.2, state LISTEN.  The child comes locked from
 * sonewconn(), which the checker cannot see.
 */
enum tcp_step
tcp_listen_input(struct socket *head, struct tcpseg *sg) NO_LOCK_ANALYSIS
{
	struct socket *so;
	struct tcpcb *tp;

	if (sg->sg_flags & TH_RST)
		return (TS_DROP);
	if (sg->sg_flags & TH_ACK)
		return (TS_RESET);
	if ((sg->sg_flags & TH_SYN) == 0)
		return (TS_DROP);
	so = sonewconn(head, atomic_load_u32(&tcp_synqueue));
	if (so == NULL) {
		TCPSTAT_INC(listendrop);
		return (TS_DROP);
	}
	tp = tcp_newtcpcb(so);
	inherit(tp, sototcpcb(head));
	tp->t_state = TCPS_SYN_RECEIVED;
	if (in_pcbadopt(&tp->t_inp, &sg->sg_conn) != 0) {
		tcp_close(tp);		/* another queue's thread was first */
	} else {
		TCPSTAT_INC(accepts);
		init_sequence(tp);
		receive_sequence(tp, sg->sg_seq);
		learn_options(tp, &sg->sg_opt);
		first_window(tp, sg);
		soisconnecting(so);
		tcp_timer_set(tp, TT_KEEP, tcp_msec(&tcp_keepinit));
		(void)tcp_sendsyn(tp);
	}
	mtx_unlock(&so->so_lock);
	sorele(so);
	return (TS_DROP);
}

/* RFC 9293 section 3.10.7.3, state SYN-SENT. */
enum tcp_step
tcp_synsent_input(struct tcpcb *tp, struct tcpseg *sg)
{
	enum tcp_step step = TS_NEXT;
	bool acked = (sg->sg_flags & TH_ACK) != 0;

	if (acked && (SEQ_LEQ(sg->sg_ack, tp->iss) ||
	    SEQ_GT(sg->sg_ack, tp->snd_max)))
		return (sg->sg_flags & TH_RST ? TS_DROP : TS_RESET);
	if (sg->sg_flags & TH_RST) {
		if (!acked)
			return (TS_DROP);
		TCPSTAT_INC(drops);
		tp->t_inp.inp_socket->so_error = ECONNREFUSED;
		tcp_close(tp);
		return (TS_GONE);
	}
	if ((sg->sg_flags & TH_SYN) == 0)
		return (TS_DROP);
	receive_sequence(tp, sg->sg_seq);
	learn_options(tp, &sg->sg_opt);
	first_window(tp, sg);
	sg->sg_seq++;
	if (!acked) {			/* simultaneous open */
		tcp_setstate(tp, TCPS_SYN_RECEIVED);
		(void)tcp_sendsyn(tp);
		return (TS_DROP);
	}
	established(tp);
	tp->t_flags |= TF_ACKNOW;
	/* our SYN promised the buffer, unscaled, from here on */
	tp->rcv_adv = tp->rcv_nxt + (sbspace(&tp->t_inp.inp_socket->so_rcv) <
	    65535 ? sbspace(&tp->t_inp.inp_socket->so_rcv) : 65535);
	step = tcp_data_input(tp, sg);
	if (step == TS_NEXT)
		(void)tcp_output(tp);
	return (step);
}

/* A step of input: the ACK that ends SYN-RECEIVED. */
enum tcp_step
tcp_synreceived_ack(struct tcpcb *tp, struct tcpseg *sg)
{
	if (tp->t_state != TCPS_SYN_RECEIVED)
		return (TS_NEXT);
	if (SEQ_LEQ(sg->sg_ack, tp->iss) || SEQ_GT(sg->sg_ack, tp->snd_max))
		return (TS_RESET);
	established(tp);
	first_window(tp, sg);
	return (TS_NEXT);
}
