/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared definitions of IPv4.
 */
#ifndef NETINET_IP_PRIVATE_H
#define NETINET_IP_PRIVATE_H

#include "netinet/ip_stat.h"
#include "netinet/ip_var.h"

#define	IP_HDRLEN	20
#define	IP_TTL_DEFAULT	64

extern atomic_u32 ip_forwarding;	/* [a] net.inet.ip.forwarding */
extern atomic_u32 ip_fastforwarding;	/* [a] net.inet.ip.fastforwarding */

/* ip_input.c; called once at boot to register handlers and sysctls. */
void	 ip_init(void);
void	 icmp_init(void);

/* a whole packet to this host */
void	 ip_deliver(struct mbuf *, unsigned hlen);
/* a packet to another host */
void	 ip_forward(struct mbuf *, unsigned hlen);
/* Takes a packet before any check.  True if it was forwarded and consumed. */
bool	 ip_fastforward(struct mbuf *);
bool	 ip_badsource(const struct mbuf *);
bool	 ip_isours(const struct mbuf *, struct in_addr dst);
/* Adds a fragment.  Returns the whole datagram if it is complete, else NULL. */
NOINLINE struct mbuf *ip_reass(struct mbuf *, unsigned hlen);
/*
 * Checks the options of a packet (RFC 791 section 3.1).  False if they are
 * malformed or contain a source route; then m is consumed.
 */
__cold bool	 ip_options(struct mbuf *, unsigned hlen);
/*
 * Redirects (RFC 1812 section 5.2.7.2).  ip_redirects(): the packet leaves by
 * the link it came from, and its sender could reach the next hop directly;
 * sends a redirect.
 */
struct nhop;
void	 ip_redirect_init(void);
void	 ip_redirect_input(const struct mbuf *, unsigned hlen);
bool	 ip_redirects(const struct mbuf *, const struct nhop *);
void	 ip_redirect_send(const struct mbuf *, const struct nhop *);
/* The identification of a datagram that may be fragmented, host order. */
uint16_t ip_newid(void);
/* Length of the longest packet on the wire after segmentation. */
uint32_t ip_wirelen(const struct mbuf *);
/* Checksum of a contiguous header, to be stored in ip_sum. */
uint16_t in_hdrsum(const struct ip *, unsigned hlen);
/* Whether ip_sum is right. */
bool	 in_hdrsum_ok(const struct ip *, unsigned hlen);
/*
 * Last stage of output and forwarding: does the segmentation, checksums and
 * fragmentation that the device and its MTU require, then sends to the link.
 * Consumes m.
 */
int	 ip_transmit(struct ifnet *, struct mbuf *, struct in_addr nexthop);
/*
 * Reports an ICMP error to the transport protocol of the quoted packet; called
 * by icmp_input().
 */
void	 ip_ctlinput(int error, const struct ip *, uint32_t mtu,
	    const struct in_icmperr *);

#endif /* NETINET_IP_PRIVATE_H */
