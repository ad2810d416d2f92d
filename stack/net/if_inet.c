/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 addresses of interfaces: finds the interface, subnet or source address
 * for another address.  They change only at boot and are read without a lock.
 */
#include <arpa/inet.h>
#include <string.h>

#include "net/if_config.h"

struct in_addr
inet_mask(unsigned plen)
{
	KASSERT(plen <= 32, ("inet_mask: /%u", plen));
	return ((struct in_addr){
	    htonl(plen == 0 ? 0 : UINT32_MAX << (32 - plen)) });
}

unsigned
inet_masklen(struct in_addr mask)
{
	return ((unsigned)__builtin_popcount(mask.s_addr));
}

static bool
in_subnet(const struct if_inet *in, struct in_addr addr)
{
	return (((in->addr.s_addr ^ addr.s_addr) & in->mask.s_addr) == 0);
}

const struct if_inet *
if_subnet(const struct ifnet *ifp, struct in_addr addr)
{
	const struct if_inet *in, *best = NULL;

	for (unsigned i = 0; i < ifp->if_ninet; i++) {
		in = &ifp->if_inet[i];
		if (in_subnet(in, addr) && (best == NULL ||
		    ntohl(in->mask.s_addr) > ntohl(best->mask.s_addr)))
			best = in;
	}
	return (best);
}

struct in_addr
if_source(const struct ifnet *ifp, struct in_addr nexthop)
{
	const struct if_inet *in = if_subnet(ifp, nexthop);

	return (in != NULL ? in->addr : ifp->if_addr);
}

bool
if_hasaddr(const struct ifnet *ifp, struct in_addr addr)
{
	for (unsigned i = 0; i < ifp->if_ninet; i++)
		if (ifp->if_inet[i].addr.s_addr == addr.s_addr)
			return (true);
	return (false);
}

struct if_addrbucket *if_addrhead[1 << IF_ADDRHASHBITS];

/* Adds an interface to an address's bucket, in the order of ifnet_list. */
static void
hash_address(struct ifnet *ifp, struct in_addr addr)
{
	struct if_addrbucket **p = &if_addrhead[if_addrhash(addr)], *new;

	while (*p != NULL && (*p)->ab_ifp->if_index < ifp->if_index)
		p = &(*p)->ab_next;
	if (*p != NULL && (*p)->ab_ifp == ifp)
		return;
	new = kmalloc(sizeof(*new));
	new->ab_ifp = ifp;
	new->ab_next = *p;
	*p = new;
}

void
if_hashaddrs(struct ifnet *ifp)
{
	for (unsigned i = 0; i < ifp->if_ninet; i++) {
		const struct if_inet *in = &ifp->if_inet[i];

		hash_address(ifp, in->addr);
		hash_address(ifp, (struct in_addr){ in->addr.s_addr |
		    ~in->mask.s_addr });
	}
}

struct ifnet *
if_byaddr(struct in_addr addr)
{
	const struct if_addrbucket *ab;

	for (ab = if_addrhead[if_addrhash(addr)]; ab != NULL; ab = ab->ab_next)
		if (if_hasaddr(ab->ab_ifp, addr))
			return (ab->ab_ifp);
	return (NULL);
}

struct ifnet *
if_onlink(struct in_addr addr)
{
	struct ifnet *ifp;

	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		if (if_subnet(ifp, addr) != NULL)
			break;
	return (ifp);
}

/* A subnet's last address; a /31 or /32 has none (RFC 3021). */
static bool
is_last(const struct if_inet *in, struct in_addr addr)
{
	return (addr.s_addr == (in->addr.s_addr | ~in->mask.s_addr) &&
	    ~ntohl(in->mask.s_addr) > 1);
}

bool
if_isbroadcast(const struct ifnet *ifp, struct in_addr addr)
{
	if (addr.s_addr == htonl(INADDR_BROADCAST))
		return (true);
	for (unsigned i = 0; i < ifp->if_ninet && !ifp->if_loopback; i++)
		if (is_last(&ifp->if_inet[i], addr))
			return (true);
	return (false);
}

bool
if_hasbroadcast(struct in_addr addr)
{
	const struct ifnet *ifp;

	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		if (if_isbroadcast(ifp, addr))
			break;
	return (ifp != NULL);
}
