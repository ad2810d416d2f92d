/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP Fast Open, the server (RFC 7413 section 4.2): the keys of listeners
 * (TCP_FASTOPEN_KEY), and the limit of connections whose handshake is not
 * complete.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "netinet/tcp_fastopen.h"
#include "netinet/tcp_syncache.h"

/* How long a reset request counts, as in Linux: longer than retransmissions. */
#define	RESET_COUNTS	(60 * NSEC_PER_SEC)

/* A request that its client has reset. */
struct reset {
	STAILQ_ENTRY(reset) r_link;
	nsec_t		 r_expires;
};

/*
 *	[a] atomic
 *	[f] fo_lock
 */
struct tcp_fastopen {
	struct mtx	 fo_lock;
	atomic_u32	 fo_refs;	/* [a] */
	atomic_u32	 fo_limit;	/* [a] TCP_FASTOPEN */
	/* [f] children in SYN-RECEIVED, and resets */
	unsigned	 fo_pending GUARDED_BY(fo_lock);
	STAILQ_HEAD(, reset) fo_resets GUARDED_BY(fo_lock); /* [f] by time */
	struct tcp_fastopen_keys fo_keys GUARDED_BY(fo_lock);	/* [f] */
};

void
tcp_fastopen_init(void)
{
	tcp_fastopen_cookie_init();
	tcp_fastopen_client_init();
}

/* The state of a listener, or of a socket that may become one. */
static struct tcp_fastopen *
state_of(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_fastopen *fo = tp->t_fastopen;

	if (fo == NULL) {
		fo = kmalloc(sizeof(*fo));
		memset(fo, 0, sizeof(*fo));
		mtx_init(&fo->fo_lock, LC_FASTOPEN);
		mtx_lock(&fo->fo_lock);
		STAILQ_INIT(&fo->fo_resets);
		mtx_unlock(&fo->fo_lock);
		atomic_store_u32(&fo->fo_refs, 1);
		tp->t_fastopen = fo;
	}
	return (fo);
}

struct tcp_fastopen *
tcp_fastopen_share(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_fastopen *fo = state_of(tp);

	atomic_fetchadd_u32(&fo->fo_refs, 1);
	return (fo);
}

/* Forgets the resets before a date. */
static void
forget_resets(struct tcp_fastopen *fo, nsec_t now) REQUIRES(fo->fo_lock)
{
	struct reset *r;

	while ((r = STAILQ_FIRST(&fo->fo_resets)) != NULL &&
	    r->r_expires <= now) {
		STAILQ_REMOVE_HEAD(&fo->fo_resets, r_link);
		kfree(r);
		fo->fo_pending--;
	}
}

void
tcp_fastopen_free(struct tcpcb *tp)
{
	struct tcp_fastopen *fo = tp->t_fastopen;

	tp->t_fastopen = NULL;
	if (fo == NULL || atomic_fetchadd_u32(&fo->fo_refs, UINT32_MAX) != 1)
		return;
	mtx_lock(&fo->fo_lock);
	forget_resets(fo, NSEC_FOREVER);
	mtx_unlock(&fo->fo_lock);
	mtx_destroy(&fo->fo_lock);
	kfree(fo);
}

/* The keys of a listener, or else of the host. */
static struct tcp_fastopen_keys
keys_of(struct tcp_fastopen *fo)
{
	struct tcp_fastopen_keys k = { .n = 0 };

	if (fo != NULL) {
		mtx_lock(&fo->fo_lock);
		k = fo->fo_keys;
		mtx_unlock(&fo->fo_lock);
	}
	return (k.n > 0 ? k : tcp_fastopen_hostkeys());
}

struct tcp_cookie
tcp_fastopen_grant(struct tcp_fastopen *fo, const struct in_conninfo *c)
{
	const struct tcp_fastopen_keys k = keys_of(fo);

	return (tcp_fastopen_cookie(&k.key[0], c));
}

/* Counts a request, if n is 1; false: there are too many (section 5.1). */
static bool
take(struct tcp_fastopen *fo, unsigned n)
{
	const uint32_t limit = atomic_load_u32(&fo->fo_limit);
	bool ok;

	mtx_lock(&fo->fo_lock);
	if (fo->fo_pending >= limit)
		forget_resets(fo, mach_uptime());
	ok = fo->fo_pending < limit;
	if (ok)
		fo->fo_pending += n;
	mtx_unlock(&fo->fo_lock);
	if (!ok)
		TCPSTAT_INC(fastopenover);
	return (ok);
}

/*
 * Ends a request.  One that was reset counts for a while: a flood with forged
 * addresses could else make as many connections as hosts answer with resets
 * (section 5.1).
 */
static void
release(struct tcp_fastopen *fo, bool reset)
{
	struct reset *r = NULL;

	if (reset) {
		r = kmalloc(sizeof(*r));
		r->r_expires = mach_uptime() + RESET_COUNTS;
	}
	mtx_lock(&fo->fo_lock);
	KASSERT(fo->fo_pending > 0, ("release: none pending"));
	if (r != NULL)
		STAILQ_INSERT_TAIL(&fo->fo_resets, r, r_link);
	else
		fo->fo_pending--;
	mtx_unlock(&fo->fo_lock);
}

/* Whether the cookie of a SYN is valid; grants one if it is not, or old. */
static bool
check_cookie(struct tcp_fastopen *fo, const struct tcpseg *sg,
    struct tcp_half *h)
{
	const struct tcp_fastopen_keys k = keys_of(fo);
	const unsigned n = tcp_fastopen_findkey(&k, sg);

