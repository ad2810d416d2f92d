/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MTU of the path, from ICMP (RFC 1191), which the host remembers for its
 * next connections, or from probes where routers send none (RFC 4821).
 * Segments shrink after consecutive timeouts, and larger segments are sent
 * occasionally as probes.
 *
 * A probe consists of new data.  A lost probe is retransmitted in segments of
 * the old size and counts as a loss for congestion control, which is
 * conservative.
 */
#include "netinet/tcp_fastopen.h"
#include "netinet/tcp_record.h"
#include "netinet/tcp_var.h"

/* supported by every path (RFC 4821 section 7.7) */
#define	BASE_MSS	1024
#define	LEAST_MSS	256	/* smallest segment size tried */
#define	CLOSE_ENOUGH	16	/* the search ends at this difference */
#define	BEHIND		3	/* later segments that reveal a lost probe */
#define	SEARCH_AGAIN	(600 * NSEC_PER_SEC)	/* RFC 1191 section 6.3 */

/* Header bytes of a data segment. */
static uint32_t
headers(const struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	return (tcp_hdrlen(&tp->t_inp.inp_conn) +
	    (tp->t_flags & TF_TS ? TCP_TS_LEN : 0));
}

/* Max segment for our interface's MTU and the peer's MSS. */
static uint32_t
largest(const struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	uint32_t mss = tcp_mymss(tp);

	if (tp->t_peermss != 0 && tp->t_peermss < mss)
		mss = tp->t_peermss;
	return (mss + tcp_hdrlen(&tp->t_inp.inp_conn));
}

static void
set_pathmtu(struct tcpcb *tp, uint32_t mtu)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t least = TCP_MSS_MIN + headers(tp);

	tp->t_pathmtu = mtu > least ? mtu : least;
	tcp_setmss(tp);
}

/* The size that the path has or, while one is searched, may have. */
static uint32_t
expected(const struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (tp->t_pathmtu == 0)
		return (largest(tp));
	return (tp->t_mtu.high > tp->t_pathmtu ? tp->t_mtu.high :
	    tp->t_pathmtu);
}

/* Restarts the search between the working size and high, which comes first. */
__cold static void
set_search(struct tcpcb *tp, uint32_t high, nsec_t next)
{
	tp->t_mtu = (struct tcp_mtu){ .high = high, .next = next };
}

void
tcp_mtu_recall(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const struct in_conninfo *c = &tp->t_inp.inp_conn;
	const uint32_t most = tp->t_pathmtu != 0 ? tp->t_pathmtu : largest(tp);
	const uint32_t mtu = in_pmtu(&c->faddr, c->zone, most);

	if (mtu == most)
		return;
	set_search(tp, mtu, getuptime() + SEARCH_AGAIN);
	set_pathmtu(tp, mtu);
}

/*
 * With net.inet.tcp.mtu_probing=2 every connection starts with the small size.
 */
void
tcp_mtu_init(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	uint32_t high;

	tcp_mtu_recall(tp);
	if (atomic_load_u32(&tcp_mtu_probing) < MTU_PROBING_ALWAYS ||
	    tp->t_maxseg <= BASE_MSS)
		return;
	high = expected(tp);
	set_pathmtu(tp, BASE_MSS + headers(tp));
	set_search(tp, high, 0);
}

/*
 * If a router reports no size (mtu 0), uses IPv6's min MTU, which nearly all
 * paths support.
 */
void
tcp_mtu_icmp(struct tcpcb *tp, uint32_t mtu)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t before = tp->t_maxseg;

	if (mtu == 0)
		mtu = 1280;
	in_pmtu_update(&tp->t_inp.inp_conn.faddr, tp->t_inp.inp_conn.zone, mtu);
	if (tp->t_pathmtu != 0 && mtu >= tp->t_pathmtu &&
	    tp->t_mtu.probe == 0)
		return;
	set_search(tp, mtu, getuptime() + SEARCH_AGAIN);
	if (tp->t_pathmtu == 0 || mtu < tp->t_pathmtu)
		set_pathmtu(tp, mtu);
	if (tp->t_state == TCPS_SYN_SENT)
		tcp_fastopen_toobig(tp);
	if (tp->t_state < TCPS_ESTABLISHED || tp->t_maxseg >= before)
		return;
	TCPSTAT_INC(mturesent);
	tcp_recover_resend(tp);
}

