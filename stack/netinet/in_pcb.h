/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internet protocol control blocks: addresses and ports of a socket, and
 * the tables in which input finds it.
 *
 * A table has two hashes: connections by their four numbers, and ports.  A
 * port lists the pcbs that are bound to it and not connected (listeners,
 * datagram servers) and counts the connections that use it, so that a
 * listener with a hundred thousand connections is still found at once.
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

/* What a socket says of multicast; one for both families.  [s] socket lock */
struct in_moptions {
	uint8_t		 mo_ttl;	/* [s] 1 unless set; 0: this host */
	bool		 mo_noloop;	/* [s] IP_MULTICAST_LOOP is 0 */
	bool		 mo_onlymine;	/* [s] IP_MULTICAST_ALL is 0 */
	uint32_t	 mo_ifindex;	/* [s] IP_MULTICAST_IF; 0: as routed */
	unsigned	 mo_nmembers;	/* [s] */
	LIST_HEAD(, in_member) mo_members;	/* [s] */
};

/*
 * A port in use.  [t] table lock
 */
struct inport {
	LIST_ENTRY(inport) ip_hash;		/* [t] */
	in_port_t	 ip_port;		/* [t] network order */
	unsigned	 ip_conns;		/* [t] connected pcbs */
	LIST_HEAD(, inpcb) ip_bound;		/* [t] others */
};

/*
 * Locks used to protect struct inpcb members:
 *	[I] immutable
 *	[s] lock of the socket
 *	[t] written with socket and table locked, read with either
 */
struct inpcb {
	LIST_ENTRY(inpcb) inp_link;		/* [t] in a connection bucket,
						   or ip_bound */
	struct inport	*inp_port;		/* [t] NULL: not bound */
	struct inpcbtable *inp_table;		/* [I] */
	struct pcb_member *inp_member;		/* [t] where a thread alone
						   looks it up, or NULL */
	struct socket	*inp_socket;		/* [I] */
	struct in_conninfo inp_conn;		/* [t] faddr: when connected */
	int		 inp_family;		/* [I] AF_* of the socket */
	bool		 inp_v6only;		/* [t] IPV6_V6ONLY */
	bool		 inp_connected;		/* [t] */
	bool		 inp_listening;		/* [t] */
	unsigned	 inp_reuse;		/* [t] SOO_REUSE* when bound */
	struct ip_sendopts inp_opts;		/* [s] IP_TOS, IP_TTL */
	uint8_t		 inp_mtudiscover;	/* [s] IP_PMTUDISC_* */
	bool		 inp_recverr;		/* [s] IP_RECVERR */
	unsigned	 inp_recvopts;		/* [s] INP_RECV* */
	struct in_moptions inp_mopts;		/* [s] */
	uint16_t	 inp_segment;		/* [s] UDP_SEGMENT, 0: whole */
	bool		 inp_gro;		/* [s] UDP_GRO */
};

/* What recvmsg() tells of a datagram besides its sender. */
#define	INP_RECVPKTINFO	0x01	/* IP_PKTINFO */
#define	INP_RECVTTL	0x02
#define	INP_RECVTOS	0x04
#define	INP_RECVPKTINFO6 0x08	/* IPV6_RECVPKTINFO */
#define	INP_RECVHOPLIMIT 0x10
#define	INP_RECVTCLASS	0x20

#define	INPCB_BUCKETS	16384
#define	INPORT_BUCKETS	4096

/* Connections that share a lock.  [g] pg_lock, or the table's if it is whole */
struct pcbgroup {
	struct rwlock	 pg_lock;
	uint64_t	 pg_changes;		/* [g] of its list; not 0 */
} __attribute__((aligned(64)));

/*
 * Who looks connections up without the table's lock, and what they must be
 * told; NULL stands for locks alone.
 */
struct pcbtable_ops {
	/* The netisr runs.  Why the tunables do not go together, or NULL. */
	const char	*(*po_start)(struct inpcbtable *,
			    void (*input)(struct mbuf *, unsigned hlen));
	/* A packet, its addresses at hlen; true: for another thread. */
	bool		(*po_handover)(struct mbuf *, unsigned hlen);
	/* Into the table, table locked; and out of it. */
	void		(*po_entered)(struct inpcb *);
	void		(*po_leaving)(struct inpcb *);
	/* False: ask the table.  The socket is referenced, or NULL. */
	bool		(*po_find)(const struct in_conninfo *,
			    struct socket **);
};
/* "groups-thread" (in_pcbthread.c). */
extern const struct pcbtable_ops pcbtable_thread;

struct inpcbtable {
	struct rwlock	 it_lock;
	const char	*it_name;		/* [I] */
	bool		 it_stream;		/* [I] TCP's rules of reuse */
	struct siphash_key it_key;		/* [I] */
	atomic_u32	 it_portcounter;	/* [a] */
	struct pcbgroup	*it_groups;		/* [I] after boot */
	unsigned	 it_ngroups;		/* [I] after boot */
	bool		 it_divided;		/* [I] after boot: has groups */
	const struct pcbtable_ops *it_ops;	/* [I] after boot, or NULL */
	struct pcbgroup	 it_whole;		/* the one if it has not */
	LIST_HEAD(, inpcb) it_conns[INPCB_BUCKETS];	/* [t] and [g] */
	LIST_HEAD(, inport) it_ports[INPORT_BUCKETS];	/* [t] */
};

