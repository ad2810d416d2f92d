/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP handshake of either side: SYN, SYN-ACK, the ACK that completes it,
 * and simultaneous open.
 */
#include <errno.h>
#include <string.h>

#include "netinet/tcp_header.h"
#include "netinet/tcp_syncache.h"

#define	LOST_SYN_RTO	(3 * NSEC_PER_SEC)	/* RFC 6298 (5.7) */
#define	SYN_HEADROOM	64

/* RFC 7323 section 2.3: the scale for the max buffer size. */
static uint8_t
window_scale(const struct sockbuf *sb)
{
	uint32_t most = atomic_load_u32(&tcp_recvbuf_max);
	uint8_t scale = 0;

	if (most < sb->sb_hiwat)
		most = sb->sb_hiwat;
	while (scale < TCP_WSCALE_MAX && (65535U << scale) < most)
		scale++;
	return (scale);
}

/* RFC 7323 section 2.2: the window of a SYN is not scaled. */
static uint16_t
syn_window(const struct socket *so) REQUIRES(so->so_lock)
{
	uint32_t win = sbspace(&so->so_rcv);

	return ((uint16_t)(win < 65535 ? win : 65535));
}

static void
send_sequence(struct tcpcb *tp, tcp_seq iss)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	tp->t_used = true;
	tp->iss = iss;
	tp->snd_una = tp->snd_max = iss;
	tp->snd_small = tp->snd_up = tp->snd_recover = iss;
	tp->ts_offset = tcp_tsoffset(&tp->t_inp.inp_conn);
}

static void
receive_sequence(struct tcpcb *tp, tcp_seq irs)
{
	tp->irs = irs;
	tp->rcv_nxt = tp->rcv_adv = tp->last_ack_sent = irs + 1;
}

/*
 * The peer's MSS: without an option the default (RFC 9293 MUST-15), and so for
 * 0, which means no size.  A tiny one would cost a header for each few bytes.
 */
static uint16_t
peer_mss(const struct tcpopts *to, const struct in_conninfo *c)
{
	if (!to->has_mss || to->mss == 0)
		return (tcp_defaultmss(c));
	return (to->mss > TCP_MSS_MIN ? to->mss : TCP_MSS_MIN);
}

/* Options of the peer's SYN: those it did not offer are off. */
static void
learn_options(struct tcpcb *tp, const struct tcpopts *to)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	tp->t_peermss = peer_mss(to, &tp->t_inp.inp_conn);
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
		tp->ts_recent_time = getuptime();
	} else {
		tp->t_flags &= ~(unsigned)TF_TS;
	}
	tcp_setmss(tp);
}

__cold static void
put_cookie(struct tcpopts *to, const struct tcp_cookie *ck)
{
	memcpy(to->cookie, ck->bytes, sizeof(to->cookie));
	to->fastopen_exp = ck->exp;
}

int
tcp_half_send(const struct tcp_half *h, uint8_t flags)
{
	const struct in_conninfo *c = &h->hf_conn;
	const struct in_family *af = in_family(&c->faddr);
	const bool syn = (flags & TH_SYN) != 0;
	struct tcpopts to = {
		.has_mss = syn,
		.mss = h->hf_mss,
		.has_wscale = syn && (h->hf_flags & TF_WSCALE) != 0,
		.wscale = h->hf_scale,
		.has_sackok = syn && (h->hf_flags & TF_SACK) != 0,
		.has_ts = (h->hf_flags & TF_TS) != 0,
		.tsval = tcp_clock_ts(h->hf_tsoffset, getuptime()),
		.tsecr = flags & TH_ACK ? h->hf_tsval : 0,
		.fastopen = syn ? h->hf_cookie.optlen : 0,
	};
	struct mbuf *m = m_gethdr(SYN_HEADROOM);
	unsigned optlen;

	if (to.fastopen != 0)
		put_cookie(&to, &h->hf_cookie);
	optlen = tcp_opt_build((uint8_t *)m->m_data + TCP_HDRLEN, &to);
	m->m_len = TCP_HDRLEN + optlen;
	m->m_next = h->hf_data;
	m->m_pkthdr.len = m_length(m);
	tcp_header_put(m, &(struct tcp_header){
	    .seq = h->hf_iss + (syn ? 0 : 1),
	    .ack = flags & TH_ACK ? h->hf_ack : 0,
	    .win = (uint16_t)(syn ? h->hf_win : h->hf_win >> h->hf_scale),
	    .flags = flags | tcp_ecn_synflags(h->hf_flags, flags),
	    .optlen = optlen }, af, c);
	TCPSTAT_INC(sndtotal);
	return (af_output(af, m, c, IPPROTO_TCP, &h->hf_opts));
}

