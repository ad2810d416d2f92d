/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floods of IPv6 from a link: each fills one of the stack's tables in virtual
 * time.  Old entries and new neighbours must still work.
 * docs/reference/stack-limits.md lists all tables.
 */
#include "tests/check.h"

#include "tests/net.h"
#include "tests/packet6.h"

#define	PROTO_TEST	253	/* RFC 3692 */
#define	FLOOD	1000

/* Whether nd6.c has an address in bucket 0 of its hash table. */
static bool
in_bucket(const struct in6_addr *a)
{
	uint32_t h = 0;

	for (unsigned i = 0; i < 4; i++)
		h = (h ^ a->s6_addr32[i]) * 0x9e3779b1u;
	return (h >> 24 == 0);
}

/* All are in one bucket, and more than one round of the timer takes from it. */
TEST(each_ipv6_neighbour_is_solicited_once_a_second)
{
	struct in6_addr a;
	char dst[32];

	learn_host6(1, HOST6(1));
	start_over();
	for (unsigned i = 0, n = 0; n < 145; i++) {
		snprintf(dst, sizeof(dst), "2001:db8::1:%x:%x", i >> 16,
		    i & 0xffff);
		a = addr6(dst);
		if (!in_bucket(&a))
			continue;
		mem_input(mem[1], packet6(1, HOST6(1), dst, PROTO_TEST, 40));
		n++;
	}
	CHECK_EQ(sent[0].mq_len, 145);
	t_sleep(1900);
	CHECK_EQ(sent[0].mq_len, 2 * 145);
	t_sleep(10 * 1000);
	CHECK_EQ(sent[0].mq_len, 3 * 145);
	start_over();
}

/* Solicits and resolves a neighbour on the left. */
static void
resolve_left6(const char *dst)
{
	learn_host6(1, HOST6(1));
	start_over();
	mem_input(mem[1], packet6(1, HOST6(1), dst, PROTO_TEST, 40));
	(void)icmp6_in(sent[0].mq_head, ND_NEIGHBOR_SOLICIT);
	mbufq_drain(&sent[0]);
	mem_input(mem[0], nd_message(0, dst, ROUTER6(0), ND_NEIGHBOR_ADVERT,
	    dst, ND_NA_FLAG_SOLICITED | ND_NA_FLAG_OVERRIDE,
	    ND_OPT_TARGET_LINKADDR));
	CHECK_EQ(ip6_of(sent[0].mq_head)->ip6_nxt, PROTO_TEST);
	start_over();
}

static void
expect_resolved6(const char *dst)
{
	start_over();
	mem_input(mem[1], packet6(1, HOST6(1), dst, PROTO_TEST, 40));
	CHECK_EQ(sent[0].mq_len, 1);
	CHECK_EQ(ip6_of(sent[0].mq_head)->ip6_nxt, PROTO_TEST);
	start_over();
}

TEST(invented_ipv6_neighbours_leave_confirmed_ones)
{
	char name[32];

	set("net.inet6.nd6.maxentries", "64");
	resolve_left6("2001:db8::3");
	for (unsigned i = 0; i < FLOOD; i++) {
		snprintf(name, sizeof(name), "2001:db8::2:%x", i);
		if (i % 2 == 0)
			learn_host6(0, name);
		else
			mem_input(mem[1], packet6(1, HOST6(1), name,
			    PROTO_TEST, 40));
	}
	expect_resolved6("2001:db8::3");
	resolve_left6("2001:db8::4");
	expect_resolved6("2001:db8::4");
	CHECK(nd_stat("full") > 100);
	set("net.inet6.nd6.maxentries", "4096");
	t_sleep(4000 * 1000);	/* all of them expire */
	start_over();
}

TEST(few_packets_wait_for_an_ipv6_neighbour)
{
	const uint64_t before = nd_stat("dropped");
	struct mbuf *m;

	learn_host6(1, HOST6(1));
	for (unsigned i = 0; i < 100; i++)
		mem_input(mem[1], packet6(1, HOST6(1), "2001:db8::5",
		    PROTO_TEST, 40 + i));
	CHECK_EQ(nd_stat("dropped"), before + 36);
	start_over();
	learn_host6(0, "2001:db8::5");
	for (unsigned i = 36; i < 100; i++) {	/* the latest are kept */
		m = take_sent(0);
		CHECK_EQ(ntohs(ip6_of(m)->ip6_plen), 40 + i);
		m_freem(m);
	}
	start_over();
}

/* Packet Too Big about a packet of the router to dst. */
static void
too_big(const char *dst)
{
	struct mbuf *m = packet6(0, HOST6(0), ROUTER6(0), IPPROTO_ICMPV6,
	    8 + IP6_HDRLEN + 8);
	struct ip6_hdr *quoted = (void *)(payload_of(m) + 8);

	memset(payload_of(m), 0, 8 + IP6_HDRLEN + 8);
	payload_of(m)[0] = ICMP6_PACKET_TOO_BIG;
	payload_of(m)[6] = 1400 >> 8;
	payload_of(m)[7] = 1400 & 0xff;
	*quoted = (struct ip6_hdr){ .ip6_src = addr6(ROUTER6(0)),
	    .ip6_dst = addr6(dst) };
	quoted->ip6_flow = htonl(6U << 28);
	quoted->ip6_nxt = IPPROTO_UDP;
	seal6(m, 0);
	mem_input(mem[0], m);
}

