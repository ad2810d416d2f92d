/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IGMP and MLD from the link; MLD follows the extension headers of the input.
 */
#include "packets.h"

static void
shape(struct fuzz_packet *p)
{
	p->choice |= 1;
	p->ttl = 1;
	p->proto = (p->flags & STEP_IPV6) == 0 ? IPPROTO_IGMP :
	    p->flags & STEP_CUT ? IPPROTO_HOPOPTS : IPPROTO_ICMPV6;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return (fuzz_packets(data, size, shape));
}
