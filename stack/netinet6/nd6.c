/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbour cache (RFC 4861 section 7): link addresses and reachability of
 * neighbours.
 *
 *	INCOMPLETE	solicited, packets wait for the answer
 *	REACHABLE	confirmed recently
 *	STALE		confirmed some time ago; used without probing
 *	DELAY		used since it was stale: probed after five seconds
 *	PROBE		being probed, and used meanwhile
 *
 * A full cache evicts entries in the order of net/neighbour.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <string.h>
#include <sys/queue.h>

#include "kern/callout.h"
#include "kern/ctl.h"
#include "kern/lock.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/if_ether.h"
#include "net/neighbour.h"
#include "netinet6/in6_hints.h"
#include "netinet6/ip6_private.h"

#define	ND6_HASH	256
#define	ND6_TICK	NSEC_PER_SEC
#define	ND6_TRIES	3		/* RFC 4861 section 10 */
#define	ND6_DELAY	(5 * NSEC_PER_SEC)

enum nd6_state { INCOMPLETE, REACHABLE, STALE, DELAY, PROBE };

static struct mtx nd6_lock;

/*
 * Locks used to protect struct nd6_entry members:
 *	[I] immutable
 *	[l] nd6_lock
 */
struct nd6_entry {
	LIST_ENTRY(nd6_entry) ne_link GUARDED_BY(nd6_lock);	/* [l] */
	struct ifnet	*ne_ifp;	/* [I] */
	struct in6_addr	 ne_addr;	/* [I] */
	/* [l] unless INCOMPLETE */
	uint8_t		 ne_lladdr[6] GUARDED_BY(nd6_lock);
	enum nd6_state	 ne_state GUARDED_BY(nd6_lock);	/* [l] */
	bool		 ne_router GUARDED_BY(nd6_lock);	/* [l] */
	/* [l] solicitations in this state */
	unsigned	 ne_tries GUARDED_BY(nd6_lock);
	/* [l] time of the next transition */
	nsec_t		 ne_when GUARDED_BY(nd6_lock);
	struct nbr	 ne_nbr GUARDED_BY(nd6_lock);	/* [l] */
};

/* [l] */
static LIST_HEAD(, nd6_entry) nd6_hash[ND6_HASH] GUARDED_BY(nd6_lock);
static struct nbr_table nd6_table GUARDED_BY(nd6_lock);	/* [l] */
static struct callout nd6_callout;
static atomic_u32 nd6_started;

/*
 * Version of the cache: changes when an entry becomes invalid or needs a state
 * transition at its next use.
 */
static atomic_u64 nd6_changes = 1;

/* A thread's cache of resolved addresses, as in netinet/arp.c. */
#define	LINK6_HINT_BITS	2
struct link6_hint {
	const struct ifnet *ifp;
	struct in6_addr	 addr;
	uint64_t	 changes;	/* 0: empty */
	uint8_t		 lladdr[6];
};

static atomic_u32 nd6_maxentries = 4096;
static atomic_u32 nd6_gctimer = 3600;
struct nd6stat nd6stat COUNTERS;

static const struct sysctl_oid nd6_oids[] = {
	{ .oid_name = "net.inet6.nd6.maxentries", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &nd6_maxentries,
	    .oid_min = 1, .oid_max = 1000000,
	    .oid_descr = "max neighbours" },
	{ .oid_name = "net.inet6.nd6.gctimer", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &nd6_gctimer,
	    .oid_min = 1, .oid_max = 864000,
	    .oid_descr = "lifetime of an unused neighbour, s" },
#define	X(name, descr)							\
	{ .oid_name = "net.inet6.nd6.stats." #name,			\
	    .oid_type = CTL_U64, .oid_ptr = &nd6stat.name,		\
	    .oid_descr = descr },
	ND6_STATS(X)
#undef X
};

