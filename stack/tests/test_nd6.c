/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbour discovery (RFC 4861), address configuration (RFC 4862) and
 * multicast listeners (RFC 3810), by single packets in virtual time.
 */
#include "tests/check.h"

#include <errno.h>

#include "netinet/in_group.h"
#include "tests/net.h"
#include "tests/packet6.h"

#define	HOST	HOST6(0)
#define	ROUTER	ROUTER6(0)
#define	STRANGER "2001:db8::77"
#define	PROTO_TEST	253	/* RFC 3692 */

/* The host on the right sends one packet to a neighbour on the left. */
static void
send_to(const char *dst)
{
	mem_input(mem[1], packet6(1, HOST6(1), dst, PROTO_TEST, 100));
}

/* The next frame on the left solicits target; to all, or to it alone. */
static void
expect_solicit(const char *target, bool unicast)
{
	const struct in6_addr want = addr6(target);
	const struct in6_addr group = in6_solicited_node(&want);
	struct mbuf *m = take_sent(0);
	const struct nd_neighbor_solicit *ns = (const void *)icmp6_in(m,
	    ND_NEIGHBOR_SOLICIT);

	CHECK(IN6_ARE_ADDR_EQUAL(&ns->nd_ns_target, &want));
	CHECK(IN6_ARE_ADDR_EQUAL(&ip6_of(m)->ip6_dst, unicast ? &want :
	    &group));
	CHECK_EQ(ip6_of(m)->ip6_hlim, 255);
	CHECK_EQ((uint8_t)m->m_data[0], unicast ? 0x02 : 0x33);
	m_freem(m);
}

static void
expect_data(void)
{
	struct mbuf *m = take_sent(0);

	CHECK_EQ(ip6_of(m)->ip6_nxt, PROTO_TEST);
	CHECK(memcmp(m->m_data, HOST_MAC(0), 6) == 0);
	m_freem(m);
}

static void
advertise(const char *who, uint32_t flags)
{
	mem_input(mem[0], nd_message(0, who, ROUTER, ND_NEIGHBOR_ADVERT, who,
	    flags, ND_OPT_TARGET_LINKADDR));
}

TEST(a_solicitation_is_answered)
{
	const struct in6_addr router = addr6(ROUTER);
	const struct nd_neighbor_advert *na;
	struct mbuf *m;

	mem_input(mem[0], nd_message(0, HOST, "ff02::1:ff00:1",
	    ND_NEIGHBOR_SOLICIT, ROUTER, 0, ND_OPT_SOURCE_LINKADDR));
	m = take_sent(0);
	na = (const void *)icmp6_in(m, ND_NEIGHBOR_ADVERT);
	CHECK_EQ(na->nd_na_flags_reserved, ND_NA_FLAG_SOLICITED |
	    ND_NA_FLAG_OVERRIDE | ND_NA_FLAG_ROUTER);
	CHECK(IN6_ARE_ADDR_EQUAL(&na->nd_na_target, &router));
	CHECK(memcmp(na + 1, "\2\1", 2) == 0);
	CHECK(memcmp((const char *)(na + 1) + 2, mem[0]->if_lladdr, 6) == 0);
	CHECK(memcmp(m->m_data, HOST_MAC(0), 6) == 0);
	m_freem(m);
}

