/* SPDX-License-Identifier: BSD-2-Clause */
/* A bridge of three interfaces in memory, and this host on it. */
#include "boot/boot.h"
#include "tests/check.h"

#include <errno.h>
#include <net/ethernet.h>

#include "dev/mem.h"
#include "machine/virtual/virtual.h"
#include "net/if_bridge.h"
#include "net/route.h"
#include "tests/net.h"

#define	MEMBERS	3
#define	ETHERTYPE_TEST	0x88b5		/* IEEE 802, local experiments */

static struct ifnet *members[MEMBERS];
static struct mbufq sent[MEMBERS];
#define	count(name)	t_sysctl("if.bridge0.stats." name)

static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };
static const uint8_t a[6] = { 2, 0, 0, 0, 0, 0xa }, b[6] = { 2, 0, 0, 0, 0, 0xb };

static void
keep(void *arg, struct mbuf *m)
{
	mbufq_enqueue(arg, m);
}

static void
receive(unsigned i, const uint8_t dst[6], const uint8_t src[6], uint32_t len)
{
	struct mbuf *m = m_getcl(len <= 1500 ? MCLBYTES : MJUMBYTES);

	m->m_data += MEM_HEADROOM;
	memset(m->m_data, 0, ETHER_HDR_LEN + len);
	memcpy(m->m_data, dst, 6);
	memcpy(m->m_data + 6, src, 6);
	m->m_data[12] = (char)(ETHERTYPE_TEST >> 8);
	m->m_data[13] = (char)(ETHERTYPE_TEST & 0xff);
	m->m_len = m->m_pkthdr.len = ETHER_HDR_LEN + len;
	mem_input(members[i], m);
}

/* The members that sent one frame, as a bit mask; clears the record. */
static unsigned
who_sent(void)
{
	unsigned who = 0;

	for (unsigned i = 0; i < MEMBERS; i++) {
		CHECK(sent[i].mq_len <= 1);
		who |= (sent[i].mq_len > 0 ? 1U : 0) << i;
		mbufq_drain(&sent[i]);
	}
	return (who);
}

TEST(frames_go_where_their_address_was_seen)
{
	receive(0, b, a, 46);
	CHECK_EQ(who_sent(), 6);	/* b is unknown: flooded */
	receive(1, a, b, 46);
	CHECK_EQ(who_sent(), 1);
	receive(0, b, a, 46);
	CHECK_EQ(who_sent(), 2);
	CHECK_EQ(count("forwarded"), 2);
	CHECK_EQ(count("flooded"), 1);
	receive(1, b, (const uint8_t[6]){ 2, 1 }, 46);
	CHECK_EQ(who_sent(), 0);	/* they receive from each other */
	receive(2, broadcast, a, 46);	/* a has moved */
	CHECK_EQ(who_sent(), 3);
	CHECK_EQ(count("moved"), 1);
	receive(1, a, b, 46);
	CHECK_EQ(who_sent(), 4);
}

TEST(the_silent_are_forgotten)
{
	const uint64_t expired = count("expired");

	receive(0, broadcast, a, 46);
	(void)who_sent();
	t_sleep(200 * 1000);
	receive(1, broadcast, b, 46);
	(void)who_sent();
	t_sleep(115 * 1000);
	CHECK(count("expired") > expired);
	receive(2, b, (const uint8_t[6]){ 2, 2 }, 46);
	CHECK_EQ(who_sent(), 2);
	receive(1, a, b, 46);
	CHECK_EQ(who_sent(), 5);
	t_sleep(320 * 1000);
}

TEST(the_table_evicts_the_idle)
{
	uint8_t ll[6] = { 2, 8 };

	t_sysctl_set("net.link.bridge.maxentries", "3");
	for (unsigned i = 0; i < 5; i++) {
		ll[5] = (uint8_t[]){ 0, 1, 2, 0, 3 }[i];
		receive(0, broadcast, ll, 46);
		(void)who_sent();
	}
	ll[5] = 0;
	receive(1, ll, b, 46);		/* known, because it sent again */
	CHECK_EQ(who_sent(), 1);
	t_sysctl_set("net.link.bridge.maxentries", "4096");
	t_sleep(320 * 1000);
}

