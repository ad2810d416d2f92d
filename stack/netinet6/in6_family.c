/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 as transport protocols see it.
 */
#include "netinet6/ip6_private.h"

static uint16_t
family_pseudo(const struct in_conninfo *c, uint8_t proto, uint32_t len)
{
	return (in6_pseudo(&c->laddr, &c->faddr, proto, len));
}

static void
family_endpoints(const struct mbuf *m, struct in_conninfo *c)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);
	const struct ifnet *rcvif = m->m_pkthdr.rcvif;

	c->laddr = ip6->ip6_dst;
	c->faddr = ip6->ip6_src;
	c->zone = rcvif != NULL &&
	    (in_islinklocal(&c->laddr) || in_islinklocal(&c->faddr)) ?
	    rcvif->if_index : 0;
}

static bool
family_isours(const struct in_endpoint *ep, bool stream)
{
	struct nhop6 nh;

	if (IN6_IS_ADDR_MULTICAST(&ep->addr))
		return (!stream);
	return (route6_lookup(&ep->addr, ep->zone, &nh) && nh.nh_local);
}

static bool
family_ismany(const struct mbuf *m, const struct in6_addr *addr)
{
	return (IN6_IS_ADDR_MULTICAST(addr) ||
	    (m != NULL && (m->m_flags & (M_BCAST | M_MCAST)) != 0));
}

static void
family_portunreach(struct mbuf *m)
{
	icmp6_error(m, ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOPORT, 0);
}

const struct in_family in6_family = {
	.af_family = AF_INET6,
	.af_hdrlen = IP6_HDRLEN,
	.af_minmtu = IP6_MINMTU,
	.af_loopback = IN6ADDR_LOOPBACK_INIT,
	.af_route = ip6_route,
	.af_output = ip6_output,
	.af_pseudo = family_pseudo,
	.af_endpoints = family_endpoints,
	.af_isours = family_isours,
	.af_ismany = family_ismany,
	.af_portunreach = family_portunreach,
};
