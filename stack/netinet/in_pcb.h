/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internet protocol control blocks: addresses and ports of a socket, and the
 * tables in which input looks them up.
 *
 * A table has two hashes: connections by their four numbers, and ports.  A
 * port lists its pcbs that are not connected (listeners, datagram servers);
 * its connections are only counted.  The lookup of a listener therefore does
 * not depend on the number of its connections.
 */
#ifndef NETINET_IN_PCB_H
#define NETINET_IN_PCB_H

#include <netinet/in.h>
#include <sys/queue.h>

#include "kern/socketvar.h"
#include "kern/siphash.h"
#include "netinet/in_family.h"

struct inpcbtable;
struct in_member;
struct pcb_entry;
/*
 * The lock of a pcb's table; in a table with groups that of its port, or for a
 * connection that of its group.  pcbtable_role represents it, because the
 * checker cannot see to which table a pcb belongs.
 */
extern struct lock_role pcbtable_role;

/*
 * Multicast options of a socket, for both families.
 *	[v] reached only through inp_mopts
 */
struct in_moptions {
	uint8_t		 mo_ttl;	/* [v] default 1; 0: this host only */
	bool		 mo_noloop;	/* [v] IP_MULTICAST_LOOP is 0 */
	bool		 mo_onlymine;	/* [v] IP_MULTICAST_ALL is 0 */
	uint32_t	 mo_ifindex;	/* [v] IP_MULTICAST_IF; 0: by route */
	unsigned	 mo_nmembers;	/* [v] */
	LIST_HEAD(, in_member) mo_members;	/* [v] */
};

/*
 * A port with pcbs that are not connected.  [t] the lock of the port
 */
struct inport {
	LIST_ENTRY(inport) ipt_hash GUARDED_BY(pcbtable_role);	/* [t] */
	/* [t] network order */
	in_port_t	 ipt_port GUARDED_BY(pcbtable_role);
	/* [t] pcbs that are not connected */
	LIST_HEAD(, inpcb) ipt_bound GUARDED_BY(pcbtable_role);
};

/*
 * Locks used to protect struct inpcb members:
 *	[I] immutable
 *	[s] lock of the socket
 *	[t] written with socket and table locked, read with either
 */
struct inpcb {
	/* [t] in a connection bucket or in ipt_bound */
	LIST_ENTRY(inpcb) inp_link GUARDED_BY(pcbtable_role);
	/* [t] its port, if it is bound and not connected; or NULL */
	struct inport	*inp_port
	    GUARDED_BY(inp_socket->so_lock, pcbtable_role);
	/* [t] bound or connected */
	bool		 inp_entered
	    GUARDED_BY(inp_socket->so_lock, pcbtable_role);
	struct inpcbtable *inp_table;		/* [I] */
	/* [t] entry in the table of one thread, or NULL */
	struct pcb_member *inp_member GUARDED_BY(pcbtable_role);
	/* [t] entry in the index of the table, or NULL */
	struct pcb_entry *inp_entry GUARDED_BY(pcbtable_role);
	struct socket	*inp_socket;		/* [I] */
	/* [t] faddr is valid if connected */
	struct in_conninfo inp_conn
	    GUARDED_BY(inp_socket->so_lock, pcbtable_role);
	int		 inp_family;		/* [I] AF_* of the socket */
	/* [t] IPV6_V6ONLY */
	bool		 inp_v6only
	    GUARDED_BY(inp_socket->so_lock, pcbtable_role);
	bool		 inp_connected
	    GUARDED_BY(inp_socket->so_lock, pcbtable_role);	/* [t] */
	bool		 inp_listening
	    GUARDED_BY(inp_socket->so_lock, pcbtable_role);	/* [t] */
	/* [t] bind() named the address, the port */
	bool		 inp_fixedaddr
	    GUARDED_BY(inp_socket->so_lock, pcbtable_role);
	/* [t] */
	bool		 inp_fixedport
	    GUARDED_BY(inp_socket->so_lock, pcbtable_role);
	/* [t] SOO_REUSE* at bind time */
	unsigned	 inp_reuse
	    GUARDED_BY(inp_socket->so_lock, pcbtable_role);
	/* [s] IP_TOS, IP_TTL */
	struct ip_sendopts inp_opts GUARDED_BY(inp_socket->so_lock);
	/* [s] IP_PMTUDISC_* */
	uint8_t		 inp_mtudiscover GUARDED_BY(inp_socket->so_lock);
	/* [s] IP_RECVERR */
	bool		 inp_recverr GUARDED_BY(inp_socket->so_lock);
	/* [s] INP_RECV* */
	unsigned	 inp_recvopts GUARDED_BY(inp_socket->so_lock);
	/* [s] */
	struct in_moptions inp_mopts GUARDED_BY(inp_socket->so_lock);
	/* [s] UDP_SEGMENT, 0: no segmentation */
	uint16_t	 inp_segment GUARDED_BY(inp_socket->so_lock);
	/* [s] UDP_GRO */
	bool		 inp_gro GUARDED_BY(inp_socket->so_lock);
	/* [s] UDP_NO_CHECK6_TX, UDP_NO_CHECK6_RX */
	bool		 inp_nocheck6_tx GUARDED_BY(inp_socket->so_lock);
	bool		 inp_nocheck6_rx GUARDED_BY(inp_socket->so_lock);
	/* [s] UDPLITE_SEND_CSCOV; UDPLITE_RECV_CSCOV, and whether it was set */
	uint16_t	 inp_sendcov GUARDED_BY(inp_socket->so_lock);
	uint16_t	 inp_recvcov GUARDED_BY(inp_socket->so_lock);
	bool		 inp_recvcovset GUARDED_BY(inp_socket->so_lock);
};

