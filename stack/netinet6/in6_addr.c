/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 addresses of interfaces: link-local and others, duplicate address
 * detection and stateless autoconfiguration (RFC 4862), and source address
 * selection (RFC 6724).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "kern/ctl.h"
#include "kern/lock.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "net/if_var.h"
#include "netinet/in_group.h"
#include "netinet6/ip6_private.h"

static struct rwlock in6_lock;

#define	IA6_PROBE	0x100	/* a probe is due */

/*
 * Locks used to protect struct in6_ifaddr members:
 *	[I] immutable
 *	[l] in6_lock
 */
struct in6_ifaddr {
	LIST_ENTRY(in6_ifaddr) ia_link GUARDED_BY(in6_lock);	/* [l] */
	struct ifnet	*ia_ifp;	/* [I] */
	struct in6_addr	 ia_addr;	/* [I] */
	unsigned	 ia_plen;	/* [I] */
	unsigned	 ia_flags GUARDED_BY(in6_lock);	/* [l] IA6_* */
	/* [l] probes still to be sent */
	unsigned	 ia_probes GUARDED_BY(in6_lock);
	/* [l] ends of the lifetimes */
	nsec_t		 ia_preferred GUARDED_BY(in6_lock),
			 ia_valid GUARDED_BY(in6_lock);
};

static struct mtx start_lock;		/* for msleep() */
static LIST_HEAD(, in6_ifaddr) in6_addrs GUARDED_BY(in6_lock);	/* [l] */

static atomic_u32 in6_ntentative;	/* [a] tentative addresses, usually 0 */
static bool in6_started;		/* [I] after boot */

static atomic_u32 ip6_dad_count = 1;
atomic_u32 ip6_maxifprefixes = 16;

static const struct sysctl_oid in6_oids[] = {
	{ .oid_name = "net.inet6.ip6.dad_count", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ip6_dad_count,
	    .oid_max = 16,
	    .oid_descr = "probes of duplicate detection, one a second; 0: "
	    "none" },
	{ .oid_name = "net.inet6.ip6.maxifprefixes", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &ip6_maxifprefixes,
	    .oid_max = 256,
	    .oid_descr = "max advertised prefixes, and addresses made from "
	    "them, of an interface" },
};

struct in6_addr
in6_solicited_node(const struct in6_addr *a)
{
	return ((struct in6_addr){ .s6_addr = { 0xff, 2, [11] = 1, 0xff,
	    a->s6_addr[13], a->s6_addr[14], a->s6_addr[15] } });
}

static struct in6_ifaddr *
addr_find(const struct ifnet *ifp, const struct in6_addr *addr)
    REQUIRES_SHARED(in6_lock)
{
	struct in6_ifaddr *ia;

	LIST_FOREACH(ia, &in6_addrs, ia_link)
		if (ia->ia_ifp == ifp &&
		    IN6_ARE_ADDR_EQUAL(&ia->ia_addr, addr))
			break;
	return (ia);
}

unsigned
in6_addr_flags(const struct ifnet *ifp, const struct in6_addr *addr)
{
	const struct in6_ifaddr *ia;
	unsigned flags;

	rw_rlock(&in6_lock);
	ia = addr_find(ifp, addr);
	flags = ia != NULL ? ia->ia_flags : 0;
	rw_runlock(&in6_lock);
	return (flags);
}

bool
in6_addr_tentative(const struct ifnet *ifp, const struct in6_addr *addr)
{
	/* runs for each packet: no lock if no address is tentative */
	return (atomic_load_acq_u32(&in6_ntentative) != 0 &&
	    (in6_addr_flags(ifp, addr) & IA6_TENTATIVE) != 0);
}

/* Duplicate detection has ended, with or without a conflict. */
static void
addr_decided(struct in6_ifaddr *ia) REQUIRES(in6_lock)
{
	KASSERT(ia->ia_flags & IA6_TENTATIVE, ("addr_decided: twice"));
	ia->ia_flags &= ~(unsigned)IA6_TENTATIVE;
	atomic_fetchadd_u32(&in6_ntentative, UINT32_MAX);
}

