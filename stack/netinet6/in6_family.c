/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of IPv6 that transport protocols use.
 */
#include "netinet6/ip6_private.h"

static bool
in6_isours(const struct in_endpoint *ep, bool stream)
{
	struct nhop6 nh;

	if (IN6_IS_ADDR_MULTICAST(&ep->addr))
		return (!stream);
	return (route6_lookup(&ep->addr, ep->zone, &nh) && nh.nh_local);
}

static void
in6_portunreach(struct mbuf *m)
{
	icmp6_error(m, ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOPORT, 0);
}

static void
in6_toobig(struct mbuf *m, uint32_t mtu)
{
	icmp6_error(m, ICMP6_PACKET_TOO_BIG, 0, mtu);
}

static struct ifnet *
in6_groupif(const struct in6_addr *group, uint32_t ifindex)
{
	(void)group;
	return (in6_zoneif(ifindex));
}

void
in6_family_init(void)
{
	static const struct in_family family = {
		.af_family = AF_INET6,
		.af_hdrlen = IP6_HDRLEN,
		.af_minmtu = IP6_MINMTU,
		.af_loopback = IN6ADDR_LOOPBACK_INIT,
		.af_route = ip6_route,
		.af_isours = in6_isours,
		.af_portunreach = in6_portunreach,
		.af_toobig = in6_toobig,
		.af_groupif = in6_groupif,
		.af_register = ip6_register,
		.af_protoinput = ip6_protoinput,
		.af_output = ip6_output,
	};

	in6_family_register(&family);
}
