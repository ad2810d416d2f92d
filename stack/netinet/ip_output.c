/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 output: header, route, copies of multicast and broadcast packets for
 * this host, and the work that the device cannot do: the transport checksum,
 * TCP segmentation, fragmentation (RFC 791 section 3.2).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "net/route.h"
#include "netinet/in_family.h"
#include "netinet/in_group.h"
#include "netinet/ip_offload.h"
#include "netinet/ip_private.h"

static void
segment_header(struct mbuf *s, uint32_t hlen)
{
	struct ip *ip = mtod(s, struct ip *);

	ip->ip_len = htons((uint16_t)s->m_pkthdr.len);
	ip->ip_id = htons(ip_newid());
	ip->ip_sum = 0;
	ip->ip_sum = in_hdrsum(ip, hlen);
}

static int
send_segment(struct ifnet *ifp, struct mbuf *m, const void *nexthop)
{
	return (ip_transmit(ifp, m, *(const struct in_addr *)nexthop));
}

/* Cuts a packet into fragments of at most the device's MTU.  Consumes m. */
NOINLINE static int
fragment_transmit(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop)
{
	const struct ip *whole = mtod(m, struct ip *);
	uint32_t hlen = (uint32_t)whole->ip_hl << 2;
	uint32_t piece = (ifp->if_mtu - hlen) & ~7U;
	uint32_t total = m->m_pkthdr.len - hlen, off, len;
	uint16_t base = ntohs(whole->ip_off);
	int error = 0;

	KASSERT(ifp->if_mtu >= 68, ("fragment: mtu %u", ifp->if_mtu));
	if ((m->m_pkthdr.csum_flags & CSUM_TX) != 0)
		csum_complete(m);
	IPSTAT_INC(fragmented);
	for (off = 0; off < total && error == 0; off += len) {
		struct mbuf *f = m_copyheaders(m, hlen);
		struct ip *ip = mtod(f, struct ip *);
		bool more;

		len = total - off < piece ? total - off : piece;
		more = off + len < total || (base & IP_MF) != 0;
		m_cat(f, m_copym(m, hlen + off, len));
		f->m_pkthdr.len = hlen + len;
		f->m_pkthdr.csum_flags = 0;
		ip->ip_len = htons((uint16_t)(hlen + len));
		ip->ip_off = htons((uint16_t)((base & IP_OFFMASK) +
		    (off >> 3)) | (more ? IP_MF : 0));
		ip->ip_sum = 0;
		ip->ip_sum = in_hdrsum(ip, hlen);
		IPSTAT_INC(ofragments);
		error = ifp->if_output(ifp, f, nexthop);
	}
	m_freem(m);
	return (error);
}

uint32_t
ip_wirelen(const struct mbuf *m)
{
	return (tso_wirelen(m,
	    (uint32_t)mtod(m, const struct ip *)->ip_hl << 2));
}

__hot int
ip_transmit(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop)
{
	struct pkthdr *ph = &m->m_pkthdr;

	KASSERT(m->m_len >= IP_HDRLEN, ("ip_transmit: %u bytes", m->m_len));
	KASSERT(ph->len == m_length(m), ("ip_transmit: header has length %u, "
	    "packet %u", ph->len, m_length(m)));
	if ((ph->csum_flags & CSUM_TSO) != 0) {
		/* A segment that exceeds the MTU is fragmented, too. */
		if ((ifp->if_caps & IFCAP_TSO4) == 0 ||
		    ip_wirelen(m) > ifp->if_mtu)
			return (tso_transmit(ifp, m, (uint32_t)mtod(m,
			    struct ip *)->ip_hl << 2, segment_header,
			    send_segment, &nexthop));
		return (ifp->if_output(ifp, m, nexthop));
	}
	if (ph->len > ifp->if_mtu) {
		if ((mtod(m, struct ip *)->ip_off & htons(IP_DF)) != 0) {
			IPSTAT_INC(cantfrag);
			m_freem(m);
			return (EMSGSIZE);
		}
		return (fragment_transmit(ifp, m, nexthop));
	}
	if ((ph->csum_flags & CSUM_TX) != 0 &&
	    (ifp->if_caps & IFCAP_TXCSUM) == 0)
		csum_complete(m);
	return (ifp->if_output(ifp, m, nexthop));
}