static struct tcp_half
own_half(const struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const struct inpcb *inp = &tp->t_inp;

	return ((struct tcp_half){
		.hf_conn = inp->inp_conn, .hf_iss = tp->iss,
		.hf_irs = tp->irs, .hf_ack = tp->rcv_nxt,
		.hf_flags = tp->t_flags,
		.hf_tsoffset = tp->ts_offset, .hf_tsval = tp->ts_recent,
		.hf_mss = tcp_advmss(&inp->inp_conn, tp->t_usermss),
		.hf_win = syn_window(inp->inp_socket),
		.hf_scale = tp->rcv_scale, .hf_opts = inp->inp_opts,
	});
}

/*
 * RFC 9293 section 3.10.7.4, RFC 5961: answers an unacceptable segment in
 * SYN-RECEIVED.  The peer's SYN again means that it has not seen our SYN-ACK.
 */
void
tcp_synreceived_answer(struct tcpcb *tp, const struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_half h;

	if ((sg->sg_flags & TH_SYN) && sg->sg_seq == tp->irs) {
		(void)tcp_sendsyn(tp);
		return;
	}
	TCPSTAT_INC(challenge);
	tp->t_segs_out++;
	h = own_half(tp);
	(void)tcp_half_send(&h, TH_ACK);
}

/* Sends or retransmits the SYN or SYN-ACK of the state. */
int
tcp_sendsyn(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const bool first = tp->snd_max == tp->iss ||
	    (tp->t_flags & TF_FODEFER);
	struct tcp_half h = own_half(tp);
	uint32_t len = 0;

	KASSERT(tp->t_state == TCPS_SYN_SENT ||
	    tp->t_state == TCPS_SYN_RECEIVED, ("tcp_sendsyn: state %s",
	    tcp_state_names[tp->t_state]));
	if (first) {
		tp->t_rttstart = getuptime();
		tp->t_rttseq = tp->iss + 1;
	} else {
		tp->t_rttstart = 0;
		tp->t_total_retrans++;
	}
	if (__predict_false(tp->t_flags & (TF_FOSYN | TF_FOGRANT)))
		len = tcp_fastopen_fill(tp, &h, first);
	tp->snd_max = seq_max(tp->snd_max, tp->iss + 1 + len);
	if (tp->t_flags & TF_FODEFER)
		tcp_timer_set(tp, TT_KEEP, tcp_msec(&tcp_keepinit));
	tp->t_flags &= ~(unsigned)(TF_ACKNOW | TF_FODEFER);
	if (!tcp_timer_running(tp, TT_REXMT))
		tcp_timer_set(tp, TT_REXMT, tp->t_rto);
	tp->t_segs_out++;
	if (tp->t_state == TCPS_SYN_SENT)
		return (tcp_half_send(&h, TH_SYN));
	tp->rcv_adv = seq_max(tp->rcv_adv, tp->rcv_nxt + h.hf_win);
	tp->last_ack_sent = tp->rcv_nxt;
	return (tcp_half_send(&h, TH_SYN | TH_ACK));
}

