/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floods from a link: each fills one of the stack's tables in virtual time.
 * An old neighbour, an old connection and a new neighbour must still work.
 * docs/reference/stack-limits.md lists all tables.
 */
#include "tests/check.h"

#include <netinet/tcp.h>

#include "tests/net.h"
#include "tests/packet6.h"

#define	ROUTER	"10.9.0.1"
#define	LEFT	"10.9.0.2"
#define	RIGHT	"10.9.1.2"
#define	PROTO_TEST	253	/* RFC 3692 */
#define	PORT	7000
#define	FLOOD	1000

static uint64_t
arp_stat(const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "net.link.ether.arp.stats.%s", name);
	return (counter(full));
}

static uint64_t
nd_stat(const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "net.inet6.nd6.stats.%s", name);
	return (counter(full));
}

static struct in_addr
nth(const char *first, unsigned i)
{
	return ((struct in_addr){ htonl(ntohl(addr(first).s_addr) + i) });
}

/* The host on the right sends one packet to a host on the left. */
static void
send_left(struct in_addr dst)
{
	struct mbuf *m = packet(1, RIGHT, "0.0.0.0", PROTO_TEST, 40);
	struct ip *ip = (struct ip *)(void *)(m->m_data + ETHER_HDR_LEN);

	ip->ip_dst = dst;
	seal(ip);
	mem_input(mem[1], m);
}

/* Takes the ARP requests sent on the left; counts those for an address. */
static unsigned
requests_for(struct in_addr dst)
{
	const struct ether_arp *ea;
	unsigned n = 0;

	for (const struct mbuf *m = sent[0].mq_head; m != NULL;
	    m = m->m_nextpkt) {
		ea = arp_in(m);
		CHECK_EQ(ntohs(ea->arp_op), ARPOP_REQUEST);
		n += memcmp(ea->arp_tpa, &dst, sizeof(dst)) == 0;
	}
	return (n);
}

/* Time enough for all link addresses to expire, also those of IPv6. */
static void
forget_all(void)
{
	t_sleep(4000 * 1000);
	start_over();
}

/* A host that the stack resolves: request, answer, and the packet leaves. */
static void
resolve_left(struct in_addr dst)
{
	struct mbuf *m;

	start_over();
	send_left(dst);
	CHECK_EQ(requests_for(dst), 1);
	CHECK_EQ(sent[0].mq_len, 1);
	mbufq_drain(&sent[0]);
	mem_input(mem[0], arp_frame(0, ARPOP_REPLY, HOST_MAC(0), dst,
	    mem[0]->if_addr));
	m = take_sent(0);
	CHECK_EQ(IP_AT(m)->ip_dst.s_addr, dst.s_addr);
	m_freem(m);
	CHECK_EQ(sent[0].mq_len, 0);
}

/* The stack has the link address: the packet leaves without a request. */
static void
expect_resolved(struct in_addr dst)
{
	struct mbuf *m;

	start_over();
	send_left(dst);
	m = take_sent(0);
	CHECK_EQ(IP_AT(m)->ip_dst.s_addr, dst.s_addr);
	m_freem(m);
	CHECK_EQ(sent[0].mq_len, 0);
}

/* RFC 1122 section 2.3.2.1: one request a second for each destination. */
TEST(each_neighbour_is_requested_once_a_second)
{
	start_over();
	for (unsigned i = 0; i < 145; i++) {
		send_left(nth("10.9.0.10", i));
		t_sleep(5);		/* they are not due together */
	}
	for (unsigned second = 0; second < 4; second++) {
		for (unsigned i = 0; i < 145; i++)
			CHECK(requests_for(nth("10.9.0.10", i)) <= 1);
		mbufq_drain(&sent[0]);
		t_sleep(990);
	}
	t_sleep(10 * 1000);
	start_over();
	for (unsigned i = 0; i < 145; i++)
		send_left(nth("10.9.0.10", i));
	t_sleep(3500);
	for (unsigned i = 0; i < 145; i++)
		CHECK_EQ(requests_for(nth("10.9.0.10", i)), 3);
	CHECK_EQ(sent[0].mq_len, 3 * 145);
	forget_all();
}

