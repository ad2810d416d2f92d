/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of a netblast datagram, in network byte order, if the datagram is
 * long enough.  netreceive uses it to count losses, and to decide what to send
 * back.
 */
#ifndef TOOLS_BLAST_H
#define TOOLS_BLAST_H

#include <stdint.h>

#define	BLAST_MAGIC	0x6e62 /* "nb" */
#define	BLAST_BYTES	1472	/* the largest datagram in one Ethernet frame */

/* An answer is a probe sent back; answers are not answered. */
enum blast_kind { BLAST_PLAIN, BLAST_PROBE, BLAST_ANSWER };

struct blast {
	uint16_t	 magic;
	uint16_t	 kind;
	uint32_t	 id;		/* identifies a run of netblast */
	/* number of the datagram in the run, from 0 */
	uint32_t	 high, low;
};

#endif /* TOOLS_BLAST_H */
