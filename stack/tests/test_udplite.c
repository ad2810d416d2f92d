/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single datagrams of UDP-Lite (RFC 3828): which headers are valid.
 * posix_udplite.c tests the sockets.
 */
#include "tests/check.h"

#include <netinet/udp.h>

#include "tests/net.h"
#include "tests/packet6.h"

#define	LEFT	"10.9.0.2"
#define	ROUTER	"10.9.0.1"
#define	LEN	12		/* header and four bytes */
#define	AT	(ETHER_HDR_LEN + IP_HDRLEN)

/*
 * A datagram with this coverage in its header.  The sum of the first covered
 * bytes is right; if their number is below that of the header, because of the
 * source port.  zero: the checksum is zero, and the sum is right nevertheless.
 */
static struct mbuf *
datagram(uint16_t coverage, uint32_t covered, bool zero)
{
	struct mbuf *m = packet(0, LEFT, ROUTER, IPPROTO_UDPLITE, LEN);
	struct udphdr *uh = (void *)(m->m_data + AT);
	uint16_t *right = &uh->uh_sum;

	if (zero || covered < sizeof(*uh))
		right = zero ? (void *)(uh + 1) : &uh->uh_sport;
	uh->uh_ulen = htons(coverage);
	uh->uh_sum = zero ? 0 : htons(0x1234);
	*right = 0;
	*right = in_fold(in_sum(m, AT, covered, in_pseudo(addr(LEFT),
	    addr(ROUTER), IPPROTO_UDPLITE, LEN)));
	return (m);
}

TEST(a_header_covers_itself_and_at_most_all)
{
	const uint64_t bad = counter("net.inet.udp.stats.badsum");
	const uint64_t good = counter("net.inet.udp.stats.noport");

	/* nobody is at the port, so that valid ones are counted */
	for (uint16_t coverage = 8; coverage <= LEN; coverage++)
		mem_input(mem[0], datagram(coverage, coverage, false));
	mem_input(mem[0], datagram(0, LEN, false));
	CHECK_EQ(counter("net.inet.udp.stats.noport"), good + 6);
	CHECK_EQ(counter("net.inet.udp.stats.badsum"), bad);
	for (uint16_t coverage = 2; coverage < 8; coverage++)
		mem_input(mem[0], datagram(coverage, coverage, false));
	mem_input(mem[0], datagram(LEN + 1, LEN, false));
	mem_input(mem[0], datagram(UINT16_MAX, LEN, false));
	mem_input(mem[0], packet(0, LEFT, ROUTER, IPPROTO_UDPLITE, 7));
	CHECK_EQ(counter("net.inet.udp.stats.badsum"), bad + 9);
	CHECK_EQ(counter("net.inet.udp.stats.noport"), good + 6);
	start_over();
}

/* RFC 3828 section 3.1: a checksum of zero is not allowed. */
TEST(covered_bytes_must_have_their_checksum)
{
	const uint64_t bad = counter("net.inet.udp.stats.badsum");
	const uint64_t good = counter("net.inet.udp.stats.noport");
	struct mbuf *m;

	mem_input(mem[0], datagram(0, LEN, true));
	CHECK_EQ(counter("net.inet.udp.stats.badsum"), bad + 1);
	for (uint32_t damaged = 8; damaged < LEN; damaged++) {
		m = datagram(10, 10, false);
		m->m_data[AT + damaged] ^= 1;
		mem_input(mem[0], m);
	}
	/* two of the four damaged bytes are covered */
	CHECK_EQ(counter("net.inet.udp.stats.badsum"), bad + 3);
	CHECK_EQ(counter("net.inet.udp.stats.noport"), good + 2);
	start_over();
}

int
main(int argc, char **argv)
{
	boot_router6();
	return (router6_main(argc, argv, start_over));
}