	if (n > 0) {
		h->hf_cookie = tcp_fastopen_cookie(&k.key[0], &h->hf_conn);
		h->hf_cookie.exp = sg->sg_opt.fastopen_exp;
	}
	if (n == k.n && sg->sg_opt.fastopen > TCP_FASTOPEN_REQUEST)
		TCPSTAT_INC(fastopenbad);
	return (n < k.n);
}

bool
tcp_fastopen_check(const struct tcpcb *head, const struct tcpseg *sg,
    struct tcp_half *h)
{
	struct tcp_fastopen *fo = head->t_fastopen;

	if (fo == NULL || atomic_load_u32(&fo->fo_limit) == 0 ||
	    (atomic_load_u32(&tcp_fastopen) & FASTOPEN_SERVER) == 0 ||
	    !take(fo, 0))
		return (false);
	if (!tcp_fastopen_open(head) && !check_cookie(fo, sg, h))
		return (false);
	/* TCP_DEFER_ACCEPT: wait for data */
	return ((sg->sg_flags & TH_URG) == 0 &&
	    (sg->sg_len > 0 || head->t_deferaccept == 0) && take(fo, 1));
}

void
tcp_fastopen_adopt(struct tcpcb *head, struct socket *child,
    const struct tcp_half *h)
{
	struct tcpcb *tp;

	so_assert_locked(head->t_inp.inp_socket);
	if (child == NULL) {
		release(head->t_fastopen, false);
		return;
	}
	TCPSTAT_INC(fastopen);
	so_assert_locked(child);
	tp = sototcpcb(child);
	tp->t_fastopen = tcp_fastopen_share(head);
	tp->t_flags |= TF_FASTOPEN | (h->hf_cookie.exp ? TF_FOEXP : 0) |
	    (h->hf_cookie.optlen != 0 ? TF_FOGRANT : 0);
}

void
tcp_fastopen_ended(struct tcpcb *tp, bool reset)
{
	if (__predict_true((tp->t_flags & TF_FASTOPEN) == 0))
		return;
	tp->t_flags &= ~(unsigned)(TF_FASTOPEN | TF_FOGRANT);
	release(tp->t_fastopen, reset);
	tcp_fastopen_free(tp);
}

/* As in Linux, before a connection only; the limit is that of listen(). */
int
tcp_fastopen_setlimit(struct tcpcb *tp, int limit)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (limit < 0 || tp->t_state > TCPS_LISTEN)
		return (EINVAL);
	atomic_store_u32(&state_of(tp)->fo_limit,
	    limit < SOMAXCONN ? (uint32_t)limit : SOMAXCONN);
	return (0);
}

void
tcp_fastopen_listen(struct tcpcb *tp)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t all = FASTOPEN_SERVER | FASTOPEN_ALL;

	if ((atomic_load_u32(&tcp_fastopen) & all) == all &&
	    tcp_fastopen_limit(tp) == 0)
		(void)tcp_fastopen_setlimit(tp,
		    (int)tp->t_inp.inp_socket->so_qlimit - 1);
}

int
tcp_fastopen_limit(const struct tcpcb *tp)
{
	if (tp->t_fastopen == NULL || tp->t_state > TCPS_LISTEN)
		return (0);
	return ((int)atomic_load_u32(&tp->t_fastopen->fo_limit));
}

int
tcp_fastopen_setkey(struct tcpcb *tp, const void *val, socklen_t len)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_fastopen *fo;

	if (len != TCP_FASTOPEN_KEYLEN &&
	    len != TCP_FASTOPEN_KEYS * TCP_FASTOPEN_KEYLEN)
		return (EINVAL);
	if (tp->t_state > TCPS_LISTEN)
		return (EINVAL);
	fo = state_of(tp);
	mtx_lock(&fo->fo_lock);
	memcpy(fo->fo_keys.key, val, len);
	fo->fo_keys.n = len / TCP_FASTOPEN_KEYLEN;
	mtx_unlock(&fo->fo_lock);
	return (0);
}

int
tcp_fastopen_getkey(const struct tcpcb *tp, void *val, socklen_t *len)
{
	const struct tcp_fastopen_keys k = keys_of(tp->t_fastopen);
	const socklen_t size = k.n * TCP_FASTOPEN_KEYLEN;

	if (*len % TCP_FASTOPEN_KEYLEN != 0)
		return (EINVAL);
	if (*len > size)
		*len = size;
	memcpy(val, k.key, *len);
	return (0);
}

int
tcp_fastopen_setconnect(struct tcpcb *tp, int on)
{
	if (on < 0 || on > 1)
		return (EINVAL);
	if ((atomic_load_u32(&tcp_fastopen) & FASTOPEN_CLIENT) == 0)
		return (EOPNOTSUPP);
	if (tp->t_state != TCPS_CLOSED)
		return (EINVAL);
	tp->t_flags &= ~(unsigned)TF_FOCONNECT;
	tp->t_flags |= on != 0 ? TF_FOCONNECT : 0;
	return (0);
}

int
tcp_fastopen_setopen(struct tcpcb *tp, int on)
{
	if (on < 0 || on > 1 || tp->t_state > TCPS_LISTEN)
		return (EINVAL);
	tp->t_flags &= ~(unsigned)TF_FONOCOOKIE;
	tp->t_flags |= on != 0 ? TF_FONOCOOKIE : 0;
	return (0);
}
