/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP and ICMPv6: echoes, errors about sockets and tunnels, raw sockets.
 */
#include "packets.h"

static void
shape(struct fuzz_packet *p)
{
	p->proto = p->flags & STEP_IPV6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return (fuzz_packets(data, size, shape));
}
