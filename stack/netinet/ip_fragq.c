/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reassembly of datagrams of either family (RFC 791 section 3.2, RFC 8200
 * section 4.5; similar to RFC 815).
 *
 * Each incomplete datagram is a list of fragments sorted by offset.  An exact
 * duplicate is ignored.  A partial overlap discards the datagram, because only
 * attacks produce one (RFC 3128, RFC 5722).  The numbers of datagrams, and of
 * fragments in each, are limited for both families together.  A further
 * datagram evicts the oldest incomplete one.  During a flood, datagrams whose
 * fragments arrive one after the other are still reassembled.
 */
#include "netinet/ip_fragq.h"

#include <string.h>
#include <sys/queue.h>

#include "kern/callout.h"
#include "kern/lock.h"
#include "kern/sysctl.h"

#define	FRAGQ_HASH	64
#define	FRAGQ_TICK	NSEC_PER_SEC

static struct mtx fragq_lock;

/*
 * Locks used to protect struct fragq members:
 *	[I] immutable
 *	[q] fragq_lock
 */
struct fragq {
	LIST_ENTRY(fragq) q_link GUARDED_BY(fragq_lock);	/* [q] */
	TAILQ_ENTRY(fragq) q_age GUARDED_BY(fragq_lock);	/* [q] */
	const struct fragq_family *q_family;	/* [I] */
	struct fragq_key q_key;		/* [I] */
	unsigned	 q_nfrags GUARDED_BY(fragq_lock);	/* [q] */
	/* [q] sorted, by m_nextpkt */
	struct mbuf	*q_frags GUARDED_BY(fragq_lock);
	nsec_t		 q_expires;	/* [I] */
};

/* [q] */
static LIST_HEAD(, fragq) fragq_hash[FRAGQ_HASH] GUARDED_BY(fragq_lock);
/* [q] all, the oldest first */
static TAILQ_HEAD(, fragq) fragq_ages GUARDED_BY(fragq_lock) =
    TAILQ_HEAD_INITIALIZER(fragq_ages);
static unsigned fragq_count GUARDED_BY(fragq_lock);	/* [q] */
static struct callout fragq_callout;

static atomic_u32 maxfragpackets = 256;
static atomic_u32 maxfragsperpacket = 64;

static const struct sysctl_oid fragq_oids[] = {
	{ .oid_name = "net.inet.ip.maxfragpackets", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &maxfragpackets,
	    .oid_max = 65536,
	    .oid_descr = "max datagrams in reassembly; 0: no reassembly" },
	{ .oid_name = "net.inet.ip.maxfragsperpacket", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &maxfragsperpacket,
	    .oid_min = 1, .oid_max = 8192,
	    .oid_descr = "max fragments of a datagram" },
};

/*
 * A queued fragment has no offloads, so those fields of its packet header hold
 * its offset.
 */
static uint32_t
frag_offset(const struct mbuf *m)
{
	return (m->m_pkthdr.csum_start);
}

static uint32_t
frag_hlen(const struct mbuf *m)
{
	return (m->m_pkthdr.csum_offset);
}

static bool
frag_islast(const struct mbuf *m)
{
	return (m->m_pkthdr.tso_segsz != 0);
}

static uint32_t
frag_end(const struct mbuf *m)
{
	return (frag_offset(m) + m->m_pkthdr.len - frag_hlen(m));
}

static unsigned
fragq_bucket(const struct fragq_key *key)
{
	uint32_t h = key->id;

	for (unsigned i = 0; i < 4; i++)
		h = (h ^ key->src.s6_addr32[i] ^ key->dst.s6_addr32[i]) *
		    0x9e3779b1u;
	return ((h >> 24) % FRAGQ_HASH);
}

static struct fragq *
fragq_find(const struct fragq_key *key) REQUIRES(fragq_lock)
{
	struct fragq *q;

	LIST_FOREACH(q, &fragq_hash[fragq_bucket(key)], q_link)
		if (q->q_key.id == key->id && q->q_key.proto == key->proto &&
		    q->q_key.zone == key->zone &&
		    IN6_ARE_ADDR_EQUAL(&q->q_key.src, &key->src) &&
		    IN6_ARE_ADDR_EQUAL(&q->q_key.dst, &key->dst))
			return (q);
	return (NULL);
}

