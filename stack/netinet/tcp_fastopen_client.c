/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP Fast Open, the client (RFC 7413 section 4.1): cookies by destination,
 * and SYNs with data.
 *
 * A first SYN that times out may have met a middlebox that drops options or
 * data of SYNs.  It is sent again without both, and the destination is not
 * tried for a while (section 4.1.3.1).
 */
#include <stdio.h>
#include <string.h>

#include "kern/sysctl.h"
#include "netinet/tcp_fastopen.h"
#include "netinet/tcp_syncache.h"

#define	DST_SLOTS	256
#define	HOLD_SHIFT	6	/* net.inet.tcp.fastopen_hold is doubled up to it */

/*
 * The format of a request: net.inet.tcp.fastopen_exp tries a destination that
 * has not answered the standard one once with the experimental one.
 */
enum dst_format { STANDARD, EXPERIMENTAL, STANDARD_ONLY };

static struct mtx dst_lock;

/* Each slot holds the latest destination of its hash. [d] dst_lock */
struct dst {
	struct in6_addr	 d_addr GUARDED_BY(dst_lock);		/* [d] */
	uint32_t	 d_zone GUARDED_BY(dst_lock);		/* [d] */
	/* [d] optlen is TCP_FASTOPEN_REQUEST: unknown */
	struct tcp_cookie d_cookie GUARDED_BY(dst_lock);
	enum dst_format	 d_format GUARDED_BY(dst_lock);		/* [d] */
	uint16_t	 d_mss GUARDED_BY(dst_lock);		/* [d] the peer's */
	unsigned	 d_losses GUARDED_BY(dst_lock);		/* [d] in a row */
	nsec_t		 d_hold GUARDED_BY(dst_lock);	/* [d] not tried until */
};
static struct dst dst_table[DST_SLOTS] GUARDED_BY(dst_lock);	/* [d] */
static struct siphash_key dst_key;	/* [I] after boot */

static int
proc_purge(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	(void)oid;
	if (value == NULL) {
		snprintf(buf, len, "0");
		return (0);
	}
	if (strcmp(value, "0") != 0) {
		mtx_lock(&dst_lock);
		memset(dst_table, 0, sizeof(dst_table));
		mtx_unlock(&dst_lock);
	}
	return (0);
}

static const struct sysctl_oid oids[] = {
	{ .oid_name = "net.inet.tcp.fastopen_purge", .oid_type = CTL_PROC,
	  .oid_flags = CTL_RUN, .oid_proc = proc_purge,
	  .oid_descr = "1: forget the cookies of all servers" },
};

void
tcp_fastopen_client_init(void)
{
	mtx_init(&dst_lock, LC_FASTOPEN);
	mach_random(&dst_key, sizeof(dst_key));
	sysctl_register(oids, nitems(oids));
}

/* Whether a client's SYN may have data without a cookie. */
static bool
sends_bare(const struct tcpcb *tp)
{
	return ((tp->t_flags & TF_FONOCOOKIE) != 0 ||
	    (atomic_load_u32(&tcp_fastopen) & FASTOPEN_BARE) != 0);
}

