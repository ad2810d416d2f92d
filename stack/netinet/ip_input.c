/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 input (RFC 791, RFC 1122 section 3.2.1): checks, local or forwarded,
 * reassembly, delivery.
 */
#include <arpa/inet.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include "kern/planted.h"
#include "kern/sysctl.h"
#include "net/netisr.h"
#include "netinet/in_family.h"
#include "netinet/igmp.h"
#include "netinet/in_exclusive.h"
#include "netinet/in_handoff.h"
#include "netinet/in_group.h"
#include "netinet/ip_fragq.h"
#include "netinet/ip_private.h"
#include "netinet/raw_ip.h"

struct ipstat ipstat COUNTERS;
atomic_u32 ip_forwarding;
atomic_u32 ip_fastforwarding;

/* Upper protocols, registered at boot. */
static struct {
	pr_input_t	*input;
	pr_ctlinput_t	*ctlinput;
} ip_protos[256];

static const struct sysctl_oid ip_oids[] = {
	{ .oid_name = "net.inet.ip.forwarding", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ip_forwarding,
	    .oid_max = 1,
	    .oid_descr = "1: forward packets to other hosts" },
	{ .oid_name = "net.inet.ip.fastforwarding", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ip_fastforwarding,
	    .oid_max = 1,
	    .oid_descr = "1: forward in the receiving thread without queueing" },
#define	X(name, descr)							\
	{ .oid_name = "net.inet.ip.stats." #name, .oid_type = CTL_U64,	\
	    .oid_ptr = &ipstat.name, .oid_descr = descr },
	IP_STATS(X)
#undef X
};

void
ip_register(uint8_t proto, pr_input_t *input, pr_ctlinput_t *ctlinput)
{
	KASSERT(ip_protos[proto].input == NULL,
	    ("ip_register: protocol %u registered twice", proto));
	ip_protos[proto].input = input;
	ip_protos[proto].ctlinput = ctlinput;
}

pr_input_t *
ip_protoinput(uint8_t proto)
{
	return (ip_protos[proto].input);
}

/* The sum of a header's words of 32 bits. */
static inline uint64_t
words_sum(const struct ip *ip, unsigned hlen)
{
	const unsigned char *p = (const unsigned char *)ip;
	uint64_t sum = 0;
	uint32_t w;

#pragma GCC unroll 5	/* a header without options */
	for (unsigned i = 0; i < hlen; i += sizeof(w)) {
		memcpy(&w, p + i, sizeof(w));
		sum += w;
	}
	return (sum);
}

/*
 * The header's sum modulo 0xffff, which is that of ones' complement, because
 * 2^16 is 1 modulo 0xffff: a multiplication instead of several additions.
 * Nearly every header has no options; its sum is unrolled.
 */
static inline uint16_t
header_sum(const struct ip *ip, unsigned hlen)
{
	return ((uint16_t)((__predict_true(hlen == IP_HDRLEN) ?
	    words_sum(ip, IP_HDRLEN) : words_sum(ip, hlen)) % 0xffff));
}

uint16_t
in_hdrsum(const struct ip *ip, unsigned hlen)
{
	const uint16_t sum = header_sum(ip, hlen);

	/* a header is not all zeros: of both zeros its sum is 0xffff */
	return ((uint16_t)~(sum == 0 ? 0xffff : sum));
}

bool
in_hdrsum_ok(const struct ip *ip, unsigned hlen)
{
	return (header_sum(ip, hlen) == 0);
}

uint16_t
in_pseudo(struct in_addr src, struct in_addr dst, uint8_t proto, uint32_t len)
{
	uint32_t sum;

	sum = (src.s_addr & 0xffff) + (src.s_addr >> 16) +
	    (dst.s_addr & 0xffff) + (dst.s_addr >> 16) +
	    htons(proto) + htons((uint16_t)len);
	sum = (sum & 0xffff) + (sum >> 16);
	return ((uint16_t)(sum + (sum >> 16)));
}

/* Verifies a checksum that no device has verified. */
NOINLINE static bool
sum_is_ok(const struct mbuf *m, unsigned hlen, uint8_t proto)
{
	const struct in_family *af = in_packetfamily(m);
	uint32_t len = m->m_pkthdr.len - hlen;
	struct in_conninfo c;

	af_endpoints(af, m, &c);
	return (in_fold(in_sum(m, hlen, len,
	    af_pseudo(af, &c, proto, len))) == 0);
}

bool
in_cksum_ok(const struct mbuf *m, unsigned hlen, uint8_t proto)
{
	return ((m->m_pkthdr.csum_flags & (CSUM_VALID | CSUM_PARTIAL)) != 0 ||
	    sum_is_ok(m, hlen, proto));
}