/*
 * After a timeout: the second in a row of large segments may come from a black
 * hole, a router that drops without an ICMP error.
 */
void
tcp_mtu_timeout(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t mss = tp->t_maxseg > BASE_MSS ? BASE_MSS : tp->t_maxseg / 2;
	const uint32_t high = expected(tp);

	if (atomic_load_u32(&tcp_mtu_probing) == 0 || tp->t_rxtshift < 2 ||
	    mss < LEAST_MSS || tp->snd_max - tp->snd_una <= mss)
		return;
	TCPSTAT_INC(mtublackhole);
	set_pathmtu(tp, mss + headers(tp));
	set_search(tp, high, 0);	/* it may have been an outage */
}

/* The next size to probe; 0: no probe now. */
static uint32_t
next_size(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_mtu *mt = &tp->t_mtu;

	if (tp->t_pathmtu == 0 || tp->t_pathmtu >= largest(tp) ||
	    atomic_load_u32(&tcp_mtu_probing) == 0 || mt->probe != 0 ||
	    getuptime() < mt->next)
		return (0);
	if (mt->high < tp->t_pathmtu + CLOSE_ENOUGH) {
		/* found; search again later, because the path may change */
		set_search(tp, largest(tp), getuptime() + SEARCH_AGAIN);
		return (0);
	}
	/* most paths support the MTU of their ends, or have what was known */
	if (!mt->failed)
		return (mt->high);
	return ((tp->t_pathmtu + mt->high + 1) / 2);
}

uint32_t
tcp_mtu_probe(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t size = next_size(tp);
	const uint32_t flight = tp->snd_max - tp->snd_una;
	uint32_t len;
	bool ends;

	if (size == 0)
		return (0);
	len = size - headers(tp);
	if (tp->t_recovery != TR_OPEN || !TAILQ_EMPTY(&tp->t_ooq) ||
	    tcp_notsent(tp) < len + BEHIND * tp->t_maxseg ||
	    tp->snd_wnd < flight + len ||
	    tp->snd_cwnd < tcp_pipe(tp) + tp->t_maxseg ||
	    tp->snd_cwnd < len + BEHIND * tp->t_maxseg)
		return (0);
	if ((tp->t_flags & TF_RECORDS) &&
	    tcp_record_rest(tp, tp->snd_max, len, &ends) < len)
		return (0);
	TCPSTAT_INC(mtuprobe);
	tp->t_mtu.probe = size;
	tp->t_mtu.seq = tp->snd_max;
	tp->t_mtu.end = tp->snd_max + len;
	return (len);
}

__cold static void
probe_passed(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	TCPSTAT_INC(mtuprobeok);
	set_pathmtu(tp, tp->t_mtu.probe);
	tp->t_mtu.probe = 0;
}

void
tcp_mtu_acked(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (tp->t_mtu.probe != 0 && SEQ_GEQ(tp->snd_una, tp->t_mtu.end))
		probe_passed(tp);
}

void
tcp_mtu_resent(struct tcpcb *tp, tcp_seq seq, uint32_t len)
{
	struct tcp_mtu *mt = &tp->t_mtu;

	if (mt->probe == 0 || SEQ_LEQ(seq + len, mt->seq) ||
	    SEQ_GEQ(seq, mt->end))
		return;
	/* a tail loss probe detected no loss: retry later */
	if (tp->t_recovery != TR_OPEN) {
		mt->high = mt->probe - 1;
		mt->failed = true;
	}
	mt->probe = 0;
}