void	 in_pcbtable_init(struct inpcbtable *, const char *name, bool stream);
/* At boot: so many groups, at most INPCB_BUCKETS (in_pcbtable.h). */
void	 in_pcbtable_divide(struct inpcbtable *, unsigned ngroups);
void	 in_pcbinit(struct inpcb *, struct socket *, struct inpcbtable *);

/*
 * Socket locked.  in_pcbbind(): address and port may be 0, NULL says both;
 * EADDRINUSE, EADDRNOTAVAIL, EINVAL (bound already; no zone; TCP to a
 * group of IPv6).  in_pcbconnect() chooses what is
 * not bound yet; EADDRINUSE (the connection exists), EADDRNOTAVAIL (no port
 * left), ENETUNREACH.  in_pcbadopt() enters an accepted connection;
 * EADDRINUSE.  in_pcblisten(): EADDRINUSE.
 */
int	 in_pcbbind(struct inpcb *, const struct in_endpoint *);
int	 in_pcbconnect(struct inpcb *, const struct in_endpoint *);
int	 in_pcbadopt(struct inpcb *, const struct in_conninfo *);
int	 in_pcblisten(struct inpcb *);
/*
 * Addresses and ports of a packet from this pcb to an endpoint, which may be
 * "any": this host.  ENETUNREACH, EINVAL (a link-local address without its
 * zone).
 */
int	 in_pcbroute(const struct inpcb *, const struct in_endpoint *,
	    struct in_conninfo *);
/* Datagram sockets: back to bound. */
void	 in_pcbdisconnect(struct inpcb *);
/* Out of all tables. */
void	 in_pcbremove(struct inpcb *);

/*
 * The socket that a packet is for, referenced; NULL if there is none.  An
 * exact match only, or else the best that is bound.
 */
struct socket *in_pcblookup_conn(struct inpcbtable *,
	    const struct in_conninfo *);
struct socket *in_pcblookup(struct inpcbtable *, const struct in_conninfo *);
/* One will be asked for soon: the lock that all CPUs take comes meanwhile. */
static inline void
in_pcbsoon(const struct inpcbtable *it)
{
	if (!it->it_divided)
		mach_prefetch_write(&it->it_lock);
}
/* Whether there is an exact match. */
bool	 in_pcbconnected(struct inpcbtable *, const struct in_conninfo *);
/*
 * All sockets that a packet to many is for, each referenced, into room for
 * max; how many there are.
 */
unsigned in_pcblookup_all(struct inpcbtable *, const struct in_conninfo *,
	    struct socket **, unsigned max);

/* Addresses for getsockname and getpeername; ENOTCONN. */
int	 in_pcbsockaddr(const struct inpcb *, struct sockname *);
int	 in_pcbpeeraddr(const struct inpcb *, struct sockname *);

/* Options of levels IPPROTO_IP and IPPROTO_IPV6, as in ip(7) and ipv6(7). */
int	 in_pcbsetopt(struct inpcb *, int level, int name, const void *,
	    socklen_t);
int	 in_pcbgetopt(struct inpcb *, int level, int name, void *,
	    socklen_t *);

/*
 * Multicast: IP_MULTICAST_IF, memberships and source filters; ENOPROTOOPT if
 * it is another option, EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENODEV, ENOBUFS,
 * EPROTO (TCP).  in_mcast_hears(): whether a packet from c->faddr to the group
 * c->laddr, received by an interface, is for the socket; true if that is no
 * group.  Socket locked.
 */
int	 in_mcast_setopt(struct inpcb *, int level, int name, const void *,
	    socklen_t);
int	 in_mcast_getif(const struct inpcb *, int level);
bool	 in_mcast_hears(const struct inpcb *, const struct in_conninfo *,
	    unsigned ifindex);
void	 in_mcast_sendopts(const struct inpcb *, struct ip_sendopts *);
void	 in_mcast_free(struct inpcb *);		/* leaves all */
void	 in_mcast_init(void);			/* at boot */

/*
 * Control messages of datagrams, ip(7), ipv6(7) and RFC 3542.  A packet that
 * starts at its IP header tells what is not in its addresses; that becomes
 * what the program asked for; and what a program says of one datagram (EINVAL)
 * overrides what it said of all.
 */
struct in_arrival {
	unsigned	 ia_ifindex;
	uint8_t		 ia_ttl, ia_tos;
};
void	 in_arrival(const struct mbuf *, struct in_arrival *);
void	 in_control_received(const struct inpcb *, const struct in_conninfo *,
	    const struct in_arrival *, struct socontrol *);
int	 in_control_send(const struct inpcb *, const struct msghdr *,
	    struct in_conninfo *, struct ip_sendopts *);

/*
 * An ICMP error about a datagram of a socket, skip bytes of header in front of
 * what the program sent: the socket's error if it is connected or asked for
 * errors (IP_RECVERR), and then also kept for recvmsg(MSG_ERRQUEUE), as ip(7)
 * says.  Socket locked.
 */
void	 in_pcberror(struct inpcb *, int error, const struct in_conninfo *,
	    uint32_t mtu, const struct in_icmperr *, uint32_t skip);

/* Range of ephemeral ports, net.inet.ip.portrange.{first,last}. */
void	 in_pcb_sysctl_init(void);
/* The view of all sockets, stackctl netstat -a. */
void	 in_netstat_init(void);

#endif /* NETINET_IN_PCB_H */
