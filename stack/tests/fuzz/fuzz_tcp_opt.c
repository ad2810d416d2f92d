/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP options.  The first byte decides whether the segment is a SYN.  Parsed
 * options must survive building and parsing again.
 */
#include <string.h>

#include "fuzz.h"
#include "kern/systm.h"
#include "netinet/tcp_opt.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t built[TCP_OPT_MAX];
	struct tcpopts to, again;
	unsigned len;
	bool syn;

	if (size < 1 || size > 1 + TCP_OPT_MAX)
		return (0);
	syn = (data[0] & 1) != 0;
	memset(&to, 0, sizeof(to));
	memset(&again, 0, sizeof(again));
	(void)tcp_opt_parse(data + 1, size - 1, syn, &to);
	if (to.nsack > TCP_SACK_MAX || to.wscale > TCP_WSCALE_MAX)
		panic("%u blocks, scale %u", to.nsack, to.wscale);
	len = tcp_opt_build(built, &to);
	if (len > TCP_OPT_MAX || len % 4 != 0)
		panic("%u bytes of options", len);
	if (!tcp_opt_parse(built, len, syn, &again))
		panic("our own options are malformed");
	if (again.has_mss != to.has_mss || again.has_ts != to.has_ts ||
	    (to.has_ts && again.tsval != to.tsval) ||
	    (to.has_mss && again.mss != to.mss))
		panic("options changed on the way");
	return (0);
}