/* RFC 4861 sections 7.1.1, 7.1.2 and 6.1.2 */
TEST(malformed_messages_are_dropped)
{
	const uint64_t before = nd_stat("bad");
	struct mbuf *m;

	m = nd_message(0, HOST, ROUTER, ND_NEIGHBOR_SOLICIT, ROUTER, 0,
	    ND_OPT_SOURCE_LINKADDR);
	/* hop limit below 255: not from this link */
	ip6_of(m)->ip6_hlim = 254;
	mem_input(mem[0], m);
	m = nd_message(0, HOST, ROUTER, ND_NEIGHBOR_SOLICIT, ROUTER, 0,
	    ND_OPT_SOURCE_LINKADDR);
	payload_of(m)[25] = 0;		/* an option of length zero */
	seal6(m, 0);
	mem_input(mem[0], m);
	m = nd_message(0, HOST, ROUTER, ND_NEIGHBOR_SOLICIT, ROUTER, 0,
	    ND_OPT_SOURCE_LINKADDR);
	payload_of(m)[1] = 1;		/* code */
	seal6(m, 0);
	mem_input(mem[0], m);
	mem_input(mem[0], nd_message(0, HOST, ROUTER, ND_NEIGHBOR_SOLICIT,
	    "ff02::1", 0, 0));
	/* unspecified source: no link address option, no single host */
	mem_input(mem[0], nd_message(0, "::", "ff02::1:ff00:1",
	    ND_NEIGHBOR_SOLICIT, ROUTER, 0, ND_OPT_SOURCE_LINKADDR));
	mem_input(mem[0], nd_message(0, "::", ROUTER, ND_NEIGHBOR_SOLICIT,
	    ROUTER, 0, 0));
	mem_input(mem[0], nd_message(0, HOST, "ff02::1", ND_NEIGHBOR_ADVERT,
	    HOST, ND_NA_FLAG_SOLICITED, 0));
	/* a router's source must be link-local */
	mem_input(mem[0], nd_message(0, HOST, "ff02::1", ND_ROUTER_ADVERT,
	    "::", 0, 0));
	CHECK_EQ(nd_stat("bad"), before + 8);
	CHECK_EQ(sent[0].mq_len, 0);
}

TEST(packets_wait_for_a_neighbour)
{
	send_to(STRANGER);
	expect_solicit(STRANGER, false);
	send_to(STRANGER);
	CHECK_EQ(sent[0].mq_len, 0);
	advertise(STRANGER, ND_NA_FLAG_SOLICITED | ND_NA_FLAG_OVERRIDE);
	expect_data();
	expect_data();
	CHECK_EQ(sent[0].mq_len, 0);
}

/* An unsolicited advertisement makes no entry (section 7.2.5). */
TEST(nobody_puts_himself_into_the_cache)
{
	advertise("2001:db8::78", ND_NA_FLAG_OVERRIDE);
	send_to("2001:db8::78");
	expect_solicit("2001:db8::78", false);
}

TEST(a_neighbour_that_does_not_answer_is_told_of)
{
	const uint64_t before = nd_stat("timeouts");
	struct mbuf *m;

	send_to("2001:db8::79");
	for (unsigned i = 0; i < 3; i++) {
		expect_solicit("2001:db8::79", false);
		t_sleep(1500);
	}
	t_sleep(2000);
	CHECK_EQ(nd_stat("timeouts"), before + 1);
	CHECK_EQ(sent[0].mq_len, 0);
	/* the sending host's entry was evicted: it is solicited first */
	m = take_sent(1);
	m_freem(m);
}

/* A program gets the error, too, and need not wait for a timeout. */
TEST(a_program_hears_that_its_neighbour_does_not_answer)
{
	static const char *const away[] = { "2001:db8::7a", "fe80::7a" };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6,
	    .sin6_port = htons(9), .sin6_scope_id = mem[0]->if_index };
	struct socket *so;

	for (size_t i = 0; i < nitems(away); i++) {
		sin6.sin6_addr = addr6(away[i]);
		CHECK_EQ(socreate(AF_INET6, SOCK_STREAM, 0, &so), 0);
		CHECK_EQ(soconnect(so, (struct sockaddr *)&sin6, sizeof(sin6),
		    0), EHOSTUNREACH);
		CHECK_EQ(soclose(so), 0);
	}
}

