/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loopback.  Its packets are always queued to the netisr: direct dispatch
 * would recurse into protocols whose locks the sender holds (Watson 2005).
 */
#include <arpa/inet.h>

#include "net/if_driver.h"
#include "net/netisr.h"

#define	LO_MTU	16384

struct ifnet *loif;

static void
lo_pass(void *arg, struct mbuf *m)
{
	struct ifnet *ifp = arg;
	struct pkthdr *ph = &m->m_pkthdr;
	const bool ip6 = (*m->m_data & 0xf0) == 0x60;

	IFSTAT_INC(ifp, ipackets);
	IFSTAT_ADD(ifp, ibytes, ph->len);
	if_pcap_tap(ifp, m);
	/* IPv6 has set the interface of the address: link-local ones need it */
	if (!ip6 || ph->rcvif == NULL)
		ph->rcvif = ifp;
	if (netisr_queue(ip6 ? NETISR_IPV6 : NETISR_IP, m) != 0)
		IFSTAT_INC(ifp, iqdrops);
}

/* The data stays in memory: pending checksums are marked valid. */
static void
lo_checksums(struct pkthdr *ph)
{
	ph->csum_flags = (ph->csum_flags & CSUM_TX) != 0 ? CSUM_PARTIAL :
	    CSUM_VALID;
}

void
lo_copy(struct ifnet *ifp, const struct mbuf *m, uint32_t flag)
{
	struct mbuf *copy = m_copym(m, 0, m->m_pkthdr.len);

	copy->m_pkthdr.rcvif = ifp;
	copy->m_flags |= flag | M_LOCALCOPY;
	lo_checksums(&copy->m_pkthdr);
	if (netisr_queue((*m->m_data & 0xf0) == 0x60 ? NETISR_IPV6 :
	    NETISR_IP, copy) != 0)
		IFSTAT_INC(ifp, iqdrops);
}

static int
lo_loop(struct ifnet *ifp, struct mbuf *m)
{
	struct pkthdr *ph = &m->m_pkthdr;

	IFSTAT_INC(ifp, opackets);
	IFSTAT_ADD(ifp, obytes, ph->len);
	lo_checksums(ph);
	if (ifp->if_impair != NULL)
		if_impair_pass(ifp->if_impair, m, lo_pass, ifp);
	else
		lo_pass(ifp, m);
	return (0);
}

static int
lo_output(struct ifnet *ifp, struct mbuf *m, struct in_addr nexthop)
{
	(void)nexthop;
	return (lo_loop(ifp, m));
}

static int
lo_output6(struct ifnet *ifp, struct mbuf *m, const struct in6_addr *nexthop)
{
	(void)nexthop;
	return (lo_loop(ifp, m));
}

static int
lo_attach(const struct if_config *ic, char *why, size_t len)
{
	(void)why;
	(void)len;
	if_initname(loif, ic, LO_MTU);
	if (ic->ninet == 0) {
		loif->if_ninet = 1;
		loif->if_addr.s_addr = htonl(INADDR_LOOPBACK);
		loif->if_mask = inet_mask(8);
	}
	if_hashaddrs(loif);	/* it may be attached already */
	return (0);
}

void
loop_init(void)
{
	static const struct if_config defaults = { .name = "lo0", .queues = 1 };
	static struct if_driver driver = { .name = "lo",
	    .attach = lo_attach };
	static struct ifnet lo = { .if_output = lo_output,
	    .if_output6 = lo_output6, .if_loopback = true,
	    .if_caps = IFCAP_TXCSUM | IFCAP_RXCSUM | IFCAP_TSO4 |
	    IFCAP_TSO6 };

	loif = &lo;
	lo_attach(&defaults, NULL, 0);
	if_attach(loif);
	if_driver_register(&driver);
}