int
tcp_connect(struct tcpcb *tp, const struct in_endpoint *ep, bool fast)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	int error;

	if (af_ismany(in_family(&ep->addr), NULL, &ep->addr))
		return (ENETUNREACH);
	error = in_pcbconnect(&tp->t_inp, ep);
	if (error != 0)
		return (error);
	TCPSTAT_INC(connattempt);
	send_sequence(tp, tcp_newiss(&tp->t_inp.inp_conn));
	tp->t_flags |= tcp_ecn_request(tp);
	if (tp->t_flags & TF_WSCALE)
		tp->rcv_scale = window_scale(&tp->t_inp.inp_socket->so_rcv);
	tcp_setmss(tp);
	tcp_setstate(tp, TCPS_SYN_SENT);
	if (fast && tcp_fastopen_defer(tp)) {
		soisconnected(tp->t_inp.inp_socket);
		tp->t_inp.inp_socket->so_state |= SS_DEFERRED;
		return (0);
	}
	soisconnecting(tp->t_inp.inp_socket);
	tcp_timer_set(tp, TT_KEEP, tcp_msec(&tcp_keepinit));
	(void)tcp_sendsyn(tp); /* if it is lost, the timer retransmits it */
	return (0);
}

/*
 * Begins more carefully if the timer sent our SYN again.  No round trip was
 * measured then.  The first timeout of 1 s may only have been too short.
 */
static void
after_lost_syn(struct tcpcb *tp, unsigned timeouts)
{
	if (timeouts > 0 && tp->t_rto < LOST_SYN_RTO)
		tp->t_rto = LOST_SYN_RTO;
	if (timeouts > 1)
		tp->snd_cwnd = tp->t_maxseg;	/* RFC 6928 section 2 */
}

/*
 * Data was sent before the handshake was complete (Fast Open).  If the SYN was
 * lost, the peer has dropped what came after it.
 */
__cold static void
begin_in_flight(struct tcpcb *tp, unsigned timeouts)
{
	tcp_timer_set(tp, TT_REXMT, tp->t_rto);
	if (timeouts > 0)
		tcp_sent_lose(tp, tp->snd_max - tp->snd_una);
}

/* Both SYNs have been acknowledged. */
static void
established(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;
	const unsigned timeouts = tp->t_rxtshift;

	TCPSTAT_INC(connects);
	tp->snd_una = seq_max(tp->snd_una, tp->iss + 1);
	if (tp->t_rttstart != 0 && tp->t_rttseq == tp->iss + 1)
		tcp_rttsample(tp, getuptime() - tp->t_rttstart);
	tp->t_rttstart = 0;
	tp->t_rxtshift = 0;
	tp->t_lastrecv = tp->t_lastdata = getuptime();
	tp->t_quickacks = atomic_load_u32(&tcp_quickacks);
	tcp_timer_clear(tp, TT_REXMT);
	tcp_setstate(tp, TCPS_ESTABLISHED);
	tcp_mtu_init(tp);
	tcp_cc_init(tp);
	after_lost_syn(tp, timeouts);
	tcp_recover_init(tp);
	tcp_fastopen_ended(tp, false);
	if (__predict_false(tp->snd_max != tp->snd_una))
		begin_in_flight(tp, timeouts);
	tcp_timer_keep(tp);
	soisconnected(so);
	if (so->so_state & SS_CANTSENDMORE)
		tcp_usrclosed(tp);	/* closed during the handshake */
}

static void
first_window(struct tcpcb *tp, const struct tcpseg *sg)
{
	tp->snd_wnd = tp->max_sndwnd = sg->sg_win;
	tp->snd_wl1 = sg->sg_seq;
	tp->snd_wl2 = sg->sg_ack;
}

