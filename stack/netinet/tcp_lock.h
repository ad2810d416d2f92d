/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.inet.tcp.input: how TCP input, socket calls and timers exclude each
 * other.
 *
 * A strategy is one file: tcp_lock_NAME.c defines the table tcp_lock_NAME ("-"
 * in a value of the tunable is "_" in the C name).  A list in meson.build
 * names the strategies; the tunable's values and description are generated
 * from it.
 */
#ifndef NETINET_TCP_LOCK_H
#define NETINET_TCP_LOCK_H

#include "kern/netlock.h"
#include "netinet/in_handoff.h"
#include "netinet/tcp_var.h"
#include "strategies.h"

struct tcp_lockops {
	enum netlock_mode tlo_net;	/* mode of the net lock during input */
	bool		 tlo_giant;	/* Giant covers the whole stack */
	/* HANDOFF_BATCH of TCP, and the end of a receive burst; or NULL. */
	in_handoff_t	*tlo_defer;
	void		(*tlo_rx_burst_end)(void);
	/*
	 * Delivers a segment to its socket; sets sg_m to NULL if it keeps the
	 * mbuf.  NULL: tcp_input_single().
	 */
	void		(*tlo_input)(struct tcpseg *);
	/*
	 * Lock operations of TCP's sockets; NULL: the inline mutex, no net
	 * lock.
	 */
	const struct so_lockops *tlo_lockops;
	void		(*tlo_init)(void);	/* at boot, or NULL */
};
#define	TCP_LOCK_DECLARE(strategy, name)				\
	extern const struct tcp_lockops tcp_lock_##strategy;
TCP_LOCKS(TCP_LOCK_DECLARE)
extern struct tcp_lockops tcp_lockops; /* [I] after boot: the one in use */

/*
 * Operations shared by strategies.  tcp_lock_mutex: the socket's mutex, under
 * the net lock.  tcp_lock_outer: Giant or the exclusive net lock covers every
 * connection; calls still take the uncontended mutex because msleep() needs
 * it.
 */
extern const struct so_lockops tcp_lock_mutex, tcp_lock_outer;

/* The mutex only, for strategies that extend it. */
void	 tcp_lock_enter(struct socket *so) ACQUIRES(so->so_lock);
void	 tcp_lock_leave(struct socket *so) RELEASES(so->so_lock);
int	 tcp_lock_sleep(struct socket *so, const void *chan,
	    const char *wmesg, nsec_t timeout) REQUIRES(so->so_lock);
bool	 tcp_lock_owned(struct socket *);

void	 tcp_lock_init(void);		/* registers the tunable */
int	 tcp_lock_start(void);		/* at boot; 0 */
void	 tcp_table_init(void);		/* tunables of tcp_pcbtable.c */
/*
 * Called when the netisr has workers.  Returns an errno value; prints its
 * reason.
 */
int	 tcp_table_start(void);

/*
 * Input of segments, for strategies (tcp_input.c); packets enter by
 * tcp_input().  tcp_input_single() is the tlo_input of "socket".  tcp_find()
 * returns its socket, referenced, or answers the segment and returns NULL.
 * tcp_socket_input() is called with the socket locked, and may replace it by a
 * child; false: the connection has changed, look it up again.
 */
void	 tcp_input_single(struct tcpseg *);
struct socket *tcp_find(const struct tcpseg *);
bool	 tcp_socket_input(struct socket **sop, struct tcpseg *)
	    REQUIRES((*sop)->so_lock);
/* Like tcp_socket_input(), then unlocks and releases the socket. */
bool	 tcp_input_locked(struct socket *so, struct tcpseg *)
	    RELEASES(so->so_lock);

/*
 * Counters of segments that found their socket already locked by the previous
 * one.
 */
#define	TCP_LOCK_STATS(X)						\
	X(kept, "segments that found their socket locked by the one before") \
	X(switched, "... that had another socket unlocked first")	\
	X(cold, "... that found no socket locked")			\
	X(backlogged, "segments queued for a socket call")		\
	X(backlogdrops, "... dropped: queue full")			\
	X(predicted, "segments that released the table's mutex early")	\
	X(run1, "socket locks held for 1 segment")			\
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
