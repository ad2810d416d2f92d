/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints of either family, and the operations that a transport protocol
 * needs from IP: one table for IPv4, one for IPv6.
 *
 * An address has 16 bytes; an IPv4 address is mapped, ::ffff:a.b.c.d (RFC 4291
 * section 2.5.5.2).  An IPv6 socket bound to :: therefore serves both
 * families, and connection tables do not depend on the family.
 */
#ifndef NETINET_IN_FAMILY_H
#define NETINET_IN_FAMILY_H

#include <netinet/in.h>

#include "kern/mbuf.h"
#include "netinet/ip_var.h"

/* An address and a port (network byte order). */
struct in_endpoint {
	struct in6_addr	 addr;
	in_port_t	 port;
	uint32_t	 zone;	/* interface of a link-local address, or 0 */
};

/* The four numbers of a connection, from this host's point of view. */
struct in_conninfo {
	struct in6_addr	 laddr, faddr;
	in_port_t	 lport, fport;		/* network byte order */
	/*
	 * zone of either address, also the interface for sending to a group;
	 * 0: none
	 */
	uint32_t	 zone;
};

/* Hashed and compared as five words. */
_Static_assert(sizeof(struct in_conninfo) == 40, "in_conninfo has padding");
static inline bool
in_connequal(const struct in_conninfo *a, const struct in_conninfo *b)
{
	return (memcmp(a, b, sizeof(*a)) == 0);
}

struct in_family {
	int		 af_family;		/* AF_INET, AF_INET6 */
	uint32_t	 af_hdrlen;		/* of the IP header */
	uint32_t	 af_minmtu; /* MTU that every path supports */
	struct in6_addr	 af_any, af_loopback;
	/*
	 * Source address of the route to c->faddr and MTU of its link, which
	 * limits what can be received; uses c->laddr as the source if it is
	 * set.  False: no route.
	 */
	bool		(*af_route)(const struct in_conninfo *c,
			    struct in6_addr *src, uint32_t *mtu);
	/* Whether a socket may be bound to this address, which is not "any". */
	bool		(*af_isours)(const struct in_endpoint *, bool stream);
	/* Answers a packet whose port no socket has; consumes m. */
	void		(*af_portunreach)(struct mbuf *);
	/* Answers a packet longer than mtu, the path's MTU; consumes m. */
	void		(*af_toobig)(struct mbuf *, uint32_t mtu);
	/* The interface for sending to a group, or NULL. */
	struct ifnet	*(*af_groupif)(const struct in6_addr *group,
			    uint32_t ifindex);
	/* Registers an upper protocol; see in_proto_register(). */
	void		(*af_register)(uint8_t proto, pr_input_t *,
			    pr_ctlinput_t *);
	/* Input of a registered protocol, or NULL. */
	pr_input_t	*(*af_protoinput)(uint8_t proto);
	/* Like ip_output(). */
	int		(*af_output)(struct mbuf *, const struct in_conninfo *,
			    uint8_t proto, const struct ip_sendopts *);
};

/*
 * [I] in6_family is filled at boot, because this folder may not refer to
 * netinet6/.
 */
extern const struct in_family in4_family;
extern struct in_family in6_family;
void	 in6_family_register(const struct in_family *);

/* Registers an upper protocol for both families, once for each number. */
void	 in_proto_register(uint8_t proto, pr_input_t *, pr_ctlinput_t *);

static inline struct in6_addr
in_map(struct in_addr a)
{
	return ((struct in6_addr){ .s6_addr32 = { 0, 0, htonl(0xffff),
	    a.s_addr } });
}

static inline struct in_addr
in_unmap(const struct in6_addr *a)
{
	return ((struct in_addr){ a->s6_addr32[3] });
}

/* The unspecified address of either family. */
static inline bool
in_isany(const struct in6_addr *a)
{
	return (a->s6_addr32[3] == 0 && a->s6_addr32[1] == 0 &&
	    a->s6_addr32[0] == 0 && (a->s6_addr32[2] == 0 ||
	    a->s6_addr32[2] == htonl(0xffff)));
}

/* Whether the address is a multicast group of either family. */
static inline bool
in_isgroup(const struct in6_addr *a)
{
	return (IN6_IS_ADDR_MULTICAST(a) || (IN6_IS_ADDR_V4MAPPED(a) &&
	    IN_MULTICAST(ntohl(a->s6_addr32[3]))));
}