static unsigned
nd6_bucket(const struct in6_addr *a)
{
	uint32_t h = 0;

	for (unsigned i = 0; i < 4; i++)
		h = (h ^ a->s6_addr32[i]) * 0x9e3779b1u;
	return (h >> 24);
}
_Static_assert(ND6_HASH == 1 << (32 - 24), "bucket is the top 8 bits");

static struct nd6_entry *
nd6_find(const struct ifnet *ifp, const struct in6_addr *addr)
    REQUIRES(nd6_lock)
{
	struct nd6_entry *ne;

	LIST_FOREACH(ne, &nd6_hash[nd6_bucket(addr)], ne_link)
		if (ne->ne_ifp == ifp &&
		    IN6_ARE_ADDR_EQUAL(&ne->ne_addr, addr))
			break;
	return (ne);
}

/* Changes the state; the next transition is due after delay. */
static void
nd6_become(struct nd6_entry *ne, enum nd6_state state, nsec_t delay)
    REQUIRES(nd6_lock)
{
	atomic_fetchadd_u64(&nd6_changes, 1);
	ne->ne_state = state;
	ne->ne_tries = 0;
	ne->ne_when = mach_uptime() + delay;
}

static void
nd6_become_stale(struct nd6_entry *ne) REQUIRES(nd6_lock)
{
	nd6_become(ne, STALE, atomic_load_u32(&nd6_gctimer) * NSEC_PER_SEC);
}

static nsec_t
nd6_retrans(const struct ifnet *ifp)
{
	return (atomic_load_u32(&ifp->if_in6->retrans) * NSEC_PER_MSEC);
}

/* Removes the entry; its waiting packets go to dead. */
static void
nd6_forget(struct nd6_entry *ne, struct mbufq *dead) REQUIRES(nd6_lock)
{
	counter_add(&nd6stat.dropped, ne->ne_nbr.n_hold.mq_len);
	nbr_release(&nd6_table, &ne->ne_nbr, dead);
	atomic_fetchadd_u64(&nd6_changes, 1);
	LIST_REMOVE(ne, ne_link);
	nbr_remove(&nd6_table, &ne->ne_nbr);
	kfree(ne);
}

static struct nd6_entry *
nd6_create(struct ifnet *ifp, const struct in6_addr *addr, enum nbr_rank rank,
    struct mbufq *dead) REQUIRES(nd6_lock)
{
	const unsigned max = atomic_load_u32(&nd6_maxentries);
	struct nd6_entry *ne;
	struct nbr *n;

	while ((n = nbr_victim(&nd6_table, ifp, max)) != NULL) {
		ND6STAT_INC(full);
		nd6_forget(container_of(n, struct nd6_entry, ne_nbr), dead);
	}
	ne = kmalloc(sizeof(*ne));
	ne->ne_ifp = ifp;
	ne->ne_addr = *addr;
	LIST_INSERT_HEAD(&nd6_hash[nd6_bucket(addr)], ne, ne_link);
	nbr_insert(&nd6_table, &ne->ne_nbr, ifp, rank);
	return (ne);
}

/* RFC 4861 section 7.2.2: reports unreachable destinations to the senders. */
static void
nd6_bury(struct mbufq *dead)
{
	struct mbuf *m;

	while ((m = mbufq_dequeue(dead)) != NULL)
		icmp6_error(m, ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADDR, 0);
}

/*
 * Queues a packet until the answer arrives.  An error about a packet of this
 * host is received on the outgoing interface.
 */
static void
nd6_hold(struct nd6_entry *ne, struct mbuf *m) REQUIRES(nd6_lock)
{
	if (m->m_pkthdr.rcvif == NULL)
		m->m_pkthdr.rcvif = ne->ne_ifp;
	if (nbr_hold(&nd6_table, &ne->ne_nbr, m))
		ND6STAT_INC(dropped);
}

static struct link6_hint *
link6_hint(const struct in6_addr *addr)
{
	return (thread_hint(IN6_LINKS, sizeof(struct link6_hint),
	    LINK6_HINT_BITS, addr->s6_addr32[2] ^ addr->s6_addr32[3]));
}

