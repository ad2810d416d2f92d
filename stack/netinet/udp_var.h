/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP (RFC 768): counters net.inet.udp.stats.*.
 */
#ifndef NETINET_UDP_VAR_H
#define NETINET_UDP_VAR_H

#include "kern/counter.h"
#include "kern/socketvar.h"

#define	UDP_STATS(X)							\
	X(received, "datagrams received")				\
	X(badlen, "shorter than the header or its length field")	\
	X(badsum, "wrong checksum")					\
	X(noport, "no socket at the port")				\
	X(noportbcast, "no socket at the port of a broadcast")		\
	X(toomany, "not delivered: too many sockets at the port")	\
	X(filtered, "dropped: by the socket's filter")			\
	X(fullsock, "dropped: receive buffer full")			\
	X(delivered, "delivered to a socket")				\
	X(sent, "datagrams sent")

#define	UDP_STAT_FIELD(name, descr)	atomic_u64 name;
struct udpstat { UDP_STATS(UDP_STAT_FIELD) };

extern struct udpstat udpstat;

#define	UDPSTAT_INC(name)	counter_add(&udpstat.name, 1)

struct inpcb;
/* Whether a pcb is of UDP-Lite. */
bool	 udp_islite(const struct inpcb *);
/* pr_send of struct protosw. */
int	 udp_sendname(const struct socket *so, const struct sockname *to)
	    REQUIRES(so->so_lock);
int	 udp_send(struct socket *so, struct mbuf *, const struct sockname *to,
	    const struct msghdr *, int flags) REQUIRES(so->so_lock);
void	 udp_init(void);
int	 udp_start(void);	/* after loader.conf was read */

#endif /* NETINET_UDP_VAR_H */
