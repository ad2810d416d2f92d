/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Path MTUs (RFC 8201): a small table of destinations whose path MTU is below
 * the first link's.  An entry expires after ten minutes (section 4), so that
 * an increase is detected.
 */
#include "kern/lock.h"
#include "netinet6/ip6_private.h"

#define	PMTU_SLOTS	1024
#define	PMTU_LIFETIME	(600 * NSEC_PER_SEC)

static struct mtx pmtu_lock;

/* Each slot holds the latest destination of its hash. [p] pmtu_lock */
struct pmtu {
	struct in6_addr	 p_dst GUARDED_BY(pmtu_lock);	/* [p] */
	uint32_t	 p_zone GUARDED_BY(pmtu_lock);	/* [p] */
	uint32_t	 p_mtu GUARDED_BY(pmtu_lock);	/* [p] 0: empty */
	nsec_t		 p_expires GUARDED_BY(pmtu_lock);	/* [p] */
};

/* [p] */
static struct pmtu pmtu_table[PMTU_SLOTS] GUARDED_BY(pmtu_lock);
static atomic_u32 pmtu_used; /* [a] 0 until the first entry: skips the lock */

static struct pmtu *
pmtu_slot(const struct in6_addr *dst) REQUIRES(pmtu_lock)
{
	uint32_t h = 0;

	for (unsigned i = 0; i < 4; i++)
		h = (h ^ dst->s6_addr32[i]) * 0x9e3779b1u;
	return (&pmtu_table[h >> 22]);
}
_Static_assert(PMTU_SLOTS == 1 << (32 - 22), "a slot is the top 10 bits");

uint32_t
ip6_pmtu(const struct in6_addr *dst, uint32_t zone, uint32_t linkmtu)
{
	struct pmtu *p;

	if (atomic_load_u32(&pmtu_used) == 0)
		return (linkmtu);
	mtx_lock(&pmtu_lock);
	p = pmtu_slot(dst);
	if (p->p_mtu != 0 && p->p_mtu < linkmtu && p->p_zone == zone &&
	    IN6_ARE_ADDR_EQUAL(&p->p_dst, dst) &&
	    mach_uptime() < p->p_expires)
		linkmtu = p->p_mtu;
	mtx_unlock(&pmtu_lock);
	return (linkmtu);
}

void
ip6_pmtu_update(const struct in6_addr *dst, uint32_t zone, uint32_t mtu)
{
	KASSERT(mtu >= IP6_MINMTU, ("ip6_pmtu_update: %u", mtu));
	ICMP6STAT_INC(pathmtu);
	mtx_lock(&pmtu_lock);
	*pmtu_slot(dst) = (struct pmtu){ *dst, zone, mtu,
	    mach_uptime() + PMTU_LIFETIME };
	mtx_unlock(&pmtu_lock);
	atomic_store_u32(&pmtu_used, 1);
}

void
ip6_pmtu_init(void)
{
	mtx_init(&pmtu_lock, LC_IN6);
}
