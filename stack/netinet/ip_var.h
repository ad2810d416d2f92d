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
 * Input of an upper protocol.  m starts at the IP header, which is hlen bytes
 * long and in the first mbuf; ip_len and ip_off are in network byte order.
 * The packet is reassembled and addressed to this host.  Consumes m.
 */
typedef void pr_input_t(struct mbuf *m, unsigned hlen);
/*
 * Reports an ICMP error about a packet sent by this host.  error is an errno
 * value.  header has the first 8 bytes of the transport header, which begin
 * with the ports.  mtu is set for EMSGSIZE.  The last argument is the ICMP
 * message for IP_RECVERR.
 */
struct in_icmperr {
	uint8_t		 type, code;
	struct in6_addr	 offender;	/* sender of the error; IPv4 mapped */
	const struct mbuf *quote;	/* contains the quoted packet, */
	uint32_t	 off;		/* with its transport header at off */
};
struct in_conninfo;
typedef void pr_ctlinput_t(int error, const struct in_conninfo *,
	    const uint8_t *header, uint32_t mtu, const struct in_icmperr *);

void	 ip_register(uint8_t proto, pr_input_t *, pr_ctlinput_t *);
pr_input_t *ip_protoinput(uint8_t proto);	/* input of one; NULL: none */

/*
 * Sends a packet.  m holds the transport header and data, with csum_flags
 * CSUM_TX (csum_start is relative to the transport header) and, for TCP,
 * CSUM_TSO.  ip_output() prepends the IP header, selects the route, and does
 * what the device cannot do (checksum, segmentation, fragments).  If src is
 * INADDR_ANY, the outgoing interface's address is used.  Returns 0,
 * EHOSTUNREACH, EMSGSIZE (with don't-fragment) or ENOBUFS.
 */
struct ip_sendopts {
	uint8_t		 tos, ttl;	/* ttl 0: default */
	bool		 dontfrag;
	bool		 broadcast;	/* SO_BROADCAST; else EACCES */
	bool		 alert;		/* add router alert (RFC 2113) */
	bool		 nochecksum;	/* UDP without a checksum */
	/* For packets to groups; local also for 255.255.255.255. */
	bool		 noloop;	/* no copy for members on this host */
	bool		 local;		/* only for this host: TTL 0 */
	uint32_t	 ifindex;	/* output interface; 0: by route */
};
int	 ip_output(struct mbuf *, struct in_addr src, struct in_addr dst,
	    uint8_t proto, const struct ip_sendopts *);
/*
 * Sends a packet that includes its IP header (IP_HDRINCL, ip(7)).  Length and
 * checksum are filled in; identification and source are if they are 0.  dst is
 * the destination, whatever the header contains.  Errors: EINVAL (malformed
 * header), EMSGSIZE (longer than the link's MTU).
 */
int	 ip_outputheader(struct mbuf *, struct in_addr src, struct in_addr dst,
	    const struct ip_sendopts *);
/*
 * The source address and interface that would be used; false: no route.
 * ifindex as in struct ip_sendopts.
 */
bool	 ip_source(struct in_addr dst, uint32_t ifindex, struct in_addr *src,
	    struct ifnet **);
/* The interface for sending to a group, or NULL. */
NOINLINE struct ifnet *ip_groupif(struct in_addr group, uint32_t ifindex);
void	 ip_input(struct mbuf *);
/* Pseudo header sum (RFC 793 3.1), folded, not complemented. */
uint16_t in_pseudo(struct in_addr, struct in_addr, uint8_t proto, uint32_t len);
/* True if the transport checksum of a received packet is right. */
bool	 in_cksum_ok(const struct mbuf *m, unsigned hlen, uint8_t proto);
/*
 * Sends an ICMP error about the packet m, which starts at its IP header;
 * consumes m.  word is the second 32-bit word of the message, in host byte
 * order: the MTU, the gateway of a redirect, or the pointer of a parameter
 * problem in the highest byte.
 */
__cold void icmp_error(struct mbuf *m, uint8_t type, uint8_t code,
	    uint32_t word);

#endif /* NETINET_IP_VAR_H */