/* Copies a listener's options to its child. */
static void
inherit(struct tcpcb *tp, const struct tcpcb *from)
    REQUIRES(from->t_inp.inp_socket->so_lock)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	role_assert(&pcbtable_role);	/* the child is in no table yet */
	tcp_copyopts(tp, from);
	tp->t_inp.inp_opts = from->t_inp.inp_opts;
	tp->t_inp.inp_mtudiscover = from->t_inp.inp_mtudiscover;
	tp->t_inp.inp_v6only = from->t_inp.inp_v6only;
}

void
tcp_usr_copy(struct socket *head, struct socket *copy)
    REQUIRES(head->so_lock, copy->so_lock)
{
	struct tcpcb *from = sototcpcb(head);
	struct tcpcb *tp = tcp_newtcpcb(copy);

	so_assert_locked(from->t_inp.inp_socket);
	so_assert_locked(tp->t_inp.inp_socket);
	inherit(tp, from);
	tp->t_deferaccept = from->t_deferaccept;
	tp->t_fastopen = tcp_fastopen_share(from);
	tp->t_flags |= from->t_flags & TF_FONOCOOKIE;
	tcp_setstate(tp, TCPS_LISTEN);
}

void
tcp_half_init(struct tcp_half *h, struct socket *head,
    const struct in_conninfo *c, tcp_seq irs, const struct tcpopts *to)
    REQUIRES(head->so_lock)
{
	const struct tcpcb *tp = sototcpcb(head);
	const unsigned offered = (to->has_ts ? TF_TS : 0) |
	    (to->has_wscale ? TF_WSCALE : 0) | (to->has_sackok ? TF_SACK : 0);

	so_assert_locked(tp->t_inp.inp_socket);
	*h = (struct tcp_half){
		.hf_conn = *c, .hf_irs = irs, .hf_ack = irs + 1,
		.hf_flags = tcp_offers() & offered,
		.hf_tsoffset = tcp_tsoffset(c), .hf_tsval = to->tsval,
		.hf_mss = tcp_advmss(c, tp->t_usermss),
		.hf_peermss = peer_mss(to, c),
		.hf_win = syn_window(head), .hf_peerscale = to->wscale,
		.hf_opts = tp->t_inp.inp_opts,
	};
	if (h->hf_flags & TF_WSCALE)
		h->hf_scale = window_scale(&head->so_rcv);
}

/* Sets a child's sequence numbers and options from its handshake. */
static void
adopt_half(struct tcpcb *tp, const struct tcp_half *h)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const unsigned negotiated = TF_TS | TF_WSCALE | TF_SACK |
	    TF_ECN;

	send_sequence(tp, h->hf_iss);
	tp->snd_max = h->hf_iss + 1;
	receive_sequence(tp, h->hf_irs);
	tp->rcv_adv = tp->rcv_nxt + h->hf_win;
	tp->t_flags = (tp->t_flags & ~negotiated) | h->hf_flags;
	tp->t_peermss = h->hf_peermss;
	tp->rcv_scale = h->hf_scale;
	tp->snd_scale = h->hf_flags & TF_WSCALE ? h->hf_peerscale : 0;
	tp->ts_recent = h->hf_tsval;
	tp->ts_recent_time = getuptime();
	tp->t_rttstart = h->hf_sent;
	tp->t_rxtshift = h->hf_rexmits;
	tp->t_rttseq = h->hf_iss + 1;
	tcp_setmss(tp);
}

/*
 * Creates the child of a completed handshake, locked and referenced.  NULL: the
 * accept queue is full, or another thread has created it.  Not analysed,
 * because the child is locked only if there is one.
 */
static struct socket *
newchild(struct socket *head, const struct tcp_half *h) NO_LOCK_ANALYSIS
{
	struct socket *so;
	struct tcpcb *tp;

	if (soacceptfull(head)) {
		TCPSTAT_INC(listendrop);
		return (NULL);
	}
	sonewconn(head, &so);
	tp = tcp_newtcpcb(so);
	inherit(tp, sototcpcb(head));
	tp->t_state = TCPS_SYN_RECEIVED;
	if (in_pcbadopt(&tp->t_inp, &h->hf_conn) != 0) {
		tcp_close(tp);
		sounlock(so);
		sorele(so);
		return (NULL);
	}
	TCPSTAT_INC(accepts);
	adopt_half(tp, h);
	soisconnecting(so);
	return (so);
}