/* Control messages that recvmsg() returns with a datagram. */
#define	INP_RECVPKTINFO	0x01	/* IP_PKTINFO */
#define	INP_RECVTTL	0x02
#define	INP_RECVTOS	0x04
#define	INP_RECVPKTINFO6 0x08	/* IPV6_RECVPKTINFO */
#define	INP_RECVHOPLIMIT 0x10
#define	INP_RECVTCLASS	0x20
#define	INP_RECVORIGDST	0x40	/* IP_RECVORIGDSTADDR */
#define	INP_RECVORIGDST6 0x80	/* IPV6_RECVORIGDSTADDR */
/* Options that are kept to be read back. */
#define	INP_NOPORT	0x100	/* IP_BIND_ADDRESS_NO_PORT */
#define	INP_FREEBIND	0x200
#define	INP_RECVOPTS	0x400
#define	INP_RETOPTS	0x800
#define	INP_DONTFRAG	0x1000	/* IPV6_DONTFRAG; see also inp_opts */

/*
 * What finds the sockets of a table's packets: its locks; or epochs, for bound
 * pcbs or for all.
 */
enum pcb_lookup { PCBLOOKUP_LOCKS, PCBLOOKUP_BOUND, PCBLOOKUP_ALL };

/* The index of a table (in_pcbindex.c): lists of entries. */
#define	PCBINDEX_BITS	12
#define	PCBINDEX_SLOTS	(1U << PCBINDEX_BITS)
struct pcb_index {
	struct mtx	 ix_lock;		/* of writers */
	atomic_uptr	 ix_conns[PCBINDEX_SLOTS];	/* [a] */
	atomic_uptr	 ix_bound[PCBINDEX_SLOTS];	/* [a] */
};

#define	INPCB_BUCKETS	16384
#define	INPORT_BUCKETS	4096
#define	INPORT_PARTS	64

/*
 * Connections that share a lock. [g] pg_lock; lookups in a table without groups
 * hold the table's lock instead
 */
struct pcbgroup {
	struct rwlock	 pg_lock;
	/* [g] version of its list; not 0 */
	uint64_t	 pg_changes GUARDED_BY(pcbtable_role);
} __attribute__((aligned(64)));

/* Ports of a table with groups that share a lock. */
struct pcbports {
	struct rwlock	 pp_lock;
} __attribute__((aligned(64)));

/*
 * Operations of a lookup without the table's lock; the table is NULL if
 * lookups take locks.
 */
struct pcbtable_ops {
	/*
	 * Called when the netisr runs.  Returns why the tunables conflict, or
	 * NULL.
	 */
	const char	*(*po_start)(struct inpcbtable *);
	/*
	 * A pcb was entered into the table, which is locked; a pcb is about to
	 * leave it.
	 */
	void		(*po_entered)(struct inpcb *) REQUIRES(pcbtable_role);
	void		(*po_leaving)(struct inpcb *) REQUIRES(pcbtable_role);
	/* False: search the table.  The socket found is referenced, or NULL. */
	bool		(*po_find)(const struct in_conninfo *,
			    struct socket **);
};
/* "groups-thread" (in_pcbthread.c). */
extern const struct pcbtable_ops pcbtable_thread;

