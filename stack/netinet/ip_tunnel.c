/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tunnels as interfaces: gif, IP in IP of either family in either (RFC 2003,
 * RFC 4213, RFC 2473), and gre (RFC 2784 with the key of RFC 2890).
 *
 * An interface has two outer addresses, if.gif0.tunnel="OURS THEIRS".  What
 * arrives inside is queued to the netisr, never handled by the thread that
 * received the outer packet; and a packet goes through TUNNEL_NESTING tunnels
 * at most, lest a route into a tunnel that leads to its own end goes round
 * for ever.
 */
#include "netinet/ip_tunnel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/ctl.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/if_private.h"
#include "net/netisr.h"
#include "netinet/in_family.h"
#include "netinet/ip_private.h"
#include "netinet6/ip6_var.h"

#define	TUNNEL_NESTING	4	/* RFC 2473 section 6.7's default */
#define	PATHMTU_LIFE	(600 * NSEC_PER_SEC)	/* RFC 1191 section 6.3 */
#define	ETHER_MTU	1500
#define	ECN_MASK	3

#define	GRE_CHECKSUM	0x8000
#define	GRE_KEY		0x2000
#define	GRE_SEQUENCE	0x1000
#define	GRE_KNOWN	(GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE)
#define	GRE_HDRLEN	4

#define	TUNNEL_STATS(X)							\
	X(nobody, "tunnelled packets from where no tunnel leads")	\
	X(malformed, "packets inside that are cut, or not of their family") \
	X(badgre, "GRE headers that are cut, unknown, or of a wrong sum") \
	X(badkey, "GRE packets with another key than the tunnel's")	\
	X(badecn, "congestion marks on what cannot be marked (RFC 6040)") \
	X(nested, "not sent: inside too many tunnels")			\
	X(toobig, "not sent: longer than the path takes, and told so")	\
	X(noroute, "not sent: no route to the tunnel's end")

static struct {
#define	X(name, descr) atomic_u64 name;
	TUNNEL_STATS(X)
#undef X
} tunnelstat;

#define	TUNNELSTAT_INC(name)	atomic_count_u64(&tunnelstat.name, 1)

static const struct sysctl_oid tunnel_oids[] = {
#define	X(name, descr)							\
	{ .oid_name = "net.inet.tunnel.stats." #name,			\
	    .oid_type = CTL_U64, .oid_ptr = &tunnelstat.name,		\
	    .oid_descr = descr },
	TUNNEL_STATS(X)
#undef X
};

/*
 * Locks used to protect struct tunnel members:
 *	[I] immutable after attach
 *	[a] atomic
 */
struct tunnel {
	struct ifnet	 t_if;
	struct tunnel	*t_next;	/* [I] */
	bool		 t_gre;		/* [I] */
	bool		 t_keyed;	/* [I] */
	uint32_t	 t_key;		/* [I] network order */
	uint8_t		 t_ttl;		/* [I] of outer packets */
	struct in6_addr	 t_src, t_dst;	/* [I] of the same family */
	uint32_t	 t_overhead;	/* [I] outer headers, bytes */
	atomic_u32	 t_pathmtu;	/* [a] of the outer path, as told */
	atomic_u64	 t_pathmtu_until;	/* [a] believed until then */
};

static struct tunnel *tunnels;		/* [I] after boot */

/* The packet inside, or to be put there. */
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

/* The header is private and contiguous. */
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

/* How long a packet inside may be on the outer path now; 0: no way there. */
static uint32_t
path_limit(struct tunnel *t, struct in_conninfo *c)
{
	uint32_t mtu;

	if (!in_family(&t->t_dst)->af_route(c, &c->laddr, &mtu))
		return (0);
	if (mach_uptime() < atomic_load_u64(&t->t_pathmtu_until) &&
	    atomic_load_u32(&t->t_pathmtu) < mtu)
		mtu = atomic_load_u32(&t->t_pathmtu);
	return (mtu > t->t_overhead ? mtu - t->t_overhead : 1);
}

/*
 * Whether the packet may go: one that is too long for the outer path and must
 * not be cut goes back to its source (RFC 2003 section 5.1); one of IPv6 is
 * cut outside rather than below what IPv6 asks of a link (RFC 4213 section
 * 3.2).  *dontfrag is for the outer header.  False: m is consumed.
 */