struct ifnet *
ip_groupif(struct in_addr group, uint32_t ifindex)
{
	struct ifnet *ifp;
	struct nhop nh;

	if (ifindex != 0)
		return (if_byindex(ifindex));
	if (route_lookup(group, &nh))
		return (nh.nh_ifp);
	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		if (!ifp->if_loopback && ifp->if_addr.s_addr != INADDR_ANY)
			break;
	return (ifp);
}

/* The next hop of a packet to dst, local addresses included. */
static bool
ip_route(struct in_addr dst, uint32_t ifindex, struct nhop *nh)
{
	nh->nh_gw = dst;
	if (IN_MULTICAST(ntohl(dst.s_addr)) ||
	    dst.s_addr == htonl(INADDR_BROADCAST)) {
		nh->nh_ifp = ip_groupif(dst, ifindex);
		return (nh->nh_ifp != NULL);
	}
	if (if_byaddr(dst) != NULL ||
	    ntohl(dst.s_addr) >> 24 == IN_LOOPBACKNET) {
		nh->nh_ifp = loif;
		return (loif != NULL);
	}
	return (route_lookup(dst, nh));
}

/* The source address of packets that specify none. */
static struct in_addr
default_source(const struct nhop *nh, struct in_addr dst)
{
	/* Local destination: the source is the same address. */
	return (nh->nh_ifp->if_loopback && !IN_MULTICAST(ntohl(dst.s_addr)) ?
	    dst : if_source(nh->nh_ifp, nh->nh_gw));
}

bool
ip_source(struct in_addr dst, uint32_t ifindex, struct in_addr *src,
    struct ifnet **ifp)
{
	struct nhop nh;

	if (!ip_route(dst, ifindex, &nh))
		return (false);
	*src = default_source(&nh, dst);
	if (ifp != NULL)
		*ifp = nh.nh_ifp;
	return (true);
}

/*
 * The sum of a header without options, computed from its parts: loading fields
 * as words right after storing them separately is slow.  Addresses, protocol
 * and length are in the pseudo header's sum; id and off are in network byte
 * order.
 */
static uint16_t
plain_sum(uint16_t pseudo, uint8_t tos, uint8_t ttl, uint16_t id, uint16_t off)
{
	uint32_t sum = pseudo + id + off + htons((uint16_t)(ttl << 8)) +
	    htons((uint16_t)((IPVERSION << 4 | IP_HDRLEN >> 2) << 8 | tos));

	sum = (sum & 0xffff) + (sum >> 16);
	return ((uint16_t)~(sum + (sum >> 16)));
}

static void
ip_fillheader(struct mbuf *m, struct in_addr src, struct in_addr dst,
    uint8_t proto, const struct ip_sendopts *opts, uint32_t hlen)
{
	static const uint8_t alert[] = { IPOPT_RA, 4, 0, 0 };
	const bool group = IN_MULTICAST(ntohl(dst.s_addr));
	/* RFC 1112 section 6.1: the default TTL of multicast is 1 */
	const uint8_t ttl = opts->ttl != 0 ? opts->ttl :
	    group ? 1 : IP_TTL_DEFAULT;
	/* unfragmentable packets need none (RFC 6864 section 4.1) */
	const uint16_t id = opts->dontfrag ? 0 : htons(ip_newid());
	const uint16_t off = opts->dontfrag ? htons(IP_DF) : 0;
	const uint32_t len = m->m_pkthdr.len;
	struct ip *ip = mtod(m, struct ip *);

	ip->ip_v = IPVERSION;
	ip->ip_hl = (hlen >> 2) & 0xf;
	ip->ip_tos = opts->tos;
	ip->ip_len = htons((uint16_t)len);
	ip->ip_id = id;
	ip->ip_off = off;
	ip->ip_ttl = ttl;
	ip->ip_p = proto;
	ip->ip_src = src;
	ip->ip_dst = dst;
	ip->ip_sum = 0;
	if (__predict_false(opts->alert)) {
		memcpy(ip + 1, alert, sizeof(alert));
		ip->ip_sum = in_hdrsum(ip, hlen);
	} else {
		ip->ip_sum = plain_sum(in_pseudo(src, dst, proto, len),
		    opts->tos, ttl, id, off);
	}
}

/*
 * Sends to a group or a broadcast address, and to this host if it is a member
 * (RFC 1112 section 6.1).  Consumes m.
 */