/* Looks up the cache.  False: the packet waits. */
static bool
resolve(struct ifnet *ifp, struct mbuf *m, const struct in6_addr *nexthop,
    struct link6_hint *lh)
{
	struct mbufq dead;
	struct nd6_entry *ne;
	bool ask, ready;

	mbufq_init(&dead);
	mtx_lock(&nd6_lock);
	ne = nd6_find(ifp, nexthop);
	ask = ne == NULL;
	if (ask) {
		ne = nd6_create(ifp, nexthop, NBR_INCOMPLETE, &dead);
		nd6_become(ne, INCOMPLETE, nd6_retrans(ifp));
		ne->ne_tries = 1;
	}
	ready = ne->ne_state != INCOMPLETE;
	if (ready) {
		if (ne->ne_state == STALE)
			nd6_become(ne, DELAY, ND6_DELAY);
		*lh = (struct link6_hint){ .ifp = ifp, .addr = *nexthop,
		    .changes = atomic_load_u64(&nd6_changes) };
		memcpy(lh->lladdr, ne->ne_lladdr, 6);
	} else
		nd6_hold(ne, m);
	mtx_unlock(&nd6_lock);
	if (ask)
		nd6_solicit(ifp, NULL, nexthop, false);
	nd6_bury(&dead);
	return (ready);
}

/* Like arp_resolve(). */
static bool
nd6_resolve(struct ifnet *ifp, struct mbuf *m, const struct in6_addr *nexthop,
    uint8_t lladdr[6])
{
	struct link6_hint *lh = link6_hint(nexthop);

	if ((lh->changes != atomic_load_acq_u64(&nd6_changes) ||
	    lh->ifp != ifp || !IN6_ARE_ADDR_EQUAL(&lh->addr, nexthop)) &&
	    !resolve(ifp, m, nexthop, lh))
		return (false);
	memcpy(lladdr, lh->lladdr, 6);
	return (true);
}

/* if_output6 of Ethernet. */
static int
nd6_output(struct ifnet *ifp, struct mbuf *m, const struct in6_addr *nexthop)
{
	uint8_t dst[6];

	if (IN6_IS_ADDR_MULTICAST(nexthop))
		ether_group6(nexthop, dst);
	else if (!nd6_resolve(ifp, m, nexthop, dst))
		return (0);
	return (ether_frame(ifp, m, dst, ETHERTYPE_IPV6));
}

void
nd6_ifattach(struct ifnet *ifp)
{
	ifp->if_output6 = nd6_output;
}

/* Stores a link address; the waiting packets go to ready. */
static void
nd6_setlladdr(struct nd6_entry *ne, const uint8_t lladdr[6],
    struct mbufq *ready) REQUIRES(nd6_lock)
{
	if (ne->ne_nbr.n_rank == NBR_INCOMPLETE)
		nbr_refresh(&nd6_table, &ne->ne_nbr, NBR_HEARD);
	atomic_fetchadd_u64(&nd6_changes, 1);
	memcpy(ne->ne_lladdr, lladdr, 6);
	nbr_release(&nd6_table, &ne->ne_nbr, ready);
}

static void
nd6_sendheld(struct ifnet *ifp, const uint8_t lladdr[6], struct mbufq *ready)
{
	struct mbuf *m;

	while ((m = mbufq_dequeue(ready)) != NULL)
		ether_frame(ifp, m, lladdr, ETHERTYPE_IPV6);
}

