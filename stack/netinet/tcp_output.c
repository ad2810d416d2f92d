/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP output: decides what may be sent (windows, Nagle, silly window
 * avoidance, segmentation offload) and sends it.
 *
 * Every event that changes what may be sent (a write, an ACK, a timer, a read)
 * calls tcp_output(), which sends all it can.  If data remains, it starts a
 * timer: the retransmission timer if data is in flight, else the persist
 * timer.
 */
#include <errno.h>
#include <string.h>

#include "netinet/tcp_fastopen.h"
#include "netinet/tcp_header.h"
#include "netinet/tcp_record.h"

/* Data up to this length is copied after the header instead of shared. */
#define	TCP_COPYMAX	160

/* What to send next. */
struct tcp_tx {
	tcp_seq		 tx_seq;
	uint32_t	 tx_len;
	bool		 tx_fin;
	bool		 tx_more;	/* more may follow this one */
};

/* Our timestamp clock (RFC 7323 section 5.4). */
uint32_t
tcp_ts_at(const struct tcpcb *tp, nsec_t when)
{
	return (tcp_clock_ts(tp->ts_offset, when));
}

uint32_t
tcp_now_ts(const struct tcpcb *tp)
{
	return (tcp_ts_at(tp, getuptime()));
}

/*
 * The receive window to advertise.  It never shrinks, and stays closed until
 * it is worth a segment (RFC 9293 section 3.8.6.2.2).
 */
uint32_t
tcp_rcvwindow(struct tcpcb *tp)
{
	const struct sockbuf *sb = &tp->t_inp.inp_socket->so_rcv;
	uint32_t most = 65535U << tp->rcv_scale, win = sbspace(sb);

	if (tp->t_windowclamp != 0 && win > tp->t_windowclamp)
		win = tp->t_windowclamp;
	if (win < tp->t_maxseg && win < sb->sb_hiwat / 4)
		win = 0;
	if (SEQ_GT(tp->rcv_adv, tp->rcv_nxt) &&
	    win < tp->rcv_adv - tp->rcv_nxt)
		win = tp->rcv_adv - tp->rcv_nxt;
	return (win < most ? win : most);
}

bool
tcp_challenge_ok(struct tcpcb *tp)
{
	nsec_t now = getuptime();

	if (now - tp->t_challenge_time > NSEC_PER_SEC) {
		tp->t_challenge_time = now;
		tp->t_challenges = 0;
	}
	if (tp->t_challenges >= 10)
		return (false);
	tp->t_challenges++;
	return (true);
}

/*
 * Whether a partial segment may be sent although more data may come: Nagle in
 * Minshall's form (one small segment in flight at a time).  The tail of a
 * large write then need not wait for the ACK of its body.
 */
static bool
tail_ok(const struct tcpcb *tp)
{
	if ((tp->t_flags & TF_FORCE) || tcp_sends_fin(tp->t_state) ||
	    tcp_is_urgent(tp, tp->snd_max))
		return (true);
	if (tp->t_flags & (TF_CORK | TF_MORE))
		return (false);
	return ((tp->t_flags & TF_NODELAY) ||
	    SEQ_LEQ(tp->snd_small, tp->snd_una));
}

/* Bytes that the congestion window permits. */
static uint32_t
congestion_room(const struct tcpcb *tp)
{
	uint32_t pipe = tcp_pipe(tp);

	return (tp->snd_cwnd > pipe ? tp->snd_cwnd - pipe : 0);
}

/* Of queued bytes, those that both windows permit. */
static uint32_t
usable_window(struct tcpcb *tp, uint32_t inflight, uint32_t queued)
{
	uint32_t wnd = tp->snd_wnd > inflight ? tp->snd_wnd - inflight : 0;
	uint32_t room = congestion_room(tp);

	if (room <= wnd && queued >= room)
		tp->t_flags |= TF_CWNDLIMITED;
	if (wnd > room)
		wnd = room;
	return (queued < wnd ? queued : wnd);
}

/* How many of len bytes, more than a segment, one burst may have. */
static uint32_t
burst(const struct tcpcb *tp, uint32_t len)
{
	const uint32_t min_segs = atomic_load_u32(&tcp_min_tso_segs);
	uint32_t most = tcp_tso_room(tp);

	most -= tcp_tail(tp, most);
	if (__predict_false(min_segs != 0)) {
		const uint32_t paced = tcp_burst_paced(tp, most,
		    min_segs);

		most = paced < most ? paced : most;
	}
	return (len < most ? len : most);
}