/* Unlinks q; the caller owns its fragments. */
static struct mbuf *
fragq_remove(struct fragq *q) REQUIRES(fragq_lock)
{
	struct mbuf *frags = q->q_frags;

	KASSERT(fragq_count > 0, ("fragq_remove: count %u", fragq_count));
	LIST_REMOVE(q, q_link);
	TAILQ_REMOVE(&fragq_ages, q, q_age);
	fragq_count--;
	kfree(q);
	return (frags);
}

static void
frags_free(const struct fragq_family *ff, struct mbuf *m)
{
	atomic_count_u64(ff->ff_dropped, m_freelist(m));
}

static void fragq_timer(void *);

/* Makes a queue; evicts the oldest if there are too many. */
static struct fragq *
fragq_create(const struct fragq_family *ff, const struct fragq_key *key)
    REQUIRES(fragq_lock)
{
	const unsigned max = atomic_load_u32(&maxfragpackets);
	const struct fragq_family *oldest;
	struct fragq *q;

	if (max == 0)
		return (NULL);
	while (fragq_count >= max) {
		q = TAILQ_FIRST(&fragq_ages);
		oldest = q->q_family;
		atomic_count_u64(oldest->ff_evicted, 1);
		frags_free(oldest, fragq_remove(q));
	}
	q = kmalloc(sizeof(*q));
	q->q_family = ff;
	q->q_key = *key;
	q->q_expires = mach_uptime() + ff->ff_lifetime;
	LIST_INSERT_HEAD(&fragq_hash[fragq_bucket(key)], q, q_link);
	TAILQ_INSERT_TAIL(&fragq_ages, q, q_age);
	if (fragq_count++ == 0)
		callout_reset(&fragq_callout, FRAGQ_TICK, fragq_timer, NULL);
	return (q);
}

enum insert { INSERTED, DUPLICATE, OVERLAP };

static enum insert
fragq_insert(struct fragq *q, struct mbuf *m) REQUIRES(fragq_lock)
{
	uint32_t off = frag_offset(m), end = frag_end(m);
	struct mbuf **p, *next;

	KASSERT(end > off && end <= UINT16_MAX,
	    ("fragq_insert: bytes %u to %u", off, end));
	for (p = &q->q_frags; *p != NULL; p = &(*p)->m_nextpkt) {
		if (frag_end(*p) <= off) {
			/* Nothing may follow the last fragment. */
			if (frag_islast(*p))
				return (OVERLAP);
			continue;
		}
		if (frag_offset(*p) == off && frag_end(*p) == end)
			return (DUPLICATE);
		break;
	}
	next = *p;
	if (next != NULL && (frag_offset(next) < end || frag_islast(m)))
		return (OVERLAP);
	m->m_nextpkt = next;
	*p = m;
	q->q_nfrags++;
	return (INSERTED);
}

static bool
fragq_complete(const struct fragq *q) REQUIRES(fragq_lock)
{
	const struct mbuf *m;
	uint32_t off = 0;

	for (m = q->q_frags; m != NULL; m = m->m_nextpkt) {
		if (frag_offset(m) != off)
			return (false);
		off = frag_end(m);
		if (m->m_nextpkt == NULL)
			return (frag_islast(m));
	}
	return (false);
}

/*
 * Joins the headers of the first fragment and the data of all.  Short ones are
 * packed: a socket is charged for their bytes.
 */
static struct mbuf *
frags_join(const struct fragq_family *ff, struct mbuf *first)
{
	struct mbuf *m, *next, *last = first;
	uint32_t len = first->m_pkthdr.len;

	KASSERT(frag_offset(first) == 0, ("frags_join: from byte %u",
	    frag_offset(first)));
	next = first->m_nextpkt;
	first->m_nextpkt = NULL;
	while (last->m_next != NULL)
		last = last->m_next;
	while ((m = next) != NULL) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		m_adj(m, frag_hlen(m));
		len += m->m_pkthdr.len;
		last = m_pack(last, m);
	}
	/* The checksum over the whole datagram is not verified yet. */
	first->m_pkthdr.len = len;
	first->m_pkthdr.csum_flags = 0;
	first->m_pkthdr.csum_start = first->m_pkthdr.csum_offset = 0;
	first->m_pkthdr.tso_segsz = 0;
	atomic_count_u64(ff->ff_reassembled, 1);
	return (first);
}

