/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP-Lite (RFC 3828), udplite(7): UDP whose checksum may cover only the
 * first bytes of a datagram.  The header's length field holds their number.
 */
#ifndef NETINET_UDPLITE_H
#define NETINET_UDPLITE_H

#include <netinet/udp.h>

#include "netinet/in_pcb.h"

#define	UDP_HDRLEN	((uint32_t)sizeof(struct udphdr))

/*
 * Validates the header and the covered bytes of a packet with hlen bytes of IP
 * headers.  Stores the coverage, or 0 if it is the whole datagram.  False: the
 * packet is malformed.
 */
bool	 udplite_valid(const struct mbuf *, unsigned hlen, struct udphdr *,
	    uint16_t *coverage);
/* Whether the socket receives datagrams of this partial coverage. */
bool	 udplite_accepts(const struct inpcb *inp, uint16_t coverage)
	    REQUIRES(inp->inp_socket->so_lock);
/* Stores coverage and checksum in the header at the front of a datagram. */
void	 udplite_seal(const struct inpcb *inp, struct mbuf *,
	    const struct in_conninfo *) REQUIRES(inp->inp_socket->so_lock);
/* UDPLITE_SEND_CSCOV and UDPLITE_RECV_CSCOV; ENOPROTOOPT. */
int	 udplite_setopt(struct inpcb *inp, int name, int value)
	    REQUIRES(inp->inp_socket->so_lock);
int	 udplite_getopt(const struct inpcb *inp, int name, int *value)
	    REQUIRES(inp->inp_socket->so_lock);

#endif /* NETINET_UDPLITE_H */
