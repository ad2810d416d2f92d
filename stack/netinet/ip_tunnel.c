/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tunnels as interfaces: gif, IP in IP of either family in either (RFC 2003,
 * RFC 4213, RFC 2473), and gre (RFC 2784 with the key of RFC 2890).
 *
 * An interface has two outer addresses, if.gif0.tunnel="LOCAL REMOTE".  Inner
 * packets are queued to the netisr and never handled by the thread that
 * received the outer packet.  A packet passes at most TUNNEL_NESTING tunnels,
 * because a route to a tunnel's remote end through the tunnel itself would
 * loop.
 */
#include <errno.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include "kern/counter.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/if_driver.h"
#include "net/netisr.h"
#include "netinet/in_family.h"
#include "netinet/in_hints.h"
#include "netinet/ip_private.h"
#include "netinet/ip_tunnel.h"

#define	TUNNEL_NESTING	4	/* RFC 2473 section 6.7's default */
#define	ECN_MASK	3

#define	GRE_CHECKSUM	0x8000
#define	GRE_KEY		0x2000
#define	GRE_SEQUENCE	0x1000
#define	GRE_KNOWN	(GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE)

#define	TUNNEL_STATS(X)							\
	X(nobody, "tunnelled packets from unknown addresses")		\
	X(malformed, "inner packets truncated, or of the wrong family")	\
	X(badgre, "GRE headers truncated, unsupported, or bad checksum")	\
	X(badkey, "GRE packets with another key than the tunnel's")	\
	X(badecn, "dropped: mark on a packet without ECN (RFC 6040)")	\
	X(nested, "not sent: too many nested tunnels")			\
	X(toobig, "not sent: longer than the path MTU, error sent")	\
	X(noroute, "not sent: no route to the tunnel's end")

static struct {
#define	X(name, descr) atomic_u64 name;
	TUNNEL_STATS(X)
#undef X
} tunnelstat COUNTERS;

#define	TUNNELSTAT_INC(name)	counter_add(&tunnelstat.name, 1)

static const struct sysctl_oid tunnel_oids[] = {
#define	X(name, descr)							\
	{ .oid_name = "net.inet.tunnel.stats." #name,			\
	    .oid_type = CTL_U64, .oid_ptr = &tunnelstat.name,		\
	    .oid_descr = descr },
	TUNNEL_STATS(X)
#undef X
};

struct tunnel *tunnels;			/* [I] after boot */

/* The family of an inner packet, received or to be sent. */
static const struct in_family *
inner_family(const struct mbuf *m)
{
	return ((*m->m_data & 0xf0) == 0x60 ? &in6_family : &in4_family);
}

static uint8_t
inner_tos(const struct mbuf *m)
{
	return (inner_family(m) == &in4_family ?
	    mtod(m, const struct ip *)->ip_tos :
	    (uint8_t)(ntohl(mtod(m, const struct ip6_hdr *)->ip6_flow) >> 20));
}

/* The header is writable and contiguous. */
static void
set_inner_tos(struct mbuf *m, uint8_t tos)
{
	struct ip6_hdr *ip6 = mtod(m, struct ip6_hdr *);
	struct ip *ip = mtod(m, struct ip *);

	if (inner_family(m) == &in4_family) {
		ip->ip_tos = tos;
		ip->ip_sum = 0;
		ip->ip_sum = in_hdrsum(ip, (unsigned)ip->ip_hl << 2);
	} else {
		ip6->ip6_flow = (ip6->ip6_flow & htonl(0xf00fffff)) |
		    htonl((uint32_t)tos << 20);
	}
}

int
tunnel_ecn(uint8_t outer, uint8_t inner)
{
	enum { NOT_ECT, ECT1, ECT0, CE };

	outer &= ECN_MASK;
	if (outer == CE && (inner & ECN_MASK) == NOT_ECT)
		return (-1);
	if (outer == CE)
		return (inner | CE);
	if (outer == ECT1 && (inner & ECN_MASK) == ECT0)
		return ((inner & ~ECN_MASK) | ECT1);
	return (inner);
}