/*
 * How much to send at once of len bytes permitted by the windows, when queued
 * bytes wait: whole segments, and a partial one only when it is due (RFC 9293
 * section 3.8.6.2.1).
 */
static uint32_t
worthwhile(const struct tcpcb *tp, uint32_t len, uint32_t queued)
{
	uint32_t tail;

	if (__predict_false(len > tp->t_maxseg))
		len = burst(tp, len);
	if (len == 0)
		return (0);
	tail = tcp_tail(tp, len);
	if (tail == 0 || (len == queued && tail_ok(tp)))
		return (len);
	if (len > tail)
		return (len - tail);
	if ((tp->t_flags & TF_FORCE) || (len >= tp->max_sndwnd / 2 &&
	    (tp->t_flags & (TF_CORK | TF_MORE)) == 0))
		return (len);
	return (0);
}

/* Like worthwhile(), of the next record; one that another follows is due. */
__cold static uint32_t
worthwhile_record(const struct tcpcb *tp, uint32_t len, uint32_t queued)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	uint32_t record;
	bool ends;

	if (len == 0)
		return (0);
	record = tcp_record_rest(tp, tp->snd_max, queued, &ends);
	if (len < record || record == queued)
		return (worthwhile(tp, len, queued));
	return (record > tp->t_maxseg ? burst(tp, record) : record);
}

/*
 * How much of the data in flight that ends at end is beyond the peer's window,
 * which it may have shrunk.  Less than the window's unit was lost by rounding.
 */
static uint32_t
beyond_window(const struct tcpcb *tp, tcp_seq end)
{
	const uint32_t sent = end - tp->snd_una;

	if (__predict_true(sent <= tp->snd_wnd) ||
	    sent - tp->snd_wnd < 1U << tp->snd_scale)
		return (0);
	return (sent - tp->snd_wnd);
}

/*
 * Plans a retransmission of len bytes from seq, and the FIN if it follows
 * them.
 */
__cold static void
plan_again(const struct tcpcb *tp, struct tcp_tx *tx, tcp_seq seq,
    tcp_seq end) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const tcp_seq data = tp->snd_una + tp->t_inp.inp_socket->so_snd.sb_cc;

	tx->tx_seq = seq;
	tx->tx_fin = SEQ_GT(end, data);
	tx->tx_len = (tx->tx_fin ? data : end) - seq;
}

/*
 * Lost data goes first (RFC 6675 section 4), as far as the pipe permits; F-RTO
 * sends new data in between (RFC 5682).  If the window shrank, what is within it
 * is sent, because a peer may refuse a segment that goes beyond it, or only the
 * first segment, as a window probe.
 */
static bool
plan_lost(struct tcpcb *tp, struct tcp_tx *tx)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const struct tcp_sent *r = TAILQ_FIRST(&tp->t_lost);
	const uint32_t most = tcp_tso_room(tp);
	uint32_t len, room, beyond;

	if (__predict_true(r == NULL) || tp->t_frto == FRTO_NEW ||
	    (r->seq != tp->snd_una &&
	    SEQ_GEQ(r->seq, tp->snd_una + tp->snd_wnd)))
		return (false);
	len = r->end - r->seq;
	beyond = beyond_window(tp, r->end);
	if (beyond < len)
		len -= beyond;
	room = congestion_room(tp);
	if (room > most)
		room = most;
	if (len > room) {
		tp->t_flags |= TF_CWNDLIMITED;
		len = room - room % tp->t_maxseg;
	}
	if (len == 0)
		return (false);
	if (len > tp->t_maxseg && tcp_is_urgent(tp, r->seq))
		len = tp->t_maxseg;
	plan_again(tp, tx, r->seq, r->seq + len);
	if (tp->t_flags & TF_SACK)
		TCPSTAT_INC(sackrexmit);
	return (true);
}

/* A device that segments would repeat CWR and the urgent pointer. */
static bool
must_be_single(const struct tcpcb *tp, tcp_seq seq)
{
	return ((tp->t_flags & (TF_ECN | TF_ECNCWR)) ==
	    (TF_ECN | TF_ECNCWR) || tcp_is_urgent(tp, seq));
}

/*
 * The sequence number of a segment without data.  The peer ignores the ACK of a
 * segment outside its window (RFC 9293 section 3.10.7.4), and it may have
 * closed the window behind data in flight: Linux does when its receive buffer
 * is full.
 */
