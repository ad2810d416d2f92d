/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address resolution (RFC 826, RFC 1122 section 2.3.2).
 *
 * An entry is incomplete (packets wait for the reply) or complete until it
 * expires.  Shortly before it expires, a packet that uses it triggers a new
 * request, so that traffic does not stop.  Packets wait in a bounded queue.
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
#include "net/netisr.h"
#include "netinet/arp.h"
#include "netinet/in_hints.h"
#include "netinet/ip_var.h"

#define	ARP_HASH	64
#define	ARP_TRIES	3		/* one a second, as in Linux */
#define	ARP_RETRY	NSEC_PER_SEC
#define	ARP_HOLD	64		/* packets queued for one address */

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
	/* [l] requests since the last answer */
	unsigned	 ae_tries GUARDED_BY(arp_lock);
	nsec_t		 ae_expires GUARDED_BY(arp_lock);	/* [l] */
	struct mbufq	 ae_hold GUARDED_BY(arp_lock);	/* [l] */
};

/* [l] */
static LIST_HEAD(, arpent) arp_hash[ARP_HASH] GUARDED_BY(arp_lock);
static unsigned arp_count GUARDED_BY(arp_lock);		/* [l] */
static struct callout arp_callout;

/*
 * Version of the table: changes when a valid address becomes invalid or is
 * about to expire.
 */
static atomic_u64 arp_changes = 1;

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

static struct arpent *
arp_create(struct ifnet *ifp, struct in_addr addr) REQUIRES(arp_lock)
{
	struct arpent *ae;

	if (arp_count >= atomic_load_u32(&arp_maxentries))
		return (NULL);
	ae = kmalloc(sizeof(*ae));
	ae->ae_ifp = ifp;
	ae->ae_addr = addr;
	mbufq_init(&ae->ae_hold);
	LIST_INSERT_HEAD(&arp_hash[arp_bucket(addr)], ae, ae_link);
	if (arp_count++ == 0)
		callout_reset(&arp_callout, ARP_RETRY, arp_timer, NULL);
	return (ae);
}

static void
arp_send(struct ifnet *ifp, uint16_t op, struct in_addr sender,
    const uint8_t tha[6], struct in_addr target)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };
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
	ether_frame(ifp, m, tha != NULL ? tha : broadcast, ETHERTYPE_ARP);
}

__cold static void
arp_request(struct ifnet *ifp, struct in_addr target)
{
	ARPSTAT_INC(requests);
	arp_send(ifp, ARPOP_REQUEST, if_source(ifp, target), NULL, target);
}

/* RFC 5227 section 2.3: sender and target are the announced address. */
static void
announce(struct ifnet *ifp, struct in_addr addr)
{
	ARPSTAT_INC(requests);
	arp_send(ifp, ARPOP_REQUEST, addr, NULL, addr);
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
	return (true);
}

static struct link_hint *
link_hint(struct in_addr addr)
{
	return (thread_hint(IN_LINKS, sizeof(struct link_hint),
	    LINK_HINT_BITS, addr.s_addr));
}

/* Looks up the table; *ask: the caller must send a request. */
static int
resolve(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop,
    struct link_hint *lh, bool *ready, bool *ask) REQUIRES(arp_lock)
{
	struct arpent *ae = arp_find(ifp, nexthop);

	if (ae == NULL)
		ae = arp_create(ifp, nexthop);
	if (ae == NULL)
		return (ENOBUFS);
	*ask = arp_shouldask(ae);
	*ready = ae->ae_complete;
	if (*ready) {
		*lh = (struct link_hint){ .ifp = ifp, .addr = nexthop };
		if (!ae->ae_expiring)
			lh->changes = atomic_load_u64(&arp_changes);
		memcpy(lh->lladdr, ae->ae_lladdr, 6);
		return (0);
	}
	if (ae->ae_hold.mq_len == ARP_HOLD)
		return (ENOBUFS);
	mbufq_enqueue(&ae->ae_hold, m);
	return (0);
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
NOINLINE static int
resolve_anew(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop,
    struct link_hint *lh, uint8_t lladdr[6], bool *ready)
{
	bool ask = false;
	int error;

