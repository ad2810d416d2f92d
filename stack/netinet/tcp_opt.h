/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP options: RFC 9293 section 3.2 (MSS), RFC 7323 (window scale,
 * timestamps), RFC 2018 (selective acknowledgement), RFC 7413 (Fast Open).
 */
#ifndef NETINET_TCP_OPT_H
#define NETINET_TCP_OPT_H

#include <stdbool.h>
#include <stddef.h>

#include "netinet/tcp_seq.h"

#define	TCP_OPT_MAX	40	/* bytes after the fixed header */
#define	TCP_SACK_MAX	4	/* blocks that fit into them */
#define	TCP_WSCALE_MAX	14	/* RFC 7323 section 2.3 */
#define	TCP_FASTOPEN_MIN 4	/* RFC 7413 section 2 */
#define	TCP_FASTOPEN_MAX 16
#define	TCP_FASTOPEN_REQUEST 2	/* the option without a cookie */

struct tcp_sackblock {
	tcp_seq		 start, end;	/* [start, end) */
};

struct tcpopts {
	bool		 has_mss, has_wscale, has_sackok, has_ts;
	uint16_t	 mss;
	uint8_t		 wscale;	/* at most TCP_WSCALE_MAX */
	/*
	 * Length of the Fast Open option: 0: none; TCP_FASTOPEN_REQUEST and that
	 * of the cookie, in either format
	 */
	uint8_t		 fastopen;
	uint32_t	 tsval, tsecr;
	uint8_t		 nsack;
	bool		 has_signature;	/* RFC 2385 */
	/* a SYN has no SACK blocks */
	union {
		struct tcp_sackblock sack[TCP_SACK_MAX];
		struct {
			uint8_t	 cookie[TCP_FASTOPEN_MAX];
			bool	 fastopen_exp;	/* the experimental format */
		};
	};
};

/*
 * Parses the options of a segment.  MSS, window scale, SACK-permitted and Fast
 * Open are valid only in a SYN.  A malformed option ends the list; options
 * before it stay valid (RFC 9293 MUST-7 requires robustness).  Returns false if
 * the list was malformed, or has a signature, which no connection expects.
 */
bool	 tcp_opt_parse(const uint8_t *p, size_t len, bool syn,
	    struct tcpopts *);
/*
 * Writes options, padded to a multiple of 4, with as many SACK blocks as fit.
 * Returns their length, at most TCP_OPT_MAX.
 */
unsigned tcp_opt_build(uint8_t *p, const struct tcpopts *);
/* Like tcp_opt_build(), for timestamps only, as in nearly all segments. */
unsigned tcp_opt_timestamps(uint8_t *p, uint32_t tsval, uint32_t tsecr);

#endif /* NETINET_TCP_OPT_H */
