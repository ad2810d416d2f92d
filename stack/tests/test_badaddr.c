/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses that no other host can have: packets from them are dropped, and
 * they enter no table (docs/reference/stack-limits.md).
 */
#include "tests/check.h"

#include "tests/net.h"
#include "tests/packet6.h"

#define	ROUTER	"10.9.0.1"
#define	RIGHT	"10.9.1.2"
#define	PROTO_TEST	253	/* RFC 3692 */

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
	/* a host without an address requests one, and joins local groups */
	mem_input(mem[0], packet(0, "0.0.0.0", "255.255.255.255", IPPROTO_UDP,
	    40));
	mem_input(mem[0], packet(0, "0.0.0.0", "224.0.0.1", PROTO_TEST, 40));
	CHECK_EQ(counter("net.inet.ip.stats.delivered"), delivered + 1);
	mem_input(mem[0], packet(0, "0.1.2.3", "255.255.255.255", IPPROTO_UDP,
	    40));
	mem_input(mem[0], packet(0, "0.0.0.0", "224.0.1.1", PROTO_TEST, 40));
	CHECK_EQ(counter("net.inet.ip.stats.badaddr"),
	    before + 4 * nitems(bad) + 2);
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
	const uint64_t before = counter("net.link.ether.arp.stats.bad");
	const uint64_t evicted = counter("net.link.ether.arp.stats.evicted");
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
	CHECK_EQ(counter("net.link.ether.arp.stats.bad"), before + nitems(bad));
	/* the network's broadcast address is no neighbour: evicts none */
	learn_host(0, "10.9.0.2");
	start_over();
	set("net.link.ether.arp.maxentries", "1");
	mem_input(mem[0], arp_frame(0, ARPOP_REPLY, HOST_MAC(9),
	    addr("10.9.0.255"), mem[0]->if_addr));
	CHECK_EQ(counter("net.link.ether.arp.stats.evicted"), evicted);
	set("net.link.ether.arp.maxentries", "4096");
	mem_input(mem[0], nd_message(0, ROUTER6(0), ROUTER6(0),
	    ND_NEIGHBOR_SOLICIT, ROUTER6(0), 0, ND_OPT_SOURCE_LINKADDR));
	CHECK_EQ(sent[0].mq_len, 0);
}

int
main(int argc, char **argv)
{
	boot_router6();
	return (router6_main(argc, argv, start_over));
}
