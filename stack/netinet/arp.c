/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of address resolution (RFC 826, RFC 1122 section 2.3.2).
 *
 * An entry is incomplete (packets wait for the reply) or complete until it
 * expires.  Shortly before it expires, a packet that uses it triggers a new
 * request, so that traffic does not stop.  Packets wait in a bounded queue.
 * A full table evicts entries in the order of net/neighbour.h.
 *
 * A packet reads the table in an epoch, unless its thread has resolved the
 * address recently.  It takes the lock only if its address is not known or
 * about to expire.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/if_ether.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include "kern/callout.h"
#include "kern/counter.h"
#include "kern/ctl.h"
#include "kern/epoch_list.h"
#include "kern/lock.h"
#include "kern/planted.h"
#include "kern/sysctl.h"
#include "net/if_ether.h"
#include "net/neighbour.h"
#include "net/netisr.h"
#include "netinet/arp.h"
#include "netinet/arp_private.h"
#include "netinet/in_hints.h"
#include "netinet/ip_var.h"

#define	ARP_HASH	1024
#define	ARP_TRIES	3		/* one a second, as in Linux */
/* RFC 1122 section 2.3.2.1: at most one request a second for an address */
#define	ARP_RETRY	NSEC_PER_SEC
#define	ARP_TICK_MIN	(100 * NSEC_PER_MSEC)

static struct mtx arp_lock;

/*
 * Locks used to protect struct arpent members:
 *	[I] immutable
 *	[l] arp_lock
 *	[a] atomic: written with arp_lock, read in epochs, too
 */
struct arpent {
	struct epoch_link ae_link;	/* [a] in arp_hash */
	struct ifnet	*ae_ifp;	/* [I] */
	struct in_addr	 ae_addr;	/* [I] */
	atomic_u64	 ae_word;	/* [a] its struct nbr_link */
	/* [l] requests that were not answered yet */
	unsigned	 ae_tries GUARDED_BY(arp_lock);
	nsec_t		 ae_asked GUARDED_BY(arp_lock);	/* [l] the last one */
	nsec_t		 ae_expires GUARDED_BY(arp_lock);	/* [l] */
	struct nbr	 ae_nbr GUARDED_BY(arp_lock);	/* [l] */
};

static atomic_uptr arp_hash[ARP_HASH];	/* [a] lists of entries */
static struct nbr_table arp_table GUARDED_BY(arp_lock);	/* [l] */
static struct callout arp_callout;

/*
 * Version of the table: changes after an address has become invalid, another
 * one, or about to expire.
 */
static atomic_u64 arp_changes = 1;

/* Addresses that a thread resolved recently; a hit enters no epoch. */
#define	LINK_HINT_BITS	2
struct link_hint {
	const struct ifnet *ifp;
	struct in_addr	 addr;
	uint64_t	 changes;	/* 0: empty */
	uint8_t		 lladdr[6];
};

static atomic_u32 arp_maxage = 1200;
static atomic_u32 arp_maxentries = 4096;

struct arpstat arpstat COUNTERS;

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
	return ((addr.s_addr * 0x9e3779b1u) >> 22);
}
_Static_assert(ARP_HASH == 1 << (32 - 22), "bucket is the top 10 bits");

/* In an epoch, or with the lock. */
static struct arpent *
arp_find(const struct ifnet *ifp, struct in_addr addr)
{
	struct epoch_link *el;
	struct arpent *ae;

	EPOCH_LIST_FOREACH(el, &arp_hash[arp_bucket(addr)]) {
		ae = container_of(el, struct arpent, ae_link);
		if (ae->ae_addr.s_addr == addr.s_addr && ae->ae_ifp == ifp)
			return (ae);
	}
	return (NULL);
}

static void arp_timer(void *);