	*ready = resolve_many(ifp, nexthop, lladdr);
	if (*ready)
		return (0);
	mtx_lock(&arp_lock);
	error = resolve(ifp, m, nexthop, lh, ready, &ask);
	mtx_unlock(&arp_lock);
	if (error != 0) {
		ARPSTAT_INC(dropped);
		m_freem(m);
	}
	if (ask)
		arp_request(ifp, nexthop);
	if (*ready)
		memcpy(lladdr, lh->lladdr, 6);
	return (error);
}

/* Stores nexthop's link address in a waiting frame; consumes m. */
__hot static int
arp_resolve(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop,
    uint8_t lladdr[6], bool *ready)
{
	struct link_hint *lh = link_hint(nexthop);

	if (__predict_false(lh->changes != atomic_load_acq_u64(&arp_changes)) ||
	    __predict_false(lh->addr.s_addr != nexthop.s_addr) ||
	    __predict_false(lh->ifp != ifp))
		return (resolve_anew(ifp, m, nexthop, lh, lladdr, ready));
	memcpy(lladdr, lh->lladdr, 6);
	*ready = true;
	return (0);
}

/* if_output of Ethernet. */
__hot static int
arp_output(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop)
{
	uint8_t dst[6];
	bool ready;
	int error;

	error = arp_resolve(ifp, m, nexthop, dst, &ready);
	if (!ready)
		return (error);
	return (ether_frame(ifp, m, dst, ETHERTYPE_IP));
}

void
arp_ifattach(struct ifnet *ifp)
{
	ifp->if_output = arp_output;
}

/*
 * Stores the sender's addresses if the entry exists, or if create is set (RFC
 * 826).
 */
static void
arp_learn(struct ifnet *ifp, struct in_addr addr, const uint8_t lladdr[6],
    bool create)
{
	struct mbufq hold;
	struct arpent *ae;
	struct mbuf *m;

	mbufq_init(&hold);
	mtx_lock(&arp_lock);
	ae = arp_find(ifp, addr);
	if (ae == NULL && create)
		ae = arp_create(ifp, addr);
	if (ae != NULL) {
		atomic_fetchadd_u64(&arp_changes, 1);
		memcpy(ae->ae_lladdr, lladdr, 6);
		ae->ae_complete = true;
		ae->ae_expiring = false;
		ae->ae_tries = 0;
		ae->ae_expires = mach_uptime() +
		    atomic_load_u32(&arp_maxage) * NSEC_PER_SEC;
		while ((m = mbufq_dequeue(&ae->ae_hold)) != NULL)
			mbufq_enqueue(&hold, m);
	}
	mtx_unlock(&arp_lock);
	while ((m = mbufq_dequeue(&hold)) != NULL)
		ether_frame(ifp, m, lladdr, ETHERTYPE_IP);
}

static bool
arp_valid(const struct ether_arp *ea)
{
	return (ea->arp_hrd == htons(ARPHRD_ETHER) &&
	    ea->arp_pro == htons(ETHERTYPE_IP) && ea->arp_hln == 6 &&
	    ea->arp_pln == 4 && (ea->arp_sha[0] & 1) == 0);
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
	if (if_hasaddr(ifp, spa)) {
		ARPSTAT_INC(conflicts);
		announce(ifp, spa);	/* RFC 5227 section 2.4: defend it */
		return;
	}
	forus = if_hasaddr(ifp, tpa);
	if (spa.s_addr != INADDR_ANY && if_onlink(spa) == ifp)
		arp_learn(ifp, spa, ea->arp_sha, forus);
	if (forus && ea->arp_op == htons(ARPOP_REQUEST)) {
		ARPSTAT_INC(replies);
		arp_send(ifp, ARPOP_REPLY, tpa, ea->arp_sha, spa);
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

/*
 * Ages one entry by a second: request again, or give up.  True if the caller
 * must send a request, without the lock.
 */
static bool
arp_tick(struct arpent *ae, nsec_t now, struct mbufq *dead, bool *gone)
    REQUIRES(arp_lock)
{
	struct mbuf *m;

	KASSERT(arp_count > 0, ("arp_tick: count %u", arp_count));
	*gone = ae->ae_complete ? now >= ae->ae_expires :
	    ae->ae_tries >= ARP_TRIES;
	if (!*gone) {
		ae->ae_expiring = now + 30 * NSEC_PER_SEC >= ae->ae_expires &&
		    atomic_load_u32(&arp_maxage) >= 60;
		if (ae->ae_expiring)
			atomic_fetchadd_u64(&arp_changes, 1);
		if (ae->ae_tries == 0)
			return (false);
		ae->ae_tries++;
		return (ae->ae_tries <= ARP_TRIES);
	}
	while ((m = mbufq_dequeue(&ae->ae_hold)) != NULL) {
		ARPSTAT_INC(dropped);
		mbufq_enqueue(dead, m);
	}
	if (!ae->ae_complete)
		ARPSTAT_INC(timeouts);
	atomic_fetchadd_u64(&arp_changes, 1);
	LIST_REMOVE(ae, ae_link);
	arp_count--;
	kfree(ae);
	return (false);
}

static void
arp_timer(void *arg)
{
	struct { struct ifnet *ifp; struct in_addr addr; } ask[16];
	nsec_t now = mach_uptime();
	struct arpent *ae, *next;
	struct mbufq dead;
	struct mbuf *m;
	unsigned n = 0;
	bool gone;

	(void)arg;
	mbufq_init(&dead);
	mtx_lock(&arp_lock);
	for (unsigned i = 0; i < ARP_HASH; i++)
		for (ae = LIST_FIRST(&arp_hash[i]); ae != NULL; ae = next) {
			next = LIST_NEXT(ae, ae_link);
			if (arp_tick(ae, now, &dead, &gone) && n < nitems(ask)) {
				ask[n].ifp = ae->ae_ifp;
				ask[n++].addr = ae->ae_addr;
			}
		}
	if (arp_count > 0)
		callout_reset(&arp_callout, ARP_RETRY, arp_timer, NULL);
	mtx_unlock(&arp_lock);
	while (n-- > 0)
		arp_request(ask[n].ifp, ask[n].addr);
	/* RFC 1812 5.2.7.1; the error for our own packet goes to its socket */
	while ((m = mbufq_dequeue(&dead)) != NULL)
		icmp_error(m, ICMP_UNREACH, ICMP_UNREACH_HOST, 0);
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
	callout_init(&arp_callout);
	sysctl_register(arp_oids, nitems(arp_oids));
	ctl_view_register("arp", arp_show);
	netisr_register(&arp_nh);
}