struct inpcbtable {
	struct rwlock	 it_lock;
	const char	*it_name;		/* [I] */
	bool		 it_stream; /* [I] TCP's rules for address reuse */
	struct siphash_key it_key;		/* [I] */
	atomic_u32	 it_portcounter;	/* [a] */
	struct pcbgroup	*it_groups;		/* [I] after boot */
	unsigned	 it_ngroups;		/* [I] after boot */
	bool		 it_divided; /* [I] after boot: it has groups */
	struct pcbports	*it_parts;	/* [I] after boot, if divided */
	const struct pcbtable_ops *it_ops;	/* [I] after boot, or NULL */
	enum pcb_lookup	 it_lookup;		/* [I] after boot */
	struct pcbgroup	 it_whole;		/* the only group otherwise */
	struct pcb_index it_index;
	/* [t] and [g] */
	LIST_HEAD(, inpcb) it_conns[INPCB_BUCKETS] GUARDED_BY(pcbtable_role);
	/* [t] */
	LIST_HEAD(, inport) it_ports[INPORT_BUCKETS] GUARDED_BY(pcbtable_role);
	atomic_u32	 it_nconns[65536]; /* [a] connections by local port */
};

void	 in_pcbtable_init(struct inpcbtable *, const char *name, bool stream);
/*
 * At boot: divides the table into at most INPCB_BUCKETS groups
 * (in_pcbtable.h).
 */
void	 in_pcbtable_divide(struct inpcbtable *, unsigned ngroups);
void	 in_pcbinit(struct inpcb *, struct socket *, struct inpcbtable *);

/*
 * All with the socket locked.  in_pcbbind(): address and port may be 0; NULL
 * means both are.  Errors: EADDRINUSE, EADDRNOTAVAIL, EINVAL (already bound;
 * no zone; TCP to an IPv6 group).  in_pcbconnect() selects what is not bound
 * yet.  Errors: EADDRINUSE (the connection exists), EADDRNOTAVAIL (no free
 * port), ENETUNREACH.  in_pcbadopt() enters an accepted connection;
 * EADDRINUSE.  in_pcblisten(): EADDRINUSE.
 */
int	 in_pcbbind(struct inpcb *inp, const struct in_endpoint *)
	    REQUIRES(inp->inp_socket->so_lock);
int	 in_pcbconnect(struct inpcb *inp, const struct in_endpoint *)
	    REQUIRES(inp->inp_socket->so_lock);
int	 in_pcbadopt(struct inpcb *inp, const struct in_conninfo *)
	    REQUIRES(inp->inp_socket->so_lock);
int	 in_pcblisten(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock);
/*
 * Addresses and ports of a packet from this pcb to an endpoint; "any" means
 * this host.  Errors: ENETUNREACH, EINVAL (link-local address without zone).
 */
int	 in_pcbroute(const struct inpcb *inp, const struct in_endpoint *,
	    struct in_conninfo *) REQUIRES(inp->inp_socket->so_lock);
/*
 * in_pcbdisconnect(): a datagram socket returns from connected to bound.
 * in_pcbdissolve() also gives back an address and a port that bind() did not
 * name (connect(2)).
 */
void	 in_pcbdisconnect(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock);
void	 in_pcbdissolve(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock);
/*
 * Stream sockets: the connection or listening has ended.  A port that bind()
 * named stays this socket's until it is closed, as in Linux.
 */
void	 in_pcbended(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock);
/* Removes the pcb from all tables. */
void	 in_pcbremove(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock);

/*
 * The socket that receives a packet, referenced, or NULL.  in_pcblookup_conn()
 * needs an exact match; the other function also accepts the best bound socket.
 */
struct socket *in_pcblookup_conn(struct inpcbtable *,
	    const struct in_conninfo *);
struct socket *in_pcblookup(struct inpcbtable *, const struct in_conninfo *);
/* Prefetches the lock that all CPUs share, shortly before a lookup. */
static inline void
in_pcblookup_prefetch(const struct inpcbtable *it)
{
	if (!it->it_divided)
		mach_prefetch_write(&it->it_lock);
}
/* Whether there is an exact match. */
bool	 in_pcbconnected(struct inpcbtable *, const struct in_conninfo *);
/*
 * Finds all sockets that receive a multicast or broadcast packet, each
 * referenced.  Stores at most max; returns their number.
 */
