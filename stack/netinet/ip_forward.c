/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 forwarding (RFC 1812 section 5.2): sends a packet for another host to
 * its next hop, or an ICMP error to its source.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip_icmp.h>

#include "net/route.h"
#include "netinet/ip_private.h"

/* RFC 1812 sections 5.3.7 and 4.2.2.11: packets that are never forwarded. */
static bool
ip_mayforward(const struct mbuf *m, const struct ip *ip)
{
	uint32_t dst = ntohl(ip->ip_dst.s_addr);

	return ((m->m_flags & (M_BCAST | M_MCAST)) == 0 &&
	    !IN_MULTICAST(dst) && dst != INADDR_BROADCAST &&
	    dst >> 24 != IN_LOOPBACKNET && dst >> 24 != 0 &&
	    ip->ip_src.s_addr != INADDR_ANY);
}

/* RFC 1624, equation 3, for a TTL decremented by one. */
static void
ip_decrement_ttl(struct ip *ip)
{
	uint32_t sum = (uint16_t)~ip->ip_sum;

	/* ~m + m' is -1 in the high byte of the word {ttl, protocol}. */
	sum += (uint16_t)~htons(0x0100);
	ip->ip_ttl--;
	ip->ip_sum = in_fold(sum);
}

/* Sends to the next hop; the header is writable. */
static void
ip_pass(struct mbuf *m, const struct nhop *nh)
{
	KASSERT(mtod(m, struct ip *)->ip_ttl > 1, ("ip_pass: last hop"));
	ip_decrement_ttl(mtod(m, struct ip *));
	m_offload_rx_to_tx(m);
	IPSTAT_INC(forward);
	ip_transmit(nh->nh_ifp, m, nh->nh_gw);
}

void
ip_forward(struct mbuf *m, unsigned hlen)
{
	struct ip *ip = mtod(m, struct ip *);
	struct nhop nh;

	if (atomic_load_u32(&ip_forwarding) == 0 || !ip_mayforward(m, ip)) {
		IPSTAT_INC(cantforward);
		m_freem(m);
		return;
	}
	if (ip->ip_ttl <= 1) {
		icmp_error(m, ICMP_TIMXCEED, ICMP_TIMXCEED_INTRANS, 0);
		return;
	}
	if (!route_lookup(ip->ip_dst, &nh)) {
		IPSTAT_INC(noroute);
		icmp_error(m, ICMP_UNREACH, ICMP_UNREACH_HOST, 0);
		return;
	}
	if ((ip->ip_off & htons(IP_DF)) != 0 &&
	    ip_wirelen(m) > nh.nh_ifp->if_mtu) {
		IPSTAT_INC(cantfrag);
		icmp_error(m, ICMP_UNREACH, ICMP_UNREACH_NEEDFRAG,
		    nh.nh_ifp->if_mtu);
		return;
	}
	if (ip_redirects(m, &nh))
		ip_redirect_send(m, &nh);
	/* The header is rewritten, so its memory must not be shared. */
	m = m_pullup(m, hlen);
	KASSERT(m != NULL, ("ip_forward: header of %u bytes", hlen));
	ip_pass(m, &nh);
}

/*
 * Checks of the header, the cheapest first.  False only means that ip_input()
 * must check the packet; it knows all rules and counts errors.
 */
static bool
ip_isplain(const struct mbuf *m)
{
	const struct ip *ip = mtod(m, const struct ip *);
	uint32_t len;

	if (m->m_len < IP_HDRLEN || !m_writable(m))
		return (false);
	if (ip->ip_v != IPVERSION || ip->ip_hl != IP_HDRLEN >> 2 ||
	    ip->ip_ttl <= 1)
		return (false);
	len = ntohs(ip->ip_len);
	if (len < IP_HDRLEN || len > m->m_pkthdr.len ||
	    !ip_mayforward(m, ip) || ip_badsource(m))
		return (false);
	return (in_hdrsum_ok(ip, IP_HDRLEN) && !ip_isours(m, ip->ip_dst));
}

/*
 * Fast forwarding as in 4.4BSD's descendants (inet(4)): plain packets to other
 * hosts go from device to device in one call, under any dispatch policy.
 * Options, local destinations, fragmentation and errors are left to
 * ip_input().
 */
NOINLINE static bool
fastforward(struct mbuf *m)
{
	const struct ip *ip = mtod(m, const struct ip *);
	struct nhop nh;
	uint32_t len;

	if (!ip_isplain(m) || !route_lookup(ip->ip_dst, &nh))
		return (false);
	len = ntohs(ip->ip_len);
	if (m->m_pkthdr.len > len)
		m_adj(m, -(int64_t)(m->m_pkthdr.len - len));
	if (ip_wirelen(m) > nh.nh_ifp->if_mtu || ip_redirects(m, &nh))
		return (false);
	IPSTAT_INC(total);
	IPSTAT_INC(fastforward);
	ip_pass(m, &nh);
	return (true);
}

__hot bool
ip_fastforward(struct mbuf *m)
{
	return (atomic_load_u32(&ip_fastforwarding) != 0 &&
	    atomic_load_u32(&ip_forwarding) != 0 && fastforward(m));
}
