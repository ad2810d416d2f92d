/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw and ping sockets of both families, as the protocols below see them.
 */
#ifndef NETINET_RAW_IP_H
#define NETINET_RAW_IP_H

#include "netinet/in_family.h"

void	 raw_init(void);		/* at boot */

/*
 * A packet for this host, whole, with hlen bytes in front of the protocol:
 * raw sockets that ask for it get copies.  True: one did.
 */
bool	 raw_input(const struct mbuf *, unsigned hlen, uint8_t proto);
/* An echo reply of at least 8 bytes, its checksum right, to who asked. */
void	 raw_ping_input(const struct mbuf *, unsigned hlen, uint8_t proto);
/* As pr_ctlinput_t, of any protocol. */
void	 raw_ctlinput(int error, uint8_t proto, const struct in_conninfo *,
	    const uint8_t header[8], uint32_t mtu, const struct in_icmperr *);

#endif /* NETINET_RAW_IP_H */
