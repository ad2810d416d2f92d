/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP of both families to a socket, to groups and broadcast.
 */
#include "packets.h"

static void
shape(struct fuzz_packet *p)
{
	p->proto = IPPROTO_UDP;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return (fuzz_packets(data, size, shape));
}
