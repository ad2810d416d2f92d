/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address resolution (RFC 826, RFC 1122 section 2.3.2).
 *
 * An entry is incomplete (packets wait for the reply) or complete until it
 * expires.  Shortly before it expires, a packet that uses it triggers a new
 * request, so that traffic does not stop.  Packets wait in a bounded queue.
 * A full table evicts entries in the order of net/neighbour.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/if_ether.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/queue.h>

#include "kern/callout.h"
#include "kern/counter.h"
#include "kern/ctl.h"
#include "kern/lock.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/if_ether.h"
#include "net/neighbour.h"
#include "net/netisr.h"
#include "netinet/arp.h"
#include "netinet/in_hints.h"
#include "netinet/ip_var.h"

#define	ARP_HASH	64
#define	ARP_TRIES	3		/* one a second, as in Linux */
/* RFC 1122 section 2.3.2.1: at most one request a second for an address */
#define	ARP_RETRY	NSEC_PER_SEC
#define	ARP_TICK_MIN	(100 * NSEC_PER_MSEC)
#define	ARP_DEFEND	(10 * NSEC_PER_SEC)	/* RFC 5227 section 1.1 */

static struct mtx arp_lock;

/*
 * Locks used to protect struct arpent members:
 *	[I] immutable
 *	[l] arp_lock
 */
struct arpent {
	LIST_ENTRY(arpent) ae_link GUARDED_BY(arp_lock);	/* [l] */
	struct ifnet	*ae_ifp;	/* [I] */
	struct in_addr	 ae_addr;	/* [I] */
	uint8_t		 ae_lladdr[6] GUARDED_BY(arp_lock);	/* [l] */
	bool		 ae_complete GUARDED_BY(arp_lock);	/* [l] */
	/* [l] request again at the next use */
	bool		 ae_expiring GUARDED_BY(arp_lock);
	/* [l] requests that were not answered yet */
	unsigned	 ae_tries GUARDED_BY(arp_lock);
	nsec_t		 ae_asked GUARDED_BY(arp_lock);	/* [l] the last one */
	nsec_t		 ae_expires GUARDED_BY(arp_lock);	/* [l] */
	struct nbr	 ae_nbr GUARDED_BY(arp_lock);	/* [l] */
};

/* [l] */
static LIST_HEAD(, arpent) arp_hash[ARP_HASH] GUARDED_BY(arp_lock);
static struct nbr_table arp_table GUARDED_BY(arp_lock);	/* [l] */
static struct callout arp_callout;

/*
 * Version of the table: changes when a valid address becomes invalid or is
 * about to expire.
 */
static atomic_u64 arp_changes = 1;

/* [a] when each address of each interface was defended, 0: never */
static atomic_u64 arp_defended[IF_MAX + 1][IF_INET_MAX];

/* Addresses that a thread resolved recently; a hit avoids the lock. */
#define	LINK_HINT_BITS	2
struct link_hint {
	const struct ifnet *ifp;
	struct in_addr	 addr;
	uint64_t	 changes;	/* 0: empty */
	uint8_t		 lladdr[6];
};

static atomic_u32 arp_maxage = 1200;
static atomic_u32 arp_maxentries = 4096;

#define	ARP_STATS(X)							\
	X(requests, "requests sent")					\
	X(replies, "requests answered")					\
	X(received, "ARP packets received")				\
	X(bad, "malformed ARP packets")					\
	X(conflicts, "packets of other hosts with our address")		\
	X(defences, "announcements because of these")			\
	X(evicted, "entries evicted by others")				\
	X(timeouts, "addresses without an answer")			\
	X(dropped, "packets dropped: address not resolved")

static struct {
#define	X(name, descr) atomic_u64 name;
	ARP_STATS(X)
#undef X
} arpstat COUNTERS;

#define	ARPSTAT_INC(name)	counter_add(&arpstat.name, 1)

static const struct sysctl_oid arp_oids[] = {
	{ .oid_name = "net.link.ether.arp.max_age", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &arp_maxage,
	    .oid_min = 2, .oid_max = 86400,
	    .oid_descr = "lifetime of an entry, s" },
	{ .oid_name = "net.link.ether.arp.maxentries", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &arp_maxentries,
	    .oid_min = 1, .oid_max = 1000000,
	    .oid_descr = "max entries" },
#define	X(name, descr)							\
	{ .oid_name = "net.link.ether.arp.stats." #name,		\
	    .oid_type = CTL_U64, .oid_ptr = &arpstat.name,		\
	    .oid_descr = descr },
	ARP_STATS(X)
#undef X
};

