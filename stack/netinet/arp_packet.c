/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of ARP (RFC 826): requests, replies and announcements, and the
 * defence of this host's addresses (RFC 5227).
 */
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/if_ether.h>
#include <string.h>

#include "net/if_ether.h"
#include "netinet/arp.h"
#include "netinet/arp_private.h"

#define	ARP_DEFEND	(10 * NSEC_PER_SEC)	/* section 1.1 */

/* [a] when each address of each interface was defended, 0: never */
static atomic_u64 arp_defended[IF_MAX + 1][IF_INET_MAX];

static struct mbuf *
arp_packet(const struct ifnet *ifp, uint16_t op, struct in_addr sender,
    const uint8_t tha[6], struct in_addr target)
{
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
	return (m);
}

void
arp_broadcast(struct ifnet *ifp, struct mbuf *m)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };

	ARPSTAT_INC(requests);
	ether_frame(ifp, m, broadcast, ETHERTYPE_ARP);
}

struct mbuf *
arp_request(const struct ifnet *ifp, struct in_addr target)
{
	return (arp_packet(ifp, ARPOP_REQUEST, if_source(ifp, target), NULL,
	    target));
}

/* RFC 5227 section 2.3: sender and target are the announced address. */
static void
announce(struct ifnet *ifp, struct in_addr addr)
{
	arp_broadcast(ifp, arp_packet(ifp, ARPOP_REQUEST, addr, NULL, addr));
}

void
arp_announce(struct ifnet *ifp)
{
	for (unsigned i = 0; i < ifp->if_ninet; i++)
		announce(ifp, ifp->if_inet[i].addr);
}

static bool
arp_valid(const struct ether_arp *ea)
{
	return (ea->arp_hrd == htons(ARPHRD_ETHER) &&
	    ea->arp_pro == htons(ETHERTYPE_IP) && ea->arp_hln == 6 &&
	    ea->arp_pln == 4 && ether_isunicast(ea->arp_sha));
}

/*
 * RFC 5227 section 2.4 (c): defends an address by one announcement in ten
 * seconds, so that two hosts with the same address do not answer each other.
 */
static void
arp_conflict(struct ifnet *ifp, unsigned i)
{
	atomic_u64 *word = &arp_defended[ifp->if_index][i];
	uint64_t last = atomic_load_u64(word), now = mach_uptime() | 1;

	ARPSTAT_INC(conflicts);
	if ((last != 0 && now - last < ARP_DEFEND) ||
	    !atomic_cmpset_u64(word, &last, now))
		return;
	ARPSTAT_INC(defences);
	announce(ifp, ifp->if_inet[i].addr);
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
	for (unsigned i = 0; i < ifp->if_ninet; i++)
		if (ifp->if_inet[i].addr.s_addr == spa.s_addr) {
			arp_conflict(ifp, i);
			return;
		}
	forus = if_hasaddr(ifp, tpa);
	if (spa.s_addr != INADDR_ANY && if_onlink(spa) == ifp &&
	    !if_isbroadcast(ifp, spa))
		arp_learn(ifp, spa, ea->arp_sha, forus);
	if (forus && ea->arp_op == htons(ARPOP_REQUEST)) {
		ARPSTAT_INC(replies);
		ether_frame(ifp, arp_packet(ifp, ARPOP_REPLY, tpa,
		    ea->arp_sha, spa), ea->arp_sha, ETHERTYPE_ARP);
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
