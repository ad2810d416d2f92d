/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Path MTUs of both families (RFC 1191 section 3, RFC 8201): a small table of
 * destinations whose path MTU is below the first link's.  An entry expires
 * after ten minutes (RFC 1191 section 6.3, RFC 8201 section 4), so that an
 * increase is detected.
 */
#include "kern/lock.h"
#include "kern/thread.h"
#include "netinet/in_family.h"

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

/* The MTU in a slot, if it is that of the destination; else none. */
static uint32_t
pmtu_of(const struct pmtu *p, const struct in6_addr *dst, uint32_t zone,
    uint32_t none) REQUIRES(pmtu_lock)
{
	return (p->p_mtu != 0 && p->p_mtu < none && p->p_zone == zone &&
	    IN6_ARE_ADDR_EQUAL(&p->p_dst, dst) &&
	    mach_uptime() < p->p_expires ? p->p_mtu : none);
}

uint32_t
in_pmtu(const struct in6_addr *dst, uint32_t zone, uint32_t linkmtu)
{
	if (atomic_load_u32(&pmtu_used) == 0)
		return (linkmtu);
	mtx_lock(&pmtu_lock);
	linkmtu = pmtu_of(pmtu_slot(dst), dst, zone, linkmtu);
	mtx_unlock(&pmtu_lock);
	return (linkmtu);
}

/* A report never increases an MTU (RFC 1191 section 3, RFC 8201 section 4). */
void
in_pmtu_update(const struct in6_addr *dst, uint32_t zone, uint32_t mtu)
{
	const uint32_t least = in_family(dst)->af_minmtu;
	struct pmtu *p;

	if (mtu < least)
		mtu = least;	/* the report may be forged */
	mtx_lock(&pmtu_lock);
	p = pmtu_slot(dst);
	if (pmtu_of(p, dst, zone, UINT32_MAX) > mtu)
		*p = (struct pmtu){ *dst, zone, mtu,
		    mach_uptime() + PMTU_LIFETIME };
	mtx_unlock(&pmtu_lock);
	atomic_store_u32(&pmtu_used, 1);
}

void
in_pmtu_init(void)
{
	mtx_init(&pmtu_lock, LC_PMTU);
}
