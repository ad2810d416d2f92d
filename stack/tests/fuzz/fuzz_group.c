/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IGMP and MLD, from on the link; the latter behind what headers the input has.
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
