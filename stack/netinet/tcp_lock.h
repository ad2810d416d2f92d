/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ladder of net.inet.tcp.input: how input, socket calls and timers of TCP
 * keep out of each other's way.
 *
 *	giant		Giant alone (BSD until 2004)
 *	pcbinfo		a lock over all connections until a segment proves to
 *			be what was expected, and one for each (FreeBSD 2005)
 *	exclusive	the net lock alone (OpenBSD until 2024)
 *	exclusive-socket	... and the socket's mutex
 *	shared-socket	the net lock shared, the mutex for each segment
 *	shared-socket-batch	... which consecutive segments keep
 *			(Bluhm, "running TCP input in parallel", 2025)
 *	socket		the mutex for each segment, and no lock around
 *	backlog		segments for a socket that a call works on wait for
 *			the call to end (Linux's lock_sock())
 *
 * A strategy is one file with one table; NULL stands for what "socket" does.
 */
#ifndef NETINET_TCP_LOCK_H
#define NETINET_TCP_LOCK_H

#include "kern/netlock.h"
#include "netinet/tcp_var.h"

struct tcp_strategy {
	const char	*ts_name;
	enum netlock_mode ts_net;
	bool		 ts_giant;	/* over the whole stack */
	/* True: the segment waits for the end of the burst. */
	bool		(*ts_gather)(struct mbuf *, unsigned hlen);
	void		(*ts_last)(void);	/* that end */
	/* A segment to its socket; takes sg_m if it keeps it. */
	void		(*ts_input)(struct tcpseg *);
	const struct so_lockops *ts_lockops;	/* of its sockets */
	void		(*ts_init)(void);
};
extern struct tcp_strategy tcp_strategy;	/* [I] after boot: in use */

extern const struct tcp_strategy tcp_strategy_giant, tcp_strategy_pcbinfo,
    tcp_strategy_exclusive, tcp_strategy_exclusive_socket,
    tcp_strategy_shared_socket, tcp_strategy_shared_socket_batch,
    tcp_strategy_backlog;

/* The mutex, for strategies that have something to add. */
void	 tcp_lock_enter(struct socket *so) ACQUIRES(so->so_lock);
void	 tcp_lock_leave(struct socket *so) RELEASES(so->so_lock);
int	 tcp_lock_sleep(struct socket *so, const void *chan,
	    const char *wmesg, nsec_t timeout) REQUIRES(so->so_lock);
bool	 tcp_lock_owned(struct socket *);

void	 tcp_lock_init(void);		/* registers the tunable */
int	 tcp_lock_start(void);		/* at boot; 0 */
/* When there are workers; an errno value, explained. */
int	 tcp_table_start(void);

/*
 * Input from here on (tcp_input.c).  tcp_input_here() is that of a thread
 * which may look the connection up.  tcp_segment() parses one and gives it to
 * ts_input; tcp_input_single() is that of "socket".  tcp_find() finds its
 * socket, referenced, or answers for nobody: NULL.  tcp_socket_input() is
 * called with the socket locked, which a child may replace; false: it was the
 * wrong one, look it up again.
 */
void	 tcp_input_here(struct mbuf *, unsigned hlen);
void	 tcp_segment(struct mbuf *, unsigned hlen);
void	 tcp_input_single(struct tcpseg *);
struct socket *tcp_find(const struct tcpseg *);
bool	 tcp_socket_input(struct socket **, struct tcpseg *);

/* How often a segment found its socket locked by the one before it. */
#define	TCP_LOCK_STATS(X)						\
	X(kept, "segments that found their socket locked by the one before") \
	X(switched, "... that had another socket unlocked first")	\
	X(cold, "... that found no socket locked")			\
	X(backlogged, "segments left to the call that works on the socket") \
	X(backlogdrops, "... dropped, since it had too many")		\
	X(predicted, "segments that let the lock over all connections go " \
	    "early")							\
	X(run1, "holds of a socket for 1 segment")			\
	X(run2, "... for 2")						\
	X(run4, "... for 3 to 4")					\
	X(run8, "... for 5 to 8")					\
	X(run16, "... for 9 to 16")					\
	X(run32, "... for 17 to 32")					\
	X(runmore, "... for more")

#define	TCP_LOCK_FIELD(name, descr)	atomic_u64 name;
struct tcp_lockstat { TCP_LOCK_STATS(TCP_LOCK_FIELD) };
extern struct tcp_lockstat tcp_lockstat;
#define	TCPLOCK_INC(name)	counter_add(&tcp_lockstat.name, 1)

#endif /* NETINET_TCP_LOCK_H */
