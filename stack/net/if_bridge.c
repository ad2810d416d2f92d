/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bridge joins Ethernet interfaces to one network (IEEE 802.1D section 7,
 * without the spanning tree: physical loops are not detected).  It learns
 * which member leads to an address.  It is an interface with this host's
 * addresses in that network; members have no addresses.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "kern/callout.h"
#include "kern/ctl.h"
#include "kern/lock.h"
#include "kern/sysctl.h"
#include "net/if_bridge.h"
#include "net/if_driver.h"
#include "net/if_ether.h"
#include "net/neighbour.h"

#define	MEMBERS_MAX	16
#define	BUCKETS		256
#define	AGE_INTERVAL	(10 * NSEC_PER_SEC)

extern struct lock_role bridge_role;	/* b_lock of a host's bridge */

/* The location of a host. [b] lock of the bridge */
struct bridge_host {
	/* [b] */
	LIST_ENTRY(bridge_host) bh_link GUARDED_BY(bridge_role);
	uint8_t		 bh_lladdr[6] GUARDED_BY(bridge_role);	/* [b] */
	struct ifnet	*bh_member GUARDED_BY(bridge_role);	/* [b] */
	nsec_t		 bh_expires GUARDED_BY(bridge_role);	/* [b] */
	struct nbr	 bh_nbr GUARDED_BY(bridge_role);	/* [b] */
};

#define	BRIDGE_STATS(X)							\
	X(forwarded, "frames passed to one member")			\
	X(flooded, "frames passed to all others")			\
	X(moved, "addresses that moved to another member")		\
	X(expired, "addresses expired")					\
	X(full, "addresses evicted by others: table full")		\
	X(dropped, "frames not forwarded: link-local, or too long")

/*
 * Locks used to protect struct bridge members:
 *	[I] immutable after attach
 *	[a] atomic
 *	[b] b_lock
 */
struct bridge {
	struct ifnet	 b_if;
	struct ifnet	*b_members[MEMBERS_MAX];	/* [I] */
	unsigned	 b_nmembers;			/* [I] */
	struct mtx	 b_lock;
	/* [b] */
	LIST_HEAD(, bridge_host) b_hosts[BUCKETS] GUARDED_BY(b_lock);
	struct nbr_table b_table GUARDED_BY(b_lock);	/* [b] */
	struct callout	 b_callout;
	struct bridge	*b_next;			/* [I] */
	struct {
#define	X(name, descr)	atomic_u64 name;
		BRIDGE_STATS(X)
#undef X
	}		 b_stats;			/* [a] */
};

#define	BRIDGESTAT_INC(b, name)	atomic_count_u64(&(b)->b_stats.name, 1)

static struct bridge *bridges;		/* [I] after boot */
static atomic_u32 bridge_maxage = 300;
static atomic_u32 bridge_maxhosts = 4096;

static const struct sysctl_oid bridge_oids[] = {
	{ .oid_name = "net.link.bridge.max_age", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &bridge_maxage,
	    .oid_min = 10, .oid_max = 1000000,
	    .oid_descr = "lifetime of an unused address, s" },
	{ .oid_name = "net.link.bridge.maxentries", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &bridge_maxhosts,
	    .oid_min = 1, .oid_max = 1000000,
	    .oid_descr = "max addresses of a bridge" },
};

static unsigned
bucket(const uint8_t ll[6])
{
	return ((((ll[2] * 31U + ll[3]) * 31U + ll[4]) * 31U + ll[5]) %
	    BUCKETS);
}

static struct bridge_host *
host_find(struct bridge *b, const uint8_t ll[6])
    REQUIRES(b->b_lock, bridge_role)
{
	struct bridge_host *bh;

	LIST_FOREACH(bh, &b->b_hosts[bucket(ll)], bh_link)
		if (memcmp(bh->bh_lladdr, ll, 6) == 0)
			break;
	return (bh);
}

static void
host_free(struct bridge *b, struct bridge_host *bh)
    REQUIRES(b->b_lock, bridge_role)
{
	LIST_REMOVE(bh, bh_link);
	nbr_remove(&b->b_table, &bh->bh_nbr);
	kfree(bh);
}

