/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reassembly of IPv4 datagrams (RFC 791 section 3.2, RFC 815 in spirit).
 *
 * Each datagram in progress is a list of fragments sorted by offset.  An
 * exact duplicate is ignored; a partial overlap gives up the datagram,
 * because only an attack makes one (RFC 3128; RFC 5722 for IPv6).  The number
 * of datagrams, and of fragments in each, is limited; each limit counts when
 * it bites.
 */
#include <arpa/inet.h>
#include <netinet/ip_icmp.h>
#include <sys/queue.h>

#include "kern/callout.h"
#include "kern/lock.h"
#include "kern/sysctl.h"
#include "netinet/ip_private.h"

#define	IPQ_HASH	64
#define	IPQ_TICK	NSEC_PER_SEC
#define	IPQ_LIFETIME	(30 * NSEC_PER_SEC)	/* RFC 1122 3.3.2: 60 to 120
						   s; all stacks use 15-30 */

/*
 * Locks used to protect struct ipq members:
 *	[q] ipq_lock
 */
struct ipq {
	LIST_ENTRY(ipq)	 q_link;	/* [q] */
	struct in_addr	 q_src, q_dst;	/* [q] */
	uint16_t	 q_id;		/* [q] */
	uint8_t		 q_proto;	/* [q] */
	unsigned	 q_nfrags;	/* [q] */
	struct mbuf	*q_frags;	/* [q] sorted, by m_nextpkt */
	nsec_t		 q_expires;	/* [q] */
};

static struct mtx ipq_lock;
static LIST_HEAD(, ipq) ipq_hash[IPQ_HASH];	/* [q] */
static unsigned ipq_count;			/* [q] */
static struct callout ipq_callout;

static atomic_u32 ip_maxfragpackets = 256;
static atomic_u32 ip_maxfragsperpacket = 64;

static const struct sysctl_oid reass_oids[] = {
	{ .oid_name = "net.inet.ip.maxfragpackets", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ip_maxfragpackets,
	    .oid_max = 65536,
	    .oid_descr = "most datagrams being reassembled; 0: none" },
	{ .oid_name = "net.inet.ip.maxfragsperpacket", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ip_maxfragsperpacket,
	    .oid_min = 1, .oid_max = 8192,
	    .oid_descr = "most fragments of one datagram" },
};

static uint32_t
frag_offset(const struct mbuf *m)
{
	return ((ntohs(mtod(m, const struct ip *)->ip_off) & IP_OFFMASK) << 3);
}

static uint32_t
frag_hlen(const struct mbuf *m)
{
	return ((uint32_t)mtod(m, const struct ip *)->ip_hl << 2);
}

static uint32_t
frag_end(const struct mbuf *m)
{
	return (frag_offset(m) + m->m_pkthdr.len - frag_hlen(m));
}

static bool
frag_islast(const struct mbuf *m)
{
	return ((mtod(m, const struct ip *)->ip_off & htons(IP_MF)) == 0);
}

static unsigned
ipq_bucket(const struct ip *ip)
{
	uint32_t h = ip->ip_src.s_addr ^ ip->ip_dst.s_addr ^ ip->ip_id;

	h *= 0x9e3779b1;
	return ((h >> 24) % IPQ_HASH);
}

static struct ipq *
ipq_find(const struct ip *ip)
{
	struct ipq *q;

	LIST_FOREACH(q, &ipq_hash[ipq_bucket(ip)], q_link)
		if (q->q_id == ip->ip_id && q->q_proto == ip->ip_p &&
		    q->q_src.s_addr == ip->ip_src.s_addr &&
		    q->q_dst.s_addr == ip->ip_dst.s_addr)
			return (q);
	return (NULL);
}

static void ipq_timer(void *);

static struct ipq *
ipq_create(const struct ip *ip)
{
	struct ipq *q;

	if (ipq_count >= atomic_load_u32(&ip_maxfragpackets))
		return (NULL);
	q = kmalloc(sizeof(*q));
	q->q_src = ip->ip_src;
	q->q_dst = ip->ip_dst;
	q->q_id = ip->ip_id;
	q->q_proto = ip->ip_p;
	q->q_expires = mach_uptime() + IPQ_LIFETIME;
	LIST_INSERT_HEAD(&ipq_hash[ipq_bucket(ip)], q, q_link);
	if (ipq_count++ == 0)
		callout_reset(&ipq_callout, IPQ_TICK, ipq_timer, NULL);
	return (q);
}

/* Unlinks q; its fragments are the caller's. */
static struct mbuf *
ipq_remove(struct ipq *q)
{
	struct mbuf *frags = q->q_frags;

	KASSERT(ipq_count > 0, ("ipq_remove: count %u", ipq_count));
	LIST_REMOVE(q, q_link);
	ipq_count--;
	kfree(q);
	return (frags);
}

