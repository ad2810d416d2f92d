/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of a table of pcbs, for in_pcb.c.
 *
 * Every change holds the table's lock.  A lookup of a connection takes it only
 * if the table has no groups.  Otherwise it takes the lock of the connection's
 * group, which also protects the group's members (Willmann, Rixner, Cox, "An
 * evaluation of network stack parallelization strategies in modern operating
 * systems", 2006: ConnP-L).
 */
#ifndef NETINET_IN_PCBTABLE_H
#define NETINET_IN_PCBTABLE_H

#include "netinet/in_pcb.h"

void	 in_pcbtable_sysctl_init(void);
uint64_t in_connhash(const struct inpcbtable *, const struct in_conninfo *);
/* NULL if not found. */
struct inpcb *in_connfind(struct inpcbtable *, const struct in_conninfo *)
	    REQUIRES_SHARED(pcbtable_role);
struct inport *in_portfind(struct inpcbtable *it, in_port_t port)
	    REQUIRES_SHARED(it->it_lock, pcbtable_role);
/*
 * Enters a pcb with a local port into its connection bucket or its port's
 * list.
 */
void	 in_pcbenter(struct inpcbtable *it, struct inpcb *inp, bool connected)
	    REQUIRES(it->it_lock, pcbtable_role, inp->inp_socket->so_lock);
/* Removes it; does nothing if it is not in the table. */
void	 in_pcbtakeout(struct inpcbtable *it, struct inpcb *inp)
	    REQUIRES(it->it_lock, pcbtable_role, inp->inp_socket->so_lock);
/*
 * Whether a pcb bound to laddr receives packets to an address.  "Any" of IPv4
 * covers all of IPv4; :: covers both families unless IPV6_V6ONLY is set.
 */
bool	 in_pcbcovers(const struct inpcb *, const struct in6_addr *laddr,
	    const struct in6_addr *addr) REQUIRES_SHARED(pcbtable_role);

#endif /* NETINET_IN_PCBTABLE_H */