/* Removes the entry; its waiting packets go to dead. */
static void
arp_forget(struct arpent *ae, struct mbufq *dead) REQUIRES(arp_lock)
{
	counter_add(&arpstat.dropped, ae->ae_nbr.n_hold.mq_len);
	nbr_release(&arp_table, &ae->ae_nbr, dead);
	epoch_list_remove(&ae->ae_link);
	atomic_fetchadd_u64(&arp_changes, 1);
	nbr_remove(&arp_table, &ae->ae_nbr);
	if (PLANTED(ARP_FREE))
		kfree(ae);
	else
		epoch_call(kfree, ae);
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
	epoch_list_insert(&arp_hash[arp_bucket(addr)], &ae->ae_link);
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

/* The address is valid, and no request is due. */
static bool
is_settled(struct nbr_link nl)
{
	return (nl.nl_known && (nl.nl_flags & NL_EXPIRING) == 0);
}

/* True if a request is due for this address; counts it. */
static bool
arp_shouldask(struct arpent *ae) REQUIRES(arp_lock)
{
	if (ae->ae_tries > 0 || is_settled(nbr_link_get(&ae->ae_word)))
		return (false);
	ae->ae_tries++;
	ae->ae_asked = mach_uptime();
	return (true);
}

/*
 * Looks up the table; the packet waits if the address is not known.  *ask: the
 * caller must send a request.
 */
static struct nbr_link
resolve(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop, bool *ask,
    struct mbufq *dead) REQUIRES(arp_lock)
{
	struct arpent *ae = arp_find(ifp, nexthop);
	struct nbr_link nl;

	if (ae == NULL)
		ae = arp_create(ifp, nexthop, NBR_INCOMPLETE, dead);
	*ask = arp_shouldask(ae);
	nl = nbr_link_get(&ae->ae_word);
	if (!nl.nl_known && nbr_hold(&arp_table, &ae->ae_nbr, m)) {
		ARPSTAT_INC(dropped);
		nl.nl_flags |= NL_FULL;
		nbr_link_set(&ae->ae_word, nl);
	}
	return (nl);
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

/*
 * Locks the table.  Not if many packets wait for the address, and the lock is
 * not free: then another thread queues one, and the answer is needed more.
 */
static bool
lock_for(struct nbr_link nl) TRY_ACQUIRES(true, arp_lock)
{
	if ((nl.nl_flags & NL_FULL) != 0 && !mtx_isfree(&arp_lock))
		return (false);
	mtx_lock(&arp_lock);
	return (true);
}

/* Resolves an address that is not settled. */
NOINLINE static bool
resolve_anew(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop,
    struct nbr_link nl, uint8_t lladdr[6])
{
	struct mbufq dead;
	bool ask;

	if (resolve_many(ifp, nexthop, lladdr))
		return (true);
	if (!lock_for(nl)) {
		ARPSTAT_INC(dropped);
		m_freem(m);
		return (false);
	}
	mbufq_init(&dead);
	nl = resolve(ifp, m, nexthop, &ask, &dead);
	mtx_unlock(&arp_lock);
	if (ask)
		arp_broadcast(ifp, arp_request(ifp, nexthop));
	arp_bury(&dead);
	if (nl.nl_known)
		memcpy(lladdr, nl.nl_addr, 6);
	return (nl.nl_known);
}

/*
 * Resolves an address that the thread's cache does not have.  The version is
 * read first, so that a later change makes the cached address invalid.
 */
NOINLINE static bool
resolve_uncached(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop,
    struct link_hint *lh, uint8_t lladdr[6])
{
	const uint64_t changes = atomic_load_acq_u64(&arp_changes);
	struct nbr_link nl = { .nl_known = false };
	struct arpent *ae;

	epoch_enter();
	ae = arp_find(ifp, nexthop);
	if (__predict_true(ae != NULL))
		nl = nbr_link_get(&ae->ae_word);
	epoch_exit();
	if (__predict_false(!is_settled(nl)))
		return (resolve_anew(ifp, m, nexthop, nl, lladdr));
	*lh = (struct link_hint){ .ifp = ifp, .addr = nexthop,
	    .changes = changes };
	memcpy(lh->lladdr, nl.nl_addr, 6);
	memcpy(lladdr, nl.nl_addr, 6);
	return (true);
}

/*
 * Stores nexthop's link address.  False: the packet waits until it is known.
 */
__hot static bool
arp_resolve(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop,
    uint8_t lladdr[6])
{
	struct link_hint *lh = thread_hint(IN_LINKS, sizeof(*lh),
	    LINK_HINT_BITS, nexthop.s_addr);

	if (__predict_false(lh->changes != atomic_load_acq_u64(&arp_changes)) ||
	    __predict_false(lh->addr.s_addr != nexthop.s_addr) ||
	    __predict_false(lh->ifp != ifp))
		return (resolve_uncached(ifp, m, nexthop, lh, lladdr));
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
	struct nbr_link nl = { .nl_known = true };

	memcpy(nl.nl_addr, lladdr, 6);
	nbr_link_set(&ae->ae_word, nl);
	atomic_fetchadd_u64(&arp_changes, 1);
	ae->ae_tries = 0;
	ae->ae_expires = mach_uptime() +
	    atomic_load_u32(&arp_maxage) * NSEC_PER_SEC;
}

void
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

/* Whether the entry ends now: expired, or never answered. */
static bool
arp_isover(struct arpent *ae, nsec_t now) REQUIRES(arp_lock)
{
	if (nbr_link_get(&ae->ae_word).nl_known)
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
	struct nbr_link nl = nbr_link_get(&ae->ae_word);
	struct mbuf *m;

	if (nl.nl_known && now + 30 * NSEC_PER_SEC >= ae->ae_expires &&
	    atomic_load_u32(&arp_maxage) >= 60) {
		nl.nl_flags |= NL_EXPIRING;
		nbr_link_set(&ae->ae_word, nl);
		atomic_fetchadd_u64(&arp_changes, 1);
	}
	if (ae->ae_tries == 0 || (nl.nl_known && ae->ae_tries >= ARP_TRIES))
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
	struct epoch_link *el, *after;
	struct arpent *ae;

	for (unsigned i = 0; i < ARP_HASH; i++)
		for (el = epoch_list_first(&arp_hash[i]); el != NULL;
		    el = after) {
			after = epoch_list_first(&el->el_next);
			ae = container_of(el, struct arpent, ae_link);
			if (arp_isover(ae, now)) {
				if (!nbr_link_get(&ae->ae_word).nl_known)
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
	struct epoch_link *el;

	mtx_lock(&arp_lock);
	for (unsigned i = 0; i < ARP_HASH; i++)
		EPOCH_LIST_FOREACH(el, &arp_hash[i]) {
			struct arpent *ae = container_of(el, struct arpent,
			    ae_link);
			const struct nbr_link nl = nbr_link_get(&ae->ae_word);
			const uint8_t *ll = nl.nl_addr;

			ctl_printf(co, "%s %02x:%02x:%02x:%02x:%02x:%02x %s%s\n",
			    inet_ntop(AF_INET, &ae->ae_addr, addr, sizeof(addr)),
			    ll[0], ll[1], ll[2], ll[3], ll[4], ll[5],
			    ae->ae_ifp->if_xname,
			    nl.nl_known ? "" : " incomplete");
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
