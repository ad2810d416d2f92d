/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 output: header, route, and the work that the device cannot do.  Only
 * the source of a packet fragments it (RFC 8200 section 4.5), to the path's
 * MTU (RFC 8201).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "netinet/in_group.h"
#include "netinet/ip_offload.h"
#include "netinet6/ip6_private.h"

/* RFC 7739: unpredictable fragment identification. */
static uint32_t
fragment_id(void)
{
	uint32_t id;

	mach_random(&id, sizeof(id));
	return (id);
}

uint32_t
ip6_linkmtu(const struct ifnet *ifp)
{
	uint32_t mtu = ifp->if_in6 != NULL ?
	    atomic_load_u32(&ifp->if_in6->mtu) : 0;

	return (mtu >= IP6_MINMTU && mtu < ifp->if_mtu ? mtu : ifp->if_mtu);
}

/* Offset of TCP's header in a packet with offloads. */
static uint32_t
transport_offset(const struct mbuf *m)
{
	return (m->m_pkthdr.csum_start != 0 ? m->m_pkthdr.csum_start :
	    IP6_HDRLEN);
}

uint32_t
ip6_wirelen(const struct mbuf *m)
{
	return (tso_wirelen(m, transport_offset(m)));
}

static void
segment_header(struct mbuf *s, uint32_t hlen)
{
	(void)hlen;
	mtod(s, struct ip6_hdr *)->ip6_plen =
	    htons((uint16_t)(s->m_pkthdr.len - IP6_HDRLEN));
}

static int
send_segment(struct ifnet *ifp, struct mbuf *m, const void *gw)
{
	return (ip6_transmit(ifp, m, gw));
}

int
ip6_transmit(struct ifnet *ifp, struct mbuf *m, const struct in6_addr *gw)
{
	struct pkthdr *ph = &m->m_pkthdr;

	KASSERT(m->m_len >= IP6_HDRLEN, ("ip6_transmit: %u bytes", m->m_len));
	KASSERT(ph->len == m_length(m), ("ip6_transmit: header has length "
	    "%u, packet %u", ph->len, m_length(m)));
	if ((ph->csum_flags & CSUM_TSO) != 0) {
		if ((ifp->if_caps & IFCAP_TSO6) == 0)
			return (tso_transmit(ifp, m, transport_offset(m),
			    segment_header, send_segment, gw));
	} else if ((ph->csum_flags & CSUM_TX) != 0 &&
	    (ifp->if_caps & IFCAP_TXCSUM) == 0)
		csum_complete(m);
	return (ifp->if_output6(ifp, m, gw));
}

/* Cuts a packet into fragments of at most mtu bytes.  Consumes m. */
NOINLINE static int
fragment_transmit(struct ifnet *ifp, struct mbuf *m, const struct in6_addr *gw,
    uint32_t mtu)
{
	const uint32_t hlen = IP6_HDRLEN + (uint32_t)sizeof(struct ip6_frag);
	const uint32_t piece = (mtu - hlen) & ~7U;
	const uint32_t total = m->m_pkthdr.len - IP6_HDRLEN;
	struct ip6_frag fh = { .ip6f_nxt = mtod(m, struct ip6_hdr *)->ip6_nxt,
	    .ip6f_ident = fragment_id() };
	uint32_t off, len;
	int error = 0;

	if ((m->m_pkthdr.csum_flags & CSUM_TX) != 0)
		csum_complete(m);
	IP6STAT_INC(fragmented);
	for (off = 0; off < total && error == 0; off += len) {
		struct mbuf *f = m_copyheaders(m, IP6_HDRLEN);
		struct ip6_hdr *ip6 = mtod(f, struct ip6_hdr *);

		len = total - off < piece ? total - off : piece;
		fh.ip6f_offlg = htons((uint16_t)off);
		if (off + len < total)
			fh.ip6f_offlg |= IP6F_MORE_FRAG;
		memcpy(f->m_data + IP6_HDRLEN, &fh, sizeof(fh));
		f->m_len = hlen;
		m_cat(f, m_copym(m, IP6_HDRLEN + off, len));
		f->m_pkthdr.len = hlen + len;
		f->m_pkthdr.csum_flags = 0;
		ip6->ip6_nxt = IPPROTO_FRAGMENT;
		ip6->ip6_plen = htons((uint16_t)(sizeof(fh) + len));
		IP6STAT_INC(ofragments);
		error = ifp->if_output6(ifp, f, gw);
	}
	m_freem(m);
	return (error);
}

/* The next hop of a packet from this host. */
static bool
route_out(const struct in6_addr *dst, uint32_t zone, struct nhop6 *nh)
{
	if (!IN6_IS_ADDR_MULTICAST(dst))
		return (route6_lookup(dst, zone, nh));
	nh->nh_ifp = in6_zoneif(zone);
	nh->nh_gw = *dst;
	nh->nh_local = false;
	return (nh->nh_ifp != NULL);
}