/* Section 7.3.2: reachable, stale, delay, probe, and gone. */
TEST(reachability_is_watched)
{
	send_to(STRANGER);
	if (sent[0].mq_len > 0)
		start_over();
	advertise(STRANGER, ND_NA_FLAG_SOLICITED | ND_NA_FLAG_OVERRIDE);
	start_over();
	send_to(STRANGER);
	expect_data();
	t_sleep(29 * 1000);	/* reachable: not asked */
	CHECK_EQ(sent[0].mq_len, 0);
	t_sleep(3 * 1000);
	CHECK_EQ(sent[0].mq_len, 0);	/* stale: not used */
	learn_host6(1, HOST6(1));
	send_to(STRANGER);
	expect_data();		/* still in use; probed after 5 s */
	t_sleep(4 * 1000);
	CHECK_EQ(sent[0].mq_len, 0);
	t_sleep(3 * 1000);
	expect_solicit(STRANGER, true);
	advertise(STRANGER, ND_NA_FLAG_SOLICITED | ND_NA_FLAG_OVERRIDE);
	t_sleep(5 * 1000);
	start_over();
	learn_host6(1, HOST6(1));
	send_to(STRANGER);
	expect_data();
}

TEST(another_link_address_counts_with_the_override_flag_only)
{
	static const uint8_t elsewhere[6] = { 2, 9, 9, 9, 9, 9 };
	struct mbuf *m;

	send_to(STRANGER);
	advertise(STRANGER, ND_NA_FLAG_SOLICITED | ND_NA_FLAG_OVERRIDE);
	start_over();
	for (unsigned override = 0; override < 2; override++) {
		m = nd_message(0, STRANGER, ROUTER, ND_NEIGHBOR_ADVERT,
		    STRANGER, ND_NA_FLAG_SOLICITED |
		    (override ? ND_NA_FLAG_OVERRIDE : 0),
		    ND_OPT_TARGET_LINKADDR);
		memcpy(payload_of(m) + 26, elsewhere, 6);
		seal6(m, 0);
		mem_input(mem[0], m);
		send_to(STRANGER);
		m = take_sent(0);
		CHECK(memcmp(m->m_data, override ? elsewhere : HOST_MAC(0),
		    6) == 0);
		m_freem(m);
	}
}

TEST(the_cache_is_bounded)
{
	char name[32];

	set("net.inet6.nd6.maxentries", "16");
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "2001:db8::1:%x", i);
		send_to(name);
	}
	CHECK(nd_stat("full") > 100);
	set("net.inet6.nd6.maxentries", "4096");
	t_sleep(10 * 1000);	/* until all resolutions have failed */
}

/* RFC 4862 section 5.4 */
TEST(an_address_of_another_is_not_used)
{
	static const struct { uint8_t type; const char *src, *dst; } cases[] = {
		{ ND_NEIGHBOR_ADVERT, "2001:db8::50", "ff02::1" },
		{ ND_NEIGHBOR_SOLICIT, "::", "ff02::1:ff00:51" },
	};
	static const char *const targets[] = { "2001:db8::50", "2001:db8::51" };
	struct in6_addr a;
	struct mbuf *m;

	set("net.inet6.ip6.dad_count", "1");
	for (size_t i = 0; i < nitems(cases); i++) {
		a = addr6(targets[i]);
		CHECK_EQ(in6_addr_add(mem[0], &a, 64, 0, NSEC_FOREVER,
		    NSEC_FOREVER), 0);
		CHECK_EQ(in6_addr_flags(mem[0], &a),
		    IA6_PRESENT | IA6_TENTATIVE);
		mem_input(mem[0], nd_message(0, cases[i].src, cases[i].dst,
		    cases[i].type, targets[i], 0, 0));
		CHECK_EQ(in6_addr_flags(mem[0], &a),
		    IA6_PRESENT | IA6_DUPLICATED);
		/* it is the neighbour's, which may solicit */
		start_over();
		learn_host6(0, targets[i]);
		m = take_sent(0);
		(void)icmp6_in(m, ND_NEIGHBOR_ADVERT);
		m_freem(m);
	}
	a = addr6("2001:db8::52");
	start_over();
	CHECK_EQ(in6_addr_add(mem[0], &a, 64, 0, NSEC_FOREVER, NSEC_FOREVER),
	    0);
	t_sleep(4 * 1000);
	CHECK_EQ(in6_addr_flags(mem[0], &a), IA6_PRESENT);
	set("net.inet6.ip6.dad_count", "0");
}

