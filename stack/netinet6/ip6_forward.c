/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 forwarding (RFC 8200 sections 3 and 5, RFC 4443 section 3): sends a
 * packet for another host to its next hop, or an error to its source.
 * Redirects are not sent.
 */
#include "netinet6/ip6_private.h"

/*
 * RFC 4291 section 2.5.6, RFC 4007 section 9: packets that stay on their link.
 */
static bool
ip6_mayforward(const struct mbuf *m)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);

	return ((m->m_flags & (M_BCAST | M_MCAST)) == 0 &&
	    !m->m_pkthdr.rcvif->if_loopback &&
	    !IN6_IS_ADDR_LINKLOCAL(&ip6->ip6_dst) &&
	    !IN6_IS_ADDR_LOOPBACK(&ip6->ip6_dst) &&
	    !IN6_IS_ADDR_UNSPECIFIED(&ip6->ip6_src));
}

void
ip6_forward(struct mbuf *m)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);
	struct nhop6 nh;

	if (atomic_load_u32(&ip6_forwarding) == 0 || !ip6_mayforward(m)) {
		IP6STAT_INC(cantforward);
		m_freem(m);
		return;
	}
	if (ip6->ip6_hlim <= 1) {
		IP6STAT_INC(hoplimit);
		icmp6_error(m, ICMP6_TIME_EXCEEDED, ICMP6_TIME_EXCEED_TRANSIT,
		    0);
		return;
	}
	if (!route6_lookup(&ip6->ip6_dst, 0, &nh) ||
	    nh.nh_ifp->if_in6 == NULL) {
		IP6STAT_INC(noroute);
		icmp6_error(m, ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOROUTE,
		    0);
		return;
	}
	if (IN6_IS_ADDR_LINKLOCAL(&ip6->ip6_src) &&
	    nh.nh_ifp != m->m_pkthdr.rcvif) {
		IP6STAT_INC(cantforward);
		icmp6_error(m, ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_BEYONDSCOPE,
		    0);
		return;
	}
	if (ip6_wirelen(m) > ip6_linkmtu(nh.nh_ifp)) {
		IP6STAT_INC(toobig);
		icmp6_error(m, ICMP6_PACKET_TOO_BIG, 0,
		    ip6_linkmtu(nh.nh_ifp));
		return;
	}
	/* The header is rewritten, so its memory must not be shared. */
	m = m_pullup(m, IP6_HDRLEN);
	KASSERT(m != NULL, ("ip6_forward: header"));
	mtod(m, struct ip6_hdr *)->ip6_hlim--;
	m_offload_rx_to_tx(m);
	IP6STAT_INC(forward);
	ip6_transmit(nh.nh_ifp, m, &nh.nh_gw);
}
