/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of a table of pcbs, for in_pcb.c.
 *
 * In a table without groups, changes and lookups hold the table's lock.
 * Otherwise a connection is entered, removed and looked up with the lock of its
 * group (Willmann, Rixner, Cox, "An evaluation of network stack parallelization
 * strategies in modern operating systems", 2006: ConnP-L), and what is bound
 * to a port is changed with the lock of its part of the ports.  A thread that
 * holds a port's lock may take a group's.
 */
#ifndef NETINET_IN_PCBTABLE_H
#define NETINET_IN_PCBTABLE_H

#include "netinet/in_pcb.h"

void	 in_pcbtable_sysctl_init(void);
uint64_t in_connhash(const struct inpcbtable *, const struct in_conninfo *);
/* The lock under which pcbs are bound to a port. */
struct rwlock *in_portlock(struct inpcbtable *, in_port_t);
/* What is bound to a port, or NULL; its lock is held. */
struct inport *in_portfind(struct inpcbtable *it, in_port_t port)
	    REQUIRES_SHARED(pcbtable_role);
/* Whether a port has connections. */
bool	 in_portconnected(struct inpcbtable *, in_port_t);
/*
 * Enters a pcb with a local port into its connection bucket or its port's
 * list.  False: the connection exists.
 */
bool	 in_pcbenter(struct inpcbtable *it, struct inpcb *inp, bool connected)
	    REQUIRES(pcbtable_role, inp->inp_socket->so_lock);
/* Removes it; does nothing if it is not in the table. */
void	 in_pcbtakeout(struct inpcbtable *it, struct inpcb *inp)
	    REQUIRES(pcbtable_role, inp->inp_socket->so_lock);
/*
 * Whether a pcb bound to laddr receives packets to an address.  "Any" of IPv4
 * covers all of IPv4; :: covers both families unless IPV6_V6ONLY is set.
 */
bool	 in_covers(bool v6only, const struct in6_addr *laddr,
	    const struct in6_addr *addr);

/*
 * The index (in_pcbindex.c).  A pcb that is in it may leave twice.  Lookups
 * return the socket of a connection or bound pcb, or of the best bound pcb;
 * referenced, or NULL.
 */
void	 in_pcbindex_enter(struct inpcbtable *it, struct inpcb *inp)
	    REQUIRES(pcbtable_role, inp->inp_socket->so_lock);
void	 in_pcbindex_leave(struct inpcbtable *it, struct inpcb *inp)
	    REQUIRES(pcbtable_role);
struct socket *in_pcbindex_find(struct inpcbtable *,
	    const struct in_conninfo *);
struct socket *in_pcbindex_bound(struct inpcbtable *,
	    const struct in_conninfo *);

#endif /* NETINET_IN_PCBTABLE_H */
