/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reassembly queues, the same for either family.
 */
#ifndef NETINET_IP_FRAGQ_H
#define NETINET_IP_FRAGQ_H

#include <netinet/in.h>

#include "kern/mbuf.h"

/* What fragments of one datagram have in common. */
struct fragq_key {
	struct in6_addr	 src, dst;	/* those of IPv4 mapped */
	uint32_t	 id;
	uint32_t	 zone;		/* of link-local addresses */
	uint8_t		 proto;		/* IPv4 only */
};

struct fragq_family {
	nsec_t		 ff_lifetime;
	/* The first fragment of a datagram that was given up; consumes it. */
	void		(*ff_expired)(struct mbuf *);
	atomic_u64	*ff_dropped, *ff_timeout, *ff_reassembled;
};

/*
 * A fragment: bytes of data from off on behind hlen bytes of headers.  NULL,
 * or the whole datagram when this was the last piece: the first fragment's
 * headers, unchanged, and all data.
 */
struct mbuf *fragq_input(const struct fragq_family *, const struct fragq_key *,
	    struct mbuf *, uint32_t hlen, uint32_t off, bool last);
void	 fragq_init(void);		/* at boot */

#endif /* NETINET_IP_FRAGQ_H */
