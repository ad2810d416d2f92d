/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 (RFC 8200) and its upper-layer interface.
 *
 * A link-local address is unique only on its link (RFC 4007).  It is stored
 * together with the index of its interface, its zone.  For all other addresses
 * the zone is 0.
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
#define	IP6_VERSION	0x60		/* version bits of the first byte */
#define	IP6_VERSION_MASK 0xf0

/*
 * IPv6 data of an interface; ifp->if_in6 is NULL without IPv6. [I] immutable,
 * [a] atomic
 */
struct in6_ifdata {
	bool		 autoconf;	/* [I] accept router advertisements */
	atomic_u32	 mtu;		/* [a] from a router, 0: the link's */
	atomic_u32	 hoplimit;	/* [a] from a router, 0: default */
	atomic_u32	 retrans;	/* [a] ms between solicitations */
	atomic_u32	 reachable;	/* [a] ms until a neighbour is stale */
	atomic_u32	 solicits;	/* [a] router solicitations to send */
	/* [a] an MLDv1 router is present until this time */
	atomic_u64	 oldquerier;
};

/*
 * Like ip_register(): input gets a packet that starts at its IPv6 header, with
 * hlen bytes of headers before the upper protocol's.
 */
void	 ip6_register(uint8_t proto, pr_input_t *, pr_ctlinput_t *);
pr_input_t *ip6_protoinput(uint8_t proto);	/* input of one; NULL: none */

/*
 * Like ip_output().  c->laddr may be unspecified; c->zone is the interface of
 * link-local and multicast addresses.  opts->dontfrag: EMSGSIZE if longer than
 * the path MTU.  Returns 0, ENETUNREACH, EMSGSIZE or ENOBUFS.
 */
int	 ip6_output(struct mbuf *, const struct in_conninfo *, uint8_t proto,
	    const struct ip_sendopts *);
/* Source and MTU towards c->faddr, like af_route. */
bool	 ip6_route(const struct in_conninfo *, struct in6_addr *src,
	    uint32_t *mtu);
void	 ip6_input(struct mbuf *);
/*
 * Sends an ICMPv6 error about the packet m, which starts at its header;
 * consumes m.
 */
void	 icmp6_error(struct mbuf *m, uint8_t type, uint8_t code,
	    uint32_t param);

/* The next hop. */
struct nhop6 {
	struct ifnet	*nh_ifp;
	struct in6_addr	 nh_gw;		/* gateway, or the destination */
	bool		 nh_local;	/* dst is an address of this host */
};

#define	RT6_LOCAL	0x1	/* route to an address of this host */
#define	RT6_AUTO	0x2	/* learned from a router */

/*
 * Like the functions of net/route.h.  gw NULL: on link.  Errors: ENETUNREACH
 * (gateway in no interface's subnet), EEXIST, ESRCH.  A route to a link-local
 * destination belongs to the zone of its interface.
 */
int	 route6_add(const struct in6_addr *dst, unsigned plen,
	    const struct in6_addr *gw, struct ifnet *, unsigned flags);
int	 route6_delete(const struct in6_addr *dst, unsigned plen,
	    uint32_t zone);
/* The gateway of the route with exactly this prefix, unspecified if on link. */
bool	 route6_gateway(const struct in6_addr *dst, unsigned plen,
	    struct in6_addr *gw);
bool	 route6_lookup(const struct in6_addr *dst, uint32_t zone,
	    struct nhop6 *);

struct in6_addr in6_prefix(const struct in6_addr *, unsigned plen);

/*
 * Addresses of interfaces.  Times are of mach_uptime(); NSEC_FOREVER:
 * unlimited.  A new address is tentative until duplicate detection ends (RFC
 * 4862 section 5.4), unless net.inet6.ip6.dad_count is 0.
 */
#define	IA6_PRESENT	0x1	/* the entry is in use */
#define	IA6_TENTATIVE	0x2
#define	IA6_DUPLICATED	0x4	/* used by another node: never used here */
#define	IA6_AUTO	0x8	/* made from an advertised prefix */

/*
 * in6_config_set() parses if.<name>.inet6; the other functions apply it to the
 * interface.
 */
struct if_config;
int	 in6_config_set(struct if_config *, const char *value, char *why,
	    size_t);
int	 in6_config_attach(struct if_config *);
/* Enables IPv6 on an interface with a link-local address; called once. */
void	 in6_ifattach(struct ifnet *, bool autoconf);
/* EEXIST, EINVAL (not a unicast address). */
int	 in6_addr_add(struct ifnet *, const struct in6_addr *, unsigned plen,
	    unsigned flags, nsec_t preferred, nsec_t valid);
unsigned in6_addr_flags(const struct ifnet *, const struct in6_addr *);
bool	 in6_addr_tentative(const struct ifnet *, const struct in6_addr *);
/* The best source towards dst through ifp (RFC 6724); false: none. */
bool	 in6_selectsrc(const struct ifnet *, const struct in6_addr *dst,
	    struct in6_addr *src);
/*
 * Lists addresses in use with their prefix lengths, at most max; returns how
 * many.
 */
unsigned in6_addr_list(const struct ifnet *, struct in6_addr *,
	    unsigned *plen, unsigned max);
/* Whether an interface other than loopback has an address of global scope. */
bool	 in6_global(void);

/* The output interface for multicast; zone 0: the first. */
struct ifnet *in6_zoneif(uint32_t zone);

#endif /* NETINET6_IP6_VAR_H */