/* Whether the address needs a zone; no IPv4 address does. */
static inline bool
in_islinklocal(const struct in6_addr *a)
{
	return (IN6_IS_ADDR_LINKLOCAL(a) || IN6_IS_ADDR_MC_LINKLOCAL(a));
}

static inline const struct in_family *
in_family(const struct in6_addr *a)
{
	return (IN6_IS_ADDR_V4MAPPED(a) ? &in4_family : &in6_family);
}

/*
 * Per-packet operations.  They are called by name so that the compiler can
 * inline them; only IPv6 output uses the table.
 */
int	 in4_output(struct mbuf *, const struct in_conninfo *, uint8_t proto,
	    const struct ip_sendopts *);
void	 in4_endpoints(const struct mbuf *, struct in_conninfo *);
void	 in6_endpoints(const struct mbuf *, struct in_conninfo *);
bool	 in4_ismany(const struct mbuf *, const struct in6_addr *);
bool	 in6_ismany(const struct mbuf *, const struct in6_addr *);
/* Pseudo header sum (RFC 8200 section 8.1), folded, not complemented. */
uint16_t in6_pseudo(const struct in6_addr *, const struct in6_addr *,
	    uint8_t proto, uint32_t len);

static inline int
af_output(const struct in_family *af, struct mbuf *m,
    const struct in_conninfo *c, uint8_t proto, const struct ip_sendopts *opts)
{
	return (af == &in4_family ? in4_output(m, c, proto, opts) :
	    in6_family.af_output(m, c, proto, opts));
}

/* Like in_pseudo(). */
static inline uint16_t
af_pseudo(const struct in_family *af, const struct in_conninfo *c,
    uint8_t proto, uint32_t len)
{
	return (af == &in4_family ? in_pseudo(in_unmap(&c->laddr),
	    in_unmap(&c->faddr), proto, len) :
	    in6_pseudo(&c->laddr, &c->faddr, proto, len));
}

/* Fills in the addresses of a received packet; ports are not changed. */
static inline void
af_endpoints(const struct in_family *af, const struct mbuf *m,
    struct in_conninfo *c)
{
	if (af == &in4_family)
		in4_endpoints(m, c);
	else
		in6_endpoints(m, c);
}

/*
 * Whether the destination address, or that of a received packet (m may be
 * NULL), is multicast or broadcast.
 */
static inline bool
af_ismany(const struct in_family *af, const struct mbuf *m,
    const struct in6_addr *addr)
{
	return (af == &in4_family ? in4_ismany(m, addr) :
	    in6_ismany(m, addr));
}

/*
 * in_pmtu.c: the MTU of the path to a destination, at most that of its first
 * link.  What ICMP reports is kept for all later packets and connections.  An
 * IPv4 report must quote data in flight of a TCP connection (RFC 5927 section
 * 7), the addresses and ports of a connected UDP socket, or the ends of a
 * tunnel.  A report of IPv6 needs no proof, but has no effect below 1280 bytes.
 */
void	 in_pmtu_init(void);
uint32_t in_pmtu(const struct in6_addr *dst, uint32_t zone, uint32_t linkmtu);
void	 in_pmtu_update(const struct in6_addr *dst, uint32_t zone,
	    uint32_t mtu);

/* Like af_route, with the MTU of the path, which limits what can be sent. */
static inline bool
af_path(const struct in_conninfo *c, struct in6_addr *src, uint32_t *mtu)
{
	if (!in_family(&c->faddr)->af_route(c, src, mtu))
		return (false);
	*mtu = in_pmtu(&c->faddr, c->zone, *mtu);
	return (true);
}

/* The family of a packet that starts at its IP header. */
const struct in_family *in_packetfamily(const struct mbuf *);

/*
 * Stores the connection as words for a keyed hash, with room for IN_CONNWORDS;
 * returns their number.
 */
#define	IN_CONNWORDS	5
size_t	 in_connwords(const struct in_conninfo *, uint64_t *words);

/*
 * Convert from and to a program's socket address.  family is the socket's; an
 * AF_INET6 socket may have addresses of both families.  Errors: EINVAL (too
 * short), EAFNOSUPPORT.
 */
struct sockname;
int	 in_fromname(int family, const struct sockname *,
	    struct in_endpoint *);
/* Likewise for bind(). */
int	 in_bindname(int family, const struct sockname *,
	    struct in_endpoint *);
void	 in_toname(int family, const struct in_endpoint *,
	    struct sockname *);

#endif /* NETINET_IN_FAMILY_H */
