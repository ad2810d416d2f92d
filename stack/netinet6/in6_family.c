/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 as transport protocols see it.
 */
#include "netinet6/ip6_private.h"

int
in6_output(struct mbuf *m, const struct in_conninfo *c, uint8_t proto,
    const struct ip_sendopts *opts)
{
	return (ip6_output(m, c, proto, opts));
}

void
in6_endpoints(const struct mbuf *m, struct in_conninfo *c)
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
in6_isours(const struct in_endpoint *ep, bool stream)
{
	struct nhop6 nh;

	if (IN6_IS_ADDR_MULTICAST(&ep->addr))
		return (!stream);
	return (route6_lookup(&ep->addr, ep->zone, &nh) && nh.nh_local);
}

bool
in6_ismany(const struct mbuf *m, const struct in6_addr *addr)
{
	return (IN6_IS_ADDR_MULTICAST(addr) ||
	    (m != NULL && (m->m_flags & (M_BCAST | M_MCAST)) != 0));
}

static void
in6_portunreach(struct mbuf *m)
{
	icmp6_error(m, ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOPORT, 0);
}

const struct in_family in6_family = {
	.af_family = AF_INET6,
	.af_hdrlen = IP6_HDRLEN,
	.af_minmtu = IP6_MINMTU,
	.af_loopback = IN6ADDR_LOOPBACK_INIT,
	.af_route = ip6_route,
	.af_isours = in6_isours,
	.af_portunreach = in6_portunreach,
};