static void
frags_free(struct mbuf *m)
{
	struct mbuf *next;

	for (; m != NULL; m = next) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		IPSTAT_INC(fragdropped);
		m_freem(m);
	}
}

enum insert { INSERTED, DUPLICATE, OVERLAP };

static enum insert
ipq_insert(struct ipq *q, struct mbuf *m)
{
	uint32_t off = frag_offset(m), end = frag_end(m);
	struct mbuf **p, *next;

	KASSERT(end > off && end <= IP_MAXPACKET,
	    ("ipq_insert: bytes %u to %u", off, end));
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
ipq_complete(const struct ipq *q)
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

/* One packet of a complete list of fragments; NULL if it is too long. */
static struct mbuf *
frags_join(struct mbuf *first)
{
	struct mbuf *m, *next;
	uint32_t len = first->m_pkthdr.len;
	struct ip *ip;

	KASSERT(frag_offset(first) == 0, ("frags_join: from byte %u",
	    frag_offset(first)));
	next = first->m_nextpkt;
	first->m_nextpkt = NULL;
	while ((m = next) != NULL) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		m_adj(m, frag_hlen(m));
		len += m->m_pkthdr.len;
		m_cat(first, m);
	}
	first->m_pkthdr.len = len;
	/* Nobody has checked the transport checksum over the whole. */
	first->m_pkthdr.csum_flags = 0;
	if (len > IP_MAXPACKET) {
		IPSTAT_INC(fragdropped);
		m_freem(first);
		return (NULL);
	}
	ip = mtod(first, struct ip *);
	ip->ip_len = htons((uint16_t)len);
	ip->ip_off = 0;
	IPSTAT_INC(reassembled);
	return (first);
}

/* RFC 791: all but the last carry a multiple of 8 bytes, none is empty. */
static bool
frag_valid(const struct mbuf *m, unsigned hlen)
{
	uint32_t len = m->m_pkthdr.len - hlen;

	if (len == 0 || (!frag_islast(m) && (len & 7) != 0))
		return (false);
	return (frag_end(m) + hlen <= IP_MAXPACKET);
}

struct mbuf *
ip_reass(struct mbuf *m, unsigned hlen)
{
	const struct ip *ip = mtod(m, const struct ip *);
	struct mbuf *bad = NULL, *whole = NULL;
	enum insert how;
	struct ipq *q;

	IPSTAT_INC(fragments);
	m->m_nextpkt = NULL;
	if (!frag_valid(m, hlen)) {
		frags_free(m);
		return (NULL);
	}
	mtx_lock(&ipq_lock);
	q = ipq_find(ip);
	if (q == NULL)
		q = ipq_create(ip);
	how = q == NULL ? DUPLICATE : ipq_insert(q, m);
	if (how != INSERTED)
		bad = m;
	if (q != NULL && (how == OVERLAP ||
	    q->q_nfrags > atomic_load_u32(&ip_maxfragsperpacket))) {
		frags_free(bad);
		bad = ipq_remove(q);
	} else if (how == INSERTED && ipq_complete(q))
		whole = ipq_remove(q);
	mtx_unlock(&ipq_lock);
	frags_free(bad);
	return (whole != NULL ? frags_join(whole) : NULL);
}

/* Tells the sender, if the first fragment is there (RFC 792, code 1). */
static void
frags_expire(struct mbuf *m)
{
	struct mbuf *rest;

	IPSTAT_INC(fragtimeout);
	if (m != NULL && frag_offset(m) == 0) {
		rest = m->m_nextpkt;
		m->m_nextpkt = NULL;
		icmp_error(m, ICMP_TIMXCEED, ICMP_TIMXCEED_REASS, 0);
		m = rest;
	}
	frags_free(m);
}

static void
ipq_timer(void *arg)
{
	nsec_t now = mach_uptime();
	struct mbuf *expired[16];
	unsigned n = 0;
	struct ipq *q, *next;

	(void)arg;
	mtx_lock(&ipq_lock);
	for (unsigned i = 0; i < IPQ_HASH; i++)
		for (q = LIST_FIRST(&ipq_hash[i]); q != NULL; q = next) {
			next = LIST_NEXT(q, q_link);
			if (q->q_expires <= now && n < nitems(expired))
				expired[n++] = ipq_remove(q);
		}
	if (ipq_count > 0)
		callout_reset(&ipq_callout, IPQ_TICK, ipq_timer, NULL);
	mtx_unlock(&ipq_lock);
	while (n > 0)
		frags_expire(expired[--n]);
}

void
ip_reass_init(void)
{
	mtx_init(&ipq_lock, LC_IPREASS);
	callout_init(&ipq_callout);
	sysctl_register(reass_oids, nitems(reass_oids));
}
