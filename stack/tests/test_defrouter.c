/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Default routers of an IPv6 host (RFC 4861 section 6.3), by single packets in
 * virtual time.
 */
#include "tests/check.h"

#include "tests/net.h"
#include "tests/packet6.h"

#define	FAR	"2001:4860::1"

/* A router advertisement without options, or with the link address. */
static void
router_advert(const char *src, uint16_t lifetime, bool lladdr)
{
	const uint32_t len = sizeof(struct nd_router_advert);
	const struct nd_router_advert ra = {
		.nd_ra_type = ND_ROUTER_ADVERT,
		.nd_ra_router_lifetime = htons(lifetime)
	};
	struct mbuf *m = packet6(0, src, "ff02::1", IPPROTO_ICMPV6,
	    len + (lladdr ? 8 : 0));
	uint8_t *option = payload_of(m) + len;

	ip6_of(m)->ip6_hlim = 255;
	memcpy(payload_of(m), &ra, len);
	if (lladdr) {
		option[0] = ND_OPT_SOURCE_LINKADDR;
		option[1] = 1;
		memcpy(option + 2, HOST_MAC(0), 6);
	}
	seal6(m, 0);
	mem_input(mem[0], m);
}

/* A router answers a solicitation. */
static void
answer(const char *who, uint32_t flags)
{
	mem_input(mem[0], nd_message(0, who, ROUTER6(0), ND_NEIGHBOR_ADVERT, who,
	    flags | ND_NA_FLAG_SOLICITED, ND_OPT_TARGET_LINKADDR));
}

/* This host answers a far one: a packet by the default route. */
static void
send_far(void)
{
	struct mbuf *m = packet6(0, FAR, ROUTER6(0), IPPROTO_ICMPV6, 16);

	payload_of(m)[0] = ICMP6_ECHO_REQUEST;
	payload_of(m)[1] = 0;
	seal6(m, 0);
	mem_input(mem[0], m);
}

/* The router of the default route is addr; NULL: there is no route. */
static bool
goes_by(const char *router)
{
	const struct in6_addr far = addr6(FAR);
	struct in6_addr a;
	struct nhop6 nh;

	if (!route6_lookup(&far, 0, &nh))
		return (router == NULL);
	a = addr6(router != NULL ? router : "::");
	return (IN6_ARE_ADDR_EQUAL(&nh.nh_gw, &a));
}

/* Section 6.3.6: an unreachable router is replaced. */
TEST(another_router_takes_over_when_the_first_does_not_answer)
{
	router_advert("fe80::2", 1800, true);
	router_advert("fe80::3", 1800, true);
	CHECK(goes_by("fe80::2"));
	t_sleep(60 * 1000);	/* not used: nothing shows that it is away */
	CHECK(goes_by("fe80::2"));
	send_far();
	t_sleep(12 * 1000);	/* DELAY, and three probes */
	CHECK(goes_by("fe80::3"));
	/* the first one answers again: the second stays, because it works */
	router_advert("fe80::2", 1800, true);
	send_far();
	answer("fe80::3", ND_NA_FLAG_ROUTER);
	t_sleep(12 * 1000);
	CHECK(goes_by("fe80::3"));
}

/* Section 6.3.6: routers whose link addresses are unknown are tried in turn. */
TEST(each_router_is_tried_until_one_answers)
{
	bool tried[2] = { false, false };

	router_advert("fe80::2", 1800, false);
	router_advert("fe80::3", 1800, false);
	CHECK(goes_by("fe80::2"));
	for (unsigned i = 0; i < 4; i++) {
		send_far();
		t_sleep(1000);
		tried[0] |= goes_by("fe80::2");
		tried[1] |= goes_by("fe80::3");
	}
	CHECK(tried[0] && tried[1]);
	answer("fe80::3", ND_NA_FLAG_ROUTER);
	for (unsigned i = 0; i < 4; i++) {
		t_sleep(1000);
		CHECK(goes_by("fe80::3"));
	}
}

/* Sections 6.3.4 and 6.3.5 */
TEST(another_router_takes_over_when_a_lifetime_ends)
{
	router_advert("fe80::2", 60, true);
	router_advert("fe80::3", 120, true);
	router_advert("fe80::4", 1800, true);
	CHECK(goes_by("fe80::2"));
	t_sleep(61 * 1000);
	CHECK(goes_by("fe80::3"));
	router_advert("fe80::3", 120, true);	/* renewed */
	t_sleep(61 * 1000);
	CHECK(goes_by("fe80::3"));
	router_advert("fe80::3", 0, true);
	CHECK(goes_by("fe80::4"));
	router_advert("fe80::4", 0, true);
	CHECK(goes_by(NULL));
}

/* Section 7.2.5: an advertisement without the router flag. */
TEST(a_router_that_becomes_a_host_is_not_used)
{
	router_advert("fe80::2", 1800, true);
	router_advert("fe80::3", 1800, true);
	answer("fe80::2", ND_NA_FLAG_ROUTER);
	CHECK(goes_by("fe80::2"));
	answer("fe80::2", 0);
	CHECK(goes_by("fe80::3"));
}

TEST(a_configured_route_takes_precedence)
{
	const struct in6_addr any = in6addr_any, gw = addr6("fe80::9");

	CHECK_EQ(route6_add(&any, 0, &gw, mem[0], 0), 0);
	router_advert("fe80::2", 1800, true);
	t_sleep(2000);
	CHECK(goes_by("fe80::9"));
	router_advert("fe80::2", 0, true);
	CHECK(goes_by("fe80::9"));
	CHECK_EQ(route6_delete(&any, 0, 0), 0);
	CHECK(goes_by(NULL));
}

TEST(invented_routers_leave_the_first_ones)
{
	const uint64_t before =
	    counter("net.inet6.nd6.stats.toomanyrouters");
	char name[32];

	router_advert("fe80::2", 1800, true);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "fe80::1:%x", i);
		router_advert(name, 1800, true);
	}
	CHECK(goes_by("fe80::2"));
	CHECK_EQ(counter("net.inet6.nd6.stats.toomanyrouters"),
	    before + 1000 - 15);
	router_advert("fe80::2", 1800, true);	/* renewed */
	CHECK_EQ(counter("net.inet6.nd6.stats.toomanyrouters"),
	    before + 1000 - 15);
	CHECK(goes_by("fe80::2"));
}

/* All routers expire, and all neighbours. */
static void
fresh(void)
{
	set("net.inet6.ip6.forwarding", "0");
	t_sleep(1801 * 1000);
	CHECK(goes_by(NULL));
	start_over();
}

int
main(int argc, char **argv)
{
	boot_router6();
	set("net.inet6.nd6.gctimer", "600");
	return (router6_main(argc, argv, fresh));
}