static void
bridge_timer(void *arg)
{
	const nsec_t now = mach_uptime();
	struct bridge_host *bh, *next;
	struct bridge *b = arg;

	mtx_lock_as(&b->b_lock, &bridge_role);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (bh = LIST_FIRST(&b->b_hosts[i]); bh != NULL; bh = next) {
			next = LIST_NEXT(bh, bh_link);
			if (bh->bh_expires > now)
				continue;
			host_free(b, bh);
			BRIDGESTAT_INC(b, expired);
		}
	if (b->b_table.nt_count > 0)
		callout_reset(&b->b_callout, AGE_INTERVAL, bridge_timer, b);
	mtx_unlock_as(&b->b_lock, &bridge_role);
}

/* Adds a host; a full table evicts the one that was idle for longest. */
static struct bridge_host *
host_add(struct bridge *b, struct ifnet *member, const uint8_t ll[6])
    REQUIRES(b->b_lock, bridge_role)
{
	const unsigned max = atomic_load_u32(&bridge_maxhosts);
	struct bridge_host *bh;
	struct nbr *n;

	while ((n = nbr_victim(&b->b_table, member, max)) != NULL) {
		BRIDGESTAT_INC(b, full);
		host_free(b, container_of(n, struct bridge_host, bh_nbr));
	}
	bh = kmalloc(sizeof(*bh));
	memcpy(bh->bh_lladdr, ll, 6);
	bh->bh_member = member;
	LIST_INSERT_HEAD(&b->b_hosts[bucket(ll)], bh, bh_link);
	nbr_insert(&b->b_table, &bh->bh_nbr, member, NBR_HEARD);
	if (!callout_pending(&b->b_callout))
		callout_reset(&b->b_callout, AGE_INTERVAL, bridge_timer, b);
	return (bh);
}

/* 802.1D section 7.8: records that the sender is behind this member. */
static void
bridge_learn(struct bridge *b, struct ifnet *member, const uint8_t ll[6])
{
	struct bridge_host *bh;

	if (!ether_isunicast(ll))
		return;
	mtx_lock_as(&b->b_lock, &bridge_role);
	bh = host_find(b, ll);
	if (bh != NULL && bh->bh_member != member) {
		BRIDGESTAT_INC(b, moved);
		host_free(b, bh);
		bh = NULL;
	}
	if (bh == NULL)
		bh = host_add(b, member, ll);
	else
		nbr_refresh(&b->b_table, &bh->bh_nbr, NBR_HEARD);
	bh->bh_expires = mach_uptime() +
	    atomic_load_u32(&bridge_maxage) * NSEC_PER_SEC;
	mtx_unlock_as(&b->b_lock, &bridge_role);
}

/* The member that leads to a host, or NULL. */
static struct ifnet *
bridge_lookup(struct bridge *b, const uint8_t ll[6])
{
	const struct bridge_host *bh;
	struct ifnet *member;

	mtx_lock_as(&b->b_lock, &bridge_role);
	bh = host_find(b, ll);
	member = bh != NULL && bh->bh_expires > mach_uptime() ? bh->bh_member :
	    NULL;
	mtx_unlock_as(&b->b_lock, &bridge_role);
	return (member);
}

/* Sends a received frame, or one from this host, on a member.  Consumes m. */
static int
bridge_pass(struct ifnet *member, struct mbuf *m)
{
	m_offload_rx_to_tx(m);
	return (ether_send(member, m));
}

/* Sends to all members except the receiving one, if any.  Consumes m. */
static void
bridge_flood(struct bridge *b, const struct ifnet *from, struct mbuf *m)
{
	BRIDGESTAT_INC(b, flooded);
	for (unsigned i = 0; i < b->b_nmembers; i++)
		if (b->b_members[i] != from)
			(void)bridge_pass(b->b_members[i], m_copym(m, 0,
			    m->m_pkthdr.len));
	m_freem(m);
}

/*
 * 802.1D section 7.12.6: frames to bridges stay on their link.  A frame longer
 * than the MTU is not forwarded, unless it will be segmented.
 */
static bool
bridge_mayforward(const struct bridge *b, const struct mbuf *m)
{
	static const uint8_t reserved[5] = { 1, 0x80, 0xc2, 0, 0 };
	const uint8_t *dst = mtod(m, const uint8_t *);

	if (memcmp(dst, reserved, sizeof(reserved)) == 0 && dst[5] < 16)
		return (false);
	return (m->m_pkthdr.tso_segsz != 0 ||
	    m->m_pkthdr.len <= b->b_if.if_mtu + ETHER_HDR_LEN);
}

