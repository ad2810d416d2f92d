/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast group membership of this host, on each interface, for either
 * family.  IGMP (RFC 3376) and MLD (RFC 3810) differ only in their messages.
 * Addresses have 16 bytes, IPv4 mapped.
 *
 * A member joins a group for every source or for one source.  Routers get the
 * union: "exclude none" if a member wants every source, else "include" with
 * the wanted sources.
 */
#ifndef NETINET_IN_GROUP_H
#define NETINET_IN_GROUP_H

#include <netinet/in.h>

#include "net/if_var.h"

#define	GROUP_SOURCES_MAX	32	/* for a group on an interface */
/*
 * transmissions of a change report (RFC 3376 section 8.1, RFC 3810 section
 * 9.1)
 */
#define	GROUP_ROBUSTNESS	2

/* Record types, the same in both protocols. */
enum group_record {
	GROUP_IS_INCLUDE = 1, GROUP_IS_EXCLUDE, GROUP_TO_INCLUDE,
	GROUP_TO_EXCLUDE
};

/*
 * One record of a report; "include" without sources means that the group was
 * left.
 */
struct group_report {
	struct ifnet	*gr_ifp;
	struct in6_addr	 gr_group;
	enum group_record gr_type;
	unsigned	 gr_nsources;
	struct in6_addr	 gr_sources[GROUP_SOURCES_MAX];
};

struct group_family {
	/* Whether routers get reports of the group. */
	bool		(*gf_isreported)(const struct in6_addr *group);
	void		(*gf_report)(const struct group_report *);
	/* Link address of a group. */
	void		(*gf_lladdr)(const struct in6_addr *, uint8_t ll[6]);
};

void	 in_group_init(void);		/* at boot */
void	 in_group_register(int domain, const struct group_family *);

/*
 * Adds or removes a member; source NULL means every source.  Sends a report of
 * the change.  Errors: EINVAL (not a multicast address), ENOBUFS (over
 * net.inet.ip.mcast.maxgroups or GROUP_SOURCES_MAX).
 */
int	 in_group_join(struct ifnet *, const struct in6_addr *group,
	    const struct in6_addr *source);
void	 in_group_leave(struct ifnet *, const struct in6_addr *group,
	    const struct in6_addr *source);
bool	 in_group_ismember(const struct ifnet *, const struct in6_addr *);

/*
 * in_group_queried(): a querier requested a group, or all groups of a family
 * (its "any"); answers are due within the given milliseconds.  The other
 * function: another host reported a group.  With older routers that suppresses
 * our own report.
 */
void	 in_group_queried(const struct ifnet *, const struct in6_addr *,
	    uint32_t most);
void	 in_group_heard(const struct ifnet *, const struct in6_addr *);

/*
 * Decodes a time in a query (RFC 3376 section 4.1.1, RFC 3810 section 5.1.3).
 * With the highest of its bits set, the code is an exponent of three bits and
 * a mantissa; otherwise it is the value.
 */
uint32_t in_group_time(uint32_t code, unsigned bits);

#endif /* NETINET_IN_GROUP_H */