/* Invented senders evict each other, not a host behind another member. */
TEST(the_table_has_a_limit)
{
	const uint64_t before = count("full");
	uint8_t ll[6] = { 2, 9 };

	t_sysctl_set("net.link.bridge.maxentries", "4");
	receive(1, broadcast, a, 46);
	(void)who_sent();
	for (ll[5] = 0; ll[5] < 6; ll[5]++) {
		receive(0, broadcast, ll, 46);
		(void)who_sent();
	}
	CHECK_EQ(count("full"), before + 3);
	receive(2, a, b, 46);
	CHECK_EQ(who_sent(), 2);	/* an old host: still known */
	ll[5] = 5;
	receive(1, ll, a, 46);
	CHECK_EQ(who_sent(), 1);	/* the newest one, too */
	ll[5] = 0;
	receive(1, ll, a, 46);
	CHECK_EQ(who_sent(), 5);	/* evicted: flooded */
	receive(0, broadcast, (const uint8_t[6]){ 0 }, 46);
	(void)who_sent();
	receive(1, (const uint8_t[6]){ 0 }, a, 46);
	CHECK_EQ(who_sent(), 5);	/* no station has this address */
	t_sysctl_set("net.link.bridge.maxentries", "4096");
	t_sleep(320 * 1000);
}

TEST(what_is_for_bridges_or_too_long_goes_nowhere)
{
	const uint64_t dropped = count("dropped");

	receive(0, (const uint8_t[6]){ 1, 0x80, 0xc2, 0, 0, 0 }, a, 46);
	receive(0, b, a, 1501);
	CHECK_EQ(who_sent(), 0);
	CHECK_EQ(count("dropped"), dropped + 2);
	receive(0, b, a, 1500);
	CHECK_EQ(who_sent(), 6);
}

TEST(this_host_is_on_the_bridge)
{
	struct ifnet *bridge = if_byname("bridge0");
	struct socket *so = t_socket(SOCK_DGRAM);
	struct sockaddr_in sin = t_addr("10.60.0.2", 9);
	struct iovec iov = { "abc", 3 };
	struct msghdr msg = { .msg_name = &sin, .msg_namelen = sizeof(sin),
	    .msg_iov = &iov, .msg_iovlen = 1 };
	size_t done;

	/* the ARP request for 10.60.0.2 goes to all members */
	CHECK_EQ(sosend(so, &msg, 0, &done), 0);
	CHECK_EQ(who_sent(), 7);
	CHECK(memcmp(bridge->if_lladdr, members[0]->if_lladdr, 6) == 0);
	receive(1, bridge->if_lladdr, b, 46);
	CHECK_EQ(who_sent(), 0);
	CHECK(count("ipackets") > 0);
	soclose(so);
}

TEST(members_must_be_there_alike_and_without_address)
{
	static const struct { const char *members, *reason; } wrong[] = {
		{ "", "a bridge needs members" },
		{ "lo0", "must be an Ethernet interface" },
		{ "mem9", "must be an Ethernet interface" },
		{ "mem0", "duplicate member" },
		{ "other0", "has an address" },
	};
	struct if_config ic = { .name = "bridge1", .queues = 1 };
	char why[128];

	(void)mem_attach("other0", "10.61.0.1/24", 0, NULL, keep, &sent[0]);
	for (size_t i = 0; i < nitems(wrong); i++) {
		snprintf(ic.members, sizeof(ic.members), "%s",
		    wrong[i].members);
		CHECK(bridge_create(&ic, why, sizeof(why)) != 0);
		CHECK(strstr(why, wrong[i].reason) != NULL);
	}
}

static void
fresh(void)
{
	(void)who_sent();
}

int
main(int argc, char **argv)
{
	struct if_config ic = { .name = "bridge0", .queues = 1,
	    .members = "mem0 mem1,mem2" };
	char why[128] = "", name[] = "mem0";
	int status;

	mach_virtual_enter(true);
	CHECK_EQ(stack_boot(NULL), 0);
	for (unsigned i = 0; i < MEMBERS; i++) {
		mbufq_init(&sent[i]);
		name[3] = (char)('0' + i);
		members[i] = mem_attach(name, NULL, 0, NULL, keep, &sent[i]);
	}
	CHECK_EQ(inet_config_set(&ic, "10.60.0.1/24", why, sizeof(why)), 0);
	CHECK_EQ(bridge_create(&ic, why, sizeof(why)), 0);
	CHECK_EQ(route_subnets(if_byname("bridge0")), 0);
	check_after = fresh;
	status = check_main(argc, argv);
	stack_shutdown();
	return (status);
}
