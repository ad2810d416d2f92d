/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network interfaces.  A device driver (dev/) makes one, hands received
 * frames to if_input() and sends what if_output() gives it.
 */
#ifndef NET_IF_VAR_H
#define NET_IF_VAR_H

#include <net/if.h>
#include <netinet/in.h>

#include "kern/counter.h"
#include "kern/lock.h"
#include "kern/mbuf.h"

#define	IFCAP_TXCSUM	0x1
#define	IFCAP_TSO4	0x2
#define	IFCAP_RXCSUM	0x4
#define	IFCAP_TSO6	0x8
#define	IFCAP_OFFLOADS	0xf	/* all of the above */
#define	IFCAP_BATCH	0x10	/* if_transmit takes a list of frames */

struct ifnet;
struct if_txq;
struct in6_ifdata;

#define	IF_MAX		64	/* interfaces */

struct if_counters {
	atomic_u64	 ipackets, ibytes, imcasts, iqdrops, ierrors, ifiltered;
	atomic_u64	 opackets, obytes, odrops, oerrors;
};
#define	IFSTAT_ADD(ifp, name, n)					\
	counter_add(&(ifp)->if_count->name, (n))
#define	IFSTAT_INC(ifp, name)	IFSTAT_ADD(ifp, name, 1)

#define	IF_INET_MAX	8	/* addresses of IPv4 */

/* One of them, and the subnet that it is in. */
struct if_inet {
	struct in_addr	 addr, mask;
};

/*
 * Where an interface in monitor mode drops what it has received, counted and
 * tapped: behind the look at the Ethernet header, as FreeBSD's did in 2008;
 * before it, as in Bruce Evans's experiment of that year; or before anything
 * is called, as in OpenBSD's receive queues.
 */
enum if_monitor { MONITOR_OFF, MONITOR_HEADER, MONITOR_TOP, MONITOR_QUEUE };

/* Who hands frames to the driver: whoever sends, or a thread for it. */
enum if_transmit { TRANSMIT_INLINE, TRANSMIT_DEFERRED };

/* What if.<name>.monitor and .transmit say. */
struct if_modes {
	atomic_u32	 monitor;	/* [a] enum if_monitor */
	atomic_u32	 transmit;	/* [a] enum if_transmit, set at boot */
};

/*
 * Locks used to protect struct ifnet members:
 *	[I] immutable after if_attach
 *	[a] atomic
 *	[n] if_lock
 */
struct ifnet {
	struct ifnet	*if_next;		/* [I] list, set at boot */
	char		 if_xname[IFNAMSIZ];	/* [I] */
	unsigned	 if_index;		/* [I] from 1 */
	unsigned	 if_queues;		/* [I] */
	uint32_t	 if_mtu;		/* [I] of IP packets */
	unsigned	 if_caps;		/* [I] IFCAP_* */
	bool		 if_loopback;		/* [I] */
	bool		 if_ether;		/* [I] ether_ifattach() was called */
	bool		 if_lro;		/* [I] segments are joined */
	uint8_t		 if_lladdr[6];		/* [I] */
	unsigned	 if_ninet;		/* [I] */
	struct if_inet	 if_inet[IF_INET_MAX];	/* [I] */
#define	if_addr	if_inet[0].addr			/* or INADDR_ANY: none */
#define	if_mask	if_inet[0].mask
	struct in6_ifdata *if_in6;		/* [I] NULL: no IPv6 */
	struct if_modes	 if_modes;		/* [a] */
	struct if_counters *if_count;		/* [I] COUNTERS */
	atomic_u64	 if_filter;		/* [a] groups passed on: bits of
						   their if_filterbit() */
	atomic_u64	 if_oldquerier[2];	/* [a] dates until which IGMPv1,
						   IGMPv2 routers are on it */
	void		*if_softc;		/* [I] of the driver */
	/*
	 * Link output: an IP packet to its next hop; resolves its link
	 * address and frames it (arp_output, lo_output).  Consumes m.
	 */
	int		(*if_output)(struct ifnet *, struct mbuf *,
			    struct in_addr nexthop);
	/* The same for IPv6 (nd6_output, lo_output6). */
	int		(*if_output6)(struct ifnet *, struct mbuf *,
			    const struct in6_addr *nexthop);
	/*
	 * Transmit of a whole frame, or of several that are linked by
	 * m_nextpkt, by the driver or its thread.  Consumes them.
	 */
	int		(*if_transmit)(struct ifnet *, struct mbuf *);
	struct if_txq	*if_txq;	/* [I] in front of its driver, or NULL */
	atomic_uptr	 if_pcap;	/* [a] where packets are kept, or 0 */
	struct ifnet	*if_bridge;	/* [I] that it is a member of, or NULL */
	struct if_impair *if_impair;		/* [I] fault injector or NULL */
};

