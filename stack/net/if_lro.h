/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large receive offload: merges segments of a connection that were received
 * together; see if_lro.c.
 */
#ifndef NET_IF_LRO_H
#define NET_IF_LRO_H

#include "kern/thread.h"
#include "net/if_var.h"
#include "net/net_hints.h"

#define	LRO_FLOWS	8	/* max connections at a time */
struct lro_segment {		/* offsets are from the frame's first byte */
	struct mbuf	*ls_m;
	uint32_t	 ls_tcp, ls_data;
	uint32_t	 ls_len;	/* bytes of data */
	bool		 ls_v6;
};
struct lro_flow {
	struct lro_segment lf_first;
	/* last mbuf of the merged segments, or NULL */
	struct mbuf	*lf_last;
	uint32_t	 lf_next;	/* next sequence number */
};
/* [o] the thread whose hints hold it */
struct if_lro {
	bool		 lro_begun;
	unsigned	 lro_n;
	struct lro_flow	 lro_flows[LRO_FLOWS];
};
/*
 * Between begin and end, frames received by the calling thread on interfaces
 * with if_lro may be held.
 */
void	 if_lro_begin(void);
void	 if_lro_end(void);
static inline bool
if_lro_begun(void)
{
	const struct if_lro *lro = thread_known()->td_hints[NET_LRO];

	return (lro != NULL && lro->lro_begun);
}
void	 if_pass(struct mbuf *); /* passes a frame whose interface is set */
/*
 * Called for a received frame after if_lro_begin(): true if it was taken,
 * false if the caller must pass it.
 */
bool	 if_lro_take(struct mbuf *);

#endif /* NET_IF_LRO_H */
