/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tunnels: interfaces gif and gre.
 */
#ifndef NETINET_IP_TUNNEL_H
#define NETINET_IP_TUNNEL_H

#include "net/if_private.h"

#define	GRE_HDRLEN	4

/*
 * Locks used to protect struct tunnel members:
 *	[I] immutable after attach
 *	[a] atomic
 */
struct tunnel {
	struct ifnet	 t_if;
	struct tunnel	*t_next;	/* [I] */
	bool		 t_gre;		/* [I] */
	bool		 t_keyed;	/* [I] */
	uint32_t	 t_key;		/* [I] network order */
	uint8_t		 t_ttl;		/* [I] of outer packets */
	struct in6_addr	 t_src, t_dst;	/* [I] of the same family */
	uint32_t	 t_overhead;	/* [I] outer headers, bytes */
	atomic_u32	 t_pathmtu;	/* [a] of the outer path, as told */
	atomic_u64	 t_pathmtu_until;	/* [a] believed until then */
};

void	 tunnel_init(void);		/* at boot */
/* Makes a gif or gre interface; an errno value with the reason in why. */
int	 tunnel_create(const struct if_config *, bool gre, char *why, size_t);
/*
 * RFC 6040 section 4.2: the traffic class of a packet that leaves a tunnel, of
 * both headers' classes; -1: it must be dropped.
 */
int	 tunnel_ecn(uint8_t outer, uint8_t inner);


/* Between the files of tunnels. */
extern struct tunnel *tunnels;		/* [I] after boot */
void	 tunnel_input_init(void);
struct in_conninfo;
struct tunnel *tunnel_find(const struct in_conninfo *, bool gre);
int	 tunnel_output(struct ifnet *, struct mbuf *, struct in_addr nexthop);
int	 tunnel_output6(struct ifnet *, struct mbuf *,
	    const struct in6_addr *nexthop);

#endif /* NETINET_IP_TUNNEL_H */