/* However many addresses there are, each is probed within a second. */
TEST(many_addresses_are_probed_together)
{
	const uint64_t before = nd_stat("solicits");
	struct in6_addr a = addr6("2001:db8::6:0");

	set("net.inet6.ip6.dad_count", "1");
	for (unsigned i = 0; i < 40; i++) {
		a.s6_addr[15] = (uint8_t)i;
		CHECK_EQ(in6_addr_add(mem[0], &a, 64, 0, NSEC_FOREVER,
		    mach_uptime() + 5 * NSEC_PER_SEC), 0);
	}
	t_sleep(1000);
	CHECK_EQ(nd_stat("solicits"), before + 40);
	t_sleep(1000);
	CHECK_EQ(in6_addr_flags(mem[0], &a), IA6_PRESENT);
	t_sleep(5 * 1000);
	CHECK_EQ(in6_addr_flags(mem[0], &a), 0);	/* its lifetime ended */
	set("net.inet6.ip6.dad_count", "0");
}

/* A router advertisement from fe80::2 with one prefix, 64 bits long. */
static void
router_advert(uint16_t lifetime, const char *prefix, uint8_t flags,
    uint32_t preferred, uint32_t valid)
{
	const uint32_t len = sizeof(struct nd_router_advert) +
	    sizeof(struct nd_opt_prefix_info);
	struct nd_opt_prefix_info pi = {
		.nd_opt_pi_type = ND_OPT_PREFIX_INFORMATION,
		.nd_opt_pi_len = 4, .nd_opt_pi_prefix_len = 64,
		.nd_opt_pi_flags_reserved = flags,
		.nd_opt_pi_valid_time = htonl(valid),
		.nd_opt_pi_preferred_time = htonl(preferred),
		.nd_opt_pi_prefix = addr6(prefix)
	};
	struct nd_router_advert ra = { .nd_ra_router_lifetime =
	    htons(lifetime) };
	struct mbuf *m = packet6(0, "fe80::2", "ff02::1", IPPROTO_ICMPV6, len);

	ra.nd_ra_type = ND_ROUTER_ADVERT;
	ip6_of(m)->ip6_hlim = 255;
	memcpy(payload_of(m), &ra, sizeof(ra));
	memcpy(payload_of(m) + sizeof(ra), &pi, sizeof(pi));
	seal6(m, 0);
	mem_input(mem[0], m);
}

static struct in6_addr
made_from(const char *prefix)
{
	const struct in6_addr neighbour = addr6("fe80::1");
	struct in6_addr a = addr6(prefix), local;

	CHECK(in6_selectsrc(mem[0], &neighbour, &local));
	memcpy(a.s6_addr + 8, local.s6_addr + 8, 8);
	return (a);
}

#define	ONLINK_AUTO	(ND_OPT_PI_FLAG_ONLINK | ND_OPT_PI_FLAG_AUTO)

/* RFC 4862 section 5.5.3, RFC 4861 section 6.3.4 */
TEST(a_router_gives_addresses_and_a_way_out)
{
	const struct in6_addr a = made_from("2001:db8:5::");
	const struct in6_addr far = addr6("2001:4860::1");
	const struct in6_addr near = addr6("2001:db8:5::9");
	const struct in6_addr router = addr6("fe80::2");
	struct nhop6 nh;

	set("net.inet6.ip6.forwarding", "0");
	CHECK(!route6_lookup(&far, 0, &nh));
	router_advert(1800, "2001:db8:5::", ONLINK_AUTO, 600, 3600);
	CHECK_EQ(in6_addr_flags(mem[0], &a), IA6_PRESENT | IA6_AUTO);
	CHECK(route6_lookup(&far, 0, &nh));
	CHECK(IN6_ARE_ADDR_EQUAL(&nh.nh_gw, &router));
	CHECK(route6_lookup(&near, 0, &nh));
	CHECK(IN6_ARE_ADDR_EQUAL(&nh.nh_gw, &near));
	/* (e): an hour is accepted because it is longer; a minute is not */
	router_advert(1800, "2001:db8:5::", ONLINK_AUTO, 10, 60);
	t_sleep(120 * 1000);
	CHECK_EQ(in6_addr_flags(mem[0], &a), IA6_PRESENT | IA6_AUTO);
	t_sleep(1800 * 1000);
	CHECK(!route6_lookup(&far, 0, &nh));
	t_sleep(1800 * 1000);
	CHECK_EQ(in6_addr_flags(mem[0], &a), 0);
	CHECK(!route6_lookup(&near, 0, &nh));
	set("net.inet6.ip6.forwarding", "1");
}