/* Max length of an inner packet on the outer path; 0: no route. */
static uint32_t
path_limit(struct tunnel *t, struct in_conninfo *c)
{
	uint32_t mtu;

	if (!af_path(c, &c->laddr, &mtu))
		return (0);
	return (mtu > t->t_overhead ? mtu - t->t_overhead : 1);
}

/*
 * Whether the packet may be sent.  If it exceeds the outer path's MTU and must
 * not be fragmented, its source gets an error (RFC 2003 section 5.1).  An IPv6
 * packet of the min MTU is fragmented outside instead (RFC 4213 section 3.2).
 * *dontfrag is for the outer header.  False: m was consumed.
 */
static bool
path_takes(struct tunnel *t, struct mbuf *m, uint32_t limit, bool *dontfrag)
{
	const struct in_family *af = inner_family(m);
	const bool ipv4 = af == &in4_family;

	*dontfrag = ipv4 &&
	    (mtod(m, const struct ip *)->ip_off & htons(IP_DF)) != 0;
	if (m->m_pkthdr.len <= limit || (ipv4 ? !*dontfrag :
	    limit < af->af_minmtu))
		return (true);
	TUNNELSTAT_INC(toobig);
	if (!ipv4 && m->m_pkthdr.rcvif == NULL)
		m->m_pkthdr.rcvif = &t->t_if;
	af->af_toobig(m, limit);
	return (false);
}

static struct mbuf *
gre_prepend(const struct tunnel *t, struct mbuf *m, bool ipv4)
{
	const uint32_t len = GRE_HDRLEN + (t->t_keyed ? 4 : 0);
	const uint16_t words[2] = { htons(t->t_keyed ? GRE_KEY : 0),
	    htons(ipv4 ? 0x0800 : 0x86dd) };

	m = m_prepend(m, len);
	memcpy(m->m_data, words, sizeof(words));
	if (t->t_keyed)
		memcpy(m->m_data + GRE_HDRLEN, &t->t_key, sizeof(t->t_key));
	return (m);
}

/* Encapsulates the packet; counts the thread's nesting. */
static int
tunnel_send(struct tunnel *t, struct mbuf *m)
{
	const bool ipv4 = inner_family(m) == &in4_family;
	struct in_conninfo c = { .laddr = t->t_src, .faddr = t->t_dst };
	/* RFC 6040 section 4.1: copy the mark to the outer header */
	struct ip_sendopts opts = { .tos = inner_tos(m), .ttl = t->t_ttl };
	const uint32_t limit = path_limit(t, &c);
	uint8_t proto = ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6;

	if (limit == 0) {
		TUNNELSTAT_INC(noroute);
		m_freem(m);
		return (ENETUNREACH);
	}
	if (!path_takes(t, m, limit, &opts.dontfrag))
		return (0);
	if (t->t_gre) {
		m = gre_prepend(t, m, ipv4);
		proto = IPPROTO_GRE;
	}
	m->m_flags &= ~(uint32_t)(M_BCAST | M_MCAST);
	m->m_pkthdr.csum_flags = 0;
	m->m_pkthdr.rcvif = NULL;
	/* IPv6 fragments are made here, at the tunnel's entry */
	if (in_family(&t->t_dst) == &in6_family)
		opts.dontfrag = false;
	return (af_output(in_family(&t->t_dst), m, &c, proto, &opts));
}

static void
tunnel_pass(void *arg, struct mbuf *m)
{
	struct tunnel *t = arg;

	IFSTAT_INC(&t->t_if, opackets);
	IFSTAT_ADD(&t->t_if, obytes, m->m_pkthdr.len);
	if_pcap_tap(&t->t_if, m);
	if (tunnel_send(t, m) != 0)
		IFSTAT_INC(&t->t_if, oerrors);
}

