/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The default router list of a host (RFC 4861 sections 5.1 and 6.3.4), and
 * which of its routers the default route uses (section 6.3.6).  A route that
 * is configured takes precedence.
 */
#include "kern/lock.h"
#include "netinet6/ip6_private.h"

#define	DEFROUTERS_MAX	16	/* RFC 4861 section 6.3.4: at least two */

static struct mtx defrouter_lock;

/* [r] defrouter_lock */
struct defrouter {
	struct in6_addr	 addr GUARDED_BY(defrouter_lock);	/* [r] */
	/* [r] NULL: the slot is free */
	struct ifnet	*ifp GUARDED_BY(defrouter_lock);
	nsec_t		 expires GUARDED_BY(defrouter_lock);	/* [r] */
};

/* [r] */
static struct defrouter routers[DEFROUTERS_MAX] GUARDED_BY(defrouter_lock);
/* [r] the gateway of the default route; NULL: the route is not of this list */
static struct defrouter *current GUARDED_BY(defrouter_lock);

void
nd6_defrouter_init(void)
{
	mtx_init(&defrouter_lock, LC_ROUTE);
}

static void
use(struct defrouter *router) REQUIRES(defrouter_lock)
{
	if (current != NULL)
		(void)route6_delete(&in6addr_any, 0, 0);
	current = NULL;
	if (router != NULL && route6_add(&in6addr_any, 0, &router->addr,
	    router->ifp, RT6_AUTO) == 0)
		current = router;
}

/*
 * The first router after the current one, in a circle that ends with it, whose
 * link address is known or does not have to be; NULL: there is none.
 */
static struct defrouter *
next_router(bool resolved) REQUIRES(defrouter_lock)
{
	const unsigned first = current == NULL ? 0 :
	    (unsigned)(current - routers) + 1;

	for (unsigned i = 0; i < DEFROUTERS_MAX; i++) {
		struct defrouter *r = &routers[(first + i) % DEFROUTERS_MAX];

		if (r->ifp != NULL && (!resolved ||
		    nd6_reachability(r->ifp, &r->addr) == ND6_RESOLVED))
			return (r);
	}
	return (NULL);
}

/*
 * A router whose link address is known is preferred, and stays as long as it
 * is.  If there is none, each router is tried in turn while packets wait for
 * the link address of the current one.
 */
static void
select_router(void) REQUIRES(defrouter_lock)
{
	enum nd6_reachability state = ND6_UNRESOLVED;
	struct defrouter *r;

	if (current != NULL)
		state = nd6_reachability(current->ifp, &current->addr);
	if (state == ND6_RESOLVED)
		return;
	r = next_router(true);
	if (r == NULL && state == ND6_UNRESOLVED)
		r = next_router(false);
	if (r != NULL && r != current)
		use(r);
}

static void
forget(struct defrouter *r) REQUIRES(defrouter_lock)
{
	if (r == current)
		use(NULL);
	r->ifp = NULL;
}

void
nd6_defrouter_update(struct ifnet *ifp, const struct in6_addr *router,
    uint16_t seconds)
{
	struct defrouter *r, *place = NULL;

	mtx_lock(&defrouter_lock);
	for (r = routers; r < &routers[DEFROUTERS_MAX]; r++) {
		if (r->ifp == ifp && IN6_ARE_ADDR_EQUAL(&r->addr, router))
			break;
		if (r->ifp == NULL && place == NULL)
			place = r;
	}
	if (r == &routers[DEFROUTERS_MAX])
		r = place;
	if (r == NULL && seconds > 0)
		ND6STAT_INC(toomanyrouters);
	else if (seconds > 0)
		*r = (struct defrouter){ *router, ifp, mach_uptime() +
		    seconds * NSEC_PER_SEC };
	else if (r != NULL && r->ifp != NULL)
		forget(r);
	select_router();
	mtx_unlock(&defrouter_lock);
}

void
nd6_defrouter_tick(nsec_t now)
{
	mtx_lock(&defrouter_lock);
	for (unsigned i = 0; i < DEFROUTERS_MAX; i++)
		if (routers[i].ifp != NULL && routers[i].expires <= now)
			forget(&routers[i]);
	select_router();
	mtx_unlock(&defrouter_lock);
}
