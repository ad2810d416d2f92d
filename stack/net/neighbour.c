/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/neighbour.h"

#define	RESERVED	16	/* incomplete entries: 1/16 of each share */

void
nbr_init(struct nbr_table *nt)
{
	for (unsigned i = 0; i <= IF_MAX; i++)
		for (unsigned rank = 0; rank < NBR_RANKS; rank++)
			TAILQ_INIT(&nt->nt_share[i].queue[rank]);
}

void
nbr_insert(struct nbr_table *nt, struct nbr *n, const struct ifnet *ifp,
    enum nbr_rank rank)
{
	KASSERT(ifp->if_index <= IF_MAX, ("nbr_insert: interface %u",
	    ifp->if_index));
	n->n_ifindex = ifp->if_index;
	n->n_rank = rank;
	mbufq_init(&n->n_hold);
	TAILQ_INSERT_TAIL(&nt->nt_share[n->n_ifindex].queue[rank], n, n_link);
	nt->nt_share[n->n_ifindex].len[rank]++;
	nt->nt_share[n->n_ifindex].total++;
	nt->nt_count++;
}

void
nbr_remove(struct nbr_table *nt, struct nbr *n)
{
	KASSERT(nt->nt_count > 0 && n->n_hold.mq_len == 0,
	    ("nbr_remove: %u entries, %u packets", nt->nt_count,
	    n->n_hold.mq_len));
	TAILQ_REMOVE(&nt->nt_share[n->n_ifindex].queue[n->n_rank], n, n_link);
	nt->nt_share[n->n_ifindex].len[n->n_rank]--;
	nt->nt_share[n->n_ifindex].total--;
	nt->nt_count--;
}

bool
nbr_hold(struct nbr_table *nt, struct nbr *n, struct mbuf *m)
{
	const bool full = n->n_hold.mq_len >= NBR_HOLD ||
	    (n->n_hold.mq_len > 0 && nt->nt_held >= NBR_HOLD_ALL);

	if (full)
		m_freem(mbufq_dequeue(&n->n_hold));
	else
		nt->nt_held++;
	mbufq_enqueue(&n->n_hold, m);
	return (full);
}

void
nbr_release(struct nbr_table *nt, struct nbr *n, struct mbufq *to)
{
	KASSERT(nt->nt_held >= n->n_hold.mq_len, ("nbr_release: %u of %u",
	    n->n_hold.mq_len, nt->nt_held));
	nt->nt_held -= n->n_hold.mq_len;
	mbufq_concat(to, &n->n_hold);
}

void
nbr_refresh(struct nbr_table *nt, struct nbr *n, enum nbr_rank rank)
{
	struct nbr_queue *queue = nt->nt_share[n->n_ifindex].queue;
	unsigned *len = nt->nt_share[n->n_ifindex].len;

	TAILQ_REMOVE(&queue[n->n_rank], n, n_link);
	len[n->n_rank]--;
	n->n_rank = rank;
	TAILQ_INSERT_TAIL(&queue[rank], n, n_link);
	len[rank]++;
}

/* The rank that loses an entry of an interface with this share of the table. */
static enum nbr_rank
victim_rank(const unsigned len[NBR_RANKS], unsigned share)
{
	if (len[NBR_INCOMPLETE] > 0 &&
	    (len[NBR_INCOMPLETE] >= share / RESERVED ||
	    len[NBR_HEARD] + len[NBR_CONFIRMED] == 0))
		return (NBR_INCOMPLETE);
	return (len[NBR_HEARD] > 0 ? NBR_HEARD : NBR_CONFIRMED);
}

struct nbr *
nbr_victim(const struct nbr_table *nt, const struct ifnet *ifp, unsigned max)
{
	enum nbr_rank rank, lowest = NBR_RANKS;
	unsigned users = 0, share, most = 0;
	struct nbr *victim = NULL;

	if (nt->nt_count < max)
		return (NULL);
	for (unsigned i = 0; i <= IF_MAX; i++)
		users += nt->nt_share[i].total > 0 || i == ifp->if_index;
	share = max / users;
	for (unsigned i = 0; i <= IF_MAX; i++) {
		const unsigned total = nt->nt_share[i].total;

		if (total == 0 || total < share)
			continue;
		rank = victim_rank(nt->nt_share[i].len, share);
		if (rank < lowest || (rank == lowest && total > most)) {
			lowest = rank;
			most = total;
			victim = TAILQ_FIRST(&nt->nt_share[i].queue[rank]);
		}
	}
	KASSERT(victim != NULL, ("nbr_victim: none of %u", nt->nt_count));
	return (victim);
}