static unsigned
arp_bucket(struct in_addr addr)
{
	return ((addr.s_addr * 0x9e3779b1u) >> 26);
}
_Static_assert(ARP_HASH == 1 << (32 - 26), "bucket is the top 6 bits");

static struct arpent *
arp_find(const struct ifnet *ifp, struct in_addr addr) REQUIRES(arp_lock)
{
	struct arpent *ae;

	LIST_FOREACH(ae, &arp_hash[arp_bucket(addr)], ae_link)
		if (ae->ae_addr.s_addr == addr.s_addr && ae->ae_ifp == ifp)
			break;
	return (ae);
}

static void arp_timer(void *);

/* Removes the entry; its waiting packets go to dead. */
static void
arp_forget(struct arpent *ae, struct mbufq *dead) REQUIRES(arp_lock)
{
	counter_add(&arpstat.dropped, ae->ae_nbr.n_hold.mq_len);
	nbr_release(&arp_table, &ae->ae_nbr, dead);
	atomic_fetchadd_u64(&arp_changes, 1);
	LIST_REMOVE(ae, ae_link);
	nbr_remove(&arp_table, &ae->ae_nbr);
	kfree(ae);
}

static struct arpent *
arp_create(struct ifnet *ifp, struct in_addr addr, enum nbr_rank rank,
    struct mbufq *dead) REQUIRES(arp_lock)
{
	const unsigned max = atomic_load_u32(&arp_maxentries);
	struct arpent *ae;
	struct nbr *n;

	while ((n = nbr_victim(&arp_table, ifp, max)) != NULL) {
		ARPSTAT_INC(evicted);
		arp_forget(container_of(n, struct arpent, ae_nbr), dead);
	}
	ae = kmalloc(sizeof(*ae));
	ae->ae_ifp = ifp;
	ae->ae_addr = addr;
	LIST_INSERT_HEAD(&arp_hash[arp_bucket(addr)], ae, ae_link);
	nbr_insert(&arp_table, &ae->ae_nbr, ifp, rank);
	if (!callout_pending(&arp_callout))
		callout_reset(&arp_callout, ARP_RETRY, arp_timer, NULL);
	return (ae);
}

/*
 * RFC 1812 section 5.2.7.1: reports unreachable destinations to the senders;
 * the error about a packet of this host goes to its socket.
 */
static void
arp_bury(struct mbufq *dead)
{
	struct mbuf *m;

	while ((m = mbufq_dequeue(dead)) != NULL)
		icmp_error(m, ICMP_UNREACH, ICMP_UNREACH_HOST, 0);
}

static struct mbuf *
arp_packet(const struct ifnet *ifp, uint16_t op, struct in_addr sender,
    const uint8_t tha[6], struct in_addr target)
{
	struct ether_arp ea = {
		.arp_hrd = htons(ARPHRD_ETHER), .arp_pro = htons(ETHERTYPE_IP),
		.arp_hln = 6, .arp_pln = 4, .arp_op = htons(op),
	};
	struct mbuf *m = m_gethdr(64);

	memcpy(ea.arp_sha, ifp->if_lladdr, 6);
	memcpy(ea.arp_spa, &sender, 4);
	memcpy(ea.arp_tpa, &target, 4);
	if (tha != NULL)
		memcpy(ea.arp_tha, tha, 6);
	memcpy(m->m_data, &ea, sizeof(ea));
	m->m_len = m->m_pkthdr.len = sizeof(ea);
	return (m);
}

static void
arp_broadcast(struct ifnet *ifp, struct mbuf *m)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };

	ARPSTAT_INC(requests);
	ether_frame(ifp, m, broadcast, ETHERTYPE_ARP);
}

static struct mbuf *
arp_request(const struct ifnet *ifp, struct in_addr target)
{
	return (arp_packet(ifp, ARPOP_REQUEST, if_source(ifp, target), NULL,
	    target));
}

/* RFC 5227 section 2.3: sender and target are the announced address. */
static void
announce(struct ifnet *ifp, struct in_addr addr)
{
	arp_broadcast(ifp, arp_packet(ifp, ARPOP_REQUEST, addr, NULL, addr));
}

