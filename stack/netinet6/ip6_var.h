/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 (RFC 8200) and its upper-layer interface.
 *
 * Link-local addresses mean nothing without their link (RFC 4007): next to
 * one goes the index of its interface, its zone.  For all others the zone
 * is 0.
 */
#ifndef NETINET6_IP6_VAR_H
#define NETINET6_IP6_VAR_H

#include <netinet/icmp6.h>
#include <netinet/ip6.h>

#include "net/if_var.h"
#include "netinet/in_family.h"

#define	IP6_HDRLEN	40
#define	IP6_HOPLIMIT	64		/* default */
#define	IP6_MINMTU	1280		/* RFC 8200 section 5 */
#define	IP6_MAXPAYLOAD	65535
#define	IP6_VERSION	0x60		/* in the first byte */
#define	IP6_VERSION_MASK 0xf0

/*
 * What IPv6 knows of an interface; ifp->if_in6, NULL where IPv6 is not
 * configured.  [I] immutable, [a] atomic
 */
struct in6_ifdata {
	bool		 autoconf;	/* [I] heeds router advertisements */
	atomic_u32	 mtu;		/* [a] a router's word, 0: the link's */
	atomic_u32	 hoplimit;	/* [a] as a router says, 0: default */
	atomic_u32	 retrans;	/* [a] ms between solicitations */
	atomic_u32	 reachable;	/* [a] ms a neighbour is believed */
	atomic_u32	 solicits;	/* [a] of routers, still to be sent */
	atomic_u64	 oldquerier;	/* [a] date until which a router that
						   knows MLDv1 only is here */
};

/*
 * As ip_register(): input gets a packet that starts at its IPv6 header, with
 * hlen bytes of headers in front of the upper protocol's.
 */
void	 ip6_register(uint8_t proto, pr_input_t *, pr_ctlinput_t *);

/*
 * As ip_output(): c->laddr may be unspecified, c->zone says the interface of
 * link-local and multicast addresses.  opts->dontfrag: EMSGSIZE when longer
 * than the path takes.  0, ENETUNREACH, EMSGSIZE, ENOBUFS.
 */
int	 ip6_output(struct mbuf *, const struct in_conninfo *, uint8_t proto,
	    const struct ip_sendopts *);
/* Source and MTU towards c->faddr, as af_route. */
bool	 ip6_route(const struct in_conninfo *, struct in6_addr *src,
	    uint32_t *mtu);
void	 ip6_input(struct mbuf *);
/* ICMPv6 error about the packet m, which starts at its header; consumes m. */
void	 icmp6_error(struct mbuf *m, uint8_t type, uint8_t code,
	    uint32_t param);

/* Where the next hop is. */
struct nhop6 {
	struct ifnet	*nh_ifp;
	struct in6_addr	 nh_gw;		/* gateway, or the destination */
	bool		 nh_local;	/* it is an address of this host */
};

#define	RT6_LOCAL	0x1	/* to an address of this host */
#define	RT6_AUTO	0x2	/* a router advertised it */

/*
 * As those of net/route.h.  gw NULL: on link.  ENETUNREACH: no interface's
 * subnet has the gateway; EEXIST; ESRCH.  A route to a link-local
 * destination belongs to the zone of its interface.
 */
int	 route6_add(const struct in6_addr *dst, unsigned plen,
	    const struct in6_addr *gw, struct ifnet *, unsigned flags);
int	 route6_delete(const struct in6_addr *dst, unsigned plen,
	    uint32_t zone);
/* Gateway of the route to just this prefix, unspecified if it is on link. */
bool	 route6_gateway(const struct in6_addr *dst, unsigned plen,
	    struct in6_addr *gw);
bool	 route6_lookup(const struct in6_addr *dst, uint32_t zone,
	    struct nhop6 *);

struct in6_addr in6_prefix(const struct in6_addr *, unsigned plen);

/*
 * Addresses of interfaces.  Dates are of mach_uptime(), NSEC_FOREVER: none.
 * A new address is tentative until nobody has claimed it (RFC 4862 section
 * 5.4) unless net.inet6.ip6.dad_count is 0.
 */
#define	IA6_PRESENT	0x1	/* it is an address of this interface */
#define	IA6_TENTATIVE	0x2
#define	IA6_DUPLICATED	0x4	/* another has it: never used */
#define	IA6_AUTO	0x8	/* made from an advertised prefix */

/* The value of if.<name>.inet6, and what it makes of the interface. */
struct if_config;
int	 in6_config_set(struct if_config *, const char *value, char *why,
	    size_t);
int	 in6_config_attach(struct if_config *);
/* Gives an interface IPv6 with a link-local address; once. */
void	 in6_ifattach(struct ifnet *, bool autoconf);
/* EEXIST, EINVAL (not a unicast address). */
int	 in6_addr_add(struct ifnet *, const struct in6_addr *, unsigned plen,
	    unsigned flags, nsec_t preferred, nsec_t valid);
unsigned in6_addr_flags(const struct ifnet *, const struct in6_addr *);
bool	 in6_addr_tentative(const struct ifnet *, const struct in6_addr *);
/* The best source towards dst by way of ifp (RFC 6724); false: none. */
bool	 in6_selectsrc(const struct ifnet *, const struct in6_addr *dst,
	    struct in6_addr *src);
/* Addresses in use and their prefix lengths, max at most; how many. */
unsigned in6_addr_list(const struct ifnet *, struct in6_addr *,
	    unsigned *plen, unsigned max);
/* Whether any interface but loopback has an address beyond its link. */
bool	 in6_global(void);

/* The interface that multicast goes out by; zone 0: the first. */
struct ifnet *in6_zoneif(uint32_t zone);

#endif /* NETINET6_IP6_VAR_H */
