/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP Fast Open, the client (RFC 7413 section 4.1): cookies by destination,
 * and SYNs with data.
 *
 * A first SYN that times out may have met a middlebox that drops options or
 * data of SYNs.  It is sent again without both, and the destination is not
 * tried for a while (section 4.1.3.1).
 */
#include <string.h>

#include "netinet/tcp_fastopen.h"
#include "netinet/tcp_syncache.h"

#define	DST_SLOTS	256
#define	HOLD_TIME	(60 * NSEC_PER_SEC)	/* after a loss, then doubled */
#define	HOLD_SHIFT	6		/* ... up to 64 minutes */

static struct mtx dst_lock;

/* Each slot holds the latest destination of its hash. [d] dst_lock */
struct dst {
	struct in6_addr	 d_addr GUARDED_BY(dst_lock);		/* [d] */
	uint32_t	 d_zone GUARDED_BY(dst_lock);		/* [d] */
	/* [d] optlen is TCP_FASTOPEN_REQUEST: unknown */
	struct tcp_cookie d_cookie GUARDED_BY(dst_lock);
	uint16_t	 d_mss GUARDED_BY(dst_lock);		/* [d] the peer's */
	unsigned	 d_losses GUARDED_BY(dst_lock);		/* [d] in a row */
	nsec_t		 d_hold GUARDED_BY(dst_lock);	/* [d] not tried until */
};
static struct dst dst_table[DST_SLOTS] GUARDED_BY(dst_lock);	/* [d] */
static struct siphash_key dst_key;	/* [I] after boot */

void
tcp_fastopen_client_init(void)
{
	mtx_init(&dst_lock, LC_FASTOPEN);
	mach_random(&dst_key, sizeof(dst_key));
}

static struct dst *
dst_slot(const struct in_conninfo *c) REQUIRES(dst_lock)
{
	return (&dst_table[tcp_fastopen_hash(&dst_key, c) % DST_SLOTS]);
}

/* Whether a slot has the entry of a destination. */
static bool
dst_is(const struct dst *d, const struct in_conninfo *c) REQUIRES(dst_lock)
{
	return (d->d_cookie.optlen != 0 && d->d_zone == c->zone &&
	    IN6_ARE_ADDR_EQUAL(&d->d_addr, &c->faddr));
}

/* The entry of a destination, which may replace another one. */
static struct dst *
dst_enter(const struct in_conninfo *c) REQUIRES(dst_lock)
{
	struct dst *d = dst_slot(c);

	if (!dst_is(d, c))
		*d = (struct dst){ .d_addr = c->faddr, .d_zone = c->zone,
		    .d_cookie = { .optlen = TCP_FASTOPEN_REQUEST } };
	return (d);
}

/* The option for a SYN (optlen 0: none) and the MSS of the peer. */
static struct tcp_cookie
dst_cookie(const struct in_conninfo *c, uint32_t *mss)
{
	struct tcp_cookie ck = { .optlen = TCP_FASTOPEN_REQUEST };
	const struct dst *d;

	mtx_lock(&dst_lock);
	d = dst_slot(c);
	if (dst_is(d, c)) {
		ck = d->d_cookie;
		*mss = d->d_mss;
		if (mach_uptime() < d->d_hold)
			ck.optlen = 0;
	}
	mtx_unlock(&dst_lock);
	return (ck);
}

static void
dst_lost(const struct in_conninfo *c)
{
	struct dst *d;

	TCPSTAT_INC(fastopenlost);
	mtx_lock(&dst_lock);
	d = dst_enter(c);
	d->d_hold = mach_uptime() + (HOLD_TIME << d->d_losses);
	if (d->d_losses < HOLD_SHIFT)
		d->d_losses++;
	mtx_unlock(&dst_lock);
}

/* The destination has answered, with a cookie or not. */
static void
dst_works(const struct in_conninfo *c, const struct tcpopts *to, uint16_t mss)
{
	struct dst *d;

	mtx_lock(&dst_lock);
	d = dst_enter(c);
	d->d_losses = 0;
	d->d_hold = 0;
	d->d_mss = mss;
	if (to->fastopen > TCP_FASTOPEN_REQUEST) {
		d->d_cookie.optlen = to->fastopen;
		memcpy(d->d_cookie.bytes, to->cookie, TCP_FASTOPEN_MAX);
	}
	mtx_unlock(&dst_lock);
}

