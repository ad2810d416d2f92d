/* SPDX-License-Identifier: BSD-2-Clause */
/* Reassembly: any order, duplicates, overlaps, limits. */
#include "boot/boot.h"
#include "tests/check.h"

#include "tests/packet.h"

#define	LEFT	"10.9.0.2"
#define	ROUTER	"10.9.0.1"
#define	PROTO_TEST	253
#define	UNIT	64		/* payload of one fragment, in bytes */

static uint32_t delivered;
static uint64_t occupied;	/* memory of the last datagram */
static uint16_t next_id;

static void
test_input(struct mbuf *m, unsigned hlen)
{
	delivered = m->m_pkthdr.len - hlen;
	occupied = m_memory(m);
	for (uint32_t k = 0; k < delivered; k++) {
		unsigned char c;

		m_copydata(m, hlen + k, 1, &c);
		CHECK_EQ(c, (unsigned char)(k / UNIT));
	}
	m_freem(m);
}

/*
 * Bytes [off, off + len) of a datagram; each byte is the number of its 8-byte
 * unit.
 */
static void
input_fragment(uint32_t off, uint32_t len, bool more)
{
	struct mbuf *m = packet(0, LEFT, ROUTER, PROTO_TEST, len);
	struct ip *ip = (void *)(m->m_data + ETHER_HDR_LEN);

	ip->ip_id = htons(next_id);
	ip->ip_off = htons((uint16_t)(off / 8 | (more ? IP_MF : 0)));
	for (uint32_t k = 0; k < len; k++)
		((char *)(ip + 1))[k] = (char)((off + k) / UNIT);
	seal(ip);
	mem_input(mem[0], m);
}

static void
input_unit(unsigned i, unsigned of)
{
	input_fragment(i * UNIT, UNIT, i + 1 < of);
}

TEST(any_order_will_do)
{
	static const unsigned orders[][4] = {
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 },
	};

	for (size_t i = 0; i < nitems(orders); i++) {
		delivered = 0;
		next_id++;
		for (unsigned k = 0; k < 4; k++) {
			CHECK_EQ(delivered, 0);
			input_unit(orders[i][k], 4);
		}
		CHECK_EQ(delivered, 4 * UNIT);
	}
}

/* A socket is charged for the bytes of a datagram, not for its memory. */
TEST(short_fragments_do_not_occupy_an_mbuf_each)
{
	delivered = 0;
	next_id++;
	for (unsigned i = 0; i < UNIT; i++)
		input_fragment(i * 8, 8, i + 1 < UNIT);
	CHECK_EQ(delivered, 8 * UNIT);
	CHECK(occupied <= 8 * delivered);
}

TEST(duplicates_do_no_harm)
{
	delivered = 0;
	next_id++;
	input_unit(1, 3);
	input_unit(1, 3);
	input_unit(2, 3);
	input_unit(2, 3);
	input_unit(0, 3);
	CHECK_EQ(delivered, 3 * UNIT);
}

TEST(datagrams_are_told_apart)
{
	delivered = 0;
	next_id++;
	input_unit(0, 2);
	next_id++;
	input_unit(1, 2);
	CHECK_EQ(delivered, 0);
	input_unit(0, 2);
	CHECK_EQ(delivered, 2 * UNIT);
	next_id--;
	delivered = 0;
	input_unit(1, 2);
	CHECK_EQ(delivered, 2 * UNIT);
	next_id++;
}

TEST(an_overlap_gives_the_datagram_up)
{
	static const struct { uint32_t off, len; bool more; } second[] = {
		{ 8, UNIT, true }, { UNIT - 8, UNIT, true },
		{ 2 * UNIT, UNIT, true },	/* beyond the last fragment */
		/* a last fragment that ends before others */
		{ UNIT - 8, 8, false },
	};

	for (size_t i = 0; i < nitems(second); i++) {
		delivered = 0;
		next_id++;
		input_unit(1, 2);
		input_fragment(0, UNIT - 8, true);
		input_fragment(second[i].off, second[i].len, second[i].more);
		input_unit(0, 2);
		CHECK_EQ(delivered, 0);
		input_unit(1, 2);
		CHECK_EQ(delivered, 2 * UNIT);	/* begun anew */
	}
	set("net.inet.ip.maxfragpackets", "0");
	next_id++;
	input_unit(0, 2);
	input_unit(1, 2);
	set("net.inet.ip.maxfragpackets", "256");
	CHECK(counter("net.inet.ip.stats.fragdropped") > 0);
}

TEST(nonsense_is_dropped)
{
	uint64_t before = counter("net.inet.ip.stats.fragdropped");

	delivered = 0;
	next_id++;
	input_fragment(0, UNIT + 1, true);	/* not a multiple of 8 */
	input_fragment(UNIT, 0, true);		/* empty */
	input_fragment(65528, UNIT, false);	/* beyond 65535 */
	CHECK_EQ(counter("net.inet.ip.stats.fragdropped"), before + 3);
	CHECK_EQ(delivered, 0);
}

TEST(many_datagrams_and_many_fragments_have_limits)
{
	uint64_t held = counter("mbuf.outstanding");

	set("net.inet.ip.maxfragpackets", "10");
	for (int i = 0; i < 1000; i++) {
		next_id++;
		input_unit(0, 2);
	}
	CHECK(counter("mbuf.outstanding") <= held + 2 * 10);
	set("net.inet.ip.maxfragpackets", "256");
	set("net.inet.ip.maxfragsperpacket", "4");
	next_id++;
	delivered = 0;
	for (unsigned i = 0; i < 6; i++)
		input_unit(i, 6);
	CHECK_EQ(delivered, 0);
	set("net.inet.ip.maxfragsperpacket", "64");
}

int
main(int argc, char **argv)
{
	int status;

	boot_router();
	ip_register(PROTO_TEST, test_input, NULL);
	check_after = start_over;
	status = check_main(argc, argv);
	stack_shutdown();
	return (status);
}
