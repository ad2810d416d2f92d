/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bridges of Ethernet interfaces (IEEE 802.1D, without a spanning tree).
 */
#ifndef NET_IF_BRIDGE_H
#define NET_IF_BRIDGE_H

#include "net/if_config.h"

void	 bridge_init(void);
/* Makes a bridge of interfaces that are there; errno, reason in why. */
int	 bridge_create(const struct if_config *, char *why, size_t);
/* A frame, its header contiguous, that a member received; consumes m. */
NOINLINE void  bridge_input(struct ifnet *member, struct mbuf *m);

#endif /* NET_IF_BRIDGE_H */
