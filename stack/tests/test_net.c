/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces: ARP, routes, the fault injector, odd frames. */
#include "boot/boot.h"
#include "tests/check.h"

#include <errno.h>

#include "kern/synch.h"
#include "tests/packet.h"

#define	LEFT	"10.9.0.2"
#define	RIGHT	"10.9.1.2"

/* Makes an ARP packet from a host that the router does not know. */
static struct mbuf *
arp_packet(uint16_t op, const char *sender, const char *target)
{
	return (arp_frame(0, op, HOST_MAC(7), addr(sender), addr(target)));
}

TEST(arp_requests_for_us_are_answered)
{
	struct mbuf *m;

	mem_input(mem[0], arp_packet(ARPOP_REQUEST, "10.9.0.7", "10.9.0.1"));
	m = take_sent(0);
	CHECK_EQ(ntohs(arp_in(m)->arp_op), ARPOP_REPLY);
	CHECK(memcmp(arp_in(m)->arp_sha, mem[0]->if_lladdr, 6) == 0);
	CHECK(memcmp(arp_in(m)->arp_tha, HOST_MAC(7), 6) == 0);
	m_freem(m);
	mem_input(mem[0], arp_packet(ARPOP_REQUEST, "10.9.0.7", "10.9.0.9"));
	CHECK_EQ(sent[0].mq_len, 0);
}

TEST(packets_wait_for_an_answer_and_leave_in_order)
{
	struct mbuf *m;

	for (uint32_t i = 1; i <= 3; i++)
		mem_input(mem[0], packet(0, LEFT, "10.9.1.50", 253, i));
	CHECK_EQ(sent[1].mq_len, 1);	/* one request */
	m = take_sent(1);
	CHECK_EQ(ntohs(arp_in(m)->arp_op), ARPOP_REQUEST);
	m_freem(m);
	learn_host(1, "10.9.1.50");
	for (uint32_t i = 1; i <= 3; i++) {
		m = take_sent(1);
		CHECK_EQ(m->m_pkthdr.len, ETHER_HDR_LEN + IP_HDRLEN + i);
		m_freem(m);
	}
}

TEST(few_packets_wait)
{
	uint64_t before = counter("net.link.ether.arp.stats.dropped");

	for (int i = 0; i < 100; i++)
		mem_input(mem[0], packet(0, LEFT, "10.9.1.51", 253, 8));
	CHECK_EQ(counter("net.link.ether.arp.stats.dropped"), before + 36);
	learn_host(1, "10.9.1.51");
}

TEST(our_address_is_defended_and_not_learnt)
{
	struct mbuf *m;
	uint64_t before = counter("net.link.ether.arp.stats.conflicts");

	mem_input(mem[0], arp_packet(ARPOP_REPLY, "10.9.0.1", "10.9.0.1"));
	CHECK_EQ(counter("net.link.ether.arp.stats.conflicts"), before + 1);
	m = take_sent(0);
	CHECK(memcmp(arp_in(m)->arp_spa, arp_in(m)->arp_tpa, 4) == 0);
	m_freem(m);
}

TEST(malformed_arp_is_counted)
{
	uint64_t before = counter("net.link.ether.arp.stats.bad");
	struct mbuf *m;

	m = arp_packet(ARPOP_REQUEST, "10.9.0.7", "10.9.0.1");
	((struct ether_arp *)(void *)(m->m_data + ETHER_HDR_LEN))->arp_hln = 8;
	mem_input(mem[0], m);
	mem_input(mem[0], frame(0, ETHERTYPE_ARP, 20));
	CHECK_EQ(counter("net.link.ether.arp.stats.bad"), before + 2);
	CHECK_EQ(sent[0].mq_len, 0);
}

TEST(frames_for_others_are_left_alone)
{
	struct mbuf *m = echo_request("10.9.0.1", 8);

	m->m_data[5] ^= 1;
	mem_input(mem[0], m);
	mem_input(mem[0], frame(0, ETHERTYPE_IPV6, 40));
	CHECK_EQ(sent[0].mq_len, 0);
}

TEST(the_longest_route_wins)
{
	struct in_addr via0 = addr(LEFT), via1 = addr(RIGHT);
	struct nhop nh;

	CHECK_EQ(route_add(addr("0.0.0.0"), 0, via0, NULL), 0);
	CHECK_EQ(route_add(addr("20.0.0.0"), 8, via1, NULL), 0);
	CHECK_EQ(route_add(addr("20.1.0.0"), 16, via0, NULL), 0);
	CHECK_EQ(route_add(addr("20.1.7.7"), 16, via0, NULL), EEXIST);
	CHECK_EQ(route_add(addr("30.0.0.0"), 8, addr("99.0.0.1"), NULL),
	    ENETUNREACH);
	CHECK(route_lookup(addr("20.2.0.1"), &nh));
	CHECK(nh.nh_ifp == mem[1] && nh.nh_gw.s_addr == via1.s_addr);
	CHECK(route_lookup(addr("20.1.255.1"), &nh));
	CHECK(nh.nh_ifp == mem[0]);
	CHECK(route_lookup(addr("8.8.8.8"), &nh));
	CHECK(nh.nh_gw.s_addr == via0.s_addr);
	CHECK(route_lookup(addr(RIGHT), &nh));	/* on link: itself */
	CHECK(nh.nh_ifp == mem[1] && nh.nh_gw.s_addr == via1.s_addr);
	CHECK_EQ(route_delete(addr("20.1.0.0"), 16), 0);
	CHECK_EQ(route_delete(addr("20.1.0.0"), 16), ESRCH);
	CHECK(route_lookup(addr("20.1.255.1"), &nh));
	CHECK(nh.nh_ifp == mem[1]);
	CHECK_EQ(route_delete(addr("20.0.0.0"), 8), 0);
	CHECK_EQ(route_delete(addr("0.0.0.0"), 0), 0);
	CHECK(!route_lookup(addr("8.8.8.8"), &nh));
}