TEST(a_router_that_leaves_says_so)
{
	const struct in6_addr far = addr6("2001:4860::1");
	struct nhop6 nh;

	set("net.inet6.ip6.forwarding", "0");
	router_advert(1800, "2001:db8:6::", 0, 0, 0);
	CHECK(route6_lookup(&far, 0, &nh));
	router_advert(0, "2001:db8:6::", 0, 0, 0);
	CHECK(!route6_lookup(&far, 0, &nh));
	set("net.inet6.ip6.forwarding", "1");
}

/* A redirect from src: the better next hop for far is target. */
static void
redirect(const char *src, const char *target, const char *far)
{
	struct nd_redirect rd = { .nd_rd_target = addr6(target),
	    .nd_rd_dst = addr6(far) };
	struct mbuf *m = packet6(0, src, ROUTER, IPPROTO_ICMPV6, sizeof(rd));

	rd.nd_rd_type = ND_REDIRECT;
	ip6_of(m)->ip6_hlim = 255;
	memcpy(payload_of(m), &rd, sizeof(rd));
	seal6(m, 0);
	mem_input(mem[0], m);
}

/* RFC 4861 section 8 */
TEST(a_router_knows_a_better_way)
{
	static const char host[] = "2001:4860::1";
	const struct in6_addr far = addr6(host), better = addr6("fe80::3");
	const uint64_t before = nd_stat("redirects");
	struct nhop6 nh;

	set("net.inet6.ip6.forwarding", "0");
	redirect("fe80::2", "fe80::3", host);	/* no route uses it */
	router_advert(1800, "2001:db8:6::", 0, 0, 0);
	redirect("fe80::9", "fe80::3", host);	/* nor by this one */
	redirect("fe80::2", "2001:db8::9", host);	/* no router's */
	CHECK_EQ(nd_stat("redirects"), before);
	redirect("fe80::2", "fe80::3", host);
	CHECK_EQ(nd_stat("redirects"), before + 1);
	CHECK(route6_lookup(&far, 0, &nh));
	CHECK(IN6_ARE_ADDR_EQUAL(&nh.nh_gw, &better));
	redirect("fe80::3", host, host);	/* it is a neighbour */
	CHECK(route6_lookup(&far, 0, &nh));
	CHECK(IN6_ARE_ADDR_EQUAL(&nh.nh_gw, &far));
	t_sleep(700 * 1000);
	CHECK(route6_lookup(&far, 0, &nh));
	CHECK(!IN6_ARE_ADDR_EQUAL(&nh.nh_gw, &far));
	router_advert(0, "2001:db8:6::", 0, 0, 0);
	CHECK(!route6_lookup(&far, 0, &nh));
	set("net.inet6.ip6.forwarding", "1");
}

TEST(what_a_router_may_not_say_is_ignored)
{
	static const char *const prefixes[] = { "fe80::", "ff05::",
	    "::ffff:10.0.0.0" };
	struct in6_addr a;

	set("net.inet6.ip6.forwarding", "0");
	for (size_t i = 0; i < nitems(prefixes); i++)
		router_advert(0, prefixes[i], ONLINK_AUTO, 600, 3600);
	router_advert(0, "2001:db8:8::", ONLINK_AUTO, 3600, 600);
	a = made_from("2001:db8:8::");
	CHECK_EQ(in6_addr_flags(mem[0], &a), 0);
	set("net.inet6.ip6.forwarding", "1");
	/* a router ignores advertisements of others */
	router_advert(0, "2001:db8:8::", ONLINK_AUTO, 600, 3600);
	CHECK_EQ(in6_addr_flags(mem[0], &a), 0);
	CHECK_EQ(sent[1].mq_len, 0);
}

