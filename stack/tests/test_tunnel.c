/* SPDX-License-Identifier: BSD-2-Clause */
/* Tunnels on the wire: outer and inner packets, and invalid ones. */
#include "tests/check.h"

#include <errno.h>

#include "netinet/in_family.h"
#include "netinet/ip_tunnel.h"
#include "tests/net.h"
#include "tests/packet6.h"

#define	LEFT	"10.9.0.2"	/* the tunnels' other end */
#define	ROUTER	"10.9.0.1"
#define	INNER	"10.50.0.2"	/* behind gif0 */
#define	GRE	"10.51.0.2"	/* beyond gre0, with a key */
#define	RIGHT	"10.9.1.2"

static uint64_t
stat(const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "net.inet.tunnel.stats.%s", name);
	return (counter(full));
}

/* A packet inside a packet of the left host with protocol proto. */
static struct mbuf *
inside(struct mbuf *m, uint8_t proto, const void *between, uint32_t len)
{
	const uint32_t inner = m->m_pkthdr.len - ETHER_HDR_LEN;
	struct mbuf *o = packet(0, LEFT, ROUTER, proto, len + inner);
	char *p = o->m_data + ETHER_HDR_LEN + IP_HDRLEN;

	if (len > 0)
		memcpy(p, between, len);
	m_copydata(m, ETHER_HDR_LEN, inner, p + len);
	m_freem(m);
	return (o);
}

static struct ip *
ip_of(struct mbuf *m)
{
	return ((struct ip *)(void *)(m->m_data + ETHER_HDR_LEN));
}

static void
receive(struct mbuf *m)
{
	mem_input(mem[0], m);
	t_sleep(1);		/* the inner packet is always queued */
}

TEST(what_is_routed_into_a_tunnel_leaves_inside)
{
	struct mbuf *m = packet(1, RIGHT, INNER, 253, 100);
	const struct ip *outer, *inner;

	ip_of(m)->ip_tos = 0xb8 | 2;
	seal(ip_of(m));
	mem_input(mem[1], m);
	m = take_sent(0);
	outer = IP_AT(m);
	inner = outer + 1;
	CHECK_EQ(outer->ip_p, IPPROTO_IPIP);
	CHECK_EQ(outer->ip_src.s_addr, addr(ROUTER).s_addr);
	CHECK_EQ(outer->ip_dst.s_addr, addr(LEFT).s_addr);
	CHECK_EQ(outer->ip_ttl, 64);
	CHECK_EQ(outer->ip_tos, 0xb8 | 2);
	CHECK_EQ(outer->ip_off, 0);
	CHECK_EQ(inner->ip_ttl, 8);
	CHECK_EQ(inner->ip_dst.s_addr, addr(INNER).s_addr);
	CHECK_EQ(in_hdrsum(inner, IP_HDRLEN), 0);
	m_freem(m);
	mem_input(mem[1], packet(1, RIGHT, GRE, 253, 100));
	m = take_sent(0);
	CHECK_EQ(IP_AT(m)->ip_p, IPPROTO_GRE);
	CHECK_EQ(IP_AT(m)->ip_ttl, 7);
	CHECK(memcmp(IP_AT(m) + 1, "\x20\0\x08\0\0\0\0\x2a", 8) == 0);
	m_freem(m);
}

/* The two packets sent into each tunnel (RFC 791, RFC 8200). */
#define	INNER4(to)	"4500001c 00000000 08fd.... 0a090102" to	\
			"00010203 04050607"
#define	INNER6(net)	"60000000 0008fd3f"				\
			"20010db8 00010000 00000000 00000002"		\
			"20010db8" net "0000 00000000 00000002"		\
			"00010203 04050607"
#define	OUTER4(len, ttlproto)						\
			"4500" len "....0000" ttlproto ".... 0a090001 0a090002"
#define	OUTER6(lennexthop)						\
			"600....." lennexthop				\
			"20010db8 00000000 00000000 00000001"		\
			"20010db8 00000000 00000000 00000002"

static unsigned
hex_value(char c)
{
	return ((unsigned)(c <= '9' ? c - '0' : c - 'a' + 10));
}

/* Compares a packet with hexadecimal digits; a dot matches any digit. */
static void
check_bytes(const struct mbuf *m, const char *want)
{
	const uint8_t *p = (const uint8_t *)m->m_data + ETHER_HDR_LEN;
	uint32_t nibble = 0;

	for (; *want != '\0'; want++) {
		const unsigned shift = nibble % 2 == 0 ? 4 : 0;

		if (*want == ' ')
			continue;
		CHECK(ETHER_HDR_LEN + nibble / 2 < m->m_pkthdr.len);
		if (*want != '.')
			CHECK_EQ(p[nibble / 2] >> shift & 0xf,
			    hex_value(*want));
		nibble++;
	}
	CHECK_EQ(ETHER_HDR_LEN + nibble / 2, m->m_pkthdr.len);
}

