/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP options: RFC 9293 section 3.2 (MSS), RFC 7323 (window scale,
 * timestamps), RFC 2018 (selective acknowledgement).
 */
#ifndef NETINET_TCP_OPT_H
#define NETINET_TCP_OPT_H

#include <stdbool.h>
#include <stddef.h>

#include "netinet/tcp_seq.h"

#define	TCP_OPT_MAX	40	/* bytes behind the fixed header */
#define	TCP_SACK_MAX	4	/* blocks that fit there */
#define	TCP_WSCALE_MAX	14	/* RFC 7323 section 2.3 */

struct tcp_sackblock {
	tcp_seq		 start, end;	/* [start, end) */
};

struct tcpopts {
	bool		 has_mss, has_wscale, has_sackok, has_ts;
	uint16_t	 mss;
	uint8_t		 wscale;	/* at most TCP_WSCALE_MAX */
	uint32_t	 tsval, tsecr;
	unsigned	 nsack;
	struct tcp_sackblock sack[TCP_SACK_MAX];
};

/*
 * Reads the options of a segment; MSS, window scale and SACK-permitted
 * count in a SYN only.  A malformed option ends the list: what was read
 * before it stands, as RFC 9293 MUST-7 asks for robustness.  Returns false
 * if the list was malformed.
 */
bool	 tcp_opt_parse(const uint8_t *p, size_t len, bool syn,
	    struct tcpopts *);
/*
 * Writes options, padded to a multiple of 4; returns their length, at most
 * TCP_OPT_MAX.  As many SACK blocks as fit.
 */
unsigned tcp_opt_build(uint8_t *p, const struct tcpopts *);
/* The same for timestamps and no more, as nearly all segments have them. */
unsigned tcp_opt_timestamps(uint8_t *p, uint32_t tsval, uint32_t tsecr);

#endif /* NETINET_TCP_OPT_H */
