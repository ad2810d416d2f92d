/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbour solicitations and advertisements (RFC 4861 sections 4.3, 4.4 and
 * 7.1), also for duplicate address detection (RFC 4862 section 5.4).
 */
#include <arpa/inet.h>
#include <string.h>

#include "net/if_ether.h"
#include "netinet6/ip6_private.h"

/* proves that the packet was not forwarded (RFC 4861 section 7.1) */
#define	ND6_HOPLIMIT	255
#define	LLADDR_OPT	8

bool
nd6_options(const struct mbuf *m, uint32_t off,
    void (*fn)(const struct mbuf *, const struct nd6_option *, void *),
    void *arg)
{
	struct nd6_option opt;
	struct nd_opt_hdr oh;

	for (; off < m->m_pkthdr.len; off += opt.len) {
		if (m->m_pkthdr.len - off < sizeof(oh))
			return (false);
		m_copydata(m, off, sizeof(oh), &oh);
		opt = (struct nd6_option){ oh.nd_opt_type, off,
		    (uint32_t)oh.nd_opt_len << 3 };
		if (opt.len == 0 || opt.len > m->m_pkthdr.len - off)
			return (false);
		fn(m, &opt, arg);
	}
	return (true);
}

void
nd6_find_lladdr(const struct mbuf *m, const struct nd6_option *opt, void *arg)
{
	struct nd6_lladdr *ll = arg;

	if (opt->type != ll->type || opt->len != LLADDR_OPT)
		return;
	m_copydata(m, opt->off + sizeof(struct nd_opt_hdr), 6, ll->addr);
	ll->found = ether_isunicast(ll->addr);
}

struct mbuf *
nd6_message(const struct ifnet *ifp, uint8_t type, uint32_t len, uint8_t option)
{
	struct mbuf *m = m_gethdr(64);
	struct nd_opt_hdr *oh = (struct nd_opt_hdr *)(void *)(m->m_data + len);

	memset(m->m_data, 0, len + LLADDR_OPT);
	mtod(m, struct icmp6_hdr *)->icmp6_type = type;
	m->m_len = len;
	if (option != 0) {
		oh->nd_opt_type = option;
		oh->nd_opt_len = LLADDR_OPT >> 3;
		memcpy(oh + 1, ifp->if_lladdr, 6);
		m->m_len += LLADDR_OPT;
	}
	m->m_pkthdr.len = m->m_len;
	return (m);
}

void
nd6_solicit(struct ifnet *ifp, const struct in6_addr *src,
    const struct in6_addr *target, bool unicast)
{
	const struct in6_addr group = in6_solicited_node(target);
	struct in6_addr from;
	struct mbuf *m;

	if (src != NULL)
		from = *src;
	else if (!in6_selectsrc(ifp, target, &from))
		return;
	ND6STAT_INC(solicits);
	m = nd6_message(ifp, ND_NEIGHBOR_SOLICIT,
	    sizeof(struct nd_neighbor_solicit),
	    IN6_IS_ADDR_UNSPECIFIED(&from) ? 0 : ND_OPT_SOURCE_LINKADDR);
	mtod(m, struct nd_neighbor_solicit *)->nd_ns_target = *target;
	icmp6_send(ifp, m, &from, unicast ? target : &group, ND6_HOPLIMIT);
}

/*
 * Sends an advertisement to the soliciting node, or to all nodes if it has no
 * address.
 */
static void
nd6_advertise(struct ifnet *ifp, const struct in6_addr *target,
    const struct in6_addr *to)
{
	static const struct in6_addr allnodes =
	    { .s6_addr = { 0xff, 2, [15] = 1 } };
	const bool anonymous = IN6_IS_ADDR_UNSPECIFIED(to);
	uint32_t flags = ND_NA_FLAG_OVERRIDE;
	struct mbuf *m;

	if (!anonymous)
		flags |= ND_NA_FLAG_SOLICITED;
	if (atomic_load_u32(&ip6_forwarding) != 0)
		flags |= ND_NA_FLAG_ROUTER;
	ND6STAT_INC(adverts);
	m = nd6_message(ifp, ND_NEIGHBOR_ADVERT,
	    sizeof(struct nd_neighbor_advert), ND_OPT_TARGET_LINKADDR);
	mtod(m, struct nd_neighbor_advert *)->nd_na_target = *target;
	mtod(m, struct nd_neighbor_advert *)->nd_na_flags_reserved = flags;
	icmp6_send(ifp, m, target, anonymous ? &allnodes : to, ND6_HOPLIMIT);
}