static int
tunnel_transmit(struct ifnet *ifp, struct mbuf *m)
{
	/* tunnels around what this thread sends now */
	unsigned *depth = thread_hints(IN_TUNNELS, sizeof(*depth));

	if (*depth == TUNNEL_NESTING) {
		TUNNELSTAT_INC(nested);
		IFSTAT_INC(ifp, odrops);
		m_freem(m);
		return (ENETUNREACH);
	}
	++*depth;
	if (ifp->if_impair != NULL)
		if_impair_pass(ifp->if_impair, m, tunnel_pass, ifp->if_softc);
	else
		tunnel_pass(ifp->if_softc, m);
	--*depth;
	return (0);
}

int
tunnel_output(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop)
{
	(void)nexthop;
	return (tunnel_transmit(ifp, m));
}

int
tunnel_output6(struct ifnet *ifp, struct mbuf *m,
    const struct in6_addr *nexthop)
{
	(void)nexthop;
	return (tunnel_transmit(ifp, m));
}

/* The tunnel of a received outer packet. */
struct tunnel *
tunnel_find(const struct in_conninfo *c, bool gre)
{
	struct tunnel *t;

	for (t = tunnels; t != NULL; t = t->t_next)
		if (t->t_gre == gre &&
		    IN6_ARE_ADDR_EQUAL(&t->t_src, &c->laddr) &&
		    IN6_ARE_ADDR_EQUAL(&t->t_dst, &c->faddr))
			break;
	return (t);
}

/* The inner packet with a contiguous header; NULL: counted and freed. */
static struct mbuf *
inner_validate(struct mbuf *m, const struct in_family *af)
{
	if (m->m_pkthdr.len >= af->af_hdrlen) {
		m = m_pullup(m, af->af_hdrlen);
		if (inner_family(m) == af)
			return (m);
	}
	TUNNELSTAT_INC(malformed);
	m_freem(m);
	return (NULL);
}

/* RFC 6040 section 4.2.  NULL: the packet was dropped. */
static struct mbuf *
inner_mark(struct mbuf *m, uint8_t outer)
{
	const uint8_t tos = inner_tos(m);
	const int marked = tunnel_ecn(outer, tos);
	uint32_t hlen;

	if (marked == tos)
		return (m);
	if (marked < 0) {
		TUNNELSTAT_INC(badecn);
		m_freem(m);
		return (NULL);
	}
	if (inner_family(m) == &in4_family) {
		hlen = (uint32_t)mtod(m, const struct ip *)->ip_hl << 2;
		if (hlen < IP_HDRLEN || hlen > m->m_pkthdr.len)
			return (m);	/* ip_input() counts the error */
		m = m_pullup(m, hlen);
	}
	set_inner_tos(m, (uint8_t)marked);
	return (m);
}

static void
tunnel_receive(void *arg, struct mbuf *m)
{
	struct ifnet *ifp = arg;

	IFSTAT_INC(ifp, ipackets);
	IFSTAT_ADD(ifp, ibytes, m->m_pkthdr.len);
	if_pcap_tap(ifp, m);
	m->m_pkthdr.rcvif = ifp;
	if (netisr_queue(inner_family(m) == &in4_family ? NETISR_IP :
	    NETISR_IPV6, m) != 0)
		IFSTAT_INC(ifp, iqdrops);
}

/* Decapsulates the inner packet at byte off. */
static void
decapsulate(struct tunnel *t, struct mbuf *m, uint32_t off, uint8_t outer,
    const struct in_family *af)
{
	m_adj(m, off);
	m = inner_validate(m, af);
	if (m == NULL || (m = inner_mark(m, outer)) == NULL)
		return;
	m->m_flags &= ~(uint32_t)(M_BCAST | M_MCAST);
	m->m_pkthdr.csum_flags = 0;
	m->m_pkthdr.csum_start = 0;
	m->m_pkthdr.tso_segsz = 0;
	m->m_pkthdr.flowid = 0;
	if (t->t_if.if_impair != NULL)
		if_impair_pass(t->t_if.if_impair, m, tunnel_receive, &t->t_if);
	else
		tunnel_receive(&t->t_if, m);
}

