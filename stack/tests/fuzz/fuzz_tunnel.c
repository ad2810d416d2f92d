/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets within packets: gif, and gre with its header in the input.
 */
#include "packets.h"

static void
shape(struct fuzz_packet *p)
{
	static const uint8_t protos[] = { IPPROTO_IPIP, IPPROTO_IPV6,
	    IPPROTO_GRE, IPPROTO_GRE };

	/* the tunnels of the stack are over IPv4 */
	p->flags &= ~(unsigned)STEP_IPV6;
	p->proto = protos[p->choice % 4];
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return (fuzz_packets(data, size, shape));
}