/* Delivers to this host, as received by the bridge.  Consumes m. */
static void
bridge_local(struct bridge *b, struct mbuf *m)
{
	struct ifnet *ifp = &b->b_if;

	IFSTAT_INC(ifp, ipackets);
	IFSTAT_ADD(ifp, ibytes, m->m_pkthdr.len);
	if_pcap_tap(ifp, m);
	m->m_pkthdr.rcvif = ifp;
	ether_input(ifp, m);
}

void
bridge_input(struct ifnet *member, struct mbuf *m)
{
	struct bridge *b = member->if_bridge->if_softc;
	const struct ether_header *eh = mtod(m, const struct ether_header *);
	struct ifnet *to;

	if (!bridge_mayforward(b, m)) {
		BRIDGESTAT_INC(b, dropped);
		m_freem(m);
		return;
	}
	bridge_learn(b, member, eh->ether_shost);
	if (memcmp(eh->ether_dhost, b->b_if.if_lladdr, 6) == 0) {
		bridge_local(b, m);
		return;
	}
	if ((eh->ether_dhost[0] & 1) != 0) {
		bridge_local(b, m_copym(m, 0, m->m_pkthdr.len));
		bridge_flood(b, member, m);
		return;
	}
	to = bridge_lookup(b, eh->ether_dhost);
	if (to == NULL) {
		bridge_flood(b, member, m);
	} else if (to != member) {
		BRIDGESTAT_INC(b, forwarded);
		(void)bridge_pass(to, m);
	} else {
		m_freem(m);	/* both hosts are behind the same member */
	}
}

/* Sends a frame of this host, from ether_frame(). */
static int
bridge_transmit(struct ifnet *ifp, struct mbuf *m)
{
	const struct ether_header *eh = mtod(m, const struct ether_header *);
	struct bridge *b = ifp->if_softc;
	struct ifnet *to = (eh->ether_dhost[0] & 1) != 0 ? NULL :
	    bridge_lookup(b, eh->ether_dhost);

	IFSTAT_INC(ifp, opackets);
	IFSTAT_ADD(ifp, obytes, m->m_pkthdr.len);
	if (to != NULL) {
		BRIDGESTAT_INC(b, forwarded);
		return (ether_send(to, m));
	}
	BRIDGESTAT_INC(b, flooded);
	for (unsigned i = 0; i < b->b_nmembers; i++)
		(void)ether_send(b->b_members[i], m_copym(m, 0,
		    m->m_pkthdr.len));
	m_freem(m);
	return (0);
}

/* Adds a member with the same properties as the others. */
static int
member_add(struct bridge *b, const char *name, char *why, size_t len)
{
	struct ifnet *ifp = if_byname(name);
	const struct ifnet *first = b->b_members[0];

	if (ifp == NULL || !ifp->if_ether ||
	    ifp->if_transmit == bridge_transmit) {
		snprintf(why, len, "member '%s' must be an Ethernet "
		    "interface, configured before the bridge", name);
		return (ENOENT);
	}
	if (ifp->if_addr.s_addr != INADDR_ANY || ifp->if_in6 != NULL) {
		snprintf(why, len, "member '%s' has an address; give the "
		    "address to the bridge", name);
		return (EINVAL);
	}
	if (ifp->if_bridge != NULL) {
		snprintf(why, len, "duplicate member '%s'", name);
		return (EBUSY);
	}
	if (b->b_nmembers == MEMBERS_MAX) {
		snprintf(why, len, "more than %u members", MEMBERS_MAX);
		return (EINVAL);
	}
	if (first != NULL && (ifp->if_mtu != first->if_mtu ||
	    ifp->if_caps != first->if_caps)) {
		snprintf(why, len, "members '%s' and '%s' differ in mtu or "
		    "offload", first->if_xname, name);
		return (EINVAL);
	}
	b->b_members[b->b_nmembers++] = ifp;
	ifp->if_bridge = &b->b_if;
	return (0);
}

/* Frees a bridge that was not created completely. */
static void
bridge_free(struct bridge *b)
{
	for (unsigned i = 0; i < b->b_nmembers; i++)
		b->b_members[i]->if_bridge = NULL;
	kfree(b);
}