static bool
path_takes(struct tunnel *t, struct mbuf *m, uint32_t limit, bool *dontfrag)
{
	const bool ipv4 = inner_family(m) == &in4_family;

	*dontfrag = ipv4 &&
	    (mtod(m, const struct ip *)->ip_off & htons(IP_DF)) != 0;
	if (m->m_pkthdr.len <= limit || (ipv4 ? !*dontfrag :
	    limit < IP6_MINMTU))
		return (true);
	TUNNELSTAT_INC(toobig);
	if (ipv4) {
		icmp_error(m, ICMP_UNREACH, ICMP_UNREACH_NEEDFRAG, limit);
	} else {
		if (m->m_pkthdr.rcvif == NULL)
			m->m_pkthdr.rcvif = &t->t_if;
		icmp6_error(m, ICMP6_PACKET_TOO_BIG, 0, limit);
	}
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

/* Into the tunnel; the thread is inside of one more. */
static int
tunnel_send(struct tunnel *t, struct mbuf *m)
{
	const bool ipv4 = inner_family(m) == &in4_family;
	struct in_conninfo c = { .laddr = t->t_src, .faddr = t->t_dst };
	/* RFC 6040 section 4.1: the outer header gets the mark, too */
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
	/* fragments of IPv6 are made here, at the tunnel's entry */
	if (in_family(&t->t_dst) == &in6_family)
		opts.dontfrag = false;
	return (in_family(&t->t_dst)->af_output(m, &c, proto, &opts));
}

static void
tunnel_pass(void *arg, struct mbuf *m)
{
	struct tunnel *t = arg;

	atomic_count_u64(&t->t_if.if_count.opackets, 1);
	atomic_count_u64(&t->t_if.if_count.obytes, m->m_pkthdr.len);
	if_pcap_tap(&t->t_if, m);
	if (tunnel_send(t, m) != 0)
		atomic_count_u64(&t->t_if.if_count.oerrors, 1);
}

static int
tunnel_transmit(struct ifnet *ifp, struct mbuf *m)
{
	struct thread *td = curthread;

	if (td->td_tunnels == TUNNEL_NESTING) {
		TUNNELSTAT_INC(nested);
		atomic_count_u64(&ifp->if_count.odrops, 1);
		m_freem(m);
		return (ENETUNREACH);
	}
	td->td_tunnels++;
	if (ifp->if_impair != NULL)
		if_impair_pass(ifp->if_impair, m, tunnel_pass, ifp->if_softc);
	else
		tunnel_pass(ifp->if_softc, m);
	td->td_tunnels--;
	return (0);
}

static int
tunnel_output(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop)
{
	(void)nexthop;
	return (tunnel_transmit(ifp, m));
}

static int
tunnel_output6(struct ifnet *ifp, struct mbuf *m,
    const struct in6_addr *nexthop)
{
	(void)nexthop;
	return (tunnel_transmit(ifp, m));
}

/* The tunnel that a packet of the network comes by. */
static struct tunnel *
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

/* The packet inside, its header contiguous; NULL: m freed and counted. */
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

/* RFC 6040 section 4.2.  NULL: the packet is dropped. */
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
			return (m);	/* ip_input() counts it */
		m = m_pullup(m, hlen);
	}
	set_inner_tos(m, (uint8_t)marked);
	return (m);
}

static void
tunnel_receive(void *arg, struct mbuf *m)
{
	struct ifnet *ifp = arg;

	atomic_count_u64(&ifp->if_count.ipackets, 1);
	atomic_count_u64(&ifp->if_count.ibytes, m->m_pkthdr.len);
	if_pcap_tap(ifp, m);
	m->m_pkthdr.rcvif = ifp;
	if (netisr_queue(inner_family(m) == &in4_family ? NETISR_IP :
	    NETISR_IPV6, m) != 0)
		atomic_count_u64(&ifp->if_count.iqdrops, 1);
}

/* What is inside of a packet that came by a tunnel, at byte off. */
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

	af->af_endpoints(m, &c);
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
 * The GRE header at off (RFC 2784 section 2, RFC 2890 section 2): its length
 * and the key, 0 if there is none; length 0: it is bad.  Numbers of sequence
 * are passed over.
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

/* The outer path is narrower than was thought (RFC 2003 section 5.1). */
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
		    IN6_ARE_ADDR_EQUAL(&t->t_dst, &c->faddr)) {
			atomic_store_u32(&t->t_pathmtu, mtu);
			atomic_store_u64(&t->t_pathmtu_until,
			    mach_uptime() + PATHMTU_LIFE);
		}
}

/* An address of either family, IPv4's mapped; not a group, not link-local. */
static bool
parse_end(const char *s, struct in6_addr *a)
{
	struct in_addr a4;

	if (inet_pton(AF_INET, s, &a4) == 1)
		*a = in_map(a4);
	else if (inet_pton(AF_INET6, s, a) != 1 || IN6_IS_ADDR_V4MAPPED(a))
		return (false);
	return (!in_isany(a) && !in_isgroup(a) && !in_islinklocal(a));
}

/* "10.1.0.2 10.1.0.1": ours and theirs. */
static int
parse_ends(struct tunnel *t, const char *spec, char *why, size_t len)
{
	char text[128], *rest, *ours, *theirs;

	snprintf(text, sizeof(text), "%s", spec);
	ours = strtok_r(text, " ", &rest);
	theirs = strtok_r(NULL, " ", &rest);
	if (ours == NULL || theirs == NULL ||
	    strtok_r(NULL, " ", &rest) != NULL || !parse_end(ours, &t->t_src) ||
	    !parse_end(theirs, &t->t_dst) ||
	    in_family(&t->t_src) != in_family(&t->t_dst) ||
	    IN6_ARE_ADDR_EQUAL(&t->t_src, &t->t_dst)) {
		snprintf(why, len, "tunnel '%s' is not two addresses of one "
		    "family, ours and theirs, as \"10.1.0.2 10.1.0.1\"", spec);
		return (EINVAL);
	}
	return (0);
}

