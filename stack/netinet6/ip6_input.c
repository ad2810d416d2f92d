/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 input (RFC 8200): checks, local or forwarded, extension headers,
 * delivery.
 */
#include <arpa/inet.h>
#include <string.h>

#include "kern/sysctl.h"
#include "net/if_var.h"
#include "net/netisr.h"
#include "netinet/in_handoff.h"
#include "netinet/in_group.h"
#include "netinet/raw_ip.h"
#include "netinet6/ip6_private.h"

struct ip6stat ip6stat COUNTERS;
atomic_u32 ip6_forwarding;

/* Upper protocols, registered at boot. */
static struct {
	pr_input_t	*input;
	pr_ctlinput_t	*ctlinput;
} ip6_protos[256];

static const struct sysctl_oid ip6_oids[] = {
	{ .oid_name = "net.inet6.ip6.forwarding", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ip6_forwarding,
	    .oid_max = 1,
	    .oid_descr = "1: forward packets to other hosts" },
#define	X(name, descr)							\
	{ .oid_name = "net.inet6.ip6.stats." #name, .oid_type = CTL_U64, \
	    .oid_ptr = &ip6stat.name, .oid_descr = descr },
	IP6_STATS(X)
#undef X
};

void
ip6_register(uint8_t proto, pr_input_t *input, pr_ctlinput_t *ctlinput)
{
	KASSERT(ip6_protos[proto].input == NULL,
	    ("ip6_register: protocol %u registered twice", proto));
	ip6_protos[proto].input = input;
	ip6_protos[proto].ctlinput = ctlinput;
}

pr_input_t *
ip6_protoinput(uint8_t proto)
{
	return (ip6_protos[proto].input);
}

/* Checks addresses that begin with 32 zero bits: ::, ::1, mapped ones. */
NOINLINE static bool
ip6_badspecial(const struct ip6_hdr *ip6, const struct ifnet *ifp)
{
	const struct in6_addr *src = &ip6->ip6_src, *dst = &ip6->ip6_dst;

	if (IN6_IS_ADDR_UNSPECIFIED(dst) || IN6_IS_ADDR_V4MAPPED(src) ||
	    IN6_IS_ADDR_V4MAPPED(dst))
		return (true);
	if (ifp->if_loopback)
		return (false);
	/* only address configuration and multicast listeners have no source */
	if (IN6_IS_ADDR_UNSPECIFIED(src) && ip6->ip6_nxt != IPPROTO_ICMPV6 &&
	    ip6->ip6_nxt != IPPROTO_HOPOPTS)
		return (true);
	return (IN6_IS_ADDR_LOOPBACK(src) || IN6_IS_ADDR_LOOPBACK(dst));
}

/*
 * RFC 4291 sections 2.5.2, 2.5.3 and 2.7: addresses that are invalid on a
 * link.  Mapped addresses are invalid, too, because the stack would treat them
 * as IPv4.
 */
static bool
ip6_badaddress(const struct ip6_hdr *ip6, const struct ifnet *ifp)
{
	const struct in6_addr *src = &ip6->ip6_src, *dst = &ip6->ip6_dst;

	if (IN6_IS_ADDR_MULTICAST(src))
		return (true);
	if (__predict_false(src->s6_addr32[0] == 0 || dst->s6_addr32[0] == 0) &&
	    ip6_badspecial(ip6, ifp))
		return (true);
	return (IN6_IS_ADDR_MULTICAST(dst) && !ifp->if_loopback &&
	    (dst->s6_addr[1] & 0xf) <= 1);
}

/* Returns the packet with a contiguous header, or NULL: counted and freed. */
static struct mbuf *
ip6_validate(struct mbuf *m)
{
	const struct ip6_hdr *ip6;
	uint32_t len;

	if (m->m_pkthdr.len < IP6_HDRLEN) {
		IP6STAT_INC(toosmall);
		goto drop;
	}
	m = m_pullup(m, IP6_HDRLEN);
	KASSERT(m != NULL, ("ip6_validate: pullup of a checked length"));
	ip6 = mtod(m, const struct ip6_hdr *);
	if ((ip6->ip6_vfc & IP6_VERSION_MASK) != IP6_VERSION) {
		IP6STAT_INC(badvers);
		goto drop;
	}
	len = IP6_HDRLEN + ntohs(ip6->ip6_plen);
	if (m->m_pkthdr.len < len) {
		IP6STAT_INC(toosmall);
		goto drop;
	}
	if (m->m_pkthdr.len > len)
		m_adj(m, -(int64_t)(m->m_pkthdr.len - len));
	if (ip6_badaddress(ip6, m->m_pkthdr.rcvif)) {
		IP6STAT_INC(badaddr);
		goto drop;
	}
	return (m);
drop:
	m_freem(m);
	return (NULL);
}

/* Delivers a packet whose upper protocol's header is at off. */
static void
deliver_upper(struct mbuf *m, uint32_t off, uint8_t nxt, uint32_t nxtat)
{
	const bool heard = raw_input(m, off, nxt);

	if (heard || ip6_protos[nxt].input != NULL)
		IP6STAT_INC(delivered);
	if (ip6_protos[nxt].input != NULL) {
		in_upper_input(ip6_protos[nxt].input, nxt, m, off);
		return;
	}
	if (heard) {
		m_freem(m);
		return;
	}
	IP6STAT_INC(unknownheader);
	icmp6_error(m, ICMP6_PARAM_PROB, ICMP6_PARAMPROB_NEXTHEADER, nxtat);
}

