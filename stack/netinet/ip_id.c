/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifications of IPv4 datagrams that may be fragmented (RFC 6864 section
 * 4.3): not repeated while an earlier datagram may still be reassembled.
 *
 * Threads take blocks of numbers from a counter that they share, so that it is
 * no line of each packet.  The rest of a block is not used after BLOCK_TIME: a
 * slow thread would use numbers that a fast one has already passed.  A thread
 * whose block did not last takes twice as many the next time; another one
 * takes a single number, so that slow threads waste none.
 */
#include "kern/thread.h"
#include "netinet/in_hints.h"
#include "netinet/ip_private.h"

#define	BLOCK_TIME	NSEC_PER_MSEC
#define	BLOCK_MAX	64

struct id_block {
	nsec_t		 ib_taken;	/* when it was taken */
	uint32_t	 ib_next;
	uint32_t	 ib_left;
	uint32_t	 ib_length;	/* 0: none was taken yet */
};

static atomic_u32 ip_id;		/* [a] the next block */

NOINLINE static void
block_take(struct id_block *ib, nsec_t now)
{
	uint32_t length = 1;

	if (ib->ib_length != 0 && now - ib->ib_taken < BLOCK_TIME)
		length = ib->ib_length * 2 < BLOCK_MAX ? ib->ib_length * 2 :
		    BLOCK_MAX;
	*ib = (struct id_block){ .ib_taken = now,
	    .ib_next = atomic_fetchadd_u32(&ip_id, length),
	    .ib_left = length, .ib_length = length };
}

uint16_t
ip_newid(void)
{
	struct id_block *ib = thread_hints(IN_IDS, sizeof(*ib));
	const nsec_t now = getuptime();

	if (ib->ib_left == 0 || now - ib->ib_taken >= BLOCK_TIME)
		block_take(ib, now);
	ib->ib_left--;
	return ((uint16_t)ib->ib_next++);
}
