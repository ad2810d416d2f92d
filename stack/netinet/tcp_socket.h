/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket of TCP.
 */
#ifndef NETINET_TCP_SOCKET_H
#define NETINET_TCP_SOCKET_H

#include "kern/socketvar.h"

struct tcp_backlog;

/*
 * State that outlives the control block: its users may hold nothing but a
 * reference to the socket.
 *	[s] so_lock
 *	[a] atomic
 */
struct tcp_socket {
	struct socket	 so;
	/* deferred output (tcp_defer.c) */
	/* [s] thread with the transmit batch */
	struct thread	*batcher GUARDED_BY(so.so_lock);
	atomic_u32	 batched;	/* [a] BATCHED_* */
	/* net.inet.tcp.input=backlog (tcp_lock_backlog.c) */
	/* [s] in a socket call, or NULL */
	struct thread	*owner GUARDED_BY(so.so_lock);
	/* [s] threads that wait for ownership */
	unsigned	 ownerwaits GUARDED_BY(so.so_lock);
	unsigned	 nbacklog GUARDED_BY(so.so_lock);	/* [s] */
	/* [s] segments for the owner */
	STAILQ_HEAD(, tcp_backlog) backlog GUARDED_BY(so.so_lock);
} __attribute__((aligned(64)));	/* no cache line is shared by two sockets */

static inline struct tcp_socket *
sototcp(struct socket *so)
{
	return ((struct tcp_socket *)so);
}

#endif /* NETINET_TCP_SOCKET_H */
