/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces in memory.
 */
#include "dev/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dev/drivers.h"
#include "net/if_ether.h"
#include "net/netisr.h"
#include "net/route.h"

#define	MEM_MTU		1500

/* [I] immutable after attach */
struct mem_softc {
	struct ifnet	 sc_if;
	mem_output_fn	*sc_output;	/* [I] */
	void		*sc_arg;	/* [I] */
	struct mem_source *sc_source;	/* [I] or NULL */
	struct chargen	*sc_chargen;	/* [I] the far end, or NULL */
	unsigned	 sc_nwires;	/* [I] 0: another kind of far end */
	struct mem_wire	*sc_wires[];	/* [I] one for each queue */
};

__hot static int
mem_transmit(struct ifnet *ifp, struct mbuf *m)
{
	struct mem_softc *sc = ifp->if_softc;
	uint64_t packets = 0, bytes = 0;

	for (const struct mbuf *n = m; n != NULL; n = n->m_nextpkt) {
		packets++;
		bytes += n->m_pkthdr.len;
	}
	IFSTAT_ADD(ifp, opackets, packets);
	IFSTAT_ADD(ifp, obytes, bytes);
	sc->sc_output(sc->sc_arg, m);
	return (0);
}

/* Link output without a link layer: the packet is the frame. */
static int
mem_ip_output(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop)
{
	(void)nexthop;
	return (mem_transmit(ifp, m));
}

static int
mem_ip6_output(struct ifnet *ifp, struct mbuf *m,
    const struct in6_addr *nexthop)
{
	(void)nexthop;
	return (mem_transmit(ifp, m));
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
	IFSTAT_INC(ifp, ipackets);
	IFSTAT_ADD(ifp, ibytes, m->m_pkthdr.len);
	m->m_pkthdr.rcvif = ifp;
	if (netisr_dispatch((*m->m_data & 0xf0) == 0x60 ? NETISR_IPV6 :
	    NETISR_IP, m) != 0)
		IFSTAT_INC(ifp, iqdrops);
}

static void
attach(struct mem_softc *sc, const struct if_config *ic, unsigned caps,
    bool ether, mem_output_fn *output, void *arg)
{
	struct ifnet *ifp = &sc->sc_if;

	sc->sc_output = output;
	sc->sc_arg = arg;
	if_initname(ifp, ic, MEM_MTU);
	ifp->if_softc = sc;
	ifp->if_caps = caps;
	if (ether) {
		ether_ifattach(ifp);
	} else {
		ifp->if_output = mem_ip_output;
		ifp->if_output6 = mem_ip6_output;
	}
	ifp->if_transmit = mem_transmit;
	memcpy(ifp->if_lladdr, "\x02mem\0\1", sizeof(ifp->if_lladdr));
	if_attach(ifp);
}

/* Attaches to a running stack, and adds the subnet's route. */
static struct ifnet *
attach_late(const struct if_config *ic, unsigned caps, bool ether,
    mem_output_fn *output, void *arg)
{
	struct mem_softc *sc = kmalloc(sizeof(*sc));

	attach(sc, ic, caps, ether, output, arg);
	if (route_subnets(&sc->sc_if) != 0)
		panic("mem_attach: %s: another interface has this subnet",
		    ic->name);
	return (&sc->sc_if);
}

struct ifnet *
mem_attach(const char *name, const char *prefix, unsigned caps,
    const struct impair_config *impair, mem_output_fn *output, void *arg)
{
	struct if_config ic = { .queues = 1 };
	char why[128];

	snprintf(ic.name, sizeof(ic.name), "%s", name);
	if (prefix != NULL &&
	    inet_config_set(&ic, prefix, why, sizeof(why)) != 0)
		panic("mem_attach: %s", why);
	if (impair != NULL)
		ic.impair = *impair;
	return (attach_late(&ic, caps, true, output, arg));
}

struct ifnet *
mem_attach_ip(const struct if_config *ic, mem_output_fn *output, void *arg)
{
	return (attach_late(ic, 0, false, output, arg));
}

__hot static void
driver_output(void *arg, struct mbuf *m)
{
	struct mem_softc *sc = arg;
	const unsigned n = sc->sc_nwires, cpu = n == 1 ? 0 : mach_curcpu();

	/* a division would cost more than the wire */
	mem_wire_output(sc->sc_wires[__predict_true(cpu < n) ? cpu : cpu % n],
	    m);
}

/* Makes one wire for each queue. */
static void
attach_wires(struct mem_softc *sc, const struct if_config *ic, bool mirror)
{
	sc->sc_nwires = ic->queues;
	for (unsigned i = 0; i < sc->sc_nwires; i++)
		sc->sc_wires[i] = mem_wire_create(mirror);
	attach(sc, ic, if_offload_caps(ic) | IFCAP_BATCH, true, driver_output,
	    sc);
	/*
	 * Not in start: another interface may already receive and forward
	 * then.
	 */
	for (unsigned i = 0; i < sc->sc_nwires; i++)
		mem_wire_attach(sc->sc_wires[i], &sc->sc_if, i);
}

static void
attach_chargen(struct mem_softc *sc, const struct if_config *ic)
{
	sc->sc_chargen = mem_chargen_create();
	attach(sc, ic, if_offload_caps(ic) | IFCAP_BATCH, true,
	    mem_chargen_output, sc->sc_chargen);
	mem_chargen_attach(sc->sc_chargen, &sc->sc_if);
}

static int
driver_attach(const struct if_config *ic, char *why, size_t len)
{
	const bool mirror = strcmp(ic->wire, "mirror") == 0;
	const bool chargen = strcmp(ic->wire, "chargen") == 0;
	struct mem_softc *sc;

	if (!mirror && !chargen && strcmp(ic->wire, "sink") != 0 &&
	    ic->wire[0] != '\0') {
		snprintf(why, len, "unknown far end '%s'; use sink, mirror "
		    "or chargen", ic->wire);
		return (EINVAL);
	}
	sc = kmalloc(sizeof(*sc) + ic->queues * sizeof(sc->sc_wires[0]));
	if (ic->source[0] != '\0') {
		sc->sc_source = mem_source_create(ic->source, why, len);
		if (sc->sc_source == NULL)
			return (EINVAL);
	}
	if (chargen)
		attach_chargen(sc, ic);
	else
		attach_wires(sc, ic, mirror);
	return (0);
}

static int
driver_start(struct ifnet *ifp)
{
	struct mem_softc *sc = ifp->if_softc;
	int error = 0;

	for (unsigned i = 0; i < sc->sc_nwires && error == 0; i++)
		error = mem_wire_start(sc->sc_wires[i]);
	if (error == 0 && sc->sc_chargen != NULL)
		error = mem_chargen_start(sc->sc_chargen);
	if (error == 0 && sc->sc_source != NULL)
		error = mem_source_start(sc->sc_source, ifp);
	return (error);
}

static void
driver_detach(struct ifnet *ifp)
{
	struct mem_softc *sc = ifp->if_softc;

	if (sc->sc_source != NULL)
		mem_source_stop(sc->sc_source);
	if (sc->sc_chargen != NULL)
		mem_chargen_stop(sc->sc_chargen);
	for (unsigned i = 0; i < sc->sc_nwires; i++)
		mem_wire_stop(sc->sc_wires[i]);
}

void
mem_init(void)
{
	static struct if_driver driver = { .name = "mem", .has = IFHAS_WIRE,
	    .attach = driver_attach, .start = driver_start,
	    .detach = driver_detach };

	if_driver_register(&driver);
}