/* Checks that the next report on the left has this group and type. */
static void
expect_report(const char *group, uint8_t type)
{
	const struct in6_addr want = addr6(group), all = addr6("ff02::16");
	struct mbuf *m = take_sent(0);
	const uint8_t *p = payload_of(m);

	CHECK_EQ(ip6_of(m)->ip6_nxt, IPPROTO_HOPOPTS);
	CHECK_EQ(ip6_of(m)->ip6_hlim, 1);
	CHECK(IN6_ARE_ADDR_EQUAL(&ip6_of(m)->ip6_dst, &all));
	CHECK(IN6_IS_ADDR_LINKLOCAL(&ip6_of(m)->ip6_src));
	CHECK(memcmp(p, "\x3a\0\5\2\0\0\1\0", 8) == 0);	/* router alert */
	CHECK_EQ(p[8], 143);
	CHECK_EQ(p[15], 1);
	CHECK_EQ(p[16], type);
	CHECK(memcmp(p + 20, &want, sizeof(want)) == 0);
	m_freem(m);
}

TEST(groups_are_joined_and_left_aloud)
{
	const struct in6_addr group = addr6("ff02::1234");

	CHECK_EQ(in_group_join(mem[0], &group, NULL), 0);
	expect_report("ff02::1234", 4);
	CHECK_EQ(in_group_join(mem[0], &group, NULL), 0);
	CHECK_EQ(sent[0].mq_len, 0);
	t_sleep(1500);
	/* repeated, because a report may be lost */
	expect_report("ff02::1234", 4);
	t_sleep(3000);
	CHECK_EQ(sent[0].mq_len, 0);
	in_group_leave(mem[0], &group, NULL);
	CHECK(in_group_ismember(mem[0], &group));
	in_group_leave(mem[0], &group, NULL);
	CHECK(!in_group_ismember(mem[0], &group));
	expect_report("ff02::1234", 3);
	CHECK_EQ(in_group_join(mem[0], &(struct in6_addr){ { { 0x20 } } },
	    NULL), EINVAL);
}

/* A query of a group for an answer within a second. */
static void
query(const char *src, const char *group, uint8_t hops)
{
	struct mbuf *m = packet6(0, src, "ff02::1", IPPROTO_ICMPV6, 28);
	const struct in6_addr g = addr6(group);

	memset(payload_of(m), 0, 28);
	payload_of(m)[0] = MLD_LISTENER_QUERY;
	payload_of(m)[4] = 3;
	memcpy(payload_of(m) + 8, &g, sizeof(g));
	ip6_of(m)->ip6_hlim = hops;
	seal6(m, 0);
	mem_input(mem[0], m);
}

TEST(queries_are_answered)
{
	const struct in6_addr group = addr6("ff02::1234");
	const uint64_t bad = counter("net.inet6.mld.stats.bad");
	unsigned general;

	CHECK_EQ(in_group_join(mem[0], &group, NULL), 0);
	t_sleep(5000);
	start_over();
	query("fe80::2", "ff02::1234", 1);
	t_sleep(3000);
	expect_report("ff02::1234", 2);
	CHECK_EQ(sent[0].mq_len, 0);
	query("fe80::2", "::", 1);
	t_sleep(3000);
	general = sent[0].mq_len;
	CHECK(general >= 3);	/* this group, and those of our addresses */
	start_over();
	query(HOST, "::", 1);
	query("fe80::2", "::", 64);
	t_sleep(3000);
	CHECK_EQ(counter("net.inet6.mld.stats.bad"), bad + 2);
	CHECK_EQ(sent[0].mq_len, 0);
	in_group_leave(mem[0], &group, NULL);
}

static void
fresh(void)
{
	t_sleep(5 * 1000);	/* reports and solicitations of the last test */
	learn_host6(1, HOST6(1));
	start_over();
}

int
main(int argc, char **argv)
{
	boot_router6();
	return (router6_main(argc, argv, fresh));
}