static struct dst *
dst_slot(const struct in_conninfo *c) REQUIRES(dst_lock)
{
	uint64_t words[3];

	memcpy(words, &c->faddr, sizeof(c->faddr));
	words[2] = c->zone;
	return (&dst_table[siphash_words(&dst_key, words, nitems(words)) %
	    DST_SLOTS]);
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

/* The option for a SYN and the MSS of the peer; false: after a loss. */
static bool
dst_cookie(const struct in_conninfo *c, struct tcp_cookie *ck, uint32_t *mss)
{
	const struct dst *d;
	bool ok = true;			/* nothing is known of it */

	*ck = (struct tcp_cookie){ .optlen = TCP_FASTOPEN_REQUEST };
	mtx_lock(&dst_lock);
	d = dst_slot(c);
	if (dst_is(d, c)) {
		*ck = d->d_cookie;
		if (d->d_format == EXPERIMENTAL)
			ck->exp = true;
		*mss = d->d_mss;
		ok = mach_uptime() >= d->d_hold;
	}
	mtx_unlock(&dst_lock);
	return (ok);
}

static void
dst_lost(const struct in_conninfo *c)
{
	const nsec_t hold = atomic_load_u32(&tcp_fastopen_hold) * NSEC_PER_SEC;
	struct dst *d;

	TCPSTAT_INC(fastopenlost);
	if (hold == 0)
		return;
	mtx_lock(&dst_lock);
	d = dst_enter(c);
	d->d_hold = mach_uptime() + (hold << d->d_losses);
	if (d->d_losses < HOLD_SHIFT)
		d->d_losses++;
	mtx_unlock(&dst_lock);
}

/* A request was answered without a cookie. */
static void
dst_nocookie(struct dst *d, bool exp) REQUIRES(dst_lock)
{
	if (d->d_cookie.optlen > TCP_FASTOPEN_REQUEST ||
	    atomic_load_u32(&tcp_fastopen_exp) == 0)
		return;
	if (exp)
		d->d_format = STANDARD_ONLY;
	else if (d->d_format == STANDARD)
		d->d_format = EXPERIMENTAL;
}

/*
 * The destination has answered, with a cookie or not; asked: the SYN was a
 * request, and the answer is to it.
 */
static void
dst_works(const struct tcpcb *tp, const struct tcpopts *to, bool asked)
{
	const struct in_conninfo *c = &tp->t_inp.inp_conn;
	struct dst *d;

	mtx_lock(&dst_lock);
	d = dst_enter(c);
	d->d_losses = 0;
	d->d_hold = 0;
	d->d_mss = tp->t_peermss;
	if (to->fastopen > TCP_FASTOPEN_REQUEST && !sends_bare(tp)) {
		d->d_cookie.optlen = to->fastopen;
		d->d_cookie.exp = to->fastopen_exp;
		d->d_format = STANDARD;
		memcpy(d->d_cookie.bytes, to->cookie, TCP_FASTOPEN_MAX);
	} else if (asked && !sends_bare(tp))
		dst_nocookie(d, (tp->t_flags & TF_FOEXP) != 0);
	mtx_unlock(&dst_lock);
}

bool
tcp_fastopen_defer(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_cookie ck;
	uint32_t mss;

	if ((atomic_load_u32(&tcp_fastopen) & FASTOPEN_CLIENT) == 0 ||
	    !dst_cookie(&tp->t_inp.inp_conn, &ck, &mss))
		return (false);
	tp->t_flags |= TF_FOSYN;
	if (ck.optlen == TCP_FASTOPEN_REQUEST && !sends_bare(tp))
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
	uint32_t mss = UINT32_MAX, len;

	if (!dst_cookie(&tp->t_inp.inp_conn, &h->hf_cookie, &mss)) {
		h->hf_cookie.optlen = 0;
		return (0);
	}
	if (sends_bare(tp))
		h->hf_cookie.optlen = 0;
	else if (h->hf_cookie.optlen == TCP_FASTOPEN_REQUEST) {
		tp->t_flags |= h->hf_cookie.exp ? TF_FOEXP : 0;
		return (0);
	}
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
	if (tp->t_flags & TF_FOGRANT) {
		h->hf_cookie = tcp_fastopen_grant(tp->t_fastopen, &h->hf_conn);
		h->hf_cookie.exp = (tp->t_flags & TF_FOEXP) != 0;
	}
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

	if (tp->t_inp.inp_socket->so_snd.sb_waiters == 0)
		tp->t_flags &= ~(unsigned)TF_FOWAIT;
	if (tp->t_rxtshift == 0 || acked > 0 ||
	    sg->sg_opt.fastopen > TCP_FASTOPEN_REQUEST)
		dst_works(tp, &sg->sg_opt,
		    tp->t_rxtshift == 0 && tp->snd_max == tp->iss + 1);
	if (acked > 0) {
		TCPSTAT_INC(fastopenacked);
		tp->t_flags |= TF_SYNDATA;
		tp->t_bytes_acked += acked;
		tp->t_synacked = acked;
		sbdrop(&tp->t_inp.inp_socket->so_snd, acked);
	}
	tp->snd_una = tp->snd_max = sg->sg_ack;
}

/* Once: ICMP errors may be forged. */
void
tcp_fastopen_toobig(struct tcpcb *tp)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (tp->snd_max != tp->iss + 1 && tp->t_total_retrans == 0)
		(void)tcp_sendsyn(tp);
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

/* As in Linux, the program keeps what the SYN has no room for. */
static void
keep_sent(struct tcpcb *tp, struct sockbuf *sb, uint32_t len)
{
	struct mbuf *m;

	if (len == sb->sb_cc || len == 0)
		return;
	m = m_copym(sb->sb_head, 0, len);
	sbdrop(sb, sb->sb_cc);
	sbappendstream(sb, m);
	tp->t_flags |= TF_FOWAIT;
}

void
tcp_fastopen_begin(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;

	if ((tp->t_flags & TF_FODEFER) == 0)
		return;
	so->so_state &= ~(unsigned)(SS_ISCONNECTED | SS_WASCONNECTED |
	    SS_DEFERRED);
	so->so_state |= SS_ISCONNECTING | SS_NOSPACE;
	(void)tcp_sendsyn(tp);	/* if it is lost, the timer retransmits it */
	keep_sent(tp, &so->so_snd, tp->snd_max - (tp->iss + 1));
}

bool
tcp_fastopen_output(struct tcpcb *tp)
{
	struct socket *so = tp->t_inp.inp_socket;

	so_assert_locked(so);
	if ((tp->t_flags & TF_FODEFER) && (so->so_snd.sb_cc > 0 ||
	    (so->so_state & SS_CANTSENDMORE)))
		tcp_fastopen_begin(tp);
	return ((tp->t_flags & TF_FASTOPEN) != 0);
}
