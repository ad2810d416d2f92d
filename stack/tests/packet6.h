/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The router of packet.h with IPv6: mem<i> is 2001:db8:<i>::1/64, a host
 * 2001:db8:<i>::2 and fe80::2 is behind each.
 */
#ifndef TESTS_PACKET6_H
#define TESTS_PACKET6_H

#include "boot/boot.h"
#include "machine/virtual/virtual.h"
#include "netinet6/ip6_private.h"
#include "tests/packet.h"

#define	nd_stat(name)	counter("net.inet6.nd6.stats." name)

#define	ROUTER6(i)	((i) == 0 ? "2001:db8::1" : "2001:db8:1::1")
#define	HOST6(i)	((i) == 0 ? "2001:db8::2" : "2001:db8:1::2")

static inline struct in6_addr
addr6(const char *text)
{
	struct in6_addr a;

	CHECK_EQ(inet_pton(AF_INET6, text, &a), 1);
	return (a);
}

static inline struct ip6_hdr *
ip6_of(struct mbuf *m)
{
	return ((struct ip6_hdr *)(void *)(m->m_data + ETHER_HDR_LEN));
}

/* The bytes after the IPv6 header of a frame. */
static inline uint8_t *
payload_of(struct mbuf *m)
{
	return ((uint8_t *)(ip6_of(m) + 1));
}

/* A packet that host i sends; its payload counts up from zero. */
static inline struct mbuf *
packet6(unsigned i, const char *src, const char *dst, uint8_t nxt,
    uint32_t payload)
{
	struct mbuf *m = frame(i, ETHERTYPE_IPV6, IP6_HDRLEN + payload);
	struct ip6_hdr *ip6 = ip6_of(m);

	ip6->ip6_flow = htonl(6U << 28);
	ip6->ip6_plen = htons((uint16_t)payload);
	ip6->ip6_nxt = nxt;
	ip6->ip6_hlim = 64;
	ip6->ip6_src = addr6(src);
	ip6->ip6_dst = addr6(dst);
	for (uint32_t k = 0; k < payload; k++)
		payload_of(m)[k] = (uint8_t)k;
	return (m);
}

/* The checksum of an ICMPv6 message at offset off of the payload. */
static inline void
seal6(struct mbuf *m, uint32_t off)
{
	const struct ip6_hdr *ip6 = ip6_of(m);
	const uint32_t at = ETHER_HDR_LEN + IP6_HDRLEN + off;
	struct icmp6_hdr *icmp6 = (struct icmp6_hdr *)(void *)(m->m_data + at);

	icmp6->icmp6_cksum = 0;
	icmp6->icmp6_cksum = in_fold(in_sum(m, at, m->m_len - at,
	    in6_pseudo(&ip6->ip6_src, &ip6->ip6_dst, IPPROTO_ICMPV6,
	    m->m_len - at)));
}

static inline struct mbuf *
echo6(unsigned i, const char *dst, uint32_t data)
{
	struct mbuf *m = packet6(i, HOST6(i), dst, IPPROTO_ICMPV6, 8 + data);

	payload_of(m)[0] = ICMP6_ECHO_REQUEST;
	payload_of(m)[1] = 0;
	seal6(m, 0);
	return (m);
}

/*
 * A neighbour discovery message of a host, followed by its link address option.
 */
static inline struct mbuf *
nd_message(unsigned i, const char *src, const char *dst, uint8_t type,
    const char *target, uint32_t flags, uint8_t option)
{
	struct mbuf *m = packet6(i, src, dst, IPPROTO_ICMPV6,
	    option != 0 ? 32 : 24);
	uint8_t *p = payload_of(m);
	struct in6_addr a = addr6(target);

	memset(p, 0, option != 0 ? 32 : 24);
	ip6_of(m)->ip6_hlim = 255;
	p[0] = type;
	memcpy(p + 4, &flags, sizeof(flags));
	memcpy(p + 8, &a, sizeof(a));
	if (option != 0) {
		p[24] = option;
		p[25] = 1;
		memcpy(p + 26, HOST_MAC(i), 6);
	}
	seal6(m, 0);
	return (m);
}

/* The stack learns the link address of host i. */
static inline void
learn_host6(unsigned i, const char *ip)
{
	mem_input(mem[i], nd_message(i, ip, ROUTER6(i), ND_NEIGHBOR_SOLICIT,
	    ROUTER6(i), 0, ND_OPT_SOURCE_LINKADDR));
}

/* Resolves all neighbours, so that no test starts with neighbour discovery. */
static inline void
fresh6(void)
{
	learn_host6(0, HOST6(0));
	learn_host6(1, HOST6(1));
	start_over();
}

/* The next frame sent; it must be ICMPv6 of this type with a valid checksum. */
static inline const struct icmp6_hdr *
icmp6_in(struct mbuf *m, uint8_t type)
{
	const struct ip6_hdr *ip6 = ip6_of(m);
	const uint32_t at = ETHER_HDR_LEN + IP6_HDRLEN;
	const struct icmp6_hdr *icmp6 = (const void *)payload_of(m);

	CHECK_EQ(ip6->ip6_nxt, IPPROTO_ICMPV6);
	CHECK_EQ(ntohs(ip6->ip6_plen), m->m_pkthdr.len - at);
	CHECK_EQ(in_fold(in_sum(m, at, m->m_pkthdr.len - at,
	    in6_pseudo(&ip6->ip6_src, &ip6->ip6_dst, IPPROTO_ICMPV6,
	    m->m_pkthdr.len - at))), 0);
	CHECK_EQ(icmp6->icmp6_type, type);
	return (icmp6);
}

/*
 * Checks that the next frame on a link is an error with this code and
 * parameter.
 */
static inline void
expect_error6(unsigned i, uint8_t type, uint8_t code, uint32_t param)
{
	struct mbuf *m = take_sent(i);
	const struct icmp6_hdr *icmp6 = icmp6_in(m, type);

	CHECK_EQ(icmp6->icmp6_code, code);
	CHECK_EQ(ntohl(icmp6->icmp6_data32[0]), param);
	m_freem(m);
}

/* In virtual time. */
static inline void
boot_router6(void)
{
	mach_virtual_enter(true);
	boot_router();
	set("net.inet6.ip6.dad_count", "0");
	set("net.inet6.ip6.forwarding", "1");
	set("net.inet6.icmp6.errppslimit", "1000000");
	for (unsigned i = 0; i < 2; i++) {
		struct in6_addr a = addr6(ROUTER6(i));

		in6_ifattach(mem[i], i == 0);
		CHECK_EQ(in6_addr_add(mem[i], &a, 64, 0, NSEC_FOREVER,
		    NSEC_FOREVER), 0);
		learn_host6(i, HOST6(i));
	}
}

/*
 * The rest of a main(), when the router is as its tests want it: each begins
 * with fresh(), and all together lose no mbuf.
 */
static inline int
router6_main(int argc, char **argv, void (*fresh)(void))
{
	uint64_t before;
	int status;

	t_sleep(20 * 1000);	/* reports of groups, solicited routers */
	fresh();
	check_after = fresh;
	before = counter("mbuf.outstanding");
	status = check_main(argc, argv);
	CHECK_EQ(counter("mbuf.outstanding"), before);
	stack_shutdown();
	return (status);
}

#endif /* TESTS_PACKET6_H */