/*
 * RFC 9293 section 3.4: whether any of the segment is in the window.  The SYN
 * again, with an ACK, counts as what follows it.
 */
static bool
half_accepts(const struct tcp_half *h, const struct tcpseg *sg)
{
	const uint32_t len = sg->sg_len + (sg->sg_flags & TH_FIN ? 1 : 0);
	const tcp_seq first = sg->sg_seq + (sg->sg_flags & TH_SYN ? 1 : 0);
	const tcp_seq next = h->hf_irs + 1;

	return (first - next < h->hf_win ||
	    (SEQ_LT(first, next) && SEQ_GT(first + len, next)));
}

/* An ACK for a listener: does it complete a handshake? */
static enum tcp_step
listen_ack(struct socket *head, const struct tcpseg *sg,
    struct socket **child) REQUIRES(head->so_lock)
{
	struct tcp_half h;
	nsec_t since = 0;

	if (tcp_syncache_find(&sg->sg_conn, &h, &since)) {
		if (!half_accepts(&h, sg)) {
			tcp_syncache_challenge(&sg->sg_conn);
			return (STEP_DROP);
		}
		if (sg->sg_ack != h.hf_iss + 1)
			return (STEP_RESET);
		/* TCP_DEFER_ACCEPT: wait for data */
		if (sg->sg_len == 0 && (sg->sg_flags & TH_FIN) == 0 &&
		    getuptime() - since < sototcpcb(head)->t_deferaccept)
			return (STEP_DROP);
	} else if ((sg->sg_flags & TH_SYN) ||
	    !tcp_syncookie_check(head, sg, &h)) {
		return (STEP_RESET);
	}
	*child = newchild(head, &h);
	if (*child != NULL)
		tcp_syncache_remove(&h.hf_conn);
	return (STEP_DROP);
}

/*
 * A SYN for Fast Open.  True: its cookie is valid, and *child has
 * been made unless it could not be.
 */
__cold static bool
listen_fast(struct socket *head, const struct tcpseg *sg, struct tcp_half *h,
    struct socket **child) REQUIRES(head->so_lock)
{
	struct tcpcb *tp = sototcpcb(head);
	struct tcp_half old;
	nsec_t since;

	so_assert_locked(tp->t_inp.inp_socket);
	if (tcp_syncache_find(&h->hf_conn, &old, &since) ||
	    !tcp_fastopen_check(tp, sg, h))
		return (false);
	h->hf_iss = tcp_newiss(&h->hf_conn);
	*child = newchild(head, h);
	tcp_fastopen_adopt(tp, *child, h);
	return (true);
}

enum tcp_step
tcp_listen_fast(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	tp->t_lastrecv = getuptime();
	tp->snd_max = tp->iss;		/* the SYN-ACK is to be sent */
	first_window(tp, sg);
	sg->sg_seq++;
	tcp_reass_fast(tp, sg);
	(void)tcp_sendsyn(tp);	/* if it is lost, the timer retransmits it */
	tp->snd_una = tp->snd_max;
	tcp_mtu_init(tp);
	tcp_cc_init(tp);
	tcp_recover_init(tp);
	soisconnected(tp->t_inp.inp_socket);
	return (STEP_DROP);
}

/*
 * RFC 9293 section 3.10.7.2, state LISTEN.  If the segment completes a
 * handshake, it is for *child, which is locked and referenced.
 */
enum tcp_step
tcp_listen_input(struct socket *head, const struct tcpseg *sg,
    struct socket **child) REQUIRES(head->so_lock)
{
	struct tcp_half h;