int
in6_addr_add(struct ifnet *ifp, const struct in6_addr *addr, unsigned plen,
    unsigned flags, nsec_t preferred, nsec_t valid)
{
	const struct in6_addr group = in6_solicited_node(addr);
	struct in6_ifaddr *ia;
	int error;

	if (IN6_IS_ADDR_MULTICAST(addr) || IN6_IS_ADDR_UNSPECIFIED(addr) ||
	    IN6_IS_ADDR_V4MAPPED(addr))
		return (EINVAL);
	error = route6_add(addr, 128, NULL, ifp, RT6_LOCAL);
	if (error != 0)
		return (error);
	/* the subnet's route may exist: several addresses share it */
	if (plen < 128)
		(void)route6_add(addr, plen, NULL, ifp, 0);
	ia = kmalloc(sizeof(*ia));
	rw_wlock(&in6_lock);
	ia->ia_ifp = ifp;
	ia->ia_addr = *addr;
	ia->ia_plen = plen;
	ia->ia_preferred = preferred;
	ia->ia_valid = valid;
	ia->ia_flags = flags | IA6_PRESENT;
	ia->ia_probes = ifp->if_loopback ? 0 : atomic_load_u32(&ip6_dad_count);
	if (ia->ia_probes > 0) {
		ia->ia_flags |= IA6_TENTATIVE;
		atomic_fetchadd_u32(&in6_ntentative, 1);
	}
	LIST_INSERT_HEAD(&in6_addrs, ia, ia_link);
	rw_wunlock(&in6_lock);
	return (ifp->if_loopback ? 0 : in_group_join(ifp, &group, NULL));
}

/* Modified EUI-64 (RFC 4291 appendix A) after a prefix of 64 bits. */
static struct in6_addr
eui64(const struct ifnet *ifp, const struct in6_addr *prefix)
{
	const uint8_t *ll = ifp->if_lladdr;
	struct in6_addr a = *prefix;

	memcpy(a.s6_addr + 8, (uint8_t[]){ ll[0] ^ 2, ll[1], ll[2], 0xff, 0xfe,
	    ll[3], ll[4], ll[5] }, 8);
	return (a);
}

void
in6_ifattach(struct ifnet *ifp, bool autoconf)
{
	static const struct in6_addr linklocal = { .s6_addr = { 0xfe, 0x80 } };
	static const struct in6_addr allnodes =
	    { .s6_addr = { 0xff, 2, [15] = 1 } };
	struct in6_addr a = eui64(ifp, &linklocal);

	KASSERT(ifp->if_in6 == NULL, ("in6_ifattach: %s", ifp->if_xname));
	ifp->if_in6 = kmalloc(sizeof(*ifp->if_in6));
	ifp->if_in6->autoconf = autoconf;
	atomic_store_u32(&ifp->if_in6->retrans, 1000);
	atomic_store_u32(&ifp->if_in6->reachable, 30000);
	atomic_store_u32(&ifp->if_in6->solicits, autoconf ? 3 : 0);
	(void)in_group_join(ifp, &allnodes, NULL);
	if (ifp->if_loopback)
		(void)in6_addr_add(ifp, &in6addr_loopback, 128, 0,
		    NSEC_FOREVER, NSEC_FOREVER);
	else
		(void)in6_addr_add(ifp, &a, 64, 0, NSEC_FOREVER, NSEC_FOREVER);
	if (!ifp->if_loopback && in6_started)
		nd6_start();
}

/* RFC 4862 section 5.4.5; reported once. */
void
in6_dad_conflict(struct ifnet *ifp, const struct in6_addr *addr)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_ifaddr *ia;
	bool duplicate = false;

	rw_wlock(&in6_lock);
	ia = addr_find(ifp, addr);
	if (ia != NULL && (ia->ia_flags & IA6_TENTATIVE)) {
		addr_decided(ia);
		ia->ia_flags |= IA6_DUPLICATED;
		duplicate = true;
	}
	rw_wunlock(&in6_lock);
	if (!duplicate)
		return;
	/* the address belongs to a neighbour */
	(void)route6_delete(addr, 128, ifp->if_index);
	ND6STAT_INC(dadduplicates);
	console("%s: another host has the address %s; it is not used",
	    ifp->if_xname, inet_ntop(AF_INET6, addr, text, sizeof(text)));
}

/*
 * Ages one address by a second.  True: send a probe; *expired: the address was
 * unlinked.
 */
static bool
addr_tick(struct in6_ifaddr *ia, nsec_t now, bool *expired)
    REQUIRES(in6_lock)
{
	*expired = ia->ia_valid <= now;
	if (*expired) {
		LIST_REMOVE(ia, ia_link);
		if (ia->ia_flags & IA6_TENTATIVE)
			addr_decided(ia);
		return (false);
	}
	if ((ia->ia_flags & IA6_TENTATIVE) == 0)
		return (false);
	if (ia->ia_probes-- > 0)
		return (true);
	addr_decided(ia);
	return (false);
}

static void
addr_expire(struct in6_ifaddr *ia)
{
	const struct in6_addr group = in6_solicited_node(&ia->ia_addr);

	(void)route6_delete(&ia->ia_addr, 128, ia->ia_ifp->if_index);
	in_group_leave(ia->ia_ifp, &group, NULL);
	kfree(ia);
}