unsigned in_pcblookup_all(struct inpcbtable *, const struct in_conninfo *,
	    struct socket **, unsigned max);

/* Addresses for getsockname and getpeername; ENOTCONN. */
int	 in_pcbsockaddr(const struct inpcb *, struct sockname *);
int	 in_pcbpeeraddr(const struct inpcb *, struct sockname *);

/* Options of levels IPPROTO_IP and IPPROTO_IPV6, as in ip(7) and ipv6(7). */
int	 in_pcbsetopt(struct inpcb *inp, int level, int name, const void *,
	    socklen_t) REQUIRES(inp->inp_socket->so_lock);
int	 in_pcbgetopt(struct inpcb *inp, int level, int name, void *,
	    socklen_t *) REQUIRES(inp->inp_socket->so_lock);

/*
 * Multicast: IP_MULTICAST_IF, memberships and source filters.  Errors:
 * ENOPROTOOPT (another option), EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENODEV,
 * ENOBUFS, EPROTO (TCP).  in_mcast_hears(): whether the socket receives a
 * packet from c->faddr to the group c->laddr that arrived on an interface;
 * true if c->laddr is no group.  Socket locked.
 */
int	 in_mcast_setopt(struct inpcb *inp, int level, int name, const void *,
	    socklen_t) REQUIRES(inp->inp_socket->so_lock);
int	 in_mcast_getif(const struct inpcb *inp, int level)
	    REQUIRES(inp->inp_socket->so_lock);
bool	 in_mcast_hears(const struct inpcb *inp, const struct in_conninfo *,
	    unsigned ifindex) REQUIRES(inp->inp_socket->so_lock);
void	 in_mcast_sendopts(const struct inpcb *inp, struct ip_sendopts *)
	    REQUIRES(inp->inp_socket->so_lock);
/* leaves all groups */
void	 in_mcast_free(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock);
void	 in_mcast_init(void);			/* at boot */

/*
 * Control messages of datagrams: ip(7), ipv6(7), RFC 3542.  The first function
 * reads from a packet, which starts at its IP header, what its addresses do
 * not contain.  The second makes the control messages that the program
 * enabled.  The third applies a program's control messages for one datagram,
 * which override the socket's options (EINVAL).
 */
struct in_arrival {
	unsigned	 ia_ifindex;
	uint8_t		 ia_ttl, ia_tos;
	uint16_t	 ia_coverage;	/* of UDP-Lite, 0: whole datagram */
	bool		 ia_nochecksum;	/* of UDP over IPv6 */
};
void	 in_arrival(const struct mbuf *, struct in_arrival *);
/*
 * SO_ATTACH_FILTER: the bytes from off on that the socket's filter keeps of a
 * packet that starts at its IP header, at least min; 0: drop it.
 */
uint32_t in_filter(const struct inpcb *inp, const struct mbuf *, uint32_t off,
	    uint32_t min) REQUIRES(inp->inp_socket->so_lock);
void	 in_control_received(const struct inpcb *inp, const struct in_conninfo *,
	    const struct in_arrival *, struct socontrol *)
	    REQUIRES(inp->inp_socket->so_lock);
int	 in_control_send(const struct inpcb *, const struct msghdr *,
	    struct in_conninfo *, struct ip_sendopts *);

/*
 * Reports an ICMP error about a datagram of a socket; skip is the length of
 * the header before the program's data.  Sets the socket's error if it is
 * connected or has IP_RECVERR.  With IP_RECVERR the error is also queued for
 * recvmsg(MSG_ERRQUEUE) (ip(7)).  Socket locked.
 */
void	 in_pcberror(struct inpcb *inp, int error, const struct in_conninfo *,
	    uint32_t mtu, const struct in_icmperr *, uint32_t skip)
	    REQUIRES(inp->inp_socket->so_lock);

/* Range of ephemeral ports, net.inet.ip.portrange.{first,last}. */
void	 in_pcb_sysctl_init(void);
/* Registers the view of all sockets, stackctl netstat -a. */
void	 in_netstat_init(void);

#endif /* NETINET_IN_PCB_H */