TEST(path_mtus_replace_each_other)
{
	struct in6_addr dst;
	char name[32];

	for (unsigned i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "2001:4860::%x", i);
		too_big(name);
	}
	dst = addr6(name);
	CHECK_EQ(in_pmtu(&dst, 0, 1500), 1400);
	too_big("2001:4860::");
	dst = addr6("2001:4860::");
	CHECK_EQ(in_pmtu(&dst, 0, 1500), 1400);
	start_over();
}

/* A router advertisement of one prefix, on link and for addresses. */
static void
router_advert(const struct in6_addr *prefix)
{
	const uint32_t len = sizeof(struct nd_router_advert) +
	    sizeof(struct nd_opt_prefix_info);
	struct nd_opt_prefix_info pi = {
		.nd_opt_pi_type = ND_OPT_PREFIX_INFORMATION,
		.nd_opt_pi_len = 4, .nd_opt_pi_prefix_len = 64,
		.nd_opt_pi_flags_reserved = ND_OPT_PI_FLAG_ONLINK |
		    ND_OPT_PI_FLAG_AUTO,
		.nd_opt_pi_valid_time = UINT32_MAX,
		.nd_opt_pi_preferred_time = UINT32_MAX,
		.nd_opt_pi_prefix = *prefix
	};
	struct nd_router_advert ra = { .nd_ra_router_lifetime = 0 };
	struct mbuf *m = packet6(0, "fe80::2", "ff02::1", IPPROTO_ICMPV6, len);

	ra.nd_ra_type = ND_ROUTER_ADVERT;
	ip6_of(m)->ip6_hlim = 255;
	memcpy(payload_of(m), &ra, sizeof(ra));
	memcpy(payload_of(m) + sizeof(ra), &pi, sizeof(pi));
	seal6(m, 0);
	mem_input(mem[0], m);
}

TEST(advertised_prefixes_are_bounded)
{
	struct in6_addr prefix = addr6("2001:db8:100::"), all[64];
	unsigned plen[64], before, n;
	struct nhop6 nh;

	set("net.inet6.ip6.forwarding", "0");
	before = in6_addr_list(mem[0], all, plen, nitems(all));
	for (unsigned i = 0; i < 6000; i++) {
		prefix.s6_addr16[3] = htons((uint16_t)i);
		router_advert(&prefix);
	}
	n = in6_addr_list(mem[0], all, plen, nitems(all));
	CHECK_EQ(n, before + 16);
	CHECK_EQ(nd_stat("toomanyprefixes"), 2 * (6000 - 16));
	/* the first ones stay, on link too */
	prefix.s6_addr16[3] = 0;
	prefix.s6_addr[15] = 9;
	CHECK(route6_lookup(&prefix, 0, &nh));
	CHECK(IN6_ARE_ADDR_EQUAL(&nh.nh_gw, &prefix));
	prefix.s6_addr16[3] = htons(16);
	CHECK(!route6_lookup(&prefix, 0, &nh));
	set("net.inet6.ip6.forwarding", "1");
	start_over();
}

/* A redirect from fe80::9: the better next hop for dst is fe80::8. */
static void
redirect6(const char *dst)
{
	struct nd_redirect rd = { .nd_rd_target = addr6("fe80::8"),
	    .nd_rd_dst = addr6(dst) };
	struct mbuf *m = packet6(0, "fe80::9", ROUTER6(0), IPPROTO_ICMPV6,
	    sizeof(rd));

	rd.nd_rd_type = ND_REDIRECT;
	ip6_of(m)->ip6_hlim = 255;
	memcpy(payload_of(m), &rd, sizeof(rd));
	seal6(m, 0);
	mem_input(mem[0], m);
}

TEST(ipv6_redirects_replace_the_oldest)
{
	const struct in6_addr any = in6addr_any, router = addr6("fe80::9");
	const struct in6_addr better = addr6("fe80::8");
	struct in6_addr dst;
	struct nhop6 nh;
	char name[32];

	set("net.inet6.ip6.forwarding", "0");
	CHECK_EQ(route6_add(&any, 0, &router, mem[0], 0), 0);
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "2001:4860::%x", i + 1);
		redirect6(name);
		dst = addr6(name);
		CHECK(route6_lookup(&dst, 0, &nh));
		CHECK(IN6_ARE_ADDR_EQUAL(&nh.nh_gw, &better));
		t_sleep(1);
	}
	dst = addr6("2001:4860::1");
	CHECK(route6_lookup(&dst, 0, &nh));
	CHECK(IN6_ARE_ADDR_EQUAL(&nh.nh_gw, &router));
	CHECK_EQ(route6_delete(&any, 0, 0), 0);
	set("net.inet6.ip6.forwarding", "1");
	t_sleep(700 * 1000);
	start_over();
}

int
main(int argc, char **argv)
{
	boot_router6();
	return (router6_main(argc, argv, start_over));
}
