/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bridges of Ethernet interfaces (IEEE 802.1D, without a spanning tree).
 */
#ifndef NET_IF_BRIDGE_H
#define NET_IF_BRIDGE_H

#include "net/if_config.h"

void	 bridge_init(void);
/*
 * Creates a bridge of existing interfaces; returns an errno value, reason in
 * why.
 */
int	 bridge_create(const struct if_config *, char *why, size_t);
/*
 * Processes a frame received by a member, with a contiguous header; consumes
 * m.
 */
NOINLINE void  bridge_input(struct ifnet *member, struct mbuf *m);

#endif /* NET_IF_BRIDGE_H */
