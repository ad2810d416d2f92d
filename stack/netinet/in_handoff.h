/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handing packets off.  The input of a received packet's upper protocol runs
 * at once and in the same thread, unless a step takes the packet:
 *
 *	HANDOFF_EXCLUSIVE	to the thread that has the net lock exclusively
 *				(in_exclusive.c)
 *	HANDOFF_WORKER		to the netisr worker of the connection's group
 *				(in_pcbthread.c)
 *	HANDOFF_BATCH		to the end of the receive burst
 *				(tcp_lock_shared_socket_batch.c)
 *
 * A packet passes the steps of its protocol in this order.  The step that took
 * it returns it by in_handoff_resume(), which continues after that step.
 */
#ifndef NETINET_IN_HANDOFF_H
#define NETINET_IN_HANDOFF_H

#include "netinet/ip_var.h"

enum in_handoff_step { HANDOFF_EXCLUSIVE, HANDOFF_WORKER, HANDOFF_BATCH,
    HANDOFF_STEPS };

/* True: the step has taken or dropped the packet. */
typedef bool in_handoff_t(struct mbuf *, unsigned hlen);

extern bool	 in_handoff_any;	/* [I] after boot: a protocol has steps */

/* Called at boot. */
void	 in_handoff_set(uint8_t proto, enum in_handoff_step, in_handoff_t *);
bool	 in_handoff_has(uint8_t proto, enum in_handoff_step);

void	 in_handoff(uint8_t proto, struct mbuf *, unsigned hlen);
/* Resumes a packet that the step took earlier. */
void	 in_handoff_resume(enum in_handoff_step, struct mbuf *);

/* Passes a packet to its protocol, for IPv4 and IPv6. */
static inline void
in_upper_input(pr_input_t *input, uint8_t proto, struct mbuf *m,
    unsigned hlen)
{
	if (__predict_true(!in_handoff_any))
		input(m, hlen);
	else
		in_handoff(proto, m, hlen);
}

#endif /* NETINET_IN_HANDOFF_H */
