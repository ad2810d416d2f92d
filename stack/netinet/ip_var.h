/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 (RFC 791, RFC 1122), ICMP (RFC 792) and their upper-layer interface.
 */
#ifndef NETINET_IP_VAR_H
#define NETINET_IP_VAR_H

#include <netinet/in.h>
#include <netinet/ip.h>

#include "net/if_var.h"

/*
 * Upper protocol input: m starts at the IP header, which is in the first
 * mbuf, hlen bytes long; ip_len and ip_off are in network order; the
 * packet is whole (reassembled) and for this host.  Consumes m.
 */
typedef void pr_input_t(struct mbuf *m, unsigned hlen);
/*
 * ICMP error about a packet of ours: error is an errno value; header the
 * first 8 bytes of the transport header, whose first 4 are the ports of the
 * connection; mtu is set for EMSGSIZE.  The message itself is for those who
 * want to know all of it (IP_RECVERR).
 */
struct in_icmperr {
	uint8_t		 type, code;
	struct in6_addr	 offender;	/* who says so, mapped if of IPv4 */
	const struct mbuf *quote;	/* where the quoted packet is, */
	uint32_t	 off;		/* its transport header at off */
};
struct in_conninfo;
typedef void pr_ctlinput_t(int error, const struct in_conninfo *,
	    const uint8_t *header, uint32_t mtu, const struct in_icmperr *);

void	 ip_register(uint8_t proto, pr_input_t *, pr_ctlinput_t *);

/*
 * Sends: m holds the transport header and data, with csum_flags CSUM_TX (and
 * csum_start 0 = transport header; ip_output adds the header's length) and,
 * for TCP, CSUM_TSO.  ip_output prepends the IP header, routes, completes
 * what the device cannot do (checksum, segmentation, fragments).
 * src may be INADDR_ANY: the outgoing interface's address.
 * Returns 0, EHOSTUNREACH, EMSGSIZE (with don't-fragment), ENOBUFS.
 */
struct ip_sendopts {
	uint8_t		 tos, ttl;	/* ttl 0: default */
	bool		 dontfrag;
	bool		 broadcast;	/* allowed (SO_BROADCAST) else EACCES */
	bool		 alert;		/* with router alert (RFC 2113) */
	/* of packets to groups and, the last, 255.255.255.255 */
	bool		 noloop;	/* members on this host get none */
	bool		 local;		/* only they do: its TTL is 0 */
	uint32_t	 ifindex;	/* leaves by; 0: as routed */
};
int	 ip_output(struct mbuf *, struct in_addr src, struct in_addr dst,
	    uint8_t proto, const struct ip_sendopts *);
/*
 * The same for a packet that brings its header (IP_HDRINCL, ip(7)): its
 * length and checksum are filled in, its identification and source if they
 * are 0.  dst is where it is sent, whatever the header says.  EINVAL: that is
 * no header; EMSGSIZE: longer than the link takes.
 */
int	 ip_outputheader(struct mbuf *, struct in_addr src, struct in_addr dst,
	    const struct ip_sendopts *);
/* The source address that would be used; false: no route.  ifindex as above. */
bool	 ip_source(struct in_addr dst, uint32_t ifindex, struct in_addr *src,
	    struct ifnet **);
/* The interface by which packets to a group leave, or NULL. */
APART struct ifnet *ip_groupif(struct in_addr group, uint32_t ifindex);
void	 ip_input(struct mbuf *);
/* Pseudo header sum (RFC 793 3.1), folded, not complemented. */
uint16_t in_pseudo(struct in_addr, struct in_addr, uint8_t proto, uint32_t len);
/* True if the transport checksum of a received packet is right. */
bool	 in_cksum_ok(const struct mbuf *m, unsigned hlen, uint8_t proto);
/*
 * ICMP error about the packet m (starts at its IP header); consumes m.  word
 * is the message's second one, host order: the MTU, the gateway of a redirect,
 * or the pointer of a parameter problem in the highest byte.
 */
COLD void icmp_error(struct mbuf *m, uint8_t type, uint8_t code,
	    uint32_t word);

#endif /* NETINET_IP_VAR_H */
