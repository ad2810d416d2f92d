/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SYN cache.  A SYN costs its sender nothing, so it must cost a listener
 * little: an entry here instead of a socket.  Hash buckets have a bounded
 * length, so that a flood neither fills the memory nor makes lookups slow.
 * The hash is keyed to prevent floods that target one bucket.
 */
#include <netinet/tcp.h>

#include "netinet/tcp_syncache.h"

#define	SYNCACHE_BUCKETS 512
#define	TICK		(100 * NSEC_PER_MSEC)
#define	BATCH		16		/* SYN-ACKs retransmitted at a time */
#define	CHALLENGES	10 /* max challenges of one handshake (RFC 5961) */

extern struct lock_role bucket_role;	/* lock of an entry's bucket */

/* [b] lock of the bucket */
struct syncache {
	TAILQ_ENTRY(syncache) sc_link GUARDED_BY(bucket_role);	/* [b] */
	struct tcp_half	 sc_half GUARDED_BY(bucket_role);	/* [b] */
	/* [b] when the SYN arrived */
	nsec_t		 sc_since GUARDED_BY(bucket_role);
	/* [b] when to retransmit or give up */
	nsec_t		 sc_due GUARDED_BY(bucket_role);
	unsigned	 sc_challenges GUARDED_BY(bucket_role);	/* [b] */
};

static struct bucket {
	struct mtx	 lock;
	/* [b] oldest first */
	TAILQ_HEAD(, syncache) entries GUARDED_BY(lock);
	unsigned	 len GUARDED_BY(lock);		/* [b] */
} buckets[SYNCACHE_BUCKETS];
static struct siphash_key bucket_key;	/* [I] after boot */
static struct callout ticker;
static atomic_u32 ticking;		/* [a] the timer is running */

static void	syncache_tick(void *);

void
tcp_syncache_init(void)
{
	for (size_t i = 0; i < nitems(buckets); i++) {
		mtx_init(&buckets[i].lock, LC_SYNCACHE);
		mtx_private(&buckets[i].lock);
		TAILQ_INIT(&buckets[i].entries);
	}
	mach_random(&bucket_key, sizeof(bucket_key));
	callout_init(&ticker);
	tcp_syncookie_init();
}

static struct bucket *
bucket_of(const struct in_conninfo *c)
{
	uint64_t words[IN_CONNWORDS];
	size_t n = in_connwords(c, words);

	return (&buckets[siphash_words(&bucket_key, words, n) %
	    SYNCACHE_BUCKETS]);
}

static struct syncache *
entry_find(struct bucket *b, const struct in_conninfo *c) REQUIRES(b->lock)
    REQUIRES(bucket_role)
{
	struct syncache *sc;

	TAILQ_FOREACH(sc, &b->entries, sc_link) {
		const struct in_conninfo *h = &sc->sc_half.hf_conn;

		if (h->fport == c->fport && h->lport == c->lport &&
		    h->zone == c->zone &&
		    IN6_ARE_ADDR_EQUAL(&h->faddr, &c->faddr) &&
		    IN6_ARE_ADDR_EQUAL(&h->laddr, &c->laddr))
			break;
	}
	return (sc);
}

static void
entry_free(struct bucket *b, struct syncache *sc) REQUIRES(b->lock)
    REQUIRES(bucket_role)
{
	TAILQ_REMOVE(&b->entries, sc, sc_link);
	KASSERT(b->len > 0, ("entry_free: none counted"));
	b->len--;
	atomic_fetchadd_u32(&tcp_syncount, UINT32_MAX);
	kfree(sc);
}

static void
tick_arm(void)
{
	uint32_t idle = 0;

	if (atomic_cmpset_u32(&ticking, &idle, 1))
		callout_reset(&ticker, TICK, syncache_tick, NULL);
}

/*
 * Whether there is room for an entry, after dropping the oldest if necessary.
 */
static bool
make_room(struct bucket *b) REQUIRES(b->lock)
    REQUIRES(bucket_role)
{
	if (b->len < atomic_load_u32(&tcp_synbucketlimit) &&
	    atomic_load_u32(&tcp_syncount) <
	    atomic_load_u32(&tcp_syncachelimit))
		return (true);
	TCPSTAT_INC(synoverflow);
	if (atomic_load_u32(&tcp_syncookies) != 0 || b->len == 0)
		return (false);
	entry_free(b, TAILQ_FIRST(&b->entries));
	return (true);
}

/*
 * Without cookies, when all listeners together have reached their limit: drops
 * the oldest entry of another bucket if this one has none, so that a new
 * client gets in wherever the flood's entries are.
 */
__cold static void
make_room_elsewhere(struct bucket *own)
{
	struct bucket *b = own;
	bool dropped;

	do {
		mtx_lock_as(&b->lock, &bucket_role);
		dropped = b->len > 0;
		/* make_room() does it for the own bucket */
		if (dropped && b != own)
			entry_free(b, TAILQ_FIRST(&b->entries));
		mtx_unlock_as(&b->lock, &bucket_role);
		b = b + 1 < buckets + SYNCACHE_BUCKETS ? b + 1 : buckets;
	} while (!dropped && b != own);
}

static nsec_t
backoff(const struct syncache *sc) REQUIRES(bucket_role)
{
	return (tcp_msec(&tcp_rexmit_initial) << sc->sc_half.hf_rexmits);
}

