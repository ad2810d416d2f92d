/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP redirects: a router sends them, a host accepts them (RFC 1122 section
 * 3.2.2.2).
 */
#include "boot/boot.h"
#include "tests/check.h"

#include "tests/packet.h"

#define	LEFT	"10.9.0.2"
#define	ROUTER	"10.9.0.1"
#define	PROTO_TEST	253	/* RFC 3692 */

TEST(a_router_tells_hosts_of_a_better_hop)
{
	struct mbuf *m;

	learn_host(0, "10.9.0.9");
	CHECK_EQ(route_add(addr("10.70.0.0"), 16, addr("10.9.0.9"), NULL), 0);
	for (unsigned fast = 0; fast < 2; fast++) {
		set("net.inet.ip.fastforwarding", fast ? "1" : "0");
		mem_input(mem[0], packet(0, LEFT, "10.70.0.1", PROTO_TEST,
		    40));
		m = take_sent(0);
		CHECK_EQ(icmp_in(m)->icmp_type, ICMP_REDIRECT);
		CHECK_EQ(icmp_in(m)->icmp_code, ICMP_REDIRECT_HOST);
		CHECK_EQ(icmp_in(m)->icmp_gwaddr.s_addr,
		    addr("10.9.0.9").s_addr);
		CHECK_EQ(IP_AT(m)->ip_dst.s_addr, addr(LEFT).s_addr);
		m_freem(m);
		m = take_sent(0);
		CHECK_EQ(IP_AT(m)->ip_dst.s_addr, addr("10.70.0.1").s_addr);
		m_freem(m);
	}
	set("net.inet.ip.fastforwarding", "0");
	set("net.inet.ip.redirect", "0");
	mem_input(mem[0], packet(0, LEFT, "10.70.0.1", PROTO_TEST, 40));
	CHECK_EQ(IP_AT(sent[0].mq_head)->ip_p, PROTO_TEST);
	m_freem(take_sent(0));
	/* no redirect for another subnet or interface */
	set("net.inet.ip.redirect", "1");
	mem_input(mem[0], packet(0, "10.71.0.1", "10.70.0.1", PROTO_TEST, 40));
	m_freem(take_sent(0));
	CHECK_EQ(sent[0].mq_len, 0);
	CHECK_EQ(route_delete(addr("10.70.0.0"), 16), 0);
}

/* A redirect from a router: the better gateway for dst is gw. */
static void
redirect(const char *from, const char *dst, const char *gw)
{
	struct mbuf *m = packet(0, from, ROUTER, IPPROTO_ICMP, 8 + 28);
	struct icmp *icp = (struct icmp *)(void *)(m->m_data + ETHER_HDR_LEN +
	    IP_HDRLEN);

	memset(icp, 0, 36);
	icp->icmp_type = ICMP_REDIRECT;
	icp->icmp_code = ICMP_REDIRECT_HOST;
	icp->icmp_gwaddr = addr(gw);
	icp->icmp_ip = (struct ip){ .ip_v = IPVERSION, .ip_hl = 5,
	    .ip_p = IPPROTO_UDP, .ip_src = addr(ROUTER),
	    .ip_dst = addr(dst) };
	icp->icmp_cksum = in_fold(in_sum(m, ETHER_HDR_LEN + IP_HDRLEN, 36, 0));
	mem_input(mem[0], m);
}

static struct in_addr
hop_to(const char *dst)
{
	struct nhop nh;

	CHECK(route_lookup(addr(dst), &nh));
	return (nh.nh_gw);
}

TEST(a_host_heeds_the_router_it_uses)
{
	static const char *const wrong[][3] = {
		{ "10.9.0.8", "10.70.0.1", "10.9.0.7" },   /* not in use */
		{ "10.9.0.9", "10.70.0.1", "10.9.1.2" },   /* another link */
		{ "10.9.0.9", "10.70.0.1", ROUTER },
		{ "10.9.0.9", "10.70.0.1", "10.9.0.255" },
		{ "10.9.0.9", "10.99.0.1", "10.9.0.7" },   /* no route */
		{ LEFT, LEFT, "10.9.0.7" },
	};

	CHECK_EQ(route_add(addr("10.70.0.0"), 16, addr("10.9.0.9"), NULL), 0);
	redirect("10.9.0.9", "10.70.0.1", "10.9.0.7");	/* a router does not */
	CHECK_EQ(hop_to("10.70.0.1").s_addr, addr("10.9.0.9").s_addr);
	set("net.inet.ip.forwarding", "0");
	for (size_t i = 0; i < nitems(wrong); i++)
		redirect(wrong[i][0], wrong[i][1], wrong[i][2]);
	CHECK_EQ(counter("net.inet.icmp.stats.badredirects"), nitems(wrong));
	set("net.inet.icmp.drop_redirect", "1");
	redirect("10.9.0.9", "10.70.0.1", "10.9.0.7");
	set("net.inet.icmp.drop_redirect", "0");
	CHECK_EQ(hop_to("10.70.0.1").s_addr, addr("10.9.0.9").s_addr);
	redirect("10.9.0.9", "10.70.0.1", "10.9.0.7");
	CHECK_EQ(hop_to("10.70.0.1").s_addr, addr("10.9.0.7").s_addr);
	CHECK_EQ(hop_to("10.70.0.2").s_addr, addr("10.9.0.9").s_addr);
	redirect("10.9.0.7", "10.70.0.1", "10.9.0.6");
	CHECK_EQ(hop_to("10.70.0.1").s_addr, addr("10.9.0.6").s_addr);
	CHECK_EQ(counter("net.inet.icmp.stats.redirects"), 2);
	set("net.inet.ip.forwarding", "1");
	CHECK_EQ(route_delete(addr("10.70.0.1"), 32), 0);
	CHECK_EQ(route_delete(addr("10.70.0.0"), 16), 0);
}

int
main(int argc, char **argv)
{
	int status;

	boot_router();
	start_over();
	check_after = start_over;
	status = check_main(argc, argv);
	CHECK_EQ(counter("mbuf.outstanding"), 0);
	stack_shutdown();
	return (status);
}
