/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of link addresses: the order in which full ones evict entries, and
 * the packets that wait for an address.  Any host on a link can fill such a
 * table with invented addresses (RFC 6583), so the neighbours that this host
 * talks to must survive a flood:
 *
 *	- Each interface in use has an equal share of the table.  Only an
 *	  interface that has reached its share loses entries.
 *	- Incomplete entries go first, oldest first; then addresses that were
 *	  only heard, not requested; then the least recently confirmed.
 *	- A sixteenth of each share stays available to incomplete entries, so
 *	  that a new neighbour is resolved while the others are all confirmed.
 *	- The latest packet to each incomplete entry waits (RFC 1122 section
 *	  2.3.2.2).  Further ones wait while there are few, of it and of all.
 */
#ifndef NET_NEIGHBOUR_H
#define NET_NEIGHBOUR_H

#include <string.h>
#include <sys/queue.h>

#include "net/if_var.h"

enum nbr_rank {
	NBR_INCOMPLETE,		/* requested, no answer yet */
	NBR_HEARD,		/* the neighbour sent its address unsolicited */
	NBR_CONFIRMED,		/* the neighbour answered a request */
	NBR_RANKS
};

#define	NBR_HOLD	64	/* max packets that wait for one entry */
#define	NBR_HOLD_ALL	1024	/* and of a table, beyond the latest of each */

/* A member of an entry.  All members are protected by the table's lock. */
struct nbr {
	TAILQ_ENTRY(nbr) n_link;
	struct mbufq	 n_hold;	/* packets that wait */
	unsigned	 n_ifindex;
	enum nbr_rank	 n_rank;
};

/*
 * A link address and its state: one word, so that a packet, which reads it in
 * an epoch, sees both as they were at one time.
 */
struct nbr_link {
	uint8_t		 nl_addr[6];
	uint8_t		 nl_known;	/* 1: the address is valid */
	uint8_t		 nl_flags;
};
#define	NL_EXPIRING	0x1	/* request it again at the next use */
#define	NL_FULL		0x2	/* many packets wait for the answer */

static inline struct nbr_link
nbr_link_get(atomic_u64 *word)
{
	const uint64_t value = atomic_load_acq_u64(word);
	struct nbr_link nl;

	memcpy(&nl, &value, sizeof(nl));
	KASSERT(nl.nl_known <= 1, ("nbr_link_get: the entry was freed"));
	return (nl);
}

static inline void
nbr_link_set(atomic_u64 *word, struct nbr_link nl)
{
	uint64_t value;

	memcpy(&value, &nl, sizeof(value));
	atomic_store_rel_u64(word, value);
}
_Static_assert(sizeof(struct nbr_link) == sizeof(uint64_t), "one word");

/* Entries by interface and rank, the oldest first. */
struct nbr_table {
	struct {
		TAILQ_HEAD(nbr_queue, nbr) queue[NBR_RANKS];
		unsigned	 len[NBR_RANKS], total;
	}		 nt_share[IF_MAX + 1];
	unsigned	 nt_count;
	unsigned	 nt_held;	/* packets in all n_hold */
};

void	 nbr_init(struct nbr_table *);
void	 nbr_insert(struct nbr_table *, struct nbr *, const struct ifnet *,
	    enum nbr_rank);
void	 nbr_remove(struct nbr_table *, struct nbr *);
/*
 * Queues a packet.  True: the oldest of the entry was freed for it.
 * nbr_release() appends all to a queue; nbr_remove() needs this before.
 */
bool	 nbr_hold(struct nbr_table *, struct nbr *, struct mbuf *);
void	 nbr_release(struct nbr_table *, struct nbr *, struct mbufq *to);
/* The entry becomes the newest of a rank. */
void	 nbr_refresh(struct nbr_table *, struct nbr *, enum nbr_rank);
/*
 * The entry to evict before one of ifp is inserted, so that at most max are
 * left; NULL: there is room.
 */
struct nbr *nbr_victim(const struct nbr_table *, const struct ifnet *,
	    unsigned max);

#endif /* NET_NEIGHBOUR_H */