/* [I] after boot: first bytes of addresses that may be no host's */
static bool ip_oddnets[256];

static void
ip_oddnets_init(void)
{
	ip_oddnets[0] = ip_oddnets[IN_LOOPBACKNET] = true;
	for (size_t i = 224; i < nitems(ip_oddnets); i++)
		ip_oddnets[i] = true;
}

/*
 * RFC 1122 section 3.2.1.3, RFC 1812 section 5.3.7: a source that no other
 * host on the link can have.  A host without an address sends from 0.0.0.0 to
 * all (DHCP, RFC 2131 section 4.1) or to a local group (IGMP, RFC 3376).
 */
NOINLINE static bool
ip_badsource_slow(const struct mbuf *m)
{
	const struct ip *ip = mtod(m, const struct ip *);
	const struct ifnet *ifp = m->m_pkthdr.rcvif;
	const uint32_t src = ntohl(ip->ip_src.s_addr);
	const uint32_t dst = ntohl(ip->ip_dst.s_addr);

	if (IN_MULTICAST(src) || IN_EXPERIMENTAL(src))
		return (true);		/* 255.255.255.255 is the last of these */
	if (ifp->if_loopback || (m->m_flags & M_LOCALCOPY) != 0)
		return (false);
	if (src >> 24 == 0)
		return (src != INADDR_ANY || (dst != INADDR_BROADCAST &&
		    (dst & 0xffffff00) != INADDR_UNSPEC_GROUP));
	return (src >> 24 == IN_LOOPBACKNET || dst >> 24 == IN_LOOPBACKNET ||
	    if_byaddr(ip->ip_src) != NULL || if_isbroadcast(ifp, ip->ip_src));
}

bool
ip_badsource(const struct mbuf *m)
{
	const struct ip *ip = mtod(m, const struct ip *);
	const uint8_t *src = (const uint8_t *)&ip->ip_src;
	const uint8_t *dst = (const uint8_t *)&ip->ip_dst;

	/* few instructions, because each packet is tested */
	if (__predict_true(!ip_oddnets[src[0]]) &&
	    __predict_true(dst[0] != IN_LOOPBACKNET) &&
	    __predict_true(!if_mayhaveaddr(ip->ip_src)))
		return (false);
	return (ip_badsource_slow(m));
}

/*
 * Validates the header and trims link padding.  Returns the packet with a
 * contiguous header and *hlen set; or NULL, after it counted and freed m.
 */
static struct mbuf *
ip_validate(struct mbuf *m, unsigned *hlen)
{
	struct ip *ip;
	uint32_t len;

	if (m->m_pkthdr.len < IP_HDRLEN) {
		IPSTAT_INC(toosmall);
		goto drop;
	}
	m = m_pullup(m, IP_HDRLEN);
	KASSERT(m != NULL, ("ip_validate: pullup of a checked length"));
	ip = mtod(m, struct ip *);
	if (ip->ip_v != IPVERSION) {
		IPSTAT_INC(badvers);
		goto drop;
	}
	*hlen = (unsigned)ip->ip_hl << 2;
	len = ntohs(ip->ip_len);
	if (*hlen < IP_HDRLEN || *hlen > len) {
		IPSTAT_INC(badhlen);
		goto drop;
	}
	if (m->m_pkthdr.len < len) {
		IPSTAT_INC(toosmall);
		goto drop;
	}
	if (m->m_pkthdr.len > len)
		m_adj(m, -(int64_t)(m->m_pkthdr.len - len));
	if (__predict_false(*hlen > IP_HDRLEN))
		m = m_pullup(m, *hlen);
	KASSERT(m != NULL && m->m_len >= *hlen, ("ip_validate: header"));
	ip = mtod(m, struct ip *);
	if (!in_hdrsum_ok(ip, *hlen)) {
		IPSTAT_INC(badsum);
		goto drop;
	}
	if (ip_badsource(m)) {
		IPSTAT_INC(badaddr);
		goto drop;
	}
	return (m);
drop:
	m_freem(m);
	return (NULL);
}

/* Whether dst is local, if it is not the interface's first address. */
static bool
ip_islocal_slow(const struct ifnet *rcvif, struct in_addr dst)
{
	if (if_byaddr(dst) != NULL)
		return (true);
	if (dst.s_addr == htonl(INADDR_BROADCAST) ||
	    dst.s_addr == htonl(INADDR_ALLHOSTS_GROUP))
		return (true);
	if (IN_MULTICAST(ntohl(dst.s_addr))) {
		const struct in6_addr group = in_map(dst);

		return (in_group_ismember(rcvif, &group));
	}
	/* 127/8 is local; ip_badsource() accepts it only on loopback. */
	if (ntohl(dst.s_addr) >> 24 == IN_LOOPBACKNET)
		return (true);
	return (if_isbroadcast(rcvif, dst));
}

