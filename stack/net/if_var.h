/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network interfaces.  A device driver (dev/) creates one, passes received
 * frames to if_input() and transmits the frames that the stack sends.
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

/* An address and its subnet. */
struct if_inet {
	struct in_addr	 addr, mask;
};

/*
 * Where an interface in monitor mode drops received packets, after counting
 * and capturing them.  HEADER: after reading the Ethernet header (FreeBSD,
 * 2008).  TOP: before it (Bruce Evans's experiment of that year).  QUEUE:
 * before any call (OpenBSD's receive queues).
 */
enum if_monitor { MONITOR_OFF, MONITOR_HEADER, MONITOR_TOP, MONITOR_QUEUE };

/*
 * Which thread passes frames to the driver: the sender, or a thread of the
 * interface.
 */
enum if_transmit { TRANSMIT_INLINE, TRANSMIT_DEFERRED };

/* Values of if.<name>.monitor and .transmit. */
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
	uint32_t	 if_mtu;		/* [I] for IP packets */
	unsigned	 if_caps;		/* [I] IFCAP_* */
	bool		 if_loopback;		/* [I] */
	bool		 if_ether;		/* [I] ether_ifattach() was called */
	bool		 if_lro;		/* [I] large receive offload */
	uint8_t		 if_lladdr[6];		/* [I] */
	unsigned	 if_ninet;		/* [I] */
	struct if_inet	 if_inet[IF_INET_MAX];	/* [I] */
#define	if_addr	if_inet[0].addr			/* or INADDR_ANY: none */
#define	if_mask	if_inet[0].mask
	struct in6_ifdata *if_in6;		/* [I] NULL: no IPv6 */
	struct if_modes	 if_modes;		/* [a] */
	struct if_counters *if_count;		/* [I] COUNTERS */
	/*
	 * [a] multicast filter: bits of the groups received, see
	 * if_filterbit()
	 */
	atomic_u64	 if_filter;
	/* [a] IGMPv1 and IGMPv2 routers are present until these times */
	atomic_u64	 if_oldquerier[2];
	void		*if_softc;		/* [I] the driver's data */
	/*
	 * Link output: resolves the link address of the next hop, frames the
	 * packet and transmits it (arp_output, lo_output).  Consumes m.
	 */
	int		(*if_output)(struct ifnet *, struct mbuf *,
			    struct in_addr nexthop);
	/* Like if_output, for IPv6 (nd6_output, lo_output6). */
	int		(*if_output6)(struct ifnet *, struct mbuf *,
			    const struct in6_addr *nexthop);
	/*
	 * Transmits a whole frame, or several linked by m_nextpkt, by the
	 * driver or its thread.  Consumes them.
	 */
	int		(*if_transmit)(struct ifnet *, struct mbuf *);
	struct if_txq	*if_txq; /* [I] queue before the driver, or NULL */
	atomic_uptr	 if_pcap;	/* [a] packet capture, or 0 */
	struct ifnet	*if_bridge;	/* [I] bridge of this member, or NULL */
	struct if_impair *if_impair;		/* [I] fault injector or NULL */
};

/*
 * The interfaces with an address, or a subnet's broadcast address, of each
 * hash.  A packet's addresses are looked up in the same time with any number
 * of interfaces.  Nearly all sources, and the destinations of forwarded
 * packets, are addresses of no interface, and have an empty bucket.  The hash
 * is Fibonacci's: Knuth, The Art of Computer Programming, 3, section 6.4.
 */
#define	IF_ADDRHASHBITS	10
struct if_addrbucket {
	struct ifnet	*ab_ifp;		/* [I] after boot */
	struct if_addrbucket *ab_next;		/* [I] after boot */
};
extern struct if_addrbucket *if_addrhead[];	/* [I] after boot */

static inline unsigned
if_addrhash(struct in_addr addr)
{
	return ((addr.s_addr * 2654435769U) >> (32 - IF_ADDRHASHBITS));
}

/* False: certainly no address, and no subnet's broadcast address, of any. */
static inline bool
if_mayhaveaddr(struct in_addr addr)
{
	return (if_addrhead[if_addrhash(addr)] != NULL);
}

extern struct ifnet *ifnet_list;
extern struct ifnet *loif;

void	 if_attach(struct ifnet *);	/* assigns index, registers sysctls */
struct ifnet *if_byname(const char *);
struct ifnet *if_byindex(unsigned);
struct ifnet *if_byaddr(struct in_addr); /* the interface with this address */
struct ifnet *if_onlink(struct in_addr); /* the interface with this subnet */
bool	 if_hasaddr(const struct ifnet *, struct in_addr);
/* The smallest subnet of the interface that contains the address, or NULL. */
const struct if_inet *if_subnet(const struct ifnet *, struct in_addr);
/*
 * The source address for packets to a next hop (RFC 1122 section 3.3.4.3): the
 * one in its subnet, else the first.
 */
struct in_addr if_source(const struct ifnet *, struct in_addr nexthop);
bool	 if_isbroadcast(const struct ifnet *, struct in_addr);
bool	 if_hasbroadcast(struct in_addr);	/* of any interface */

/*
 * The multicast filter, as devices have one: a hash of the link address
 * selects one of 64 bits.  Only the last bytes of group addresses differ, so
 * the hash uses those.
 */
static inline uint64_t
if_filterbit(const uint8_t ll[6])
{
	return (1ULL << ((ll[3] * 31U + ll[4]) * 31U + ll[5]) % 64);
}

/* Whether the interface is in monitor mode and drops packets at this point. */
static inline bool
if_monitors(struct ifnet *ifp, enum if_monitor here)
{
	return (atomic_load_u32(&ifp->if_modes.monitor) == here);
}

/*
 * Receives a frame on a queue, in the driver's receive thread.  The driver
 * aligns the data after the 14 bytes of Ethernet to 4 bytes.
 */
void	 if_input(struct ifnet *, struct mbuf *, unsigned queue);
void	 ether_input(struct ifnet *, struct mbuf *);

/*
 * Receives a copy of a multicast or broadcast packet on the interface that
 * sends it, for members on this host; flag is M_BCAST or M_MCAST.
 */
void	 lo_copy(struct ifnet *, const struct mbuf *, uint32_t flag);

/*
 * Fault injector, with the tunables
 * if.<name>.impair.{loss,dup,reorder,corrupt} (parts per million) and .seed.
 * It applies to input and output and passes zero, one or two packets to fn.
 */
struct if_impair;
void	 if_impair_pass(struct if_impair *, struct mbuf *,
	    void (*fn)(void *arg, struct mbuf *), void *arg);

#endif /* NET_IF_VAR_H */
