/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces in memory.
 */
#include <stdio.h>
#include <string.h>

#include "dev/mem.h"
#include "net/netisr.h"
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

/* Link output where there is no link: the packet is the frame. */
static int
mem_ip_output(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop)
{
	(void)nexthop;
	return (mem_transmit(ifp, m));
}

static struct ifnet *
attach(const struct if_config *ic, unsigned caps, bool ether,
    mem_output_fn *output, void *arg)
{
	struct mem_softc *sc = kmalloc(sizeof(*sc));
	struct ifnet *ifp = &sc->sc_if;
	const struct in_addr onlink = { INADDR_ANY };

	sc->sc_output = output;
	sc->sc_arg = arg;
	if_initname(ifp, ic, MEM_MTU);
	ifp->if_softc = sc;
	ifp->if_caps = caps;
	ifp->if_output = ether ? ether_output : mem_ip_output;
	ifp->if_transmit = mem_transmit;
	memcpy(ifp->if_lladdr, "\x02mem\0\1", sizeof(ifp->if_lladdr));
	if_attach(ifp);
	if (route_add(ifp->if_addr, inet_masklen(ifp->if_mask), onlink,
	    ifp) != 0)
		panic("mem_attach: %s: another interface has this subnet",
		    ifp->if_xname);
	return (ifp);
}

struct ifnet *
mem_attach(const char *name, const char *prefix, unsigned caps,
    const struct impair_config *impair, mem_output_fn *output, void *arg)
{
	struct if_config ic = { .queues = 1 };

	snprintf(ic.name, sizeof(ic.name), "%s", name);
	if (!inet_parse_prefix(prefix, &ic.addr, &ic.mask))
		panic("mem_attach: '%s' is not an address like 10.9.0.1/24",
		    prefix);
	if (impair != NULL)
		ic.impair = *impair;
	return (attach(&ic, caps, true, output, arg));
}

struct ifnet *
mem_attach_ip(const struct if_config *ic, mem_output_fn *output, void *arg)
{
	return (attach(ic, 0, false, output, arg));
}

void
mem_input(struct ifnet *ifp, struct mbuf *m)
{
	KASSERT(m->m_pkthdr.len > 0, ("mem_input: empty frame"));
	if_input(ifp, m, 0);
}

void
mem_input_ip(struct ifnet *ifp, struct mbuf *m)
{
	KASSERT(m->m_pkthdr.len > 0, ("mem_input_ip: empty packet"));
	atomic_count_u64(&ifp->if_count.ipackets, 1);
	atomic_count_u64(&ifp->if_count.ibytes, m->m_pkthdr.len);
	m->m_pkthdr.rcvif = ifp;
	if (netisr_dispatch(NETISR_IP, m) != 0)
		atomic_count_u64(&ifp->if_count.iqdrops, 1);
}