/*
 * All fragments but the last carry a multiple of 8 bytes, none is empty, and
 * the datagram does not exceed the max length.
 */
static bool
frag_valid(const struct mbuf *m)
{
	uint32_t len = m->m_pkthdr.len - frag_hlen(m);

	if (len == 0 || (!frag_islast(m) && (len & 7) != 0))
		return (false);
	return (frag_end(m) + frag_hlen(m) <= UINT16_MAX);
}

struct mbuf *
fragq_input(const struct fragq_family *ff, const struct fragq_key *key,
    struct mbuf *m, uint32_t hlen, uint32_t off, bool last)
{
	struct mbuf *bad = NULL, *whole = NULL;
	enum insert how;
	struct fragq *q;

	KASSERT(hlen < m->m_pkthdr.len || m->m_pkthdr.len == hlen,
	    ("fragq_input: header of %u", hlen));
	m->m_nextpkt = NULL;
	m->m_pkthdr.csum_start = (uint16_t)off;
	m->m_pkthdr.csum_offset = (uint16_t)hlen;
	m->m_pkthdr.tso_segsz = last;
	if (!frag_valid(m)) {
		frags_free(ff, m);
		return (NULL);
	}
	mtx_lock(&fragq_lock);
	q = fragq_find(key);
	if (q == NULL)
		q = fragq_create(ff, key);
	how = q == NULL ? DUPLICATE : fragq_insert(q, m);
	if (how != INSERTED)
		bad = m;
	if (q != NULL && (how == OVERLAP ||
	    q->q_nfrags > atomic_load_u32(&maxfragsperpacket))) {
		frags_free(ff, bad);
		bad = fragq_remove(q);
	} else if (how == INSERTED && fragq_complete(q))
		whole = fragq_remove(q);
	mtx_unlock(&fragq_lock);
	frags_free(ff, bad);
	return (whole != NULL ? frags_join(ff, whole) : NULL);
}

/* Reports the timeout to the sender, if the first fragment has arrived. */
static void
frags_expire(const struct fragq_family *ff, struct mbuf *m)
{
	struct mbuf *rest;

	atomic_count_u64(ff->ff_timeout, 1);
	if (m != NULL && frag_offset(m) == 0) {
		rest = m->m_nextpkt;
		m->m_nextpkt = NULL;
		ff->ff_expired(m);
		m = rest;
	}
	frags_free(ff, m);
}

/* Removes a queue that timed out; NULL: there is none. */
static struct mbuf *
fragq_expired(nsec_t now, const struct fragq_family **ff) REQUIRES(fragq_lock)
{
	struct fragq *q;

	TAILQ_FOREACH(q, &fragq_ages, q_age)
		if (q->q_expires <= now) {
			*ff = q->q_family;
			return (fragq_remove(q));
		}
	return (NULL);
}

static void
fragq_timer(void *arg)
{
	const nsec_t now = mach_uptime();
	const struct fragq_family *ff;
	struct mbuf *m;

	(void)arg;
	mtx_lock(&fragq_lock);
	while ((m = fragq_expired(now, &ff)) != NULL) {
		mtx_unlock(&fragq_lock);
		frags_expire(ff, m);
		mtx_lock(&fragq_lock);
	}
	if (fragq_count > 0)
		callout_reset(&fragq_callout, FRAGQ_TICK, fragq_timer, NULL);
	mtx_unlock(&fragq_lock);
}

void
fragq_init(void)
{
	mtx_init(&fragq_lock, LC_IPREASS);
	callout_init(&fragq_callout);
	sysctl_register(fragq_oids, nitems(fragq_oids));
}