static void
receive_one_of_each(void)
{
	mem_input(mem[0], packet(0, LEFT, RIGHT, 253, 8));
	mem_input(mem[0], arp_packet(ARPOP_REQUEST, "10.9.0.7", "10.9.0.1"));
}

TEST(a_monitor_counts_and_drops)
{
	const enum if_monitor where[] = { MONITOR_QUEUE, MONITOR_TOP,
	    MONITOR_HEADER };
	uint64_t before = counter("mbuf.outstanding");

	for (size_t i = 0; i < nitems(where); i++) {
		uint64_t packets = counter("if.mem0.stats.ipackets");
		uint64_t groups = counter("if.mem0.stats.imcasts");
		struct mbuf *m = packet(0, LEFT, RIGHT, 253, 8);

		atomic_store_u32(&mem[0]->if_modes.monitor, where[i]);
		receive_one_of_each();
		memset(m->m_data, 0xff, 6);	/* broadcast */
		mem_input(mem[0], m);
		CHECK_EQ(sent[0].mq_len + sent[1].mq_len, 0);
		CHECK_EQ(counter("if.mem0.stats.ipackets"), packets + 3);
		/* Counted only if the header was read. */
		CHECK_EQ(counter("if.mem0.stats.imcasts"), groups +
		    (where[i] == MONITOR_HEADER));
	}
	CHECK_EQ(counter("mbuf.outstanding"), before);
	atomic_store_u32(&mem[0]->if_modes.monitor, MONITOR_OFF);
	receive_one_of_each();
	CHECK_EQ(sent[0].mq_len, 1);
	CHECK_EQ(sent[1].mq_len, 1);
}

/* The output of an injector. */
struct trace {
	unsigned	 passed, damaged, late;
	uint32_t	 highest, digest;
};

static struct mtx trace_lock;
static struct trace trace;

static void
record(void *arg, struct mbuf *m)
{
	uint32_t number, again;

	(void)arg;
	m_copydata(m, 0, 4, &number);
	m_copydata(m, 60, 4, &again);
	mtx_lock(&trace_lock);
	trace.passed++;
	trace.damaged += number != again;
	trace.late += number < trace.highest;
	if (number > trace.highest && number == again)
		trace.highest = number;
	trace.digest = trace.digest * 31 + number;
	mtx_unlock(&trace_lock);
	m_freem(m);
}

/* 20000 numbered packets through an injector; none stays in it. */
static struct trace
impair(struct impair_config ic)
{
	/* Like an interface, an injector is never freed: no leak. */
	static struct if_impair *all[16];
	static unsigned n;
	struct if_impair *im = all[n++] = if_impair_create(&ic);
	uint64_t before = counter("mbuf.outstanding");

	trace = (struct trace){ 0 };
	for (uint32_t i = 1; i <= 20000; i++) {
		struct mbuf *m = m_getcl(MCLBYTES);

		m->m_len = m->m_pkthdr.len = 64;
		memset(m->m_data, 0, 64);
		memcpy(m->m_data, &i, 4);
		memcpy(m->m_data + 60, &i, 4);
		if_impair_pass(im, m, record, NULL);
	}
	mtx_lock(&trace_lock);
	while (counter("mbuf.outstanding") != before)
		msleep(&trace, &trace_lock, 0, "test", NSEC_PER_MSEC);
	mtx_unlock(&trace_lock);
	return (trace);
}

TEST(impairments_happen_as_often_as_asked)
{
	struct trace t;

	t = impair((struct impair_config){ .loss = 100000, .seed = 1 });
	CHECK(t.passed > 17500 && t.passed < 18500);
	CHECK_EQ(t.late + t.damaged, 0);
	t = impair((struct impair_config){ .dup = 100000, .seed = 1 });
	CHECK(t.passed > 21500 && t.passed < 22500);
	t = impair((struct impair_config){ .corrupt = 500000, .seed = 1 });
	CHECK_EQ(t.passed, 20000);
	CHECK(t.damaged > 500);		/* 8 of 64 bytes are compared */
	t = impair((struct impair_config){ .reorder = 100000, .seed = 1 });
	CHECK_EQ(t.passed, 20000);
	CHECK(t.late > 1000 && t.late < 2500);
}

TEST(a_long_wire_is_late_and_keeps_order)
{
	nsec_t before = mach_uptime();
	struct trace t = impair((struct impair_config){ .delay = 100000,
	    .seed = 1 });

	CHECK(mach_uptime() - before >= 100 * NSEC_PER_MSEC);
	/*
	 * The capacity of the wire, plus what was sent after it had space
	 * again.
	 */
	CHECK(t.passed >= 16384);
	CHECK_EQ(t.late + t.damaged, 0);
}

TEST(a_seed_repeats_itself)
{
	struct impair_config ic = { .loss = 50000, .dup = 50000, .seed = 42 };
	struct trace a = impair(ic), b = impair(ic), c;

	CHECK_EQ(a.digest, b.digest);
	ic.seed = 43;
	c = impair(ic);
	CHECK(a.digest != c.digest);
}

int
main(int argc, char **argv)
{
	int status;

	boot_router();
	mtx_init(&trace_lock, LC_TEST);
	start_over();
	check_after = start_over;
	status = check_main(argc, argv);
	stack_shutdown();
	return (status);
}