extern struct ifnet *ifnet_list;
extern struct ifnet *loif;

void	 if_attach(struct ifnet *);	/* assigns index, registers sysctls */
struct ifnet *if_byname(const char *);
struct ifnet *if_byindex(unsigned);
struct ifnet *if_byaddr(struct in_addr);	/* whose own address it is */
struct ifnet *if_onlink(struct in_addr);	/* whose subnet it is in */
bool	 if_hasaddr(const struct ifnet *, struct in_addr);
/* The smallest subnet of the interface that it is in, or NULL. */
const struct if_inet *if_subnet(const struct ifnet *, struct in_addr);
/*
 * From which address packets to a next hop go (RFC 1122 section 3.3.4.3):
 * the one in its subnet, or else the first.
 */
struct in_addr if_source(const struct ifnet *, struct in_addr nexthop);
bool	 if_isbroadcast(const struct ifnet *, struct in_addr);
bool	 if_hasbroadcast(struct in_addr);	/* is it one of any's */

/*
 * The filter of multicast frames, as devices have one: a hash of the link
 * address (which ends in what differs) chooses one of 64 bits.
 */
static inline uint64_t
if_filterbit(const uint8_t ll[6])
{
	return (1ULL << ((ll[3] * 31U + ll[4]) * 31U + ll[5]) % 64);
}

/* Here an interface has done, or MONITOR_OFF: it does not listen only. */
static inline bool
if_monitors(struct ifnet *ifp, enum if_monitor here)
{
	return (atomic_load_u32(&ifp->if_modes.monitor) == here);
}

/*
 * A frame received on a queue; in the driver's receive thread.  The driver
 * places it so that what follows the 14 bytes of Ethernet is 4-byte aligned.
 */
void	 if_input(struct ifnet *, struct mbuf *, unsigned queue);
void	 ether_input(struct ifnet *, struct mbuf *);

/*
 * A whole frame to the driver.  Between begin and end the calling thread's
 * frames are gathered, interface by interface, and sent together; a thread
 * must not sleep in between.
 */
#define	TX_CALLS_MAX	16
struct tx_calls {
	unsigned	 n;
	struct { void (*fn)(void *); void *arg; } calls[TX_CALLS_MAX];
};
struct tx_batch {
	struct ifnet	*xb_ifp;
	struct mbufq	 xb_frames;
	struct tx_calls	 xb_later, xb_sent;
};
void	 tx_batch_begin(struct tx_batch *);
void	 tx_batch_end(struct tx_batch *);
/*
 * Calls fn(arg) at the end of the batch that this thread gathers, before that
 * is sent.  False: it gathers none, or has so much to do at its end already.
 */
bool	 tx_batch_later(void (*fn)(void *), void *arg);
/*
 * Whether this thread holds back frames; if so, calls fn(arg) when they are
 * sent (false: it has so much to do then already), or sends them now.
 */
bool	 tx_batch_holds(void);
bool	 tx_batch_sent(void (*fn)(void *), void *arg);
void	 tx_batch_flush(void);
int	 if_send(struct ifnet *, struct mbuf *);

/*
 * A copy of a packet that is sent by an interface to many, this host included,
 * comes back as if received by it; flag is M_BCAST or M_MCAST.
 */
void	 lo_copy(struct ifnet *, const struct mbuf *, uint32_t flag);

/*
 * Fault injector, from tunables if.<name>.impair.{loss,dup,reorder,corrupt}
 * in parts per million and .seed; applied on input and output.  Passes zero,
 * one or two packets on to fn.
 */
struct if_impair;
void	 if_impair_pass(struct if_impair *, struct mbuf *,
	    void (*fn)(void *arg, struct mbuf *), void *arg);

#endif /* NET_IF_VAR_H */