static int
parse_key(struct tunnel *t, const char *key, char *why, size_t len)
{
	unsigned long number;
	char *end;

	if (*key == '\0')
		return (0);
	errno = 0;
	number = strtoul(key, &end, 0);
	if (*key < '0' || *key > '9' || *end != '\0' || errno != 0 ||
	    number > UINT32_MAX || !t->t_gre) {
		snprintf(why, len, "key '%s': only gre has one, a number up to "
		    "%u", key, UINT32_MAX);
		return (EINVAL);
	}
	t->t_keyed = true;
	t->t_key = htonl((uint32_t)number);
	return (0);
}

/* A link address for IPv6's interface identifier: the tunnel's own end. */
static void
make_lladdr(struct tunnel *t)
{
	t->t_if.if_lladdr[0] = 2;
	t->t_if.if_lladdr[1] = t->t_gre;
	memcpy(t->t_if.if_lladdr + 2, t->t_src.s6_addr + 12, 4);
}

int
tunnel_create(const struct if_config *ic, bool gre, char *why, size_t len)
{
	struct tunnel *t = kmalloc(sizeof(*t));
	struct in_conninfo c;
	int error;

	t->t_gre = gre;
	t->t_ttl = (uint8_t)ic->ttl;
	error = parse_ends(t, ic->tunnel, why, len);
	if (error == 0)
		error = parse_key(t, ic->key, why, len);
	c = (struct in_conninfo){ .laddr = t->t_src, .faddr = t->t_dst };
	if (error == 0 && tunnel_find(&c, gre) != NULL) {
		snprintf(why, len, "another tunnel has these ends");
		error = EEXIST;
	}
	if (error != 0) {
		kfree(t);
		return (error);
	}
	t->t_overhead = in_family(&t->t_dst)->af_hdrlen + (gre ?
	    GRE_HDRLEN + (t->t_keyed ? 4U : 0) : 0);
	if_initname(&t->t_if, ic, ETHER_MTU - t->t_overhead);
	make_lladdr(t);
	t->t_if.if_softc = t;
	t->t_if.if_output = tunnel_output;
	t->t_if.if_output6 = tunnel_output6;
	if_attach(&t->t_if);
	t->t_next = tunnels;
	tunnels = t;
	return (0);
}

static int
gif_attach(const struct if_config *ic, char *why, size_t len)
{
	return (tunnel_create(ic, false, why, len));
}

static int
gre_attach(const struct if_config *ic, char *why, size_t len)
{
	return (tunnel_create(ic, true, why, len));
}

/* All interfaces are there: one must have our end. */
static int
tunnel_start(struct ifnet *ifp)
{
	const struct tunnel *t = ifp->if_softc;
	const struct in_endpoint ep = { .addr = t->t_src };

	if (in_family(&t->t_src)->af_isours(&ep, true))
		return (0);
	console("%s: the first address of its tunnel is none of this host's",
	    ifp->if_xname);
	return (EADDRNOTAVAIL);
}

static const char *
end_text(const struct in6_addr *a, char *buf)
{
	return (IN6_IS_ADDR_V4MAPPED(a) ? inet_ntop(AF_INET, a->s6_addr + 12,
	    buf, INET6_ADDRSTRLEN) : inet_ntop(AF_INET6, a, buf,
	    INET6_ADDRSTRLEN));
}

static void
tunnel_show(const struct ifnet *ifp, struct ctl_out *co)
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
	const struct tunnel *t = ifp->if_softc;

	ctl_printf(co, "\ttunnel %s -> %s ttl %u", end_text(&t->t_src, src),
	    end_text(&t->t_dst, dst), t->t_ttl);
	if (t->t_keyed)
		ctl_printf(co, " key %u", ntohl(t->t_key));
	ctl_printf(co, "\n");
}

void
tunnel_init(void)
{
	static struct if_driver gif = { .name = "gif", .has = IFHAS_TUNNEL,
	    .attach = gif_attach, .start = tunnel_start,
	    .show = tunnel_show };
	static struct if_driver gre = { .name = "gre", .has = IFHAS_TUNNEL,
	    .attach = gre_attach, .start = tunnel_start,
	    .show = tunnel_show };
	static const struct {
		uint8_t		 proto;
		pr_input_t	*input;
	} protos[] = {
		{ IPPROTO_IPIP, ipip_input }, { IPPROTO_IPV6, ip6ip_input },
		{ IPPROTO_GRE, gre_input },
	};

	sysctl_register(tunnel_oids, nitems(tunnel_oids));
	if_driver_register(&gif);
	if_driver_register(&gre);
	for (size_t i = 0; i < nitems(protos); i++) {
		ip_register(protos[i].proto, protos[i].input,
		    tunnel_ctlinput);
		ip6_register(protos[i].proto, protos[i].input,
		    tunnel_ctlinput);
	}
}