/* The formats of RFC 2003 3.1, 4213 3.5, 2473 3, 2784 2 and 2890 2. */
TEST(headers_are_those_of_the_rfcs)
{
	static const struct { const char *to4, *to6, *want4, *want6; } all[] = {
		{ "10.50.0.2", "2001:db8:50::2",	/* gif0 */
		    OUTER4("0030", "4004") INNER4("0a320002"),
		    OUTER4("0044", "4029") INNER6("0050") },
		{ "10.51.0.2", "2001:db8:51::2",	/* gre0, with a key */
		    OUTER4("0038", "072f") "20000800 0000002a"
		    INNER4("0a330002"),
		    OUTER4("004c", "072f") "200086dd 0000002a"
		    INNER6("0051") },
		{ "10.52.0.2", "2001:db8:52::2",	/* gif1 */
		    OUTER6("001c 0440") INNER4("0a340002"),
		    OUTER6("0030 2940") INNER6("0052") },
		{ "10.53.0.2", "2001:db8:53::2",	/* gre1, without one */
		    OUTER6("0020 2f40") "00000800" INNER4("0a350002"),
		    OUTER6("0034 2f40") "000086dd" INNER6("0053") },
	};
	struct mbuf *m;

	for (size_t i = 0; i < nitems(all); i++) {
		mem_input(mem[1], packet(1, RIGHT, all[i].to4, 253, 8));
		m = take_sent(0);
		check_bytes(m, all[i].want4);
		m_freem(m);
		mem_input(mem[1], packet6(1, HOST6(1), all[i].to6, 253, 8));
		m = take_sent(0);
		check_bytes(m, all[i].want6);
		m_freem(m);
	}
}

TEST(what_comes_inside_goes_on)
{
	struct mbuf *m;

	receive(inside(packet(0, INNER, RIGHT, 253, 100), IPPROTO_IPIP, NULL,
	    0));
	m = take_sent(1);
	CHECK_EQ(IP_AT(m)->ip_p, 253);
	CHECK_EQ(IP_AT(m)->ip_src.s_addr, addr(INNER).s_addr);
	m_freem(m);
	receive(inside(packet6(0, "2001:db8:50::2", HOST6(1), 253, 100),
	    IPPROTO_IPV6, NULL, 0));
	m = take_sent(1);
	CHECK_EQ(ip6_of(m)->ip6_nxt, 253);
	m_freem(m);
	/* a sequence number is ignored */
	receive(inside(packet(0, GRE, RIGHT, 253, 100), IPPROTO_GRE,
	    "\x30\0\x08\0\0\0\0\x2a\0\0\0\1", 12));
	m_freem(take_sent(1));
}

TEST(who_has_no_tunnel_is_told)
{
	const uint64_t nobody = stat("nobody");
	struct mbuf *m = inside(packet(0, INNER, RIGHT, 253, 100),
	    IPPROTO_IPIP, NULL, 0);

	ip_of(m)->ip_src = addr("10.9.0.3");
	seal(ip_of(m));
	learn_host(0, "10.9.0.3");
	receive(m);
	CHECK_EQ(stat("nobody"), nobody + 1);
	m = take_sent(0);
	CHECK_EQ(icmp_in(m)->icmp_type, ICMP_UNREACH);
	m_freem(m);
	CHECK_EQ(sent[1].mq_len, 0);
}

