/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet: framing, and link addresses of groups.
 */
#ifndef NET_IF_ETHER_H
#define NET_IF_ETHER_H

#include <string.h>

#include "net/if_var.h"

/* Whether a station can have this link address: not a group, and not zero. */
static inline bool
ether_isunicast(const uint8_t ll[6])
{
	static const uint8_t none[6];

	return ((ll[0] & 1) == 0 && memcmp(ll, none, sizeof(none)) != 0);
}

void	 ether_init(void);
/* Called before if_attach(): sets Ethernet output for every family. */
void	 ether_ifattach(struct ifnet *);
/* Link addresses of groups: RFC 1112 section 6.4, RFC 2464 section 7. */
void	 ether_group(struct in_addr, uint8_t ll[6]);
void	 ether_group6(const struct in6_addr *, uint8_t ll[6]);
/* Sends a whole frame to the driver, through capture and the fault injector. */
int	 ether_send(struct ifnet *, struct mbuf *);
int	 ether_frame(struct ifnet *, struct mbuf *, const uint8_t dst[6],
	    uint16_t type);

#endif /* NET_IF_ETHER_H */