void
arp_announce(struct ifnet *ifp)
{
	for (unsigned i = 0; i < ifp->if_ninet; i++)
		announce(ifp, ifp->if_inet[i].addr);
}

/* True if a request is due for this address; counts it. */
static bool
arp_shouldask(struct arpent *ae) REQUIRES(arp_lock)
{
	if (ae->ae_tries > 0 || (ae->ae_complete && !ae->ae_expiring))
		return (false);
	ae->ae_tries++;
	ae->ae_asked = mach_uptime();
	return (true);
}

static struct link_hint *
link_hint(struct in_addr addr)
{
	return (thread_hint(IN_LINKS, sizeof(struct link_hint),
	    LINK_HINT_BITS, addr.s_addr));
}

/* Looks up the table; *ask: the caller must send a request. */
static void
resolve(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop,
    struct link_hint *lh, bool *ready, bool *ask, struct mbufq *dead)
    REQUIRES(arp_lock)
{
	struct arpent *ae = arp_find(ifp, nexthop);

	if (ae == NULL)
		ae = arp_create(ifp, nexthop, NBR_INCOMPLETE, dead);
	*ask = arp_shouldask(ae);
	*ready = ae->ae_complete;
	if (*ready) {
		*lh = (struct link_hint){ .ifp = ifp, .addr = nexthop };
		if (!ae->ae_expiring)
			lh->changes = atomic_load_u64(&arp_changes);
		memcpy(lh->lladdr, ae->ae_lladdr, 6);
	} else if (nbr_hold(&arp_table, &ae->ae_nbr, m)) {
		ARPSTAT_INC(dropped);
	}
}

/* Multicast and broadcast addresses are mapped without a request. */
static bool
resolve_many(const struct ifnet *ifp, struct in_addr nexthop, uint8_t lladdr[6])
{
	if (if_isbroadcast(ifp, nexthop))
		memset(lladdr, 0xff, 6);
	else if (IN_MULTICAST(ntohl(nexthop.s_addr)))
		ether_group(nexthop, lladdr);
	else
		return (false);
	return (true);
}

/* Resolves an address that the thread's cache does not have. */
NOINLINE static bool
resolve_anew(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop,
    struct link_hint *lh, uint8_t lladdr[6])
{
	bool ask = false, ready;
	struct mbufq dead;

	if (resolve_many(ifp, nexthop, lladdr))
		return (true);
	mbufq_init(&dead);
	mtx_lock(&arp_lock);
	resolve(ifp, m, nexthop, lh, &ready, &ask, &dead);
	mtx_unlock(&arp_lock);
	if (ask)
		arp_broadcast(ifp, arp_request(ifp, nexthop));
	arp_bury(&dead);
	if (ready)
		memcpy(lladdr, lh->lladdr, 6);
	return (ready);
}

/*
 * Stores nexthop's link address.  False: the packet waits until it is known.
 */
__hot static bool
arp_resolve(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop,
    uint8_t lladdr[6])
{
	struct link_hint *lh = link_hint(nexthop);

	if (__predict_false(lh->changes != atomic_load_acq_u64(&arp_changes)) ||
	    __predict_false(lh->addr.s_addr != nexthop.s_addr) ||
	    __predict_false(lh->ifp != ifp))
		return (resolve_anew(ifp, m, nexthop, lh, lladdr));
	memcpy(lladdr, lh->lladdr, 6);
	return (true);
}

/* if_output of Ethernet. */
__hot static int
arp_output(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop)
{
	uint8_t dst[6];

	if (__predict_false(!arp_resolve(ifp, m, nexthop, dst)))
		return (0);
	return (ether_frame(ifp, m, dst, ETHERTYPE_IP));
}

void
arp_ifattach(struct ifnet *ifp)
{
	ifp->if_output = arp_output;
}

static void
arp_complete(struct arpent *ae, const uint8_t lladdr[6]) REQUIRES(arp_lock)
{
	atomic_fetchadd_u64(&arp_changes, 1);
	memcpy(ae->ae_lladdr, lladdr, 6);
	ae->ae_complete = true;
	ae->ae_expiring = false;
	ae->ae_tries = 0;
	ae->ae_expires = mach_uptime() +
	    atomic_load_u32(&arp_maxage) * NSEC_PER_SEC;
}

