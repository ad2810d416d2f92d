/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups that this host is in, on each interface, of either
 * family: IGMP (RFC 3376) and MLD (RFC 3810) differ in their messages only.
 * Addresses have 16 bytes, those of IPv4 mapped.
 *
 * A member wants a group from every source or from one; what is told to
 * routers is the union: "exclude none" if anybody wants every source, else
 * "include" those that are wanted.
 */
#ifndef NETINET_IN_GROUP_H
#define NETINET_IN_GROUP_H

#include <netinet/in.h>

#include "net/if_var.h"

#define	GROUP_SOURCES_MAX	32	/* of a group on an interface */
#define	GROUP_ROBUSTNESS	2	/* reports of a change (8.1, 9.1) */

/* Record types, the same in both protocols. */
enum group_record {
	GROUP_IS_INCLUDE = 1, GROUP_IS_EXCLUDE, GROUP_TO_INCLUDE,
	GROUP_TO_EXCLUDE
};

/* One record to be reported; "include" without sources is "left". */
struct group_report {
	struct ifnet	*gr_ifp;
	struct in6_addr	 gr_group;
	enum group_record gr_type;
	unsigned	 gr_nsources;
	struct in6_addr	 gr_sources[GROUP_SOURCES_MAX];
};

struct group_family {
	/* Some groups are never spoken of. */
	bool		(*gf_isreported)(const struct in6_addr *group);
	void		(*gf_report)(const struct group_report *);
	/* Link address of a group. */
	void		(*gf_lladdr)(const struct in6_addr *, uint8_t ll[6]);
};

void	 in_group_init(void);		/* at boot */
void	 in_group_register(int domain, const struct group_family *);

/*
 * One more, or one fewer, member; source NULL: of every source.  Reports a
 * change.  EINVAL: not a multicast address; ENOBUFS: over
 * net.inet.ip.mcast.maxgroups, or GROUP_SOURCES_MAX.
 */
int	 in_group_join(struct ifnet *, const struct in6_addr *group,
	    const struct in6_addr *source);
void	 in_group_leave(struct ifnet *, const struct in6_addr *group,
	    const struct in6_addr *source);
bool	 in_group_ismember(const struct ifnet *, const struct in6_addr *);

/*
 * A querier asks for a group, or for all of a family (its "any"): answers
 * are due within so many milliseconds.  Another host answered for a group,
 * which is as good where older routers listen.
 */
void	 in_group_queried(const struct ifnet *, const struct in6_addr *,
	    uint32_t most);
void	 in_group_heard(const struct ifnet *, const struct in6_addr *);

/*
 * The number in a query that stands for a time (RFC 3376 section 4.1.1, RFC
 * 3810 section 5.1.3): itself, or with the highest of its bits set an
 * exponent of three bits and a mantissa of the others.
 */
uint32_t in_group_time(uint32_t code, unsigned bits);

#endif /* NETINET_IN_GROUP_H */