NOINLINE static int
send_to_many(const struct nhop *nh, struct mbuf *m, struct in_addr dst,
    const struct ip_sendopts *opts)
{
	const bool group = IN_MULTICAST(ntohl(dst.s_addr));
	const struct in6_addr mapped = in_map(dst);
	struct ifnet *ifp = nh->nh_ifp;

	bool leaves = !group || !opts->local;

	if (ifp->if_loopback)
		leaves = !group || !opts->noloop;
	else if (!group || (!opts->noloop && in_group_ismember(ifp, &mapped)))
		lo_copy(ifp, m, group ? M_MCAST : M_BCAST);
	if (leaves)
		return (ip_transmit(ifp, m, nh->nh_gw));
	m_freem(m);
	return (0);
}

/* Like find_way(), unless it is a route to one other host. */
NOINLINE static int
find_other_way(struct in_addr dst, const struct ip_sendopts *opts,
    struct nhop *nh, bool *many)
{
	*many = IN_MULTICAST(ntohl(dst.s_addr));
	if (!ip_route(dst, opts->ifindex, nh)) {
		IPSTAT_INC(noroute);
		return (EHOSTUNREACH);
	}
	if (!if_isbroadcast(nh->nh_ifp, dst))
		return (0);
	*many = true;
	return (opts->broadcast ? 0 : EACCES);
}

/*
 * Finds the next hop of a packet, and whether the destination is multicast or
 * broadcast; returns 0 or an errno value.
 */
static int
find_way(struct in_addr dst, const struct ip_sendopts *opts, struct nhop *nh,
    bool *many)
{
	*many = false;
	return (__predict_true(route_lookup(dst, nh)) &&
	    __predict_true(nh->nh_host) ? 0 :
	    find_other_way(dst, opts, nh, many));
}

__hot int
ip_output(struct mbuf *m, struct in_addr src, struct in_addr dst,
    uint8_t proto, const struct ip_sendopts *opts)
{
	const uint32_t hlen = IP_HDRLEN + (opts->alert ? 4 : 0);
	struct nhop nh;
	bool many;
	int error = m->m_pkthdr.len > IP_MAXPACKET - hlen ? EMSGSIZE :
	    find_way(dst, opts, &nh, &many);

	KASSERT(m->m_nextpkt == NULL, ("ip_output: packet is queued"));
	if (error != 0) {
		m_freem(m);
		return (error);
	}
	if (src.s_addr == INADDR_ANY)
		src = default_source(&nh, dst);
	m = m_prepend(m, hlen);
	if ((m->m_pkthdr.csum_flags & CSUM_TX) != 0)
		m->m_pkthdr.csum_start += (uint16_t)hlen;
	ip_fillheader(m, src, dst, proto, opts, hlen);
	IPSTAT_INC(localout);
	return (many ? send_to_many(&nh, m, dst, opts) :
	    ip_transmit(nh.nh_ifp, m, nh.nh_gw));
}

int
ip_outputheader(struct mbuf *m, struct in_addr src, struct in_addr dst,
    const struct ip_sendopts *opts)
{
	struct nhop nh;
	struct ip *ip;
	uint32_t hlen;
	bool many;
	int error = find_way(dst, opts, &nh, &many);

	if (error == 0 && m->m_pkthdr.len > nh.nh_ifp->if_mtu)
		error = EMSGSIZE;
	if (error == 0 && m->m_pkthdr.len < IP_HDRLEN)
		error = EINVAL;
	if (error == 0) {
		m = m_pullup(m, IP_HDRLEN);
		hlen = (uint32_t)mtod(m, struct ip *)->ip_hl << 2;
		if (hlen < IP_HDRLEN || hlen > m->m_pkthdr.len)
			error = EINVAL;
	}
	if (error != 0) {
		m_freem(m);
		return (error);
	}
	m = m_pullup(m, hlen);
	ip = mtod(m, struct ip *);
	ip->ip_v = IPVERSION;
	ip->ip_len = htons((uint16_t)m->m_pkthdr.len);
	if (ip->ip_id == 0)
		ip->ip_id = htons(ip_newid());
	if (ip->ip_src.s_addr == INADDR_ANY)
		ip->ip_src = src;
	ip->ip_sum = 0;
	ip->ip_sum = in_hdrsum(ip, hlen);
	IPSTAT_INC(localout);
	return (many ? send_to_many(&nh, m, dst, opts) :
	    ip_transmit(nh.nh_ifp, m, nh.nh_gw));
}
