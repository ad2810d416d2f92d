/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floods of ARP and IPv4 from a link: each fills one of the stack's tables in
 * virtual time.  An old neighbour, an old connection and a new neighbour must
 * still work.  docs/reference/stack-limits.md lists all tables.
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
#define	arp_stat(name)	counter("net.link.ether.arp.stats." name)

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

/* Waits until all link addresses have expired. */
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

/* The same for the host on the right. */
static void
expect_right_resolved(void)
{
	struct mbuf *m;

	start_over();
	mem_input(mem[0], packet(0, LEFT, RIGHT, PROTO_TEST, 40));
	m = take_sent(1);
	CHECK_EQ(IP_AT(m)->ip_p, PROTO_TEST);
	m_freem(m);
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
	set("net.link.ether.arp.maxentries", "32");
	learn_host(1, RIGHT);
	resolve_left(addr("10.9.0.3"));
	for (unsigned i = 0; i < 250; i++)
		send_left(nth("10.9.0.4", i));
	expect_resolved(addr("10.9.0.3"));
	resolve_left(addr("10.9.0.254"));
	expect_right_resolved();	/* although it was only heard */
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

/* Threads remember link addresses, but not those of evicted entries. */
TEST(an_evicted_neighbour_is_requested_again)
{
	set("net.link.ether.arp.maxentries", "1");
	resolve_left(addr("10.9.0.3"));
	expect_resolved(addr("10.9.0.3"));
	send_left(addr("10.9.0.4"));
	start_over();
	send_left(addr("10.9.0.3"));
	CHECK_EQ(requests_for(addr("10.9.0.3")), 1);
	CHECK_EQ(sent[0].mq_len, 1);
	set("net.link.ether.arp.maxentries", "4096");
	forget_all();
}

TEST(a_neighbour_changes_its_link_address)
{
	static const uint8_t other[6] = { 0x02, 'o', 't', 'h', 'e', 'r' };
	const struct in_addr dst = addr("10.9.0.3");
	struct mbuf *m;

	resolve_left(dst);
	expect_resolved(dst);
	mem_input(mem[0], arp_frame(0, ARPOP_REPLY, other, dst,
	    mem[0]->if_addr));
	start_over();
	send_left(dst);
	m = take_sent(0);
	CHECK(memcmp(mtod(m, struct ether_header *)->ether_dhost, other,
	    6) == 0);
	m_freem(m);
	forget_all();
}

TEST(a_neighbour_in_use_is_requested_before_it_expires)
{
	resolve_left(addr("10.9.0.3"));
	expect_resolved(addr("10.9.0.3"));
	t_sleep(1180 * 1000);		/* max_age is 1200 s */
	start_over();
	send_left(addr("10.9.0.3"));
	CHECK_EQ(sent[0].mq_len, 2);	/* the packet and a request */
	forget_all();
}

/* A full table of confirmed neighbours takes another one during a scan. */
TEST(a_new_neighbour_gets_into_a_full_table)
{
	struct mbuf *m;

	set("net.link.ether.arp.maxentries", "64");
	learn_host(1, RIGHT);
	for (unsigned i = 0; i < 64; i++)
		resolve_left(nth("10.9.0.10", i));
	start_over();
	for (unsigned i = 0; i < 50; i++)
		send_left(nth("10.9.0.150", i));
	send_left(addr("10.9.0.250"));
	send_left(addr("10.9.0.251"));	/* the scan goes on */
	mbufq_drain(&sent[0]);
	mem_input(mem[0], arp_frame(0, ARPOP_REPLY, HOST_MAC(0),
	    addr("10.9.0.250"), mem[0]->if_addr));
	m = take_sent(0);		/* the packet that waited */
	CHECK_EQ(IP_AT(m)->ip_dst.s_addr, addr("10.9.0.250").s_addr);
	m_freem(m);
	expect_resolved(addr("10.9.0.250"));
	expect_resolved(addr("10.9.0.73"));	/* confirmed last */
	expect_right_resolved();	/* its interface has a share, too */
	set("net.link.ether.arp.maxentries", "4096");
	forget_all();
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
	const uint64_t before = counter("net.inet.ip.stats.reassembled");
	const uint64_t timeout = counter("net.inet.ip.stats.fragtimeout");
	const uint64_t evicted = counter("net.inet.ip.stats.fragevicted");

	for (uint16_t id = 1; id <= FLOOD; id++)
		fragment(id, 0, true);
	CHECK_EQ(counter("net.inet.ip.stats.fragevicted"),
	    evicted + FLOOD - 256);
	fragment(5000, 0, true);
	fragment(5000, 64, false);
	CHECK_EQ(counter("net.inet.ip.stats.reassembled"), before + 1);
	fragment(FLOOD, 64, false);	/* the newest was not evicted */
	CHECK_EQ(counter("net.inet.ip.stats.reassembled"), before + 2);
	t_sleep(32 * 1000);
	/* the datagram 5000 evicted one; the others end together */
	CHECK_EQ(counter("net.inet.ip.stats.fragtimeout"), timeout + 254);
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
