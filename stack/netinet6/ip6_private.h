/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared definitions of IPv6.
 */
#ifndef NETINET6_IP6_PRIVATE_H
#define NETINET6_IP6_PRIVATE_H

#include "netinet6/ip6_stat.h"
#include "netinet6/ip6_var.h"

extern atomic_u32 ip6_forwarding;	/* [a] net.inet6.ip6.forwarding */
extern atomic_u32 ip6_maxifprefixes;	/* [a] net.inet6.ip6.maxifprefixes */

/*
 * Boot: ip6_init() registers; in6_start() configures addresses and waits until
 * they are usable.
 */
void	 ip6_init(void);
void	 icmp6_init(void);
void	 nd6_init(void);
void	 mld6_init(void);
void	 in6_family_init(void);
void	 in6_addr_init(void);
void	 in6_config_init(void);
void	 route6_init(void);
int	 in6_start(void);

/* ip6_exthdr.c: results of processing extension headers. */
enum exthdr {
	EH_UPPER,	/* *off: upper protocol's header, *nxt: its type */
	EH_FRAGMENT,	/* *off: a fragment header */
	EH_DONE		/* dropped or answered; m was consumed */
};
void	 ip6_exthdr_init(void);
/*
 * Processes headers from *off on, where a header of type *nxt starts.  For
 * packets to this host only.
 */
enum exthdr ip6_exthdrs(struct mbuf *m, uint32_t *off, uint8_t *nxt);
/*
 * Processes the hop-by-hop options at the front, if present.  False: m was
 * consumed.
 */
bool	 ip6_hopbyhop(struct mbuf *m, uint32_t *off, uint8_t *nxt);
/*
 * Finds the upper protocol's header of a packet or a quoted packet; 0 if it is
 * truncated.
 */
uint32_t ip6_upper(const struct mbuf *m, uint32_t off, uint8_t *nxt);

/*
 * Adds a fragment whose header is at off.  Returns the whole datagram, or
 * NULL.
 */
struct mbuf *frag6_input(struct mbuf *m, uint32_t off);

void	 ip6_forward(struct mbuf *);
void	 ip6_ctlinput(uint8_t proto, int error, struct in_conninfo *,
	    const uint8_t header[8], uint32_t mtu, const struct in_icmperr *);
/*
 * Last stage of output and forwarding, like ip_transmit(): segmentation and
 * checksums for the device.  The packet fits the link.  Consumes m.
 */
int	 ip6_transmit(struct ifnet *, struct mbuf *, const struct in6_addr *gw);
uint32_t ip6_linkmtu(const struct ifnet *);
/* Length of the longest packet on the wire after segmentation. */
uint32_t ip6_wirelen(const struct mbuf *);

/*
 * Prepends an IPv6 header and sends out of ifp without a route lookup; src may
 * be unspecified.  Consumes m.
 */
void	 ip6_sendlink(struct ifnet *, struct mbuf *,
	    const struct in6_addr *src, const struct in6_addr *dst,
	    uint8_t proto, uint8_t hoplimit);
/* Computes and stores the checksum of a message from src to dst. */
void	 icmp6_seal(struct mbuf *, const struct in6_addr *src,
	    const struct in6_addr *dst);
/* icmp6_seal() and ip6_sendlink() for an ICMPv6 message. */
void	 icmp6_send(struct ifnet *, struct mbuf *, const struct in6_addr *src,
	    const struct in6_addr *dst, uint8_t hoplimit);

void	 nd6_ifattach(struct ifnet *);	/* fam_ether of IPv6 */
/* Neighbour discovery messages; hlen as for icmp6_input().  Consume m. */
void	 nd6_input(struct mbuf *, unsigned hlen, uint8_t type);
void	 mld6_input(struct mbuf *, unsigned hlen);
/* starts the timer of addresses, neighbours and groups */
void	 nd6_start(void);
/* Stores the link address of a neighbour that solicits, or of a router. */
void	 nd6_learn(struct ifnet *, const struct in6_addr *,
	    const uint8_t lladdr[6], bool router);
/*
 * Processes a neighbour advertisement; lladdr NULL: it has none; flags
 * ND_NA_FLAG_*.
 */
void	 nd6_advertised(struct ifnet *, const struct in6_addr *,
	    const uint8_t *lladdr, uint32_t flags);
/* UNKNOWN: not a neighbour; UNRESOLVED: its advertisement is awaited. */
enum nd6_reachability { ND6_UNKNOWN, ND6_UNRESOLVED, ND6_RESOLVED };
enum nd6_reachability nd6_reachability(const struct ifnet *,
	    const struct in6_addr *);
void	 nd6_solicit(struct ifnet *, const struct in6_addr *src,
	    const struct in6_addr *target, bool unicast);
/* Do not consume m; false: the message is invalid. */
bool	 nd6_router_advert(struct ifnet *, struct mbuf *, unsigned hlen);
bool	 nd6_redirect(struct ifnet *, struct mbuf *, unsigned hlen);
void	 nd6_router_init(void);
void	 nd6_defrouter_init(void);
/* An advertisement of a router; 0 seconds: it is no default router. */
void	 nd6_defrouter_update(struct ifnet *, const struct in6_addr *router,
	    uint16_t seconds);
void	 nd6_defrouter_tick(nsec_t now);
/*
 * Makes a message of len bytes, zero except for the type.  If option is not 0,
 * an option of that type with our link address follows.
 */
struct mbuf *nd6_message(const struct ifnet *, uint8_t type, uint32_t len,
	    uint8_t option);
void	 nd6_router_tick(void);
/*
 * Calls fn for each option of a message from off on.  False: the options are
 * malformed, and the message must be dropped (RFC 4861 section 4.6).
 */
struct nd6_option {
	uint8_t		 type;
	uint32_t	 off, len; /* position in the packet, header included */
};
bool	 nd6_options(const struct mbuf *, uint32_t off,
	    void (*fn)(const struct mbuf *, const struct nd6_option *, void *),
	    void *arg);
/* Finds a link-address option of the given type. */
struct nd6_lladdr {
	uint8_t		 type;		/* ND_OPT_*_LINKADDR */
	bool		 found;
	uint8_t		 addr[6];
};
void	 nd6_find_lladdr(const struct mbuf *, const struct nd6_option *,
	    void *lladdr);

/* Another node uses this tentative address (RFC 4862 section 5.4). */
void	 in6_dad_conflict(struct ifnet *, const struct in6_addr *);
/* "ifconfig": the addresses of an interface. */
struct ctl_out;
void	 in6_addr_show(const struct ifnet *, struct ctl_out *);
/* Called every second: duplicate detection, lifetimes. */
void	 in6_addr_tick(void);
/*
 * Processes a prefix of a router advertisement (RFC 4862 section 5.5.3);
 * lifetimes in seconds.
 */
void	 in6_autoconf(struct ifnet *, const struct in6_addr *prefix,
	    uint32_t preferred, uint32_t valid);
struct in6_addr in6_solicited_node(const struct in6_addr *);

#endif /* NETINET6_IP6_PRIVATE_H */