TEST(each_ipv6_neighbour_is_solicited_once_a_second)
{
	char dst[32];

	learn_host6(1, HOST6(1));
	start_over();
	for (unsigned i = 0; i < 145; i++) {
		snprintf(dst, sizeof(dst), "2001:db8::1:%x", i);
		mem_input(mem[1], packet6(1, HOST6(1), dst, PROTO_TEST, 40));
	}
	CHECK_EQ(sent[0].mq_len, 145);
	t_sleep(1900);
	CHECK_EQ(sent[0].mq_len, 2 * 145);
	t_sleep(10 * 1000);
	CHECK_EQ(sent[0].mq_len, 3 * 145);
	start_over();
}

/* RFC 5227 section 2.4 */
TEST(an_address_is_defended_once_in_ten_seconds)
{
	const uint64_t before = arp_stat("conflicts");

	for (unsigned round = 0; round < 2; round++) {
		start_over();
		for (unsigned i = 0; i < FLOOD; i++) {
			mem_input(mem[0], arp_frame(0, i % 2 == 0 ?
			    ARPOP_REQUEST : ARPOP_REPLY, HOST_MAC(9),
			    addr(ROUTER), addr(ROUTER)));
			t_sleep(8);
		}
		CHECK_EQ(sent[0].mq_len, 1);
		t_sleep(3 * 1000);
	}
	CHECK_EQ(arp_stat("conflicts"), before + 2 * FLOOD);
	start_over();
}

TEST(invented_arp_senders_leave_confirmed_neighbours)
{
	uint8_t mac[6] = { 2, 'x' };

	set("net.link.ether.arp.maxentries", "64");
	resolve_left(addr("10.9.0.3"));
	for (unsigned i = 0; i < FLOOD; i++) {
		memcpy(mac + 2, &i, sizeof(i));
		mem_input(mem[0], arp_frame(0, ARPOP_REQUEST, mac,
		    nth("10.9.0.4", i % 250), mem[0]->if_addr));
	}
	expect_resolved(addr("10.9.0.3"));
	resolve_left(addr("10.9.0.254"));
	expect_resolved(addr("10.9.0.254"));
	CHECK(arp_stat("evicted") > 100);
	set("net.link.ether.arp.maxentries", "4096");
	forget_all();
}

TEST(a_scan_leaves_neighbours_of_each_interface)
{
	struct mbuf *m;

	set("net.link.ether.arp.maxentries", "32");
	learn_host(1, RIGHT);
	resolve_left(addr("10.9.0.3"));
	for (unsigned i = 0; i < 250; i++)
		send_left(nth("10.9.0.4", i));
	expect_resolved(addr("10.9.0.3"));
	resolve_left(addr("10.9.0.254"));
	/* of the other interface, only heard */
	start_over();
	mem_input(mem[0], packet(0, LEFT, RIGHT, PROTO_TEST, 40));
	m = take_sent(1);
	CHECK_EQ(IP_AT(m)->ip_p, PROTO_TEST);
	m_freem(m);
	set("net.link.ether.arp.maxentries", "4096");
	forget_all();
}

/* RFC 1122 section 2.3.2.2: the latest packet to each address is kept. */
TEST(a_scan_holds_few_packets)
{
	const uint64_t before = counter("mbuf.outstanding");
	struct mbuf *m;

	start_over();
	for (unsigned k = 0; k < 64; k++)
		for (unsigned i = 0; i < 200; i++)
			send_left(nth("10.9.0.10", i));
	mbufq_drain(&sent[0]);
	/* each in an mbuf with a cluster, which may be counted */
	CHECK(counter("mbuf.outstanding") <= before + 2 * (1024 + 200));
	send_left(addr("10.9.0.250"));
	mbufq_drain(&sent[0]);
	mem_input(mem[0], arp_frame(0, ARPOP_REPLY, HOST_MAC(0),
	    addr("10.9.0.250"), mem[0]->if_addr));
	m = take_sent(0);
	CHECK_EQ(IP_AT(m)->ip_dst.s_addr, addr("10.9.0.250").s_addr);
	m_freem(m);
	mem_input(mem[0], arp_frame(0, ARPOP_REPLY, HOST_MAC(0),
	    addr("10.9.0.11"), mem[0]->if_addr));
	CHECK(sent[0].mq_len >= 1);
	forget_all();
}