tcp_seq
tcp_emptyseq(const struct tcpcb *tp)
{
	return (tp->snd_max - beyond_window(tp, tp->snd_max));
}

static bool
plan(struct tcpcb *tp, struct tcp_tx *tx)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t cc = tp->t_inp.inp_socket->so_snd.sb_cc;
	const uint32_t off = tp->snd_max - tp->snd_una;
	uint32_t queued;

	tx->tx_more = true;
	if (plan_lost(tp, tx))
		return (true);
	queued = cc > off ? cc - off : 0;
	tx->tx_seq = tp->snd_max;
	tx->tx_len = usable_window(tp, off, queued);
	tx->tx_len = __predict_false(tp->t_flags & TF_RECORDS) ?
	    worthwhile_record(tp, tx->tx_len, queued) :
	    worthwhile(tp, tx->tx_len, queued);
	if (tx->tx_len > tp->t_maxseg && must_be_single(tp, tx->tx_seq))
		tx->tx_len = tp->t_maxseg;
	tx->tx_fin = tcp_sends_fin(tp->t_state) && off + tx->tx_len == cc;
	tx->tx_more = tx->tx_len > 0 && tx->tx_len < queued;
	if (tx->tx_len > 0 || tx->tx_fin)
		return (true);
	tx->tx_seq = tcp_emptyseq(tp);
	return ((tp->t_flags & TF_ACKNOW) != 0);
}

static unsigned
build_options(struct tcpcb *tp, uint8_t *buf)
{
	const bool has_ts = (tp->t_flags & TF_TS) != 0;
	const uint32_t tsval = has_ts ? tcp_now_ts(tp) : 0;
	struct tcpopts to;

	if (__predict_true((tp->t_flags & TF_SACK) == 0 ||
	    !tcp_reass_reports(tp)))
		return (has_ts ? tcp_opt_timestamps(buf, tsval,
		    tp->ts_recent) : 0);
	to = (struct tcpopts){ .has_ts = has_ts, .tsval = tsval,
	    .tsecr = tp->ts_recent };
	to.nsack = tcp_reass_sack(tp, to.sack);
	return (tcp_opt_build(buf, &to));
}

/* Fills in the TCP header before m's data, with window and checksum. */
static void
fill_header(struct tcpcb *tp, const struct in_family *af, struct mbuf *m,
    unsigned optlen, tcp_seq seq, uint8_t flags)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t mask = (1U << tp->rcv_scale) - 1;
	uint32_t win = (tcp_rcvwindow(tp) + mask) >> tp->rcv_scale;

	if (win > 65535)
		win = 65535;
	tcp_header_put(m, &(struct tcp_header){ .seq = seq, .ack = tp->rcv_nxt,
	    .win = (uint16_t)win, .flags = flags, .optlen = optlen }, af,
	    &tp->t_inp.inp_conn);
	tcp_urgent_output(tp, seq, mtod(m, struct tcphdr *));
	tp->rcv_adv = seq_max(tp->rcv_adv,
	    tp->rcv_nxt + (win << tp->rcv_scale));
}

/* Makes a header mbuf followed by len bytes of the send buffer from seq. */
static struct mbuf *
build_segment(struct tcpcb *tp, tcp_seq seq, uint32_t *len, unsigned *optlen)
{
	struct sockbuf *sb = &tp->t_inp.inp_socket->so_snd;
	struct mbuf *m = m_gethdr(TCP_HEADROOM), *from;
	uint32_t moff, segsz;

	*optlen = build_options(tp, (uint8_t *)m->m_data + TCP_HDRLEN);
	/* SACK blocks reduce the data by their length */
	segsz = tp->t_maxseg - (*optlen - (tp->t_flags & TF_TS ?
	    TCP_TS_LEN : 0));
	if (*len > segsz) {
		if (*len == tp->t_maxseg)
			*len = segsz;
		m->m_pkthdr.csum_flags = *len > segsz ? CSUM_TSO : 0;
		m->m_pkthdr.tso_segsz = (uint16_t)segsz;
	}
	m->m_len = TCP_HDRLEN + *optlen;
	m->m_pkthdr.len = m->m_len + *len;
	if (*len == 0)
		return (m);
	from = sbsendptr(sb, seq - tp->snd_una, &moff);
	if (*len <= TCP_COPYMAX) {
		m_copydata(from, moff, *len, m->m_data + m->m_len);
		m->m_len += *len;
	} else {
		m->m_next = m_copym(from, moff, *len);
	}
	return (m);
}

