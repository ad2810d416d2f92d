/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of IPv6 tell each other.
 */
#ifndef NETINET6_IP6_PRIVATE_H
#define NETINET6_IP6_PRIVATE_H

#include "netinet6/ip6_stat.h"
#include "netinet6/ip6_var.h"

extern atomic_u32 ip6_forwarding;	/* [a] net.inet6.ip6.forwarding */

/* Boot: init registers, in6_start makes addresses and waits for them. */
void	 ip6_init(void);
void	 icmp6_init(void);
void	 nd6_init(void);
void	 mld6_init(void);
void	 in6_family_init(void);
void	 in6_addr_init(void);
void	 in6_config_init(void);
void	 route6_init(void);
int	 in6_start(void);

/* ip6_exthdr.c.  What became of a packet's extension headers: */
enum exthdr {
	EH_UPPER,	/* the upper protocol's header is at *off, type *nxt */
	EH_FRAGMENT,	/* a fragment header is there */
	EH_DONE		/* dropped or answered; m is consumed */
};
void	 ip6_exthdr_init(void);
/* Walks from *off on, where a header of type *nxt is.  Of ours only. */
enum exthdr ip6_exthdrs(struct mbuf *m, uint32_t *off, uint8_t *nxt);
/*
 * The hop-by-hop options that come first, if there are any.  False: m is
 * consumed.
 */
bool	 ip6_hopbyhop(struct mbuf *m, uint32_t *off, uint8_t *nxt);
/* Upper protocol of a packet, quoted or not: where, or 0 if it is cut. */
uint32_t ip6_upper(const struct mbuf *m, uint32_t off, uint8_t *nxt);

/* A fragment with its header at off; the whole datagram, or NULL. */
struct mbuf *frag6_input(struct mbuf *m, uint32_t off);

void	 ip6_forward(struct mbuf *);
void	 ip6_ctlinput(uint8_t proto, int error, struct in_conninfo *,
	    const uint8_t header[8], uint32_t mtu, const struct in_icmperr *);
/*
 * Last stage of output and forwarding, as ip_transmit(): segments and
 * checksums as the device asks.  The packet fits the link.  Consumes m.
 */
int	 ip6_transmit(struct ifnet *, struct mbuf *, const struct in6_addr *gw);
uint32_t ip6_linkmtu(const struct ifnet *);
/* Length of the longest packet that this one will be on the wire. */
uint32_t ip6_wirelen(const struct mbuf *);

/* What paths have told of their MTU (RFC 8201). */
void	 ip6_pmtu_init(void);
uint32_t ip6_pmtu(const struct in6_addr *dst, uint32_t zone, uint32_t linkmtu);
void	 ip6_pmtu_update(const struct in6_addr *dst, uint32_t zone,
	    uint32_t mtu);

/*
 * Behind an IPv6 header out of ifp to its link, by way of no route; src may
 * be unspecified on purpose.  Consumes m.
 */
void	 ip6_sendlink(struct ifnet *, struct mbuf *,
	    const struct in6_addr *src, const struct in6_addr *dst,
	    uint8_t proto, uint8_t hoplimit);
/* The checksum of a message from src to dst, stored in it. */
void	 icmp6_seal(struct mbuf *, const struct in6_addr *src,
	    const struct in6_addr *dst);
/* Both, for an ICMPv6 message. */
void	 icmp6_send(struct ifnet *, struct mbuf *, const struct in6_addr *src,
	    const struct in6_addr *dst, uint8_t hoplimit);

void	 nd6_ifattach(struct ifnet *);	/* fam_ether of IPv6 */
/* Neighbour discovery messages; hlen as for icmp6_input().  Consume m. */
void	 nd6_input(struct mbuf *, unsigned hlen, uint8_t type);
void	 mld6_input(struct mbuf *, unsigned hlen);
void	 nd6_start(void);		/* the clock of all these */
/* A neighbour that solicits, or a router, said what its link address is. */
void	 nd6_learn(struct ifnet *, const struct in6_addr *,
	    const uint8_t lladdr[6], bool router);
/* A neighbour advertisement; lladdr NULL: it has none; flags ND_NA_FLAG_*. */
void	 nd6_advertised(struct ifnet *, const struct in6_addr *,
	    const uint8_t *lladdr, uint32_t flags);
void	 nd6_solicit(struct ifnet *, const struct in6_addr *src,
	    const struct in6_addr *target, bool unicast);
/* Does not consume m; false: the message is bad. */
bool	 nd6_router_advert(struct ifnet *, struct mbuf *, unsigned hlen);
bool	 nd6_redirect(struct ifnet *, struct mbuf *, unsigned hlen);
void	 nd6_router_init(void);
/*
 * A message of len bytes, zero but for the type; option not 0: with our link
 * address in an option of that type behind it.
 */
struct mbuf *nd6_message(const struct ifnet *, uint8_t type, uint32_t len,
	    uint8_t option);
void	 nd6_router_tick(void);
/*
 * The options of a message from off on: fn is called for each.  False: they
 * are malformed, and the message must be dropped (RFC 4861 section 4.6).
 */
struct nd6_option {
	uint8_t		 type;
	uint32_t	 off, len;	/* in the packet, header included */
};
bool	 nd6_options(const struct mbuf *, uint32_t off,
	    void (*fn)(const struct mbuf *, const struct nd6_option *, void *),
	    void *arg);
/* An option of the given type that holds a link address, into it. */
struct nd6_lladdr {
	uint8_t		 type;		/* ND_OPT_*_LINKADDR */
	bool		 found;
	uint8_t		 addr[6];
};
void	 nd6_find_lladdr(const struct mbuf *, const struct nd6_option *,
	    void *lladdr);

/* Another speaks for this address while it is tentative here. */
void	 in6_dad_conflict(struct ifnet *, const struct in6_addr *);
/* "ifconfig": the addresses of an interface. */
struct ctl_out;
void	 in6_addr_show(const struct ifnet *, struct ctl_out *);
/* Seconds go by: duplicate detection, lifetimes. */
void	 in6_addr_tick(void);
/* A prefix of a router advertisement (RFC 4862 section 5.5.3); seconds. */
void	 in6_autoconf(struct ifnet *, const struct in6_addr *prefix,
	    uint32_t preferred, uint32_t valid);
struct in6_addr in6_solicited_node(const struct in6_addr *);

#endif /* NETINET6_IP6_PRIVATE_H */
