/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tunnels: interfaces gif and gre.
 */
#ifndef NETINET_IP_TUNNEL_H
#define NETINET_IP_TUNNEL_H

#include "net/if_driver.h"

#define	GRE_HDRLEN	4

/*
 * Locks used to protect struct tunnel members:
 *	[I] immutable after attach
 */
struct tunnel {
	struct ifnet	 t_if;
	struct tunnel	*t_next;	/* [I] */
	bool		 t_gre;		/* [I] */
	bool		 t_keyed;	/* [I] */
	uint32_t	 t_key;		/* [I] network byte order */
	uint8_t		 t_ttl;		/* [I] TTL of outer packets */
	struct in6_addr	 t_src, t_dst;	/* [I] outer addresses, same family */
	uint32_t	 t_overhead;	/* [I] bytes of outer headers */
};

void	 tunnel_init(void);		/* at boot */
/*
 * Creates a gif or gre interface.  Returns an errno value with the reason in
 * why.
 */
int	 tunnel_create(const struct if_config *, bool gre, char *why, size_t);
/*
 * The traffic class of a decapsulated packet from both headers' classes (RFC
 * 6040 section 4.2); -1: drop it.
 */
int	 tunnel_ecn(uint8_t outer, uint8_t inner);


/* Shared by the files of tunnels. */
extern struct tunnel *tunnels;		/* [I] after boot */
void	 tunnel_input_init(void);
struct in_conninfo;
struct tunnel *tunnel_find(const struct in_conninfo *, bool gre);
int	 tunnel_output(struct ifnet *, struct mbuf *, struct in_addr nexthop);
int	 tunnel_output6(struct ifnet *, struct mbuf *,
	    const struct in6_addr *nexthop);

#endif /* NETINET_IP_TUNNEL_H */
