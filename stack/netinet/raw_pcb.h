/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared definitions of raw and ping sockets.
 */
#ifndef NETINET_RAW_PCB_H
#define NETINET_RAW_PCB_H

#include <netinet/icmp6.h>

#include "kern/counter.h"
#include "netinet/in_pcb.h"
#include "netinet/raw_ip.h"

#define	NO_CHECKSUM	(-1)

/*
 * The list of raw sockets.  It represents the table of their pcbs: raw_lock
 * also protects writes of a socket's addresses (pcbtable_role).
 */
extern struct rwlock raw_lock;

/*
 * Locks used to protect struct rawcb members:
 *	[I] immutable
 *	[s] lock of the socket
 *	[r] raw_lock; addresses of the inpcb are written with both
 */
struct rawcb {
	struct inpcb	 rc_inp;	/* must be first */
	LIST_ENTRY(rawcb) rc_link GUARDED_BY(raw_lock);	/* [r] */
	uint8_t		 rc_proto;	/* [I] */
	bool		 rc_ping;	/* [I] */
	/* [s] IP_HDRINCL */
	bool		 rc_hdrincl GUARDED_BY(rc_inp.inp_socket->so_lock);
	/* [s] IPV6_CHECKSUM, or NO_CHECKSUM */
	int		 rc_checksum GUARDED_BY(rc_inp.inp_socket->so_lock);
	/* [s] blocked ICMP types */
	uint32_t	 rc_filter4 GUARDED_BY(rc_inp.inp_socket->so_lock);
	/* [s] ICMPv6 types passed */
	struct icmp6_filter rc_filter6 GUARDED_BY(rc_inp.inp_socket->so_lock);
};

static inline struct rawcb *
sotorawcb(const struct socket *so) REQUIRES(so->so_lock)
{
	return (so->so_pcb);
}

void	 raw_insert(struct rawcb *);
void	 raw_remove(struct rawcb *);
void	 raw_input_init(void);

#define	RAW_STATS(X)							\
	X(delivered, "packets delivered to raw and ping sockets")	\
	X(fullsock, "dropped: receive buffer full")			\
	X(filtered, "dropped: by the socket's filter")			\
	X(checksum, "dropped: wrong checksum (IPV6_CHECKSUM)")		\
	X(toomany, "not delivered: too many sockets of the protocol")	\
	X(sent, "packets sent by raw and ping sockets")

struct rawstat {
#define	X(name, descr) atomic_u64 name;
	RAW_STATS(X)
#undef X
};
extern struct rawstat rawstat;
#define	RAWSTAT_INC(name)	counter_add(&rawstat.name, 1)

/* Options of raw(7), RFC 3542 and IP; arguments as in pr_setopt. */
int	 raw_setopt(struct socket *so, int level, int name, const void *,
	    socklen_t) REQUIRES(so->so_lock);
int	 raw_getopt(struct socket *so, int level, int name, void *,
	    socklen_t *) REQUIRES(so->so_lock);

#endif /* NETINET_RAW_PCB_H */