static struct tunnel *
tunnel_of(struct mbuf *m, bool gre, uint8_t *outer)
{
	const struct in_family *af = in_packetfamily(m);
	struct in_conninfo c;
	struct tunnel *t;

	af_endpoints(af, m, &c);
	*outer = inner_tos(m);
	t = tunnel_find(&c, gre);
	if (t != NULL)
		return (t);
	TUNNELSTAT_INC(nobody);
	af->af_portunreach(m);
	return (NULL);
}

static void
ipip_input(struct mbuf *m, unsigned hlen)
{
	uint8_t outer;
	struct tunnel *t = tunnel_of(m, false, &outer);

	if (t != NULL)
		decapsulate(t, m, hlen, outer, &in4_family);
}

static void
ip6ip_input(struct mbuf *m, unsigned hlen)
{
	uint8_t outer;
	struct tunnel *t = tunnel_of(m, false, &outer);

	if (t != NULL)
		decapsulate(t, m, hlen, outer, &in6_family);
}

/*
 * Parses the GRE header at off (RFC 2784 section 2, RFC 2890 section 2).
 * Returns its length (0: invalid) and the key (0: none).  Sequence numbers are
 * ignored.
 */
static uint32_t
gre_header(const struct mbuf *m, uint32_t off, const struct in_family **af,
    bool *keyed, uint32_t *key)
{
	const uint32_t len = m->m_pkthdr.len - off;
	uint32_t need = GRE_HDRLEN;
	uint16_t words[2], flags;

	*key = 0;

	if (len < GRE_HDRLEN)
		return (0);
	m_copydata(m, off, sizeof(words), words);
	flags = ntohs(words[0]);
	*af = words[1] == htons(0x0800) ? &in4_family :
	    words[1] == htons(0x86dd) ? &in6_family : NULL;
	if ((flags & ~GRE_KNOWN) != 0 || *af == NULL)
		return (0);
	if (flags & GRE_CHECKSUM)
		need += 4;
	*keyed = (flags & GRE_KEY) != 0;
	if (*keyed) {
		need += 4;
		if (len >= need)
			m_copydata(m, off + need - 4, sizeof(*key), key);
	}
	if (flags & GRE_SEQUENCE)
		need += 4;
	return (len < need || ((flags & GRE_CHECKSUM) &&
	    in_fold(in_sum(m, off, len, 0)) != 0) ? 0 : need);
}

static void
gre_input(struct mbuf *m, unsigned hlen)
{
	const struct in_family *af;
	uint32_t len, key;
	uint8_t outer;
	bool keyed;
	struct tunnel *t = tunnel_of(m, true, &outer);

	if (t == NULL)
		return;
	len = gre_header(m, hlen, &af, &keyed, &key);
	if (len > 0 && keyed == t->t_keyed && key == t->t_key) {
		decapsulate(t, m, hlen + len, outer, af);
		return;
	}
	if (len == 0)
		TUNNELSTAT_INC(badgre);
	else
		TUNNELSTAT_INC(badkey);
	m_freem(m);
}

/* The outer path's MTU is smaller than assumed (RFC 2003 section 5.1). */
static void
tunnel_ctlinput(int error, const struct in_conninfo *c, const uint8_t *header,
    uint32_t mtu, const struct in_icmperr *ie)
{
	struct tunnel *t;

	(void)header;
	(void)ie;
	if (error != EMSGSIZE || mtu < 576)
		return;
	for (t = tunnels; t != NULL; t = t->t_next)
		if (IN6_ARE_ADDR_EQUAL(&t->t_src, &c->laddr) &&
		    IN6_ARE_ADDR_EQUAL(&t->t_dst, &c->faddr))
			in_pmtu_update(&c->faddr, c->zone, mtu);
}

void
tunnel_input_init(void)
{
	static const struct {
		uint8_t		 proto;
		pr_input_t	*input;
	} protos[] = {
		{ IPPROTO_IPIP, ipip_input }, { IPPROTO_IPV6, ip6ip_input },
		{ IPPROTO_GRE, gre_input },
	};

	sysctl_register(tunnel_oids, nitems(tunnel_oids));
	for (size_t i = 0; i < nitems(protos); i++)
		in_proto_register(protos[i].proto, protos[i].input,
		    tunnel_ctlinput);
}
