/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ARP (RFC 826): link addresses of IPv4 hosts.
 */
#ifndef NETINET_ARP_H
#define NETINET_ARP_H

#include "net/if_var.h"

void	 arp_init(void);
/* Announces an address (RFC 5227 section 2.3). */
void	 arp_announce(struct ifnet *);
void	 arp_input(struct mbuf *);
void	 arp_ifattach(struct ifnet *);	/* fam_ether of IPv4 */

#endif /* NETINET_ARP_H */