/* Takes one address that must be probed; false: there is none. */
static bool
next_probe(struct ifnet **ifp, struct in6_addr *addr)
{
	struct in6_ifaddr *ia;

	rw_wlock(&in6_lock);
	LIST_FOREACH(ia, &in6_addrs, ia_link)
		if (ia->ia_flags & IA6_PROBE) {
			ia->ia_flags &= ~(unsigned)IA6_PROBE;
			*ifp = ia->ia_ifp;
			*addr = ia->ia_addr;
			break;
		}
	rw_wunlock(&in6_lock);
	return (ia != NULL);
}

void
in6_addr_tick(void)
{
	LIST_HEAD(, in6_ifaddr) dead = LIST_HEAD_INITIALIZER(dead);
	const nsec_t now = mach_uptime();
	struct in6_ifaddr *ia, *next;
	struct in6_addr addr;
	struct ifnet *ifp;
	bool expired;

	rw_wlock(&in6_lock);
	for (ia = LIST_FIRST(&in6_addrs); ia != NULL; ia = next) {
		next = LIST_NEXT(ia, ia_link);
		if (addr_tick(ia, now, &expired))
			ia->ia_flags |= IA6_PROBE;
		else if (expired)
			LIST_INSERT_HEAD(&dead, ia, ia_link);
	}
	rw_wunlock(&in6_lock);
	while (next_probe(&ifp, &addr))
		nd6_solicit(ifp, &in6addr_any, &addr, false);
	rw_private(&in6_lock);		/* of the dead */
	while ((ia = LIST_FIRST(&dead)) != NULL) {
		LIST_REMOVE(ia, ia_link);
		addr_expire(ia);
	}
}

/* Converts a lifetime in seconds to a time, or NSEC_FOREVER. */
static nsec_t
lifetime(uint32_t seconds)
{
	return (seconds == UINT32_MAX ? NSEC_FOREVER :
	    mach_uptime() + seconds * NSEC_PER_SEC);
}

/* The addresses of an interface that were made from advertised prefixes. */
static unsigned
count_auto(const struct ifnet *ifp) REQUIRES_SHARED(in6_lock)
{
	const struct in6_ifaddr *ia;
	unsigned n = 0;

	LIST_FOREACH(ia, &in6_addrs, ia_link)
		n += ia->ia_ifp == ifp && (ia->ia_flags & IA6_AUTO) != 0;
	return (n);
}

void
in6_autoconf(struct ifnet *ifp, const struct in6_addr *prefix,
    uint32_t preferred, uint32_t valid)
{
	const nsec_t twohours = lifetime(7200), until = lifetime(valid);
	const struct in6_addr a = eui64(ifp, prefix);
	struct in6_ifaddr *ia;
	bool known, full;

	rw_wlock(&in6_lock);
	ia = addr_find(ifp, &a);
	known = ia != NULL;
	if (known && (ia->ia_flags & IA6_AUTO)) {
		ia->ia_preferred = lifetime(preferred);
		/* (e): an advertisement cannot reduce it below two hours */
		if (until >= twohours || until > ia->ia_valid)
			ia->ia_valid = until;
		else if (ia->ia_valid > twohours)
			ia->ia_valid = twohours;
	}
	full = count_auto(ifp) >= atomic_load_u32(&ip6_maxifprefixes);
	rw_wunlock(&in6_lock);
	if (known || valid == 0)
		return;
	/* its subnet is on link only if the advertisement sets the flag */
	if (full)
		ND6STAT_INC(toomanyprefixes);
	else
		(void)in6_addr_add(ifp, &a, 128, IA6_AUTO, lifetime(preferred),
		    until);
}

/* Length of the common prefix of two addresses. */
static unsigned
common_bits(const struct in6_addr *a, const struct in6_addr *b)
{
	for (unsigned i = 0; i < 4; i++) {
		uint32_t x = ntohl(a->s6_addr32[i] ^ b->s6_addr32[i]);

		if (x != 0)
			return (i * 32 + (unsigned)__builtin_clz(x));
	}
	return (128);
}

/*
 * The rank of a source address (RFC 6724 section 5): right scope (rule 2), not
 * deprecated (3), outgoing interface (5), longest common prefix (8).  0: not
 * usable.
 */
