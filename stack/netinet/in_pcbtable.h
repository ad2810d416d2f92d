/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The insides of a table of pcbs, for in_pcb.c.
 *
 * The table's lock is held to change anything.  Input that looks a connection
 * up needs it only if the table has no groups; else the lock of the group
 * that the connection hashes to, which is also held to change its members
 * (Willmann, Rixner, Cox, "An evaluation of network stack parallelization
 * strategies in modern operating systems", 2006: ConnP-L).
 */
#ifndef NETINET_IN_PCBTABLE_H
#define NETINET_IN_PCBTABLE_H

#include "netinet/in_pcb.h"

void	 in_pcbtable_sysctl_init(void);
uint64_t in_connhash(const struct inpcbtable *, const struct in_conninfo *);
/* Table or group locked; NULL: there is none. */
struct inpcb *in_connfind(struct inpcbtable *, const struct in_conninfo *);
struct inport *in_portfind(struct inpcbtable *it, in_port_t port)
	    REQUIRES_SHARED(it->it_lock);
/* Enters a pcb with a local port into the list or bucket it belongs to. */
void	 in_pcbenter(struct inpcbtable *it, struct inpcb *, bool connected)
	    REQUIRES(it->it_lock);
/* Out of it again; nothing, if it was not in. */
void	 in_pcbtakeout(struct inpcbtable *it, struct inpcb *)
	    REQUIRES(it->it_lock);
/*
 * Whether packets to an address may be for a pcb that is bound to laddr: "any"
 * of IPv4 is for all of IPv4, :: is for both unless IPV6_V6ONLY says no.
 */
bool	 in_pcbcovers(const struct inpcb *, const struct in6_addr *laddr,
	    const struct in6_addr *addr);

#endif /* NETINET_IN_PCBTABLE_H */