/* RFC 4861 sections 7.2.3, 6.2.6 and 6.3.4: an unsolicited link address. */
void
nd6_learn(struct ifnet *ifp, const struct in6_addr *addr,
    const uint8_t lladdr[6], bool router)
{
	struct mbufq ready, dead;
	struct nd6_entry *ne;

	mbufq_init(&ready);
	mbufq_init(&dead);
	mtx_lock(&nd6_lock);
	ne = nd6_find(ifp, addr);
	if (ne == NULL)
		ne = nd6_create(ifp, addr, NBR_HEARD, &dead);
	else if (ne->ne_state != INCOMPLETE &&
	    memcmp(ne->ne_lladdr, lladdr, 6) == 0) {
		ne->ne_router |= router;
		ne = NULL;		/* unchanged */
	}
	if (ne != NULL) {
		nd6_setlladdr(ne, lladdr, &ready);
		ne->ne_router |= router;
		if (ready.mq_len > 0)
			nd6_become(ne, DELAY, ND6_DELAY);
		else
			nd6_become_stale(ne);
	}
	mtx_unlock(&nd6_lock);
	nd6_sendheld(ifp, lladdr, &ready);
	nd6_bury(&dead);
}

/* RFC 4861 section 7.2.5, for an entry with a link address. */
static void
nd6_update(struct nd6_entry *ne, const uint8_t *lladdr, uint32_t flags)
    REQUIRES(nd6_lock)
{
	const bool changed = lladdr != NULL &&
	    memcmp(lladdr, ne->ne_lladdr, 6) != 0;

	if (changed && (flags & ND_NA_FLAG_OVERRIDE) == 0) {
		if (ne->ne_state == REACHABLE)
			nd6_become_stale(ne);
		return;
	}
	if (changed) {
		atomic_fetchadd_u64(&nd6_changes, 1);
		memcpy(ne->ne_lladdr, lladdr, 6);
	}
	if (flags & ND_NA_FLAG_SOLICITED) {
		nbr_refresh(&nd6_table, &ne->ne_nbr, NBR_CONFIRMED);
		nd6_become(ne, REACHABLE, atomic_load_u32(
		    &ne->ne_ifp->if_in6->reachable) * NSEC_PER_MSEC);
	} else if (changed)
		nd6_become_stale(ne);
	ne->ne_router = (flags & ND_NA_FLAG_ROUTER) != 0;
}

enum nd6_reachability
nd6_reachability(const struct ifnet *ifp, const struct in6_addr *addr)
{
	enum nd6_reachability r = ND6_UNKNOWN;
	const struct nd6_entry *ne;

	mtx_lock(&nd6_lock);
	ne = nd6_find(ifp, addr);
	if (ne != NULL)
		r = ne->ne_state == INCOMPLETE ? ND6_UNRESOLVED : ND6_RESOLVED;
	mtx_unlock(&nd6_lock);
	return (r);
}

void
nd6_advertised(struct ifnet *ifp, const struct in6_addr *addr,
    const uint8_t *lladdr, uint32_t flags)
{
	struct mbufq ready;
	struct nd6_entry *ne;
	bool retired = false;

	mbufq_init(&ready);
	mtx_lock(&nd6_lock);
	ne = nd6_find(ifp, addr);
	if (ne != NULL && ne->ne_state == INCOMPLETE) {
		if (lladdr != NULL) {
			nd6_setlladdr(ne, lladdr, &ready);
			nd6_become_stale(ne);
			nd6_update(ne, lladdr, flags);
		}
	} else if (ne != NULL) {
		retired = ne->ne_router;
		nd6_update(ne, lladdr, flags);
		retired = retired && !ne->ne_router;
	}
	mtx_unlock(&nd6_lock);
	if (retired)
		nd6_defrouter_update(ifp, addr, 0);
	if (lladdr != NULL)
		nd6_sendheld(ifp, lladdr, &ready);
}

/* A solicitation to be sent after the lock is released. */
struct nd6_ask {
	struct ifnet	*ifp;
	struct in6_addr	 addr;
	bool		 unicast;
};