TEST(malformed_packets_inside_are_dropped)
{
	static const struct {
		const char	*counter, *header;
		uint32_t	 len;
	} gre[] = {
		{ "badkey", "\0\0\x08\0", 4 },
		{ "badkey", "\x20\0\x08\0\0\0\0\x2b", 8 },
		{ "badgre", "\xa0\0\x08\0\0\1\0\0\0\0\0\x2a", 12 }, /* sum */
		{ "badgre", "\x20\1\x08\0\0\0\0\x2a", 8 },	/* version */
		{ "badgre", "\x60\0\x08\0\0\0\0\x2a", 8 },	/* routing */
		{ "badgre", "\x20\0\x08\6\0\0\0\x2a", 8 },	/* ARP */
		{ "malformed", "\x20\0\x86\xdd\0\0\0\x2a", 8 },
	};
	uint64_t before;

	for (size_t i = 0; i < nitems(gre); i++) {
		before = stat(gre[i].counter);
		receive(inside(packet(0, GRE, RIGHT, 253, 100), IPPROTO_GRE,
		    gre[i].header, gre[i].len));
		CHECK_EQ(stat(gre[i].counter), before + 1);
	}
	before = stat("badgre");
	receive(packet(0, LEFT, ROUTER, IPPROTO_GRE, 3));
	receive(packet(0, LEFT, ROUTER, IPPROTO_GRE, 0));
	CHECK_EQ(stat("badgre"), before + 2);
	before = stat("malformed");
	receive(packet(0, LEFT, ROUTER, IPPROTO_IPIP, 19));
	receive(packet(0, LEFT, ROUTER, IPPROTO_IPV6, 39));
	receive(inside(packet(0, INNER, RIGHT, 253, 100), IPPROTO_IPV6, NULL,
	    0));
	CHECK_EQ(stat("malformed"), before + 3);
	CHECK_EQ(sent[1].mq_len, 0);
}

/* RFC 6040 figure 4, by columns of the outer mark. */
TEST(marks_are_joined_as_rfc6040_says)
{
	enum { NOT, ONE, ZERO, CE };
	static const int want[4][4] = {
		[NOT] = { [NOT] = NOT, [ZERO] = ZERO, [ONE] = ONE, [CE] = CE },
		[ZERO] = { [NOT] = NOT, [ZERO] = ZERO, [ONE] = ONE, [CE] = CE },
		[ONE] = { [NOT] = NOT, [ZERO] = ONE, [ONE] = ONE, [CE] = CE },
		[CE] = { [NOT] = -1, [ZERO] = CE, [ONE] = CE, [CE] = CE },
	};
	struct mbuf *m;

	for (int outer = 0; outer < 4; outer++)
		for (int inner = 0; inner < 4; inner++)
			CHECK_EQ(tunnel_ecn((uint8_t)(0xb8 | outer),
			    (uint8_t)(0x40 | inner)), want[outer][inner] < 0 ?
			    -1 : 0x40 | want[outer][inner]);
	m = packet(0, INNER, RIGHT, 253, 100);
	ip_of(m)->ip_tos = ZERO;
	seal(ip_of(m));
	m = inside(m, IPPROTO_IPIP, NULL, 0);
	ip_of(m)->ip_tos = CE;
	seal(ip_of(m));
	receive(m);
	m = take_sent(1);
	CHECK_EQ(IP_AT(m)->ip_tos, CE);
	CHECK_EQ(in_hdrsum(IP_AT(m), IP_HDRLEN), 0);
	m_freem(m);
	m = inside(packet(0, INNER, RIGHT, 253, 100), IPPROTO_IPIP, NULL, 0);
	ip_of(m)->ip_tos = CE;
	seal(ip_of(m));
	receive(m);
	CHECK_EQ(sent[1].mq_len, 0);
	CHECK_EQ(stat("badecn"), 1);
}

TEST(a_tunnel_within_itself_ends)
{
	const uint64_t nested = stat("nested");

	/* the route to the tunnel's end is the tunnel */
	CHECK_EQ(route_add(addr(LEFT), 32, addr(INNER), NULL), 0);
	mem_input(mem[1], packet(1, RIGHT, INNER, 253, 100));
	CHECK_EQ(stat("nested"), nested + 1);
	CHECK_EQ(route_delete(addr(LEFT), 32), 0);
	CHECK_EQ(sent[0].mq_len, 0);
}

/* "Fragmentation needed" from the left host about the last packet sent. */
static void
narrow_path(uint16_t mtu)
{
	struct mbuf *m = take_sent(0), *r;
	struct icmp *icp;

	r = packet(0, LEFT, ROUTER, IPPROTO_ICMP, 8 + 28);
	icp = (struct icmp *)(void *)(r->m_data + ETHER_HDR_LEN + IP_HDRLEN);
	memset(icp, 0, 8);
	icp->icmp_type = ICMP_UNREACH;
	icp->icmp_code = ICMP_UNREACH_NEEDFRAG;
	icp->icmp_nextmtu = htons(mtu);
	m_copydata(m, ETHER_HDR_LEN, 28, (char *)icp + 8);
	icp->icmp_cksum = in_fold(in_sum(r, ETHER_HDR_LEN + IP_HDRLEN, 36,
	    0));
	mem_input(mem[0], r);
	m_freem(m);
}

static struct mbuf *
unfragmentable(uint32_t payload)
{
	struct mbuf *m = packet(1, RIGHT, INNER, 253, payload);

	ip_of(m)->ip_off = htons(IP_DF);
	seal(ip_of(m));
	return (m);
}