bool
ip_isours(const struct mbuf *m, struct in_addr dst)
{
	const struct ifnet *rcvif = m->m_pkthdr.rcvif;

	return (dst.s_addr == rcvif->if_addr.s_addr ||
	    ip_islocal_slow(rcvif, dst));
}

__hot void
ip_deliver(struct mbuf *m, unsigned hlen)
{
	uint8_t proto = mtod(m, struct ip *)->ip_p;
	bool heard;

	KASSERT(hlen >= IP_HDRLEN && m->m_len >= hlen,
	    ("ip_deliver: header of %u in %u bytes", hlen, m->m_len));
	heard = raw_input(m, hlen, proto);

	if (heard || ip_protos[proto].input != NULL)
		IPSTAT_INC(delivered);
	if (ip_protos[proto].input != NULL) {
		in_upper_input(ip_protos[proto].input, proto, m, hlen);
		return;
	}
	if (heard) {
		m_freem(m);
		return;
	}
	IPSTAT_INC(noproto);
	icmp_error(m, ICMP_UNREACH, ICMP_UNREACH_PROTOCOL, 0);
}

__hot void
ip_input(struct mbuf *m)
{
	struct ip *ip;
	unsigned hlen;

	KASSERT(m->m_pkthdr.rcvif != NULL, ("ip_input: no interface"));
	PLANTED_ATOMIC();
	IPSTAT_INC(total);
	m = ip_validate(m, &hlen);
	if (m == NULL)
		return;
	if (__predict_false(hlen > IP_HDRLEN) && !ip_options(m, hlen))
		return;
	ip = mtod(m, struct ip *);
	if (!ip_isours(m, ip->ip_dst)) {
		if (IN_MULTICAST(ntohl(ip->ip_dst.s_addr))) {
			IPSTAT_INC(notmember);
			m_freem(m);
		} else {
			ip_forward(m, hlen);
		}
		return;
	}
	if ((ip->ip_off & htons(IP_MF | IP_OFFMASK)) != 0) {
		m = ip_reass(m, hlen);
		if (m == NULL)
			return;
		hlen = (unsigned)mtod(m, struct ip *)->ip_hl << 2;
	}
	ip_deliver(m, hlen);
}

void
ip_ctlinput(int error, const struct ip *ip, uint32_t mtu,
    const struct in_icmperr *ie)
{
	const uint8_t *header = (const uint8_t *)ip + (ip->ip_hl << 2);
	struct in_conninfo c = { .laddr = in_map(ip->ip_src),
	    .faddr = in_map(ip->ip_dst) };

	memcpy(&c.lport, header, sizeof(c.lport));
	memcpy(&c.fport, header + sizeof(c.lport), sizeof(c.fport));
	if (ip_protos[ip->ip_p].ctlinput != NULL)
		ip_protos[ip->ip_p].ctlinput(error, &c, header, mtu, ie);
	raw_ctlinput(error, ip->ip_p, &c, header, mtu, ie);
}

/*
 * The flow of a packet selects its netisr workstream: addresses, protocol and
 * ports.  Fragments are hashed without ports, so that they stay together.
 */
static uint32_t
ip_m2flow(struct mbuf *m)
{
	uint32_t hash, ports = 0;
	struct ip ip;

	if (m->m_pkthdr.len < sizeof(ip))
		return (0);
	m_copydata(m, 0, sizeof(ip), &ip);
	if ((ip.ip_off & htons(IP_MF | IP_OFFMASK)) == 0 &&
	    (ip.ip_p == IPPROTO_TCP || ip.ip_p == IPPROTO_UDP) &&
	    m->m_pkthdr.len >= ((uint32_t)ip.ip_hl << 2) + sizeof(ports))
		m_copydata(m, (uint32_t)ip.ip_hl << 2, sizeof(ports), &ports);
	hash = ip.ip_src.s_addr * 0x9e3779b1u ^ ip.ip_dst.s_addr;
	return (netisr_flow((hash ^ ports) * 0x9e3779b1u ^ ip.ip_p));
}

void
ip_init(void)
{
	static const struct netisr_handler ip_nh = {
		.nh_name = "ip", .nh_proto = NETISR_IP,
		.nh_handler = ip_input, .nh_m2flow = ip_m2flow,
		.nh_policy = NETISR_POLICY_FLOW,
		.nh_fast = ip_fastforward, .nh_mpsafe = true,
	};

	ip_oddnets_init();
	sysctl_register(ip_oids, nitems(ip_oids));
	netisr_register(&ip_nh);
	fragq_init();
	in_group_init();
	in_pmtu_init();
	in_exclusive_init();
	icmp_init();
	igmp_init();
}
