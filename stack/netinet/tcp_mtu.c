/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MTU of the path: told by routers (RFC 1191), or found out where they
 * keep silent (RFC 4821): segments shrink after timeouts in a row, and now
 * and then one is sent that is larger.
 *
 * A probe is new data.  One that is lost is retransmitted in segments of
 * the old size, and counts as a loss to congestion control, which errs on
 * the safe side.
 */
#include "netinet/tcp_var.h"

#define	BASE_MSS	1024	/* carried by any path (RFC 4821 7.7) */
#define	LEAST_MSS	256	/* no black hole is narrower */
#define	CLOSE_ENOUGH	16	/* the search ends */
#define	BEHIND		3	/* segments that tell of a lost probe */
#define	SEARCH_AGAIN	(600 * NSEC_PER_SEC)	/* RFC 1191 section 6.3 */

/* Header bytes of a segment with data. */
static uint32_t
headers(const struct tcpcb *tp)
{
	return (tcp_hdrlen(&tp->t_inp.inp_conn) +
	    (tp->t_flags & TF_TS ? TCP_TS_LEN : 0));
}

/* What our interface and the peer would take. */
static uint32_t
largest(const struct tcpcb *tp)
{
	uint32_t mss = tcp_mymss(tp);

	if (tp->t_peermss != 0 && tp->t_peermss < mss)
		mss = tp->t_peermss;
	return (mss + tcp_hdrlen(&tp->t_inp.inp_conn));
}

static void
set_pathmtu(struct tcpcb *tp, uint32_t mtu)
{
	const uint32_t least = TCP_MSS_MIN + headers(tp);

	tp->t_pathmtu = mtu > least ? mtu : least;
	tcp_setmss(tp);
}

/* The search goes on between what works and what may. */
COLD static void
set_search(struct tcpcb *tp, uint32_t high, nsec_t next)
{
	tp->t_mtu = (struct tcp_mtu){ .high = high, .next = next };
}

/* With net.inet.tcp.mtu_probing=2 every connection starts low. */
void
tcp_mtu_init(struct tcpcb *tp)
{
	if (atomic_load_u32(&tcp_mtu_probing) < MTU_PROBING_ALWAYS ||
	    tp->t_maxseg <= BASE_MSS)
		return;
	set_pathmtu(tp, BASE_MSS + headers(tp));
	set_search(tp, largest(tp), 0);
}

/*
 * A router that tells no size (mtu 0) gets the smallest that IPv6 would
 * allow, which nearly all carry.
 */
void
tcp_mtu_told(struct tcpcb *tp, uint32_t mtu)
{
	const uint32_t before = tp->t_maxseg;

	if (mtu == 0)
		mtu = 1280;
	if (tp->t_pathmtu != 0 && mtu >= tp->t_pathmtu &&
	    tp->t_mtu.probe == 0)
		return;
	set_search(tp, mtu, getuptime() + SEARCH_AGAIN);
	if (tp->t_pathmtu == 0 || mtu < tp->t_pathmtu)
		set_pathmtu(tp, mtu);
	if (tp->t_state < TCPS_ESTABLISHED || tp->t_maxseg >= before)
		return;
	TCPSTAT_INC(mturesent);
	tcp_recover_resend(tp);
}

/*
 * A timeout.  The second in a row, of data in segments that are not small,
 * may come from a black hole: a router that drops and does not tell.
 */
void
tcp_mtu_timeout(struct tcpcb *tp)
{
	const uint32_t mss = tp->t_maxseg > BASE_MSS ? BASE_MSS : tp->t_maxseg / 2;

	if (atomic_load_u32(&tcp_mtu_probing) == 0 || tp->t_rxtshift < 2 ||
	    mss < LEAST_MSS || tp->snd_max - tp->snd_una <= mss)
		return;
	TCPSTAT_INC(mtublackhole);
	set_pathmtu(tp, mss + headers(tp));
	set_search(tp, largest(tp), 0);		/* perhaps it was an outage */
}

/* The size to try next; 0: none now. */
static uint32_t
next_size(struct tcpcb *tp)
{
	struct tcp_mtu *mt = &tp->t_mtu;

	if (tp->t_pathmtu == 0 || tp->t_pathmtu >= largest(tp) ||
	    atomic_load_u32(&tcp_mtu_probing) == 0 || mt->probe != 0 ||
	    getuptime() < mt->next)
		return (0);
	if (mt->high < tp->t_pathmtu + CLOSE_ENOUGH) {
		/* found; the path may change */
		set_search(tp, largest(tp), getuptime() + SEARCH_AGAIN);
		return (0);
	}
	/* most paths carry all that their ends do */
	if (mt->high == largest(tp))
		return (mt->high);
	return ((tp->t_pathmtu + mt->high + 1) / 2);
}

uint32_t
tcp_mtu_probe(struct tcpcb *tp)
{
	const uint32_t size = next_size(tp);
	const uint32_t flight = tp->snd_max - tp->snd_una;
	uint32_t len;

	if (size == 0)
		return (0);
	len = size - headers(tp);
	if (tp->t_recovery != TR_OPEN || !TAILQ_EMPTY(&tp->t_ooq) ||
	    tcp_notsent(tp) < len + BEHIND * tp->t_maxseg ||
	    tp->snd_wnd < flight + len ||
	    tp->snd_cwnd < tcp_pipe(tp) + tp->t_maxseg ||
	    tp->snd_cwnd < len + BEHIND * tp->t_maxseg)
		return (0);
	TCPSTAT_INC(mtuprobe);
	tp->t_mtu.probe = size;
	tp->t_mtu.seq = tp->snd_max;
	tp->t_mtu.end = tp->snd_max + len;
	return (len);
}

COLD static void
probe_passed(struct tcpcb *tp)
{
	TCPSTAT_INC(mtuprobeok);
	set_pathmtu(tp, tp->t_mtu.probe);
	tp->t_mtu.probe = 0;
}

void
tcp_mtu_acked(struct tcpcb *tp)
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
	/* a tail loss probe knows of no loss: tried again some time */
	if (tp->t_recovery != TR_OPEN)
		mt->high = mt->probe - 1;
	mt->probe = 0;
}