/*
 * Offset of the next-header field for the header at off, for "unrecognized
 * next header" errors (RFC 4443 section 3.4).
 */
static uint32_t
nexthdr_field(const struct mbuf *m, uint32_t off)
{
	uint32_t at = IP6_HDRLEN, field = offsetof(struct ip6_hdr, ip6_nxt);
	uint8_t nxt = mtod(m, const struct ip6_hdr *)->ip6_nxt;
	struct ip6_ext eh;

	while (at < off) {
		field = at;
		m_copydata(m, at, sizeof(eh), &eh);
		at += nxt == IPPROTO_FRAGMENT ? 8 : (eh.ip6e_len + 1U) << 3;
		nxt = eh.ip6e_nxt;
	}
	return (field);
}

/*
 * Processes the headers between IPv6's and the upper protocol's of a local
 * packet.
 */
static void
ip6_deliver(struct mbuf *m, uint32_t off, uint8_t nxt)
{
	enum exthdr what;

	while ((what = ip6_exthdrs(m, &off, &nxt)) == EH_FRAGMENT) {
		m = frag6_input(m, off);
		if (m == NULL)
			return;
		/* the reassembled datagram continues at off */
		m_copydata(m, nexthdr_field(m, off), 1, &nxt);
	}
	if (what == EH_UPPER)
		deliver_upper(m, off, nxt, nexthdr_field(m, off));
}

/*
 * Whether the packet is for this host.  False: m was consumed, because the
 * address is tentative or a group without members.
 */
static bool
ip6_isours(struct mbuf *m, bool *ours)
{
	const struct ip6_hdr *ip6 = mtod(m, const struct ip6_hdr *);
	const struct ifnet *ifp = m->m_pkthdr.rcvif;
	struct nhop6 nh;

	*ours = true;
	if (IN6_IS_ADDR_MULTICAST(&ip6->ip6_dst)) {
		if (in_group_ismember(ifp, &ip6->ip6_dst))
			return (true);
		IP6STAT_INC(notmember);
		m_freem(m);
		return (false);
	}
	*ours = route6_lookup(&ip6->ip6_dst, ifp->if_index, &nh) &&
	    nh.nh_local;
	if (!*ours || !in6_addr_tentative(nh.nh_ifp, &ip6->ip6_dst))
		return (true);
	IP6STAT_INC(tentative);
	m_freem(m);
	return (false);
}

void
ip6_input(struct mbuf *m)
{
	uint32_t off = IP6_HDRLEN;
	uint8_t nxt;
	bool ours;

	KASSERT(m->m_pkthdr.rcvif != NULL, ("ip6_input: no interface"));
	IP6STAT_INC(total);
	if (m->m_pkthdr.rcvif->if_in6 == NULL) {
		IP6STAT_INC(notconfigured);
		m_freem(m);
		return;
	}
	m = ip6_validate(m);
	if (m == NULL)
		return;
	nxt = mtod(m, const struct ip6_hdr *)->ip6_nxt;
	if (!ip6_hopbyhop(m, &off, &nxt) || !ip6_isours(m, &ours))
		return;
	if (ours)
		ip6_deliver(m, off, nxt);
	else
		ip6_forward(m);
}

void
ip6_ctlinput(uint8_t proto, int error, struct in_conninfo *c,
    const uint8_t header[8], uint32_t mtu, const struct in_icmperr *ie)
{
	memcpy(&c->lport, header, sizeof(c->lport));
	memcpy(&c->fport, header + sizeof(c->lport), sizeof(c->fport));
	if (ip6_protos[proto].ctlinput != NULL)
		ip6_protos[proto].ctlinput(error, c, header, mtu, ie);
	raw_ctlinput(error, proto, c, header, mtu, ie);
}

/*
 * Like ip_m2flow(): addresses, protocol, and ports if the upper header is
 * first.
 */
static uint32_t
ip6_m2flow(struct mbuf *m)
{
	uint32_t hash = 0, ports = 0;
	struct ip6_hdr ip6;

	if (m->m_pkthdr.len < sizeof(ip6))
		return (0);
	m_copydata(m, 0, sizeof(ip6), &ip6);
	if ((ip6.ip6_nxt == IPPROTO_TCP || ip6.ip6_nxt == IPPROTO_UDP) &&
	    m->m_pkthdr.len >= sizeof(ip6) + sizeof(ports))
		m_copydata(m, sizeof(ip6), sizeof(ports), &ports);
	for (unsigned i = 0; i < 4; i++)
		hash = (hash ^ ip6.ip6_src.s6_addr32[i]) * 0x9e3779b1u ^
		    ip6.ip6_dst.s6_addr32[i];
	return (netisr_flow((hash ^ ports) * 0x9e3779b1u ^ ip6.ip6_nxt));
}

void
ip6_init(void)
{
	static const struct netisr_handler ip6_nh = {
		.nh_name = "ip6", .nh_proto = NETISR_IPV6,
		.nh_handler = ip6_input, .nh_m2flow = ip6_m2flow,
		.nh_policy = NETISR_POLICY_FLOW,
		.nh_mpsafe = true,
	};

	giant_component("ip6");
	sysctl_register(ip6_oids, nitems(ip6_oids));
	in6_family_init();
	netisr_register(&ip6_nh);
	ip6_exthdr_init();
	route6_init();
	in6_addr_init();
	in6_config_init();
	icmp6_init();
	mld6_init();
	nd6_init();
	in6_ifattach(loif, false);
}