	*child = NULL;
	if (sg->sg_flags & TH_RST) {
		tcp_syncache_reset(sg);
		return (STEP_DROP);
	}
	if (sg->sg_flags & TH_ACK)
		return (listen_ack(head, sg, child));
	if ((sg->sg_flags & TH_SYN) == 0)
		return (STEP_DROP);
	if (soacceptfull(head)) {
		TCPSTAT_INC(listendrop);
		return (STEP_DROP);
	}
	tcp_half_init(&h, head, &sg->sg_conn, sg->sg_seq, &sg->sg_opt);
	h.hf_flags |= tcp_ecn_requested(sg);
	if ((sg->sg_opt.fastopen != 0 ||
	    (sg->sg_len > 0 && tcp_fastopen_open(sototcpcb(head)))) &&
	    listen_fast(head, sg, &h, child))
		return (STEP_DROP);
	if (atomic_load_u32(&tcp_syncookies) == SYNCOOKIES_ALWAYS ||
	    (!tcp_syncache_add(&h) && atomic_load_u32(&tcp_syncookies) != 0))
		tcp_syncookie_send(&h);
	return (STEP_DROP);
}

/* RFC 9293 section 3.10.7.3, state SYN-SENT. */
enum tcp_step
tcp_synsent_input(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	enum tcp_step step = STEP_NEXT;
	bool acked = (sg->sg_flags & TH_ACK) != 0;

	if (acked && (SEQ_LEQ(sg->sg_ack, tp->iss) ||
	    SEQ_GT(sg->sg_ack, tp->snd_max)))
		return (sg->sg_flags & TH_RST ? STEP_DROP : STEP_RESET);
	if (sg->sg_flags & TH_RST) {
		if (!acked)
			return (STEP_DROP);
		TCPSTAT_INC(drops);
		tp->t_inp.inp_socket->so_error = ECONNREFUSED;
		tcp_close(tp);
		return (STEP_GONE);
	}
	if ((sg->sg_flags & TH_SYN) == 0)
		return (STEP_DROP);
	receive_sequence(tp, sg->sg_seq);
	learn_options(tp, &sg->sg_opt);
	tcp_ecn_accepted(tp, sg);
	first_window(tp, sg);
	sg->sg_seq++;
	if (!acked) {			/* simultaneous open */
		if (tp->t_flags & TF_FOSYN)
			tcp_fastopen_crossed(tp);
		tcp_setstate(tp, TCPS_SYN_RECEIVED);
		(void)tcp_sendsyn(tp);
		if (sg->sg_len > 0 || (sg->sg_flags & TH_FIN) != 0)
			tcp_reass_later(tp, sg);
		return (STEP_DROP);
	}
	if (__predict_false(tp->t_flags & TF_FOSYN))
		tcp_fastopen_answer(tp, sg);
	established(tp);
	if (__predict_false(tp->t_flags & TF_FOWAIT))	/* as in Linux */
		tcp_timer_set(tp, TT_DELACK, tcp_msec(&tcp_delacktime));
	else
		tp->t_flags |= TF_ACKNOW;
	/* our SYN advertised the buffer, unscaled, from here on */
	tp->rcv_adv = tp->rcv_nxt + syn_window(tp->t_inp.inp_socket);
	step = tcp_urgent_input(tp, sg);
	if (step == STEP_NEXT)
		step = tcp_data_input(tp, sg);
	if (step == STEP_NEXT)
		(void)tcp_output(tp);
	return (step);
}

/* Input step: the ACK that ends SYN-RECEIVED. */
enum tcp_step
tcp_synreceived_ack(struct tcpcb *tp, struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (__predict_true(tp->t_state != TCPS_SYN_RECEIVED))
		return (STEP_NEXT);
	if (SEQ_LEQ(sg->sg_ack, tp->iss) || SEQ_GT(sg->sg_ack, tp->snd_max))
		return (STEP_RESET);
	established(tp);
	first_window(tp, sg);
	return (STEP_NEXT);
}