TEST(the_mtu_of_the_outer_path_is_told_to_the_source)
{
	struct mbuf *m;

	/* the tunnel's own: 20 bytes less than the link's */
	mem_input(mem[1], unfragmentable(1480));
	m = take_sent(1);
	CHECK_EQ(icmp_in(m)->icmp_code, ICMP_UNREACH_NEEDFRAG);
	CHECK_EQ(ntohs(icmp_in(m)->icmp_nextmtu), 1480);
	m_freem(m);
	mem_input(mem[1], unfragmentable(1400));
	CHECK_EQ(ntohs(IP_AT(sent[0].mq_head)->ip_off), IP_DF);
	narrow_path(1400);
	mem_input(mem[1], unfragmentable(1400));
	m = take_sent(1);
	CHECK_EQ(icmp_in(m)->icmp_code, ICMP_UNREACH_NEEDFRAG);
	CHECK_EQ(ntohs(icmp_in(m)->icmp_nextmtu), 1380);
	m_freem(m);
	/* a packet without don't-fragment is sent and fragmented */
	mem_input(mem[1], packet(1, RIGHT, INNER, 253, 1400));
	m = take_sent(0);
	CHECK_EQ(IP_AT(m)->ip_off, 0);
	m_freem(m);
	/* later the path MTU is probed again */
	t_sleep(601 * 1000);
	learn_host(0, LEFT);
	learn_host(1, RIGHT);
	start_over();
	mem_input(mem[1], unfragmentable(1400));
	m_freem(take_sent(0));
}

TEST(a_tunnel_over_ipv6_is_fragmented_at_its_entry)
{
	const struct in6_addr end = addr6(HOST6(0));
	struct mbuf *m;
	unsigned pieces = 0;

	mem_input(mem[1], packet(1, RIGHT, "10.52.0.2", 253, 1420));
	m = take_sent(0);
	CHECK_EQ(ip6_of(m)->ip6_nxt, IPPROTO_IPIP);
	CHECK(IN6_ARE_ADDR_EQUAL(&ip6_of(m)->ip6_dst, &end));
	m_freem(m);
	mem_input(mem[1], packet(1, RIGHT, "10.52.0.2", 253, 1470));
	for (; sent[0].mq_len > 0; pieces++)
		m_freem(take_sent(0));
	CHECK_EQ(pieces, 2);	/* the inner packet's: the mtu is 1460 */
}

static void
fresh(void)
{
	t_sleep(5 * 1000);
	learn_host(0, LEFT);
	learn_host(1, RIGHT);
	learn_host6(0, HOST6(0));
	learn_host6(1, HOST6(1));
	start_over();
}

/* Creates a tunnel as loader.conf does, on a running stack. */
static void
tunnel(const char *name, const char *ends, const char *key, uint32_t ttl,
    const char *inet)
{
	struct if_config ic = { .queues = 1, .ttl = ttl };
	char why[128] = "";

	snprintf(ic.name, sizeof(ic.name), "%s", name);
	snprintf(ic.tunnel, sizeof(ic.tunnel), "%s", ends);
	snprintf(ic.key, sizeof(ic.key), "%s", key);
	CHECK_EQ(inet_config_set(&ic, inet, why, sizeof(why)), 0);
	CHECK_EQ(tunnel_create(&ic, name[1] == 'r', why, sizeof(why)), 0);
	CHECK_EQ(route_subnets(if_byname(name)), 0);
}

static void
tunnel6(const char *name, const char *inet6)
{
	struct ifnet *ifp = if_byname(name);
	const struct in6_addr inner = addr6(inet6);

	in6_ifattach(ifp, false);
	CHECK_EQ(in6_addr_add(ifp, &inner, 64, 0, NSEC_FOREVER, NSEC_FOREVER),
	    0);
}

int
main(int argc, char **argv)
{
	boot_router6();
	tunnel("gif0", ROUTER " " LEFT, "", 64, "10.50.0.1/24");
	tunnel("gre0", ROUTER " " LEFT, "42", 7, "10.51.0.1/24");
	tunnel("gif1", "2001:db8::1 2001:db8::2", "", 64, "10.52.0.1/24");
	tunnel("gre1", "2001:db8::1 2001:db8::2", "", 64, "10.53.0.1/24");
	set("net.inet6.ip6.dad_count", "0");
	tunnel6("gif0", "2001:db8:50::1");
	tunnel6("gre0", "2001:db8:51::1");
	tunnel6("gif1", "2001:db8:52::1");
	tunnel6("gre1", "2001:db8:53::1");
	return (router6_main(argc, argv, fresh));
}