/* One entry's transition, if it is due.  True: send the solicitation in ask. */
static bool
nd6_step(struct nd6_entry *ne, nsec_t now, struct mbufq *dead,
    struct nd6_ask *ask) REQUIRES(nd6_lock)
{
	if (ne->ne_when > now)
		return (false);
	switch (ne->ne_state) {
	case REACHABLE:
		nd6_become_stale(ne);
		return (false);
	case STALE:
		nd6_forget(ne, dead);
		return (false);
	case DELAY:
		nd6_become(ne, PROBE, 0);
		break;
	case INCOMPLETE:
	case PROBE:
		break;
	}
	if (ne->ne_tries >= ND6_TRIES) {
		ND6STAT_INC(timeouts);
		nd6_forget(ne, dead);
		return (false);
	}
	ne->ne_tries++;
	ne->ne_when = now + nd6_retrans(ne->ne_ifp);
	*ask = (struct nd6_ask){ ne->ne_ifp, ne->ne_addr,
	    ne->ne_state == PROBE };
	return (true);
}

/*
 * Collects at most max solicitations that are due in a bucket; an entry is due
 * again only after its interval, so the caller repeats this until fewer are
 * left.
 */
static unsigned
nd6_bucket_due(unsigned i, nsec_t now, struct nd6_ask *ask, unsigned max,
    struct mbufq *dead)
{
	struct nd6_entry *ne, *next;
	unsigned n = 0;

	mtx_lock(&nd6_lock);
	for (ne = LIST_FIRST(&nd6_hash[i]); ne != NULL && n < max; ne = next) {
		next = LIST_NEXT(ne, ne_link);
		if (nd6_step(ne, now, dead, &ask[n]))
			n++;
	}
	mtx_unlock(&nd6_lock);
	return (n);
}

static void
nd6_cache_tick(void)
{
	const nsec_t now = mach_uptime();
	struct nd6_ask ask[32];
	struct mbufq dead;
	unsigned n;

	mbufq_init(&dead);
	for (unsigned i = 0; i < ND6_HASH; i++)
		do {
			n = nd6_bucket_due(i, now, ask, nitems(ask), &dead);
			for (unsigned k = 0; k < n; k++)
				nd6_solicit(ask[k].ifp, NULL, &ask[k].addr,
				    ask[k].unicast);
		} while (n == nitems(ask));
	nd6_bury(&dead);
}

static void
nd6_timer(void *arg)
{
	(void)arg;
	in6_addr_tick();
	nd6_cache_tick();
	nd6_router_tick();
	callout_reset(&nd6_callout, ND6_TICK, nd6_timer, NULL);
}

void
nd6_start(void)
{
	uint32_t no = 0;

	if (atomic_cmpset_u32(&nd6_started, &no, 1))
		callout_reset(&nd6_callout, 0, nd6_timer, NULL);
}

static void
nd6_show(struct ctl_out *co)
{
	static const char *const names[] = { "incomplete", "reachable",
	    "stale", "delay", "probe" };
	char addr[INET6_ADDRSTRLEN];
	const struct nd6_entry *ne;

	mtx_lock(&nd6_lock);
	for (unsigned i = 0; i < ND6_HASH; i++)
		LIST_FOREACH(ne, &nd6_hash[i], ne_link) {
			const uint8_t *ll = ne->ne_lladdr;

			ctl_printf(co, "%s %02x:%02x:%02x:%02x:%02x:%02x "
			    "%s %s%s\n", inet_ntop(AF_INET6, &ne->ne_addr,
			    addr, sizeof(addr)), ll[0], ll[1], ll[2], ll[3],
			    ll[4], ll[5], ne->ne_ifp->if_xname,
			    names[ne->ne_state],
			    ne->ne_router ? " router" : "");
		}
	mtx_unlock(&nd6_lock);
}

void
nd6_init(void)
{
	mtx_init(&nd6_lock, LC_ND6);
	mtx_lock(&nd6_lock);
	nbr_init(&nd6_table);
	mtx_unlock(&nd6_lock);
	nd6_router_init();
	callout_init(&nd6_callout);
	sysctl_register(nd6_oids, nitems(nd6_oids));
	ctl_view_register("ndp", nd6_show);
}