/*
 * Stores the sender's addresses if the entry exists, or if create is set (RFC
 * 826).
 */
static void
arp_learn(struct ifnet *ifp, struct in_addr addr, const uint8_t lladdr[6],
    bool create)
{
	struct mbufq hold, dead;
	struct arpent *ae;
	struct mbuf *m;

	mbufq_init(&hold);
	mbufq_init(&dead);
	mtx_lock(&arp_lock);
	ae = arp_find(ifp, addr);
	if (ae == NULL && create)
		ae = arp_create(ifp, addr, NBR_HEARD, &dead);
	if (ae != NULL) {
		nbr_refresh(&arp_table, &ae->ae_nbr, ae->ae_tries > 0 ?
		    NBR_CONFIRMED : ae->ae_nbr.n_rank);
		arp_complete(ae, lladdr);
		nbr_release(&arp_table, &ae->ae_nbr, &hold);
	}
	mtx_unlock(&arp_lock);
	while ((m = mbufq_dequeue(&hold)) != NULL)
		ether_frame(ifp, m, lladdr, ETHERTYPE_IP);
	arp_bury(&dead);
}

static bool
arp_valid(const struct ether_arp *ea)
{
	return (ea->arp_hrd == htons(ARPHRD_ETHER) &&
	    ea->arp_pro == htons(ETHERTYPE_IP) && ea->arp_hln == 6 &&
	    ea->arp_pln == 4 && ether_isunicast(ea->arp_sha));
}

/*
 * RFC 5227 section 2.4 (c): defends an address by one announcement in ten
 * seconds, so that two hosts with the same address do not answer each other.
 */
static void
arp_conflict(struct ifnet *ifp, unsigned i)
{
	atomic_u64 *word = &arp_defended[ifp->if_index][i];
	uint64_t last = atomic_load_u64(word), now = mach_uptime() | 1;

	ARPSTAT_INC(conflicts);
	if ((last != 0 && now - last < ARP_DEFEND) ||
	    !atomic_cmpset_u64(word, &last, now))
		return;
	ARPSTAT_INC(defences);
	announce(ifp, ifp->if_inet[i].addr);
}

static void
arp_process(struct ifnet *ifp, const struct ether_arp *ea)
{
	struct in_addr spa, tpa;
	bool forus;

	memcpy(&spa, ea->arp_spa, sizeof(spa));
	memcpy(&tpa, ea->arp_tpa, sizeof(tpa));
	if (memcmp(ea->arp_sha, ifp->if_lladdr, 6) == 0)
		return;			/* our own packet */
	for (unsigned i = 0; i < ifp->if_ninet; i++)
		if (ifp->if_inet[i].addr.s_addr == spa.s_addr) {
			arp_conflict(ifp, i);
			return;
		}
	forus = if_hasaddr(ifp, tpa);
	if (spa.s_addr != INADDR_ANY && if_onlink(spa) == ifp &&
	    !if_isbroadcast(ifp, spa))
		arp_learn(ifp, spa, ea->arp_sha, forus);
	if (forus && ea->arp_op == htons(ARPOP_REQUEST)) {
		ARPSTAT_INC(replies);
		ether_frame(ifp, arp_packet(ifp, ARPOP_REPLY, tpa,
		    ea->arp_sha, spa), ea->arp_sha, ETHERTYPE_ARP);
	}
}

void
arp_input(struct mbuf *m)
{
	struct ether_arp ea;

	ARPSTAT_INC(received);
	if (m->m_pkthdr.len >= sizeof(ea)) {
		m_copydata(m, 0, sizeof(ea), &ea);
		if (arp_valid(&ea))
			arp_process(m->m_pkthdr.rcvif, &ea);
		else
			ARPSTAT_INC(bad);
	} else
		ARPSTAT_INC(bad);
	m_freem(m);
}

/* Whether the entry ends now: expired, or never answered. */
static bool
arp_isover(const struct arpent *ae, nsec_t now) REQUIRES(arp_lock)
{
	if (ae->ae_complete)
		return (now >= ae->ae_expires);
	return (ae->ae_tries >= ARP_TRIES && now >= ae->ae_asked + ARP_RETRY);
}