bool
tcp_syncache_add(struct tcp_half *h)
{
	struct bucket *b = bucket_of(&h->hf_conn);
	struct syncache *sc;

	if (__predict_false(atomic_load_u32(&tcp_syncount) >=
	    atomic_load_u32(&tcp_syncachelimit)) &&
	    atomic_load_u32(&tcp_syncookies) == 0)
		make_room_elsewhere(b);
	mtx_lock_as(&b->lock, &bucket_role);
	sc = entry_find(b, &h->hf_conn);
	if (sc == NULL && make_room(b)) {
		h->hf_iss = tcp_newiss(&h->hf_conn);
		h->hf_sent = mach_uptime();
		sc = kmalloc(sizeof(*sc));
		*sc = (struct syncache){ .sc_half = *h,
		    .sc_since = h->hf_sent };
		sc->sc_due = h->hf_sent + backoff(sc);
		TAILQ_INSERT_TAIL(&b->entries, sc, sc_link);
		b->len++;
		atomic_fetchadd_u32(&tcp_syncount, 1);
		TCPSTAT_INC(synadded);
	} else if (sc != NULL) {
		sc->sc_half.hf_sent = 0;
		*h = sc->sc_half;
	}
	mtx_unlock_as(&b->lock, &bucket_role);
	if (sc == NULL)
		return (false);
	tick_arm();
	(void)tcp_half_send(h, TH_SYN | TH_ACK);
	return (true);
}

bool
tcp_syncache_find(const struct in_conninfo *c, struct tcp_half *h,
    nsec_t *since)
{
	struct bucket *b = bucket_of(c);
	struct syncache *sc;

	mtx_lock_as(&b->lock, &bucket_role);
	sc = entry_find(b, c);
	if (sc != NULL) {
		*h = sc->sc_half;
		*since = sc->sc_since;
	}
	mtx_unlock_as(&b->lock, &bucket_role);
	return (sc != NULL);
}

void
tcp_syncache_remove(const struct in_conninfo *c)
{
	struct bucket *b = bucket_of(c);
	struct syncache *sc;

	mtx_lock_as(&b->lock, &bucket_role);
	sc = entry_find(b, c);
	if (sc != NULL)
		entry_free(b, sc);
	mtx_unlock_as(&b->lock, &bucket_role);
}

void
tcp_syncache_unreach(const struct in_conninfo *c, tcp_seq seq, bool hard)
{
	struct bucket *b = bucket_of(c);
	struct syncache *sc;

	mtx_lock_as(&b->lock, &bucket_role);
	sc = entry_find(b, c);
	if (sc != NULL && sc->sc_half.hf_iss != seq)
		TCPSTAT_INC(icmpwindow);
	else if (sc != NULL &&
	    (hard || atomic_load_u32(&tcp_icmp_drops_syn) != 0)) {
		TCPSTAT_INC(drops);
		entry_free(b, sc);
	}
	mtx_unlock_as(&b->lock, &bucket_role);
}

void
tcp_syncache_challenge(const struct in_conninfo *c)
{
	struct bucket *b = bucket_of(c);
	struct tcp_half h;
	struct syncache *sc;
	bool challenge;

	mtx_lock_as(&b->lock, &bucket_role);
	sc = entry_find(b, c);
	challenge = sc != NULL && sc->sc_challenges++ < CHALLENGES;
	if (challenge)
		h = sc->sc_half;
	mtx_unlock_as(&b->lock, &bucket_role);
	if (challenge) {
		TCPSTAT_INC(challenge);
		(void)tcp_half_send(&h, TH_ACK);
	}
}

/*
 * A reset is accepted at the left edge only, else challenged (RFC 5961 section
 * 3).
 */
void
tcp_syncache_reset(const struct tcpseg *sg)
{
	struct bucket *b = bucket_of(&sg->sg_conn);
	struct syncache *sc;
	bool challenge = false;

	mtx_lock_as(&b->lock, &bucket_role);
	sc = entry_find(b, &sg->sg_conn);
	if (sc != NULL && sg->sg_seq == sc->sc_half.hf_irs + 1) {
		TCPSTAT_INC(drops);
		entry_free(b, sc);
	} else if (sc != NULL && sg->sg_seq - sc->sc_half.hf_irs - 1 <
	    sc->sc_half.hf_win) {
		TCPSTAT_INC(badrst);
		challenge = true;
	}
	mtx_unlock_as(&b->lock, &bucket_role);
	if (challenge)
		tcp_syncache_challenge(&sg->sg_conn);
}

/* Collects handshakes due for retransmission; drops those with too many. */
static unsigned
bucket_due(struct bucket *b, nsec_t now, struct tcp_half *due)
{
	struct syncache *sc, *next;
	unsigned n = 0;

	mtx_lock_as(&b->lock, &bucket_role);
	for (sc = TAILQ_FIRST(&b->entries); sc != NULL && n < BATCH;
	    sc = next) {
		next = TAILQ_NEXT(sc, sc_link);
		if (sc->sc_due > now)
			continue;
		if (sc->sc_half.hf_rexmits >= atomic_load_u32(&tcp_synrexmtlimit)) {
			TCPSTAT_INC(syntimeout);
			entry_free(b, sc);
			continue;
		}
		sc->sc_half.hf_rexmits++;
		sc->sc_half.hf_sent = 0;
		sc->sc_due = now + backoff(sc);
		due[n++] = sc->sc_half;
	}
	mtx_unlock_as(&b->lock, &bucket_role);
	return (n);
}

static void
syncache_tick(void *arg)
{
	struct tcp_half due[BATCH];
	const nsec_t now = mach_uptime();
	unsigned n;

	(void)arg;
	for (size_t i = 0; i < nitems(buckets); i++)
		do {
			n = bucket_due(&buckets[i], now, due);
			for (unsigned k = 0; k < n; k++)
				(void)tcp_half_send(&due[k], TH_SYN | TH_ACK);
		} while (n == BATCH);
	atomic_store_rel_u32(&ticking, 0);
	if (atomic_load_u32(&tcp_syncount) > 0)
		tick_arm();
}