static void
register_counters(struct bridge *b)
{
	const struct {
		const char	*name, *descr;
		atomic_u64	*counter;
	} counters[] = {
#define	X(name, descr)	{ #name, descr, &b->b_stats.name },
		BRIDGE_STATS(X)
#undef X
	};

	for (size_t i = 0; i < nitems(counters); i++)
		sysctl_add(&(struct sysctl_oid){ .oid_type = CTL_U64,
		    .oid_ptr = counters[i].counter,
		    .oid_descr = counters[i].descr }, "if.%s.stats.%s",
		    b->b_if.if_xname, counters[i].name);
}

int
bridge_create(const struct if_config *ic, char *why, size_t len)
{
	struct bridge *b = kmalloc(sizeof(*b));
	char text[sizeof(ic->members)], *rest, *name;
	int error = 0;

	mtx_init(&b->b_lock, LC_BRIDGE);
	mtx_private(&b->b_lock);
	nbr_init(&b->b_table);
	callout_init(&b->b_callout);
	for (unsigned i = 0; i < BUCKETS; i++)
		LIST_INIT(&b->b_hosts[i]);
	snprintf(text, sizeof(text), "%s", ic->members);
	for (name = strtok_r(text, " ,", &rest); name != NULL && error == 0;
	    name = strtok_r(NULL, " ,", &rest))
		error = member_add(b, name, why, len);
	if (error == 0 && b->b_nmembers == 0) {
		snprintf(why, len, "a bridge needs members, for example "
		    "\"tap0 tap1");
		error = EINVAL;
	}
	if (error != 0) {
		bridge_free(b);
		return (error);
	}
	if_initname(&b->b_if, ic, b->b_members[0]->if_mtu);
	if (b->b_if.if_mtu > b->b_members[0]->if_mtu)
		b->b_if.if_mtu = b->b_members[0]->if_mtu;
	/* members send batches themselves */
	b->b_if.if_caps = b->b_members[0]->if_caps & ~(unsigned)IFCAP_BATCH;
	memcpy(b->b_if.if_lladdr, b->b_members[0]->if_lladdr, 6);
	b->b_if.if_softc = b;
	ether_ifattach(&b->b_if);
	b->b_if.if_transmit = bridge_transmit;
	if_attach(&b->b_if);
	register_counters(b);
	b->b_next = bridges;
	bridges = b;
	return (0);
}

static void
bridge_detach(struct ifnet *ifp)
{
	struct bridge *b = ifp->if_softc;

	(void)callout_drain(&b->b_callout);
}

static void
bridge_ifconfig(const struct ifnet *ifp, struct ctl_out *co)
{
	const struct bridge *b = ifp->if_softc;

	ctl_printf(co, "\tmembers");
	for (unsigned i = 0; i < b->b_nmembers; i++)
		ctl_printf(co, " %s", b->b_members[i]->if_xname);
	ctl_printf(co, "\n");
}

static void
bridge_show(struct ctl_out *co)
{
	const struct bridge_host *bh;
	const nsec_t now = mach_uptime();
	struct bridge *b;

	ctl_printf(co, "%-10s %-18s %-10s %s\n", "Bridge", "Address", "Member",
	    "Seconds left");
	for (b = bridges; b != NULL; b = b->b_next) {
		mtx_lock_as(&b->b_lock, &bridge_role);
		for (unsigned i = 0; i < BUCKETS; i++)
			LIST_FOREACH(bh, &b->b_hosts[i], bh_link) {
				const uint8_t *ll = bh->bh_lladdr;

				if (bh->bh_expires <= now)
					continue;
				ctl_printf(co, "%-10s %02x:%02x:%02x:%02x:%02x:"
				    "%02x  %-10s %llu\n", b->b_if.if_xname,
				    ll[0], ll[1], ll[2], ll[3], ll[4], ll[5],
				    bh->bh_member->if_xname,
				    (unsigned long long)((bh->bh_expires -
				    now) / NSEC_PER_SEC));
			}
		mtx_unlock_as(&b->b_lock, &bridge_role);
	}
}

void
bridge_init(void)
{
	static struct if_driver driver = { .name = "bridge",
	    .has = IFHAS_MEMBERS, .attach = bridge_create,
	    .detach = bridge_detach, .show = bridge_ifconfig };

	giant_component("bridge");
	sysctl_register(bridge_oids, nitems(bridge_oids));
	ctl_view_register("bridge", bridge_show);
	if_driver_register(&driver);
}
