/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of IPv4 tell each other.
 */
#ifndef NETINET_IP_PRIVATE_H
#define NETINET_IP_PRIVATE_H

#include "netinet/ip_stat.h"
#include "netinet/ip_var.h"

#define	IP_HDRLEN	20
#define	IP_TTL_DEFAULT	64

extern atomic_u32 ip_forwarding;	/* [a] net.inet.ip.forwarding */
extern atomic_u32 ip_fastforwarding;	/* [a] net.inet.ip.fastforwarding */

/* ip_input.c; called once at boot, register handlers and sysctls. */
void	 ip_init(void);
void	 icmp_init(void);

void	 ip_deliver(struct mbuf *, unsigned hlen);	/* whole, for us */
void	 ip_forward(struct mbuf *, unsigned hlen);	/* not for us */
/* A packet before any check: true if it was forwarded, and is gone. */
bool	 ip_fastforward(struct mbuf *);
bool	 ip_badsource(const struct ip *, const struct ifnet *rcvif);
bool	 ip_isours(const struct mbuf *, struct in_addr dst);
/* A fragment; the whole datagram when this was the last piece, or NULL. */
APART struct mbuf *ip_reass(struct mbuf *, unsigned hlen);
/*
 * The options of a packet (RFC 791 section 3.1): false, m consumed, if they
 * are malformed or ask for a route of the source's own.
 */
COLD bool	 ip_options(struct mbuf *, unsigned hlen);
/*
 * Redirects.  ip_redirects(): the packet goes back to the link it came from,
 * whose host should send it there itself; it is then told.
 */
struct nhop;
void	 ip_redirect_init(void);
void	 ip_redirect_input(const struct mbuf *, unsigned hlen);
bool	 ip_redirects(const struct mbuf *, const struct nhop *);
void	 ip_redirect_send(const struct mbuf *, const struct nhop *);
/* Length of the longest packet that this one will be on the wire. */
uint32_t ip_wirelen(const struct mbuf *);
/* Checksum of a header in contiguous memory, to be stored in ip_sum. */
uint16_t in_hdrsum(const struct ip *, unsigned hlen);
/*
 * Last stage of output and forwarding: segments, checksums and fragments
 * as the device and its MTU ask, then to the link.  Consumes m.
 */
int	 ip_transmit(struct ifnet *, struct mbuf *, struct in_addr nexthop);
/* Tells the transport protocol of a quoted packet; icmp_input(). */
void	 ip_ctlinput(int error, const struct ip *, uint32_t mtu,
	    const struct in_icmperr *);

#endif /* NETINET_IP_PRIVATE_H */