bool
tcp_fastopen_defer(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	uint32_t mss;
	struct tcp_cookie ck;

	if ((atomic_load_u32(&tcp_fastopen) & FASTOPEN_CLIENT) == 0)
		return (false);
	ck = dst_cookie(&tp->t_inp.inp_conn, &mss);
	if (ck.optlen == 0)
		return (false);
	tp->t_flags |= TF_FOSYN;
	if (ck.optlen == TCP_FASTOPEN_REQUEST)
		return (false);
	tp->t_flags |= TF_FODEFER;
	tp->snd_una = tp->snd_max = tp->iss + 1;
	return (true);
}

/* What a SYN with all options has room for; mss: of the peer. */
static uint32_t
syn_room(const struct tcpcb *tp, uint32_t mss)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t own = tcp_mymss(tp);

	if (mss > own)
		mss = own;
	return (mss > TCP_OPT_MAX ? mss - TCP_OPT_MAX : 0);
}

/* The first SYN: a cookie and data, or a request. */
static uint32_t
fill_syn(struct tcpcb *tp, struct tcp_half *h)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct sockbuf *sb = &tp->t_inp.inp_socket->so_snd;
	uint32_t mss = 0, len;

	h->hf_cookie = dst_cookie(&tp->t_inp.inp_conn, &mss);
	if (h->hf_cookie.optlen <= TCP_FASTOPEN_REQUEST)
		return (0);
	len = syn_room(tp, mss);
	if (len > sb->sb_cc)
		len = sb->sb_cc;
	if (len == 0)
		return (0);
	h->hf_data = m_copym(sb->sb_head, 0, len);
	TCPSTAT_INC(fastopensent);
	TCPSTAT_ADD(sndbyte, len);
	tp->t_bytes_sent += len;
	tp->t_data_segs_out++;
	return (len);
}

uint32_t
tcp_fastopen_fill(struct tcpcb *tp, struct tcp_half *h, bool first)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (tp->t_flags & TF_FOGRANT)
		h->hf_cookie = tcp_fastopen_grant(tp->t_fastopen, &h->hf_conn);
	if ((tp->t_flags & TF_FOSYN) == 0 || tp->t_state != TCPS_SYN_SENT)
		return (0);
	if (first)
		return (fill_syn(tp, h));
	if (tp->t_rxtshift == 1)
		dst_lost(&h->hf_conn);
	return (0);
}

/*
 * Data that the SYN-ACK does not acknowledge is as if it had not been sent,
 * because the peer has dropped it (section 4.1.3).
 */
void
tcp_fastopen_answer(struct tcpcb *tp, const struct tcpseg *sg)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t acked = sg->sg_ack - (tp->iss + 1);

	if (tp->t_rxtshift == 0 || acked > 0 ||
	    sg->sg_opt.fastopen > TCP_FASTOPEN_REQUEST)
		dst_works(&tp->t_inp.inp_conn, &sg->sg_opt, tp->t_peermss);
	if (acked > 0) {
		TCPSTAT_INC(fastopenacked);
		tp->t_flags |= TF_SYNDATA;
		tp->t_bytes_acked += acked;
		sbdrop(&tp->t_inp.inp_socket->so_snd, acked);
	}
	tp->snd_una = tp->snd_max = sg->sg_ack;
}

/* The peer may keep the data, so it counts as in flight. */
void
tcp_fastopen_crossed(struct tcpcb *tp)
{
	const tcp_seq end = tp->snd_max;

	if (SEQ_LEQ(end, tp->iss + 1))
		return;
	tp->snd_max = tp->iss + 1;
	tcp_sent_add(tp, tp->iss + 1, end, getuptime());
	tp->snd_max = end;
}

/* The program has data for the SYN; now it must wait for the connection. */
static void
send_deferred(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;

	so->so_state &= ~(unsigned)(SS_ISCONNECTED | SS_WASCONNECTED);
	so->so_state |= SS_ISCONNECTING | SS_NOSPACE;
	(void)tcp_sendsyn(tp);	/* if it is lost, the timer retransmits it */
}

bool
tcp_fastopen_output(struct tcpcb *tp)
{
	struct socket *so = tp->t_inp.inp_socket;

	so_assert_locked(so);
	if ((tp->t_flags & TF_FODEFER) && (so->so_snd.sb_cc > 0 ||
	    (so->so_state & SS_CANTSENDMORE)))
		send_deferred(tp);
	return ((tp->t_flags & TF_FASTOPEN) != 0);
}
