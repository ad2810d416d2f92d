/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface in memory.
 */
#include <stdio.h>
#include <string.h>

#include "dev/mem.h"
#include "net/route.h"

#define	MEM_MTU		1500

/* [I] immutable after attach */
struct mem_softc {
	struct ifnet	 sc_if;
	mem_output_fn	*sc_output;	/* [I] */
	void		*sc_arg;	/* [I] */
};

static int
mem_transmit(struct ifnet *ifp, struct mbuf *m)
{
	struct mem_softc *sc = ifp->if_softc;

	atomic_count_u64(&ifp->if_count.opackets, 1);
	atomic_count_u64(&ifp->if_count.obytes, m->m_pkthdr.len);
	sc->sc_output(sc->sc_arg, m);
	return (0);
}

struct ifnet *
mem_attach(const char *name, const char *prefix, unsigned caps,
    const struct impair_config *impair, mem_output_fn *output, void *arg)
{
	struct mem_softc *sc = kmalloc(sizeof(*sc));
	struct if_config ic = { .queues = 1 };
	struct ifnet *ifp = &sc->sc_if;
	const struct in_addr onlink = { INADDR_ANY };

	snprintf(ic.name, sizeof(ic.name), "%s", name);
	if (!inet_parse_prefix(prefix, &ic.addr, &ic.mask))
		panic("mem_attach: '%s' is not an address like 10.9.0.1/24",
		    prefix);
	if (impair != NULL)
		ic.impair = *impair;
	sc->sc_output = output;
	sc->sc_arg = arg;
	if_initname(ifp, &ic, MEM_MTU);
	ifp->if_softc = sc;
	ifp->if_caps = caps;
	ifp->if_output = ether_output;
	ifp->if_transmit = mem_transmit;
	memcpy(ifp->if_lladdr, "\x02mem\0\1", sizeof(ifp->if_lladdr));
	if_attach(ifp);
	if (route_add(ifp->if_addr, inet_masklen(ifp->if_mask), onlink,
	    ifp) != 0)
		panic("mem_attach: %s is the second with %s", name, prefix);
	return (ifp);
}

void
mem_input(struct ifnet *ifp, struct mbuf *m)
{
	KASSERT(m->m_pkthdr.len > 0, ("mem_input: empty frame"));
	if_input(ifp, m, 0);
}