/* A full table of confirmed neighbours takes another one during a scan. */
TEST(a_new_neighbour_gets_into_a_full_table)
{
	set("net.link.ether.arp.maxentries", "64");
	for (unsigned i = 0; i < 64; i++)
		resolve_left(nth("10.9.0.10", i));
	start_over();
	for (unsigned i = 0; i < 50; i++)
		send_left(nth("10.9.0.150", i));
	send_left(addr("10.9.0.250"));
	send_left(addr("10.9.0.251"));	/* the scan goes on */
	mem_input(mem[0], arp_frame(0, ARPOP_REPLY, HOST_MAC(0),
	    addr("10.9.0.250"), mem[0]->if_addr));
	expect_resolved(addr("10.9.0.250"));
	expect_resolved(addr("10.9.0.73"));	/* confirmed last */
	set("net.link.ether.arp.maxentries", "4096");
	forget_all();
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
	forget_all();
}

TEST(few_packets_wait_for_an_ipv6_neighbour)
{
	const uint64_t before = nd_stat("dropped");

	learn_host6(1, HOST6(1));
	for (unsigned i = 0; i < 100; i++)
		mem_input(mem[1], packet6(1, HOST6(1), "2001:db8::5",
		    PROTO_TEST, 40));
	CHECK_EQ(nd_stat("dropped"), before + 36);
	start_over();
	learn_host6(0, "2001:db8::5");
	for (unsigned i = 0; i < 64; i++)
		m_freem(take_sent(0));
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
	CHECK_EQ(ip6_pmtu(&dst, 0, 1500), 1400);
	too_big("2001:4860::");
	dst = addr6("2001:4860::");
	CHECK_EQ(ip6_pmtu(&dst, 0, 1500), 1400);
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

/* RFC 1122 section 3.2.1.3, RFC 1812 section 5.3.7 */
TEST(sources_that_no_host_can_have_are_dropped)
{
	static const char *const bad[] = { "0.0.0.0", "0.1.2.3", "127.0.0.1",
	    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
	    "10.9.0.255", ROUTER };
	uint64_t before = counter("net.inet.ip.stats.badaddr");
	uint64_t delivered = counter("net.inet.ip.stats.delivered");

	for (unsigned fast = 0; fast < 2; fast++) {
		set("net.inet.ip.fastforwarding", fast ? "1" : "0");
		for (size_t i = 0; i < nitems(bad); i++) {
			mem_input(mem[0], packet(0, bad[i], ROUTER,
			    IPPROTO_UDP, 40));
			mem_input(mem[0], packet(0, bad[i], RIGHT,
			    PROTO_TEST, 40));
		}
	}
	set("net.inet.ip.fastforwarding", "0");
	CHECK_EQ(counter("net.inet.ip.stats.badaddr"),
	    before + 4 * nitems(bad));
	CHECK_EQ(counter("net.inet.ip.stats.delivered"), delivered);
	CHECK_EQ(sent[0].mq_len + sent[1].mq_len, 0);
	/* a host without an address requests one */
	mem_input(mem[0], packet(0, "0.0.0.0", "255.255.255.255", IPPROTO_UDP,
	    40));
	CHECK_EQ(counter("net.inet.ip.stats.delivered"), delivered + 1);
	before = counter("net.inet6.ip6.stats.badaddr");
	mem_input(mem[0], packet6(0, "::", ROUTER6(0), IPPROTO_UDP, 40));
	mem_input(mem[0], packet6(0, "ff02::5", ROUTER6(0), IPPROTO_UDP, 40));
	mem_input(mem[0], packet6(0, "::1", ROUTER6(0), IPPROTO_UDP, 40));
	CHECK_EQ(counter("net.inet6.ip6.stats.badaddr"), before + 3);
}

TEST(link_addresses_that_no_station_can_have_are_refused)
{
	static const uint8_t bad[][6] = { { 0 }, { 1, 0, 0x5e, 0, 0, 1 },
	    { 255, 255, 255, 255, 255, 255 } };
	const uint64_t before = arp_stat("bad");
	struct mbuf *m;

	for (size_t i = 0; i < nitems(bad); i++) {
		mem_input(mem[0], arp_frame(0, ARPOP_REQUEST, bad[i],
		    addr("10.9.0.77"), mem[0]->if_addr));
		m = nd_message(0, "2001:db8::77", ROUTER6(0),
		    ND_NEIGHBOR_SOLICIT, ROUTER6(0), 0,
		    ND_OPT_SOURCE_LINKADDR);
		memcpy(payload_of(m) + 26, bad[i], 6);
		seal6(m, 0);
		mem_input(mem[0], m);
		/* answered, after the sender is solicited itself */
		m = take_sent(0);
		(void)icmp6_in(m, ND_NEIGHBOR_SOLICIT);
		m_freem(m);
		t_sleep(10 * 1000);
		start_over();
	}
	CHECK_EQ(arp_stat("bad"), before + nitems(bad));
	/* the network's broadcast address is no neighbour */
	mem_input(mem[0], arp_frame(0, ARPOP_REPLY, HOST_MAC(9),
	    addr("10.9.0.255"), mem[0]->if_addr));
	mem_input(mem[0], nd_message(0, ROUTER6(0), ROUTER6(0),
	    ND_NEIGHBOR_SOLICIT, ROUTER6(0), 0, ND_OPT_SOURCE_LINKADDR));
	CHECK_EQ(sent[0].mq_len, 0);
}

static void
fragment(uint16_t id, uint32_t off, bool more)
{
	struct mbuf *m = packet(0, LEFT, ROUTER, IPPROTO_UDP, 64);
	struct ip *ip = (struct ip *)(void *)(m->m_data + ETHER_HDR_LEN);

	ip->ip_id = htons(id);
	ip->ip_off = htons((uint16_t)(off / 8 | (more ? IP_MF : 0)));
	seal(ip);
	mem_input(mem[0], m);
}

TEST(fragments_of_others_do_not_stop_reassembly)
{
	uint64_t before = counter("net.inet.ip.stats.reassembled");
	const uint64_t timeout = counter("net.inet.ip.stats.fragtimeout");
	const uint64_t evicted = counter("net.inet.ip.stats.fragevicted");

	for (uint16_t id = 1; id <= FLOOD; id++)
		fragment(id, 0, true);
	CHECK_EQ(counter("net.inet.ip.stats.fragevicted"),
	    evicted + FLOOD - 256);
	fragment(5000, 0, true);
	fragment(5000, 64, false);
	CHECK_EQ(counter("net.inet.ip.stats.reassembled"), before + 1);
	t_sleep(32 * 1000);
	/* one went for the datagram above; the others end together */
	CHECK_EQ(counter("net.inet.ip.stats.fragtimeout"), timeout + 255);
	start_over();
}

/* A redirect from 10.9.0.9: the better gateway for dst is 10.9.0.8. */
static void
redirect(struct in_addr dst)
{
	struct mbuf *m = packet(0, "10.9.0.9", ROUTER, IPPROTO_ICMP, 8 + 28);
	struct icmp *icp = (struct icmp *)(void *)(m->m_data + ETHER_HDR_LEN +
	    IP_HDRLEN);

	memset(icp, 0, 36);
	icp->icmp_type = ICMP_REDIRECT;
	icp->icmp_code = ICMP_REDIRECT_HOST;
	icp->icmp_gwaddr = addr("10.9.0.8");
	icp->icmp_ip = (struct ip){ .ip_v = IPVERSION, .ip_hl = 5,
	    .ip_p = IPPROTO_UDP, .ip_src = addr(ROUTER), .ip_dst = dst };
	icp->icmp_cksum = in_fold(in_sum(m, ETHER_HDR_LEN + IP_HDRLEN, 36, 0));
	mem_input(mem[0], m);
}

/* Whether a redirect of the address is in use. */
static bool
is_redirected(struct in_addr dst)
{
	struct nhop nh;

	CHECK(route_lookup(dst, &nh));
	return (nh.nh_gw.s_addr == addr("10.9.0.8").s_addr);
}

TEST(redirects_replace_the_oldest)
{
	unsigned n = 0;

	set("net.inet.ip.forwarding", "0");
	CHECK_EQ(route_add(addr("10.70.0.0"), 16, addr("10.9.0.9"), NULL), 0);
	for (unsigned i = 0; i < FLOOD; i++) {
		redirect(nth("10.70.0.1", i));
		CHECK(is_redirected(nth("10.70.0.1", i)));
		t_sleep(1);
	}
	for (unsigned i = 0; i < FLOOD; i++)
		n += is_redirected(nth("10.70.0.1", i));
	CHECK_EQ(n, 64);
	CHECK(is_redirected(nth("10.70.0.1", FLOOD - 64)));
	t_sleep(700 * 1000);
	CHECK(!is_redirected(nth("10.70.0.1", FLOOD - 1)));
	CHECK_EQ(route_delete(addr("10.70.0.0"), 16), 0);
	set("net.inet.ip.forwarding", "1");
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

/* A segment of the host on the left; a PUSH has one byte of data. */
static void
segment(uint8_t flags, tcp_seq seq, tcp_seq ack)
{
	const uint32_t len = (flags & TH_PUSH) != 0;
	struct mbuf *m = packet(0, LEFT, ROUTER, IPPROTO_TCP, 20 + len);
	struct tcphdr *th = (struct tcphdr *)(void *)(m->m_data +
	    ETHER_HDR_LEN + IP_HDRLEN);

	*th = (struct tcphdr){ .th_sport = htons(1234), .th_dport = htons(PORT),
	    .th_seq = htonl(seq), .th_ack = htonl(ack), .th_off = 5,
	    .th_flags = flags, .th_win = htons(60000) };
	m->m_pkthdr.csum_flags = CSUM_VALID;
	mem_input(mem[0], m);
}

/* An old connection of a neighbour that was never confirmed goes on. */
TEST(a_connection_survives_a_flood)
{
	struct socket *head = t_listen(ROUTER, PORT, 5), *so;
	const struct tcphdr *th;
	tcp_seq ack;
	char c;

	learn_host(0, LEFT);
	start_over();
	segment(TH_SYN, 100, 0);
	th = (const struct tcphdr *)(const void *)(IP_AT(sent[0].mq_head) + 1);
	CHECK_EQ(th->th_flags, TH_SYN | TH_ACK);
	ack = ntohl(th->th_seq) + 1;
	segment(TH_ACK, 101, ack);
	so = t_accept(head);
	test_invented_arp_senders_leave_confirmed_neighbours();
	test_fragments_of_others_do_not_stop_reassembly();
	t_sleep(10 * 1000);	/* its errors to the neighbour have failed */
	start_over();
	segment(TH_ACK | TH_PUSH, 101, ack);
	t_recv(so, &c, 1);
	t_send(so, "y", 1);
	/* the flood evicted the neighbour; it is resolved again */
	CHECK_EQ(requests_for(addr(LEFT)), 1);
	start_over();
	learn_host(0, LEFT);
	CHECK_EQ(IP_AT(sent[0].mq_head)->ip_p, IPPROTO_TCP);
	segment(TH_RST, 102, 0);
	soclose(so);
	soclose(head);
	start_over();
}

int
main(int argc, char **argv)
{
	boot_router6();
	return (router6_main(argc, argv, start_over));
}
