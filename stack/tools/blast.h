/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a datagram of netblast begins, in network byte order, if it is as long:
 * enough for netreceive to tell what was lost.
 */
#ifndef TOOLS_BLAST_H
#define TOOLS_BLAST_H

#include <stdint.h>

#define	BLAST_MAGIC	0x6e62 /* "nb" */
#define	BLAST_BYTES	1472	/* of a datagram that Ethernet carries whole */

struct blast {
	uint16_t	 magic;
	uint16_t	 pad;
	uint32_t	 id;		/* of a run of netblast */
	uint32_t	 high, low;	/* number of the datagram in it, from 0 */
};

#endif /* TOOLS_BLAST_H */
