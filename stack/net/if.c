/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces: the list, its lookups, counters, and the path of a received
 * frame into the stack.  The list changes only at boot and is read without a
 * lock.
 */
#include <string.h>

#include "kern/ctl.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/if_driver.h"
#include "net/if_ether.h"
#include "net/if_lro.h"
#include "net/netisr.h"
#include "net/rx_burst.h"

struct ifnet *ifnet_list;
struct if_family *if_families;
static unsigned if_count;
static struct if_counters if_counts[IF_MAX] COUNTERS;

static void
if_register_counter(struct ifnet *ifp, const char *name, atomic_u64 *counter,
    const char *descr)
{
	sysctl_add(&(struct sysctl_oid){ .oid_type = CTL_U64,
	    .oid_ptr = counter, .oid_descr = descr }, "if.%s.stats.%s",
	    ifp->if_xname, name);
}

static void
if_register_counters(struct ifnet *ifp)
{
	struct if_counters *c = ifp->if_count;

	if_register_counter(ifp, "ipackets", &c->ipackets, "frames received");
	if_register_counter(ifp, "ibytes", &c->ibytes, "bytes received");
	if_register_counter(ifp, "imcasts", &c->imcasts,
	    "multicast and broadcast frames received");
	if_register_counter(ifp, "iqdrops", &c->iqdrops,
	    "received frames dropped by the stack");
	if_register_counter(ifp, "ierrors", &c->ierrors,
	    "received frames that are malformed");
	if_register_counter(ifp, "ifiltered", &c->ifiltered,
	    "multicast frames received for groups without members");
	if_register_counter(ifp, "opackets", &c->opackets, "frames sent");
	if_register_counter(ifp, "obytes", &c->obytes, "bytes sent");
	if_register_counter(ifp, "odrops", &c->odrops,
	    "frames dropped because the device was full");
	if_register_counter(ifp, "oerrors", &c->oerrors,
	    "frames that could not be sent");
}

void
if_attach(struct ifnet *ifp)
{
	struct ifnet **p;

	KASSERT(ifp->if_output != NULL && ifp->if_output6 != NULL,
	    ("if_attach: %s", ifp->if_xname));
	KASSERT(ifp->if_mtu >= 68, ("if_attach: %s: mtu %u (RFC 791: min 68)",
	    ifp->if_xname, ifp->if_mtu));
	KASSERT(if_byname(ifp->if_xname) == NULL,
	    ("if_attach: %s twice", ifp->if_xname));
	if (if_count == IF_MAX)
		panic("%s: too many interfaces: the max is %u",
		    ifp->if_xname, IF_MAX);
	ifp->if_count = &if_counts[if_count];
	ifp->if_index = ++if_count;
	for (p = &ifnet_list; *p != NULL; p = &(*p)->if_next)
		continue;
	*p = ifp;
	if_hashaddrs(ifp);
	if_register_counters(ifp);
}

void
if_family_register(struct if_family *fam)
{
	struct if_family **p;

	for (p = &if_families; *p != NULL; p = &(*p)->fam_next)
		continue;
	*p = fam;
}

struct if_family *
if_family_find(const char *name)
{
	struct if_family *fam = if_families;

	while (fam != NULL && strcmp(fam->fam_name, name) != 0)
		fam = fam->fam_next;
	return (fam);
}

void
ether_ifattach(struct ifnet *ifp)
{
	const struct if_family *fam;

	ifp->if_ether = true;
	for (fam = if_families; fam != NULL; fam = fam->fam_next)
		fam->fam_ether(ifp);
}

void
if_initname(struct ifnet *ifp, const struct if_config *ic, uint32_t mtu)
{
	memcpy(ifp->if_xname, ic->name, sizeof(ifp->if_xname));
	memcpy(ifp->if_inet, ic->inet, sizeof(ifp->if_inet));
	ifp->if_ninet = ic->ninet;
	ifp->if_queues = ic->queues;
	ifp->if_mtu = ic->mtu != 0 ? ic->mtu : mtu;
	ifp->if_lro = ic->lro != 0;
	ifp->if_modes = ic->modes;
	ifp->if_impair = if_impair_create(&ic->impair);
}

unsigned
if_offload_caps(const struct if_config *ic)
{
	switch ((enum if_offload)ic->offload) {
	case OFFLOAD_NONE:
		return (0);
	case OFFLOAD_CSUM:
		return (IFCAP_TXCSUM | IFCAP_RXCSUM);
	case OFFLOAD_TSO:
	default:
		return (IFCAP_TXCSUM | IFCAP_RXCSUM | IFCAP_TSO4 |
		    IFCAP_TSO6);
	}
}

struct ifnet *
if_byname(const char *name)
{
	struct ifnet *ifp;

	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		if (strcmp(ifp->if_xname, name) == 0)
			break;
	return (ifp);
}

struct ifnet *
if_byindex(unsigned index)
{
	struct ifnet *ifp;

	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next)
		if (ifp->if_index == index)
			break;
	return (ifp);
}

void
if_pass(struct mbuf *m)
{
	if (!rx_burst_collect(m))
		netisr_dispatch(NETISR_ETHER, m);
}

static bool
joins(struct ifnet *ifp)
{
	return (ifp->if_lro && ifp->if_bridge == NULL &&
	    if_monitors(ifp, MONITOR_OFF));
}

static void
if_dispatch(void *arg, struct mbuf *m)
{
	struct ifnet *ifp = arg;

	m->m_pkthdr.rcvif = ifp;
	/* LRO needs a thread that receives bursts */
	if (!if_lro_begun() || !joins(ifp) || !if_lro_take(m))
		if_pass(m);
}

__hot void
if_input(struct ifnet *ifp, struct mbuf *m, unsigned queue)
{
	KASSERT(queue < ifp->if_queues, ("if_input: %s queue %u of %u",
	    ifp->if_xname, queue, ifp->if_queues));
	m->m_flags |= queue << M_QUEUE_SHIFT;
	IFSTAT_INC(ifp, ipackets);
	IFSTAT_ADD(ifp, ibytes, m->m_pkthdr.len);
	if_pcap_tap(ifp, m);
	if (if_monitors(ifp, MONITOR_QUEUE))
		m_freem(m);
	else if (__predict_false(ifp->if_impair != NULL))
		if_impair_pass(ifp->if_impair, m, if_dispatch, ifp);
	else
		if_dispatch(ifp, m);
}

static void
if_show(struct ctl_out *co)
{
	const struct if_family *fam;
	const struct ifnet *ifp;
	const uint8_t *ll;

	for (ifp = ifnet_list; ifp != NULL; ifp = ifp->if_next) {
		ll = ifp->if_lladdr;
		ctl_printf(co, "%s: index %u mtu %u queues %u\n",
		    ifp->if_xname, ifp->if_index, ifp->if_mtu, ifp->if_queues);
		if (ifp->if_ether)
			ctl_printf(co, "\tether %02x:%02x:%02x:%02x:%02x:%02x"
			    "\n", ll[0], ll[1], ll[2], ll[3], ll[4], ll[5]);
		for (fam = if_families; fam != NULL; fam = fam->fam_next)
			fam->fam_show(ifp, co);
		if_config_show(ifp, co);
	}
}

void
if_init(void)
{
	ctl_view_register("ifconfig", if_show);
	if_pcap_init();
}