/*
 * Ages one entry.  Queues the request that is due in ask; returns the time of
 * the entry's next request, or NSEC_FOREVER.
 */
static nsec_t
arp_age(struct arpent *ae, nsec_t now, struct mbufq *ask) REQUIRES(arp_lock)
{
	struct mbuf *m;

	ae->ae_expiring = ae->ae_complete &&
	    now + 30 * NSEC_PER_SEC >= ae->ae_expires &&
	    atomic_load_u32(&arp_maxage) >= 60;
	if (ae->ae_expiring)
		atomic_fetchadd_u64(&arp_changes, 1);
	if (ae->ae_tries == 0 || (ae->ae_complete && ae->ae_tries >= ARP_TRIES))
		return (NSEC_FOREVER);
	if (now >= ae->ae_asked + ARP_RETRY) {
		ae->ae_tries++;
		ae->ae_asked = now;
		m = arp_request(ae->ae_ifp, ae->ae_addr);
		m->m_pkthdr.rcvif = ae->ae_ifp;
		mbufq_enqueue(ask, m);
	}
	return (ae->ae_asked + ARP_RETRY);
}

/* Ages all entries; returns the time of the next call, or NSEC_FOREVER. */
static nsec_t
arp_age_all(nsec_t now, struct mbufq *ask, struct mbufq *dead)
    REQUIRES(arp_lock)
{
	nsec_t next = now + ARP_RETRY, due;
	struct arpent *ae, *after;

	for (unsigned i = 0; i < ARP_HASH; i++)
		for (ae = LIST_FIRST(&arp_hash[i]); ae != NULL; ae = after) {
			after = LIST_NEXT(ae, ae_link);
			if (arp_isover(ae, now)) {
				if (!ae->ae_complete)
					ARPSTAT_INC(timeouts);
				arp_forget(ae, dead);
				continue;
			}
			due = arp_age(ae, now, ask);
			next = due < next ? due : next;
		}
	return (arp_table.nt_count > 0 ? next : NSEC_FOREVER);
}

static void
arp_timer(void *arg)
{
	const nsec_t now = mach_uptime();
	struct mbufq ask, dead;
	struct ifnet *ifp;
	struct mbuf *m;
	nsec_t next;

	(void)arg;
	mbufq_init(&ask);
	mbufq_init(&dead);
	mtx_lock(&arp_lock);
	next = arp_age_all(now, &ask, &dead);
	if (next != NSEC_FOREVER)
		callout_reset(&arp_callout, next > now + ARP_TICK_MIN ?
		    next - now : ARP_TICK_MIN, arp_timer, NULL);
	mtx_unlock(&arp_lock);
	while ((m = mbufq_dequeue(&ask)) != NULL) {
		ifp = m->m_pkthdr.rcvif;
		m->m_pkthdr.rcvif = NULL;
		arp_broadcast(ifp, m);
	}
	arp_bury(&dead);
}

static void
arp_show(struct ctl_out *co)
{
	char addr[INET_ADDRSTRLEN];
	struct arpent *ae;

	mtx_lock(&arp_lock);
	for (unsigned i = 0; i < ARP_HASH; i++)
		LIST_FOREACH(ae, &arp_hash[i], ae_link) {
			const uint8_t *ll = ae->ae_lladdr;

			ctl_printf(co, "%s %02x:%02x:%02x:%02x:%02x:%02x %s%s\n",
			    inet_ntop(AF_INET, &ae->ae_addr, addr, sizeof(addr)),
			    ll[0], ll[1], ll[2], ll[3], ll[4], ll[5],
			    ae->ae_ifp->if_xname,
			    ae->ae_complete ? "" : " incomplete");
		}
	mtx_unlock(&arp_lock);
}

void
arp_init(void)
{
	static const struct netisr_handler arp_nh = {
		.nh_name = "arp", .nh_proto = NETISR_ARP,
		.nh_handler = arp_input, .nh_mpsafe = true,
	};

	giant_component("arp");
	mtx_init(&arp_lock, LC_ARP);
	mtx_lock(&arp_lock);
	nbr_init(&arp_table);
	mtx_unlock(&arp_lock);
	callout_init(&arp_callout);
	sysctl_register(arp_oids, nitems(arp_oids));
	ctl_view_register("arp", arp_show);
	netisr_register(&arp_nh);
}
