/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbour discovery messages from the link.
 */
#include "packets.h"

static void
shape(struct fuzz_packet *p)
{
	p->flags |= STEP_IPV6 | STEP_CHECKSUM;
	p->proto = IPPROTO_ICMPV6;
	p->ttl = 255;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return (fuzz_packets(data, size, shape));
}