/* The next hop and source; false: no route. */
static bool
route_source(const struct in_conninfo *c, struct nhop6 *nh,
    struct in6_addr *src)
{
	if (!route_out(&c->faddr, c->zone, nh))
		return (false);
	*src = c->laddr;
	if (!IN6_IS_ADDR_UNSPECIFIED(src))
		return (!IN6_IS_ADDR_V4MAPPED(src));
	if (nh->nh_local) {
		*src = c->faddr;	/* local destination: the same source */
		return (true);
	}
	return (in6_selectsrc(nh->nh_ifp, &c->faddr, src));
}

bool
ip6_route(const struct in_conninfo *c, struct in6_addr *src, uint32_t *mtu)
{
	struct nhop6 nh;

	if (!route_source(c, &nh, src))
		return (false);
	/* a reply could not be distinguished from another link's */
	if (IN6_IS_ADDR_LINKLOCAL(src) && !in_islinklocal(&c->faddr))
		return (false);
	*mtu = nh.nh_local ? loif->if_mtu : ip6_linkmtu(nh.nh_ifp);
	return (true);
}

static void
fill_header(struct mbuf *m, const struct in6_addr *src,
    const struct in_conninfo *c, uint8_t proto, const struct ip_sendopts *opts,
    const struct ifnet *ifp)
{
	struct ip6_hdr *ip6 = mtod(m, struct ip6_hdr *);
	uint32_t hlim = opts->ttl;

	if (hlim == 0 && IN6_IS_ADDR_MULTICAST(&c->faddr))
		hlim = 1;		/* RFC 3493 section 5.2 */
	if (hlim == 0 && ifp->if_in6 != NULL)
		hlim = atomic_load_u32(&ifp->if_in6->hoplimit);
	if (hlim == 0)
		hlim = IP6_HOPLIMIT;
	ip6->ip6_flow = htonl((uint32_t)IP6_VERSION << 24 |
	    (uint32_t)opts->tos << 20);
	ip6->ip6_plen = htons((uint16_t)(m->m_pkthdr.len - IP6_HDRLEN));
	ip6->ip6_nxt = proto;
	ip6->ip6_hlim = (uint8_t)hlim;
	ip6->ip6_src = *src;
	ip6->ip6_dst = c->faddr;
}

void
ip6_sendlink(struct ifnet *ifp, struct mbuf *m, const struct in6_addr *src,
    const struct in6_addr *dst, uint8_t proto, uint8_t hoplimit)
{
	const struct in_conninfo c = { .faddr = *dst };
	const struct ip_sendopts opts = { .ttl = hoplimit };

	m = m_prepend(m, IP6_HDRLEN);
	fill_header(m, src, &c, proto, &opts, ifp);
	IP6STAT_INC(localout);
	ip6_transmit(ifp, m, dst);
}

/*
 * Whether a packet is sent to the link; copies packets to groups to this host.
 */
static bool
group_leaves(struct ifnet *ifp, const struct mbuf *m,
    const struct in6_addr *group, const struct ip_sendopts *opts)
{
	if (ifp->if_loopback)
		return (!opts->noloop);
	if (!opts->noloop && in_group_ismember(ifp, group))
		lo_copy(ifp, m, M_MCAST);
	/* RFC 4291 section 2.7: interface-local groups stay on this host */
	return (!opts->local && (group->s6_addr[1] & 0xf) > 1);
}

int
ip6_output(struct mbuf *m, const struct in_conninfo *c, uint8_t proto,
    const struct ip_sendopts *opts)
{
	struct in6_addr src;
	struct nhop6 nh;
	uint32_t mtu;
	int error = 0;

	KASSERT(m->m_nextpkt == NULL, ("ip6_output: packet is queued"));
	if (m->m_pkthdr.len > IP6_MAXPAYLOAD) {
		error = EMSGSIZE;
	} else if (!route_source(c, &nh, &src)) {
		IP6STAT_INC(noroute);
		error = ENETUNREACH;
	}
	if (error != 0) {
		m_freem(m);
		return (error);
	}
	m = m_prepend(m, IP6_HDRLEN);
	if ((m->m_pkthdr.csum_flags & CSUM_TX) != 0)
		m->m_pkthdr.csum_start += IP6_HDRLEN;
	fill_header(m, &src, c, proto, opts, nh.nh_ifp);
	IP6STAT_INC(localout);
	if (IN6_IS_ADDR_MULTICAST(&c->faddr) &&
	    !group_leaves(nh.nh_ifp, m, &c->faddr, opts)) {
		m_freem(m);
		return (0);
	}
	if (nh.nh_local) {
		/* it is received on the interface that has the address */
		m->m_pkthdr.rcvif = nh.nh_ifp;
		nh.nh_ifp = loif;
	}
	mtu = nh.nh_local ? loif->if_mtu :
	    in_pmtu(&c->faddr, c->zone, ip6_linkmtu(nh.nh_ifp));
	if (ip6_wirelen(m) <= mtu)
		return (ip6_transmit(nh.nh_ifp, m, &nh.nh_gw));
	if (opts->dontfrag) {
		IP6STAT_INC(cantfrag);
		m_freem(m);
		return (EMSGSIZE);
	}
	return (fragment_transmit(nh.nh_ifp, m, &nh.nh_gw, mtu));
}