static unsigned
source_rank(const struct in6_ifaddr *ia, const struct ifnet *ifp,
    const struct in6_addr *dst) REQUIRES_SHARED(in6_lock)
{
	const bool local = in_islinklocal(dst);
	unsigned rank = 1 + common_bits(&ia->ia_addr, dst);

	if (ia->ia_flags & (IA6_TENTATIVE | IA6_DUPLICATED))
		return (0);
	if (IN6_IS_ADDR_LINKLOCAL(&ia->ia_addr)) {
		if (ia->ia_ifp != ifp)
			return (0);
		rank += local ? 4096 : 0;
	} else {
		rank += local ? 0 : 4096;
	}
	if (IN6_IS_ADDR_LOOPBACK(&ia->ia_addr) && !ifp->if_loopback)
		return (0);
	if (ia->ia_preferred > mach_uptime())
		rank += 1024;
	if (ia->ia_ifp == ifp)
		rank += 512;
	return (rank);
}

bool
in6_selectsrc(const struct ifnet *ifp, const struct in6_addr *dst,
    struct in6_addr *src)
{
	const struct in6_ifaddr *ia;
	unsigned best = 0;

	rw_rlock(&in6_lock);
	LIST_FOREACH(ia, &in6_addrs, ia_link) {
		unsigned rank = source_rank(ia, ifp, dst);

		if (rank > best) {
			best = rank;
			*src = ia->ia_addr;
		}
	}
	rw_runlock(&in6_lock);
	return (best > 0);
}

bool
in6_global(void)
{
	const struct in6_ifaddr *ia;
	bool found = false;

	rw_rlock(&in6_lock);
	LIST_FOREACH(ia, &in6_addrs, ia_link)
		found |= !ia->ia_ifp->if_loopback &&
		    !IN6_IS_ADDR_LINKLOCAL(&ia->ia_addr) &&
		    (ia->ia_flags & IA6_DUPLICATED) == 0;
	rw_runlock(&in6_lock);
	return (found);
}

unsigned
in6_addr_list(const struct ifnet *ifp, struct in6_addr *addr, unsigned *plen,
    unsigned max)
{
	const struct in6_ifaddr *ia;
	unsigned n = 0;

	rw_rlock(&in6_lock);
	LIST_FOREACH(ia, &in6_addrs, ia_link)
		if (ia->ia_ifp == ifp && n < max && (ia->ia_flags &
		    (IA6_TENTATIVE | IA6_DUPLICATED)) == 0) {
			addr[n] = ia->ia_addr;
			plen[n++] = ia->ia_plen;
		}
	rw_runlock(&in6_lock);
	return (n);
}

struct ifnet *
in6_zoneif(uint32_t zone)
{
	struct ifnet *ifp;

	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		if (ifp->if_in6 != NULL && (zone == 0 ? !ifp->if_loopback :
		    ifp->if_index == zone))
			break;
	return (ifp);
}

void
in6_addr_show(const struct ifnet *ifp, struct ctl_out *co)
{
	char text[INET6_ADDRSTRLEN];
	const struct in6_ifaddr *ia;

	rw_rlock(&in6_lock);
	LIST_FOREACH(ia, &in6_addrs, ia_link)
		if (ia->ia_ifp == ifp)
			ctl_printf(co, "\tinet6 %s/%u%s%s%s%s\n",
			    inet_ntop(AF_INET6, &ia->ia_addr, text,
			    sizeof(text)), ia->ia_plen,
			    ia->ia_flags & IA6_TENTATIVE ? " tentative" : "",
			    ia->ia_flags & IA6_DUPLICATED ? " duplicated" : "",
			    ia->ia_flags & IA6_AUTO ? " autoconf" : "",
			    ia->ia_preferred <= mach_uptime() ? " deprecated" :
			    "");
	rw_runlock(&in6_lock);
}

static bool
any_tentative(void)
{
	const struct in6_ifaddr *ia;
	bool found = false;

	rw_rlock(&in6_lock);
	LIST_FOREACH(ia, &in6_addrs, ia_link)
		found |= (ia->ia_flags & IA6_TENTATIVE) != 0;
	rw_runlock(&in6_lock);
	return (found);
}

/*
 * The timer starts after the last interface was attached.  The boot waits for
 * the end of duplicate detection, so that programs find usable addresses.
 */
int
in6_start(void)
{
	const nsec_t limit = mach_uptime() + 20 * NSEC_PER_SEC;

	in6_started = true;
	for (struct ifnet *ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		if (ifp->if_in6 != NULL && !ifp->if_loopback)
			nd6_start();
	while (any_tentative() && mach_uptime() < limit) {
		mtx_lock(&start_lock);
		(void)msleep(&in6_started, &start_lock, 0, "dad",
		    20 * NSEC_PER_MSEC);
		mtx_unlock(&start_lock);
	}
	return (0);
}

void
in6_addr_init(void)
{
	rw_init(&in6_lock, LC_IN6);
	mtx_init(&start_lock, LC_IN6);
	sysctl_register(in6_oids, nitems(in6_oids));
}
