/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reassembly queues for both families.
 */
#ifndef NETINET_IP_FRAGQ_H
#define NETINET_IP_FRAGQ_H

#include <netinet/in.h>

#include "kern/mbuf.h"

/* Fields that all fragments of a datagram share. */
struct fragq_key {
	struct in6_addr	 src, dst;	/* IPv4 addresses are mapped */
	uint32_t	 id;
	uint32_t	 zone;		/* zone of link-local addresses */
	uint8_t		 proto;		/* IPv4 only */
};

struct fragq_family {
	nsec_t		 ff_lifetime;
	/* Gets the first fragment of a datagram that timed out; consumes it. */
	void		(*ff_expired)(struct mbuf *);
	atomic_u64	*ff_dropped, *ff_timeout, *ff_reassembled, *ff_evicted;
};

/*
 * Adds a fragment: the data after hlen bytes of headers belongs at off.
 * Returns NULL, or the whole datagram if it is complete: the first fragment's
 * headers, unchanged, and all data.
 */
struct mbuf *fragq_input(const struct fragq_family *, const struct fragq_key *,
	    struct mbuf *, uint32_t hlen, uint32_t off, bool last);
void	 fragq_init(void);		/* at boot */

#endif /* NETINET_IP_FRAGQ_H */