/* RFC 4861 section 7.1.1, beyond the checks common to all messages. */
static bool
solicit_valid(const struct mbuf *m, const struct in6_addr *target, bool lladdr)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);
	const struct in6_addr group = in6_solicited_node(target);

	if (IN6_IS_ADDR_MULTICAST(target))
		return (false);
	return (!IN6_IS_ADDR_UNSPECIFIED(&ip6->ip6_src) ||
	    (!lladdr && IN6_ARE_ADDR_EQUAL(&ip6->ip6_dst, &group)));
}

static bool
solicit_input(struct ifnet *ifp, struct mbuf *m, unsigned hlen)
{
	const struct in6_addr src = mtod(m, const struct ip6_hdr *)->ip6_src;
	const bool dad = IN6_IS_ADDR_UNSPECIFIED(&src);
	struct nd6_lladdr ll = { .type = ND_OPT_SOURCE_LINKADDR };
	struct nd_neighbor_solicit ns;
	unsigned flags;

	if (m->m_pkthdr.len < hlen + sizeof(ns) ||
	    !nd6_options(m, hlen + (uint32_t)sizeof(ns), nd6_find_lladdr, &ll))
		return (false);
	m_copydata(m, hlen, sizeof(ns), &ns);
	if (!solicit_valid(m, &ns.nd_ns_target, ll.found))
		return (false);
	flags = in6_addr_flags(ifp, &ns.nd_ns_target);
	if ((flags & IA6_PRESENT) == 0)
		return (true);
	if (flags & IA6_TENTATIVE) {
		/* another node probes for the address at the same time */
		if (dad)
			in6_dad_conflict(ifp, &ns.nd_ns_target);
		return (true);
	}
	if (flags & IA6_DUPLICATED)
		return (true);
	/* another host uses our address: an answer would be for ourselves */
	if ((in6_addr_flags(ifp, &src) & (IA6_PRESENT | IA6_DUPLICATED)) ==
	    IA6_PRESENT)
		return (false);
	if (!dad && ll.found)
		nd6_learn(ifp, &src, ll.addr, false);
	nd6_advertise(ifp, &ns.nd_ns_target, &src);
	return (true);
}

/* RFC 4861 sections 7.1.2 and 7.2.5. */
static bool
advert_input(struct ifnet *ifp, struct mbuf *m, unsigned hlen)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);
	struct nd6_lladdr ll = { .type = ND_OPT_TARGET_LINKADDR };
	struct nd_neighbor_advert na;

	if (m->m_pkthdr.len < hlen + sizeof(na) ||
	    !nd6_options(m, hlen + (uint32_t)sizeof(na), nd6_find_lladdr, &ll))
		return (false);
	m_copydata(m, hlen, sizeof(na), &na);
	if (IN6_IS_ADDR_MULTICAST(&na.nd_na_target) ||
	    (IN6_IS_ADDR_MULTICAST(&ip6->ip6_dst) &&
	    (na.nd_na_flags_reserved & ND_NA_FLAG_SOLICITED)))
		return (false);
	if (in6_addr_flags(ifp, &na.nd_na_target) & IA6_PRESENT)
		in6_dad_conflict(ifp, &na.nd_na_target);
	else
		nd6_advertised(ifp, &na.nd_na_target,
		    ll.found ? ll.addr : NULL, na.nd_na_flags_reserved);
	return (true);
}

void
nd6_input(struct mbuf *m, unsigned hlen, uint8_t type)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);
	struct ifnet *ifp = m->m_pkthdr.rcvif;
	struct icmp6_hdr icmp6;
	bool good = false;

	ND6STAT_INC(received);
	m_copydata(m, hlen, sizeof(icmp6), &icmp6);
	if (ip6->ip6_hlim == ND6_HOPLIMIT && icmp6.icmp6_code == 0 &&
	    !ifp->if_loopback) {
		if (type == ND_NEIGHBOR_SOLICIT)
			good = solicit_input(ifp, m, hlen);
		else if (type == ND_NEIGHBOR_ADVERT)
			good = advert_input(ifp, m, hlen);
		else if (type == ND_ROUTER_ADVERT)
			good = nd6_router_advert(ifp, m, hlen);
		else
			good = nd6_redirect(ifp, m, hlen);
	}
	if (!good)
		ND6STAT_INC(bad);
	m_freem(m);
}
