/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw and ping sockets of both families: the interface for IP and ICMP.
 */
#ifndef NETINET_RAW_IP_H
#define NETINET_RAW_IP_H

#include "netinet/in_family.h"

void	 raw_init(void);		/* at boot */

/*
 * Copies a whole packet for this host, with hlen bytes before the protocol, to
 * matching raw sockets.  True if there was one.
 */
bool	 raw_input(const struct mbuf *, unsigned hlen, uint8_t proto);
/*
 * Delivers an echo reply of at least 8 bytes, with a valid checksum, to its
 * ping socket.
 */
void	 raw_ping_input(const struct mbuf *, unsigned hlen, uint8_t proto);
/* Like pr_ctlinput_t, for any protocol. */
void	 raw_ctlinput(int error, uint8_t proto, const struct in_conninfo *,
	    const uint8_t header[8], uint32_t mtu, const struct in_icmperr *);

#endif /* NETINET_RAW_IP_H */
