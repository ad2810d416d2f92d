/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fragments of either family: the step selects IPv4, or IPv6 with the header
 * from the input.
 */
#include "packets.h"

static void
shape(struct fuzz_packet *p)
{
	/* close together, so that fragments overlap */
	p->id = p->choice >> 6;
	p->frag = (uint16_t)((p->choice & 0x3f) |
	    (p->flags & STEP_CUT ? 0x2000 : 0));
	p->proto = p->flags & STEP_IPV6 ? IPPROTO_FRAGMENT : IPPROTO_UDP;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return (fuzz_packets(data, size, shape));
}
