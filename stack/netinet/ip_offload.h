/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums and TCP segmentation in software, for devices without the offload
 * and for both families.
 */
#ifndef NETINET_IP_OFFLOAD_H
#define NETINET_IP_OFFLOAD_H

#include "net/if_var.h"

/* Computes the checksum of a packet marked CSUM_TX and clears the mark. */
void	 csum_complete(struct mbuf *);
/* A copy of the first len bytes, with headroom for the link header. */
struct mbuf *m_copyheaders(const struct mbuf *, uint32_t len);
/*
 * Cuts a packet marked CSUM_TSO, whose TCP header is at hlen, into segments.
 * header() corrects the IP header of each; send() sends it to the next hop.
 * Consumes m.
 */
int	 tso_transmit(struct ifnet *, struct mbuf *, uint32_t hlen,
	    void (*header)(struct mbuf *, uint32_t hlen),
	    int (*send)(struct ifnet *, struct mbuf *, const void *nexthop),
	    const void *nexthop);
/* Length of the longest segment after segmentation, or of the packet. */
uint32_t tso_wirelen(const struct mbuf *, uint32_t hlen);
#endif /* NETINET_IP_OFFLOAD_H */