/* Updates the state after sending data or a FIN. */
static void
account_data(struct tcpcb *tp, tcp_seq seq, uint32_t len, bool fin)
{
	const tcp_seq end = seq + len + (fin ? 1 : 0);
	const nsec_t now = getuptime();

	tp->t_lastsend = now;
	tp->t_bytes_sent += len;
	tp->t_data_segs_out += tcp_segments(tp, len);
	tcp_sent_add(tp, seq, end, now);
	if (__predict_false(SEQ_LT(seq, tp->snd_max))) {
		TCPSTAT_INC(sndrexmitpack);
		TCPSTAT_ADD(sndrexmitbyte, len);
		tp->t_total_retrans++;
		tcp_mtu_resent(tp, seq, len);
		tcp_recover_rexmit(tp, len, now);
	} else {
		TCPSTAT_INC(sndpack);
		TCPSTAT_ADD(sndbyte, len);
		if (tp->t_rttstart == 0) {
			tp->t_rttstart = now;
			tp->t_rttseq = end;
		}
		tp->snd_max = end;
	}
	tp->t_prr.out += len;
	if (tcp_tail(tp, len) != 0)
		tp->snd_small = seq_max(tp->snd_small, seq + len);
	tcp_timer_clear(tp, TT_PERSIST);
	if (!tcp_timer_running(tp, TT_REXMT)) {
		tp->t_rxtshift = 0;
		tcp_timer_set(tp, TT_REXMT, tp->t_rto);
	}
}

/* Updates the state after sending an ACK with len bytes of data. */
static void
account_ack(struct tcpcb *tp, uint32_t len)
{
	tp->last_ack_sent = tp->rcv_nxt;
	tp->t_dsack.end = tp->t_dsack.start;
	tp->t_flags &= ~(unsigned)TF_ACKNOW;
	tp->t_unacked = 0;
	/* a peer that gets data back needs no quick ACKs */
	if (len > 0)
		tp->t_flags &= ~(unsigned)TF_ONEWAY;
	if (__predict_false(tp->t_quickacks > 0))
		tp->t_quickacks = len > 0 && tcp_isanswer(tp) ? 0 :
		    tp->t_quickacks - 1;
	tcp_timer_clear(tp, TT_DELACK);
	tp->t_segs_out += len == 0 ? 1 : tcp_segments(tp, len);
	TCPSTAT_INC(sndtotal);
}

__cold static int
send_error(struct tcpcb *tp, int error) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	TCPSTAT_INC(outerror);
	switch (error) {
	case EMSGSIZE:
		tcp_mtu_recall(tp);
		tcp_setmss(tp);
		return (0);
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
		tp->t_softerror = error;
		break;
	}
	/* a failed transmission is retransmitted by the timer */
	return (error);
}

/* Sends one segment of an established connection. */
__hot static int
transmit(struct tcpcb *tp, tcp_seq seq, uint32_t *len, bool fin)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const struct sockbuf *sb = &tp->t_inp.inp_socket->so_snd;
	const struct in_conninfo *c = &tp->t_inp.inp_conn;
	const struct ip_sendopts *opts = &tp->t_inp.inp_opts;
	const struct in_family *af = in_family(&c->faddr);
	struct ip_sendopts marked;
	struct mbuf *m;
	unsigned optlen;
	uint32_t asked = *len;
	uint8_t flags = TH_ACK, ecn;
	bool ends = false;
	int error;

	if (__predict_false(tp->t_flags & TF_RECORDS) && *len > 0)
		*len = tcp_record_rest(tp, seq, *len, &ends);
	m = build_segment(tp, seq, len, &optlen);
	if (*len < asked)
		fin = false;
	if (fin)
		flags |= TH_FIN;
	/*
	 * RFC 9293 section 3.9.1.2 requires PSH on the last bytes in the
	 * buffer, unless the program has announced more.  On a large segment
	 * it makes receivers that merge segments deliver it.
	 */
	if (*len > 0 && ((seq + *len == tp->snd_una + sb->sb_cc &&
	    (tp->t_flags & TF_NOPUSH) == 0) || *len > tp->t_maxseg || ends))
		flags |= TH_PUSH;
	flags |= tcp_ecn_output(tp, *len > 0 && seq == tp->snd_max, &ecn);
	if (tp->t_flags & TF_ECN) {
		marked = *opts;
		marked.tos = (opts->tos & IPTOS_DSCP_MASK) | ecn;
		opts = &marked;
	}
	fill_header(tp, af, m, optlen, seq, flags);
	if (*len > 0 || fin)
		account_data(tp, seq, *len, fin);
	else
		TCPSTAT_INC(sndacks);
	account_ack(tp, *len);
	error = af_output(af, m, c, IPPROTO_TCP, opts);
	return (error == 0 ? 0 : send_error(tp, error));
}

