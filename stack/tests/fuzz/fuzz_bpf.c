/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet filters: the input is a length, instructions of eight bytes, and the
 * packet.  A program that is accepted ends, and reads nothing else.
 */
#include <string.h>

#include "fuzz.h"
#include "kern/bpf_filter.h"

#define	INSNS_MAX	64

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t n = size > 0 ? data[0] % (INSNS_MAX + 1) : 0;
	struct bpf_packet bp = { .bp_ifindex = 1, .bp_protocol = 0x800 };
	struct sock_filter *prog;
	struct mbuf *m;
	size_t rest;

	if (n == 0 || size < 1 + n * sizeof(*prog))
		return (0);
	rest = size - 1 - n * sizeof(*prog);
	if (rest > 256)
		return (0);
	/* exactly as long as the program, so that a sanitizer sees overruns */
	prog = kmalloc(n * sizeof(*prog));
	memcpy(prog, data + 1, n * sizeof(*prog));
	m = m_gethdr(0);
	memcpy(m->m_data, data + 1 + n * sizeof(*prog), rest);
	m->m_len = m->m_pkthdr.len = (uint32_t)rest;
	bp.bp_m = m;
	bp.bp_off = rest >= 20 ? 20 : 0;
	bp.bp_len = (uint32_t)rest - bp.bp_off;
	if (bpf_valid(prog, (unsigned)n))
		(void)bpf_run(prog, &bp);
	m_freem(m);
	kfree(prog);
	return (0);
}
