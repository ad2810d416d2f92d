/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a datagram of netblast begins, in network byte order, if it is as long:
 * enough for netreceive to tell what was lost, and what it is to send back.
 */
#ifndef TOOLS_BLAST_H
#define TOOLS_BLAST_H

#include <stdint.h>

#define	BLAST_MAGIC	0x6e62 /* "nb" */
#define	BLAST_BYTES	1472	/* of a datagram that Ethernet carries whole */

/* An answer is a probe that came, sent back; nothing answers an answer. */
enum blast_kind { BLAST_PLAIN, BLAST_PROBE, BLAST_ANSWER };

struct blast {
	uint16_t	 magic;
	uint16_t	 kind;
	uint32_t	 id;		/* of a run of netblast */
	uint32_t	 high, low;	/* number of the datagram in it, from 0 */
};

#endif /* TOOLS_BLAST_H */