uint32_t
tcp_notsent(const struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t cc = tp->t_inp.inp_socket->so_snd.sb_cc;
	const uint32_t sent = tp->snd_max - tp->snd_una;

	return (cc > sent ? cc - sent : 0);
}

/* Sends a larger segment as an MTU probe, if one is due. */
static void
try_larger(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t maxseg = tp->t_maxseg;
	uint32_t len = tcp_mtu_probe(tp);

	if (len == 0)
		return;
	tp->t_maxseg = len;
	(void)transmit(tp, tp->snd_max, &len, false);
	tp->t_maxseg = maxseg;
}

/* Whether nothing is to be sent, as after most input. */
static bool
is_silent(const struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	return ((tp->t_flags & TF_ACKNOW) == 0 && TAILQ_EMPTY(&tp->t_lost) &&
	    tp->t_inp.inp_socket->so_snd.sb_cc == tp->snd_max - tp->snd_una &&
	    !tcp_sends_fin(tp->t_state));
}

/* Out of line: keeps the prologue of the idle path in tcp_output() small. */
__hot NOINLINE static int
tcp_output_slow(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_tx tx = { .tx_more = false };
	const tcp_seq before = tp->snd_max;
	int error = 0;

	if (tcp_output_handoff(tp))
		return (0);
	tcp_cc_afteridle(tp);
	try_larger(tp);
	do {
		if (!plan(tp, &tx))
			break;
		error = transmit(tp, tx.tx_seq, &tx.tx_len, tx.tx_fin);
	} while (error == 0 && tx.tx_more);
	tcp_output_held(tp);
	tcp_info_limit(tp);
	if (tp->snd_max != before) {
		tcp_cc_sent(tp);
		tcp_tlp_schedule(tp);
		if (tcp_notsentmax(tp) <= INT32_MAX)
			sowwakeup(tp->t_inp.inp_socket);
	}
	if (__predict_false(tp->snd_una == tp->snd_max) &&
	    tp->t_inp.inp_socket->so_snd.sb_cc > 0 &&
	    !tcp_timer_running(tp, TT_REXMT))
		tcp_timer_persist(tp);
	return (error);
}

__hot int
tcp_output(struct tcpcb *tp)
{
	so_assert_locked(tp->t_inp.inp_socket);
	if (tp->t_state < TCPS_ESTABLISHED && !tcp_fastopen_output(tp))
		return (0); /* tcp_sendsyn() sends in these states */
	if (!is_silent(tp))
		return (tcp_output_slow(tp));
	tcp_info_limit(tp);
	return (0);
}

bool
tcp_sendtail(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t cc = tp->t_inp.inp_socket->so_snd.sb_cc;
	const uint32_t off = tp->snd_max - tp->snd_una;
	const struct tcp_sent *last = TAILQ_LAST(&tp->t_sent, tcp_sentlist);
	uint32_t len = tp->t_maxseg;
	struct tcp_tx tx;

	if (cc > off && tp->snd_wnd > off &&
	    (tp->t_flags & (TF_CORK | TF_MORE)) == 0) {
		if (len > cc - off)
			len = cc - off;
		if (len > tp->snd_wnd - off)
			len = tp->snd_wnd - off;
		(void)transmit(tp, tp->snd_max, &len, false);
		return (true);
	}
	if (last->end - last->seq < len)
		len = last->end - last->seq;
	plan_again(tp, &tx, last->end - len, last->end);
	(void)transmit(tp, tx.tx_seq, &tx.tx_len, tx.tx_fin);
	return (false);
}

/*
 * Sends a segment that the peer must answer: below its window and without
 * data, as Linux probes windows and idle connections.  It needs no state and
 * no sequence number, so its loss has no effect.
 */
void
tcp_sendprobe(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	uint32_t len = 0;

	TCPSTAT_INC(sndprobe);
	(void)transmit(tp, tp->snd_una - 1, &len, false);
}
