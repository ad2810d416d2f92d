/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet framing (RFC 894).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <string.h>

#include "net/if_bridge.h"
#include "net/if_driver.h"
#include "net/if_ether.h"
#include "net/if_txbatch.h"
#include "net/netisr.h"

static const uint8_t ether_broadcast[6] = { 255, 255, 255, 255, 255, 255 };

/* Whether a frame is for all hosts, all IPv4 hosts, or a group with members. */
static bool
ether_wanted(struct ifnet *ifp, const uint8_t dst[6])
{
	static const uint8_t allhosts[6] = { 1, 0, 0x5e, 0, 0, 1 };

	return (memcmp(dst, ether_broadcast, 6) == 0 ||
	    (atomic_load_u64(&ifp->if_filter) & if_filterbit(dst)) != 0 ||
	    memcmp(dst, allhosts, 6) == 0);
}

/*
 * A frame not addressed to this interface.  False: not for this host (hub,
 * promiscuous port).
 */
NOINLINE static bool
ether_tomany(struct ifnet *ifp, struct mbuf *m)
{
	const uint8_t *dst = mtod(m, const struct ether_header *)->ether_dhost;

	if ((dst[0] & 1) == 0)
		return (false);
	if (!ether_wanted(ifp, dst)) {
		IFSTAT_INC(ifp, ifiltered);
		return (false);
	}
	m->m_flags |= memcmp(dst, ether_broadcast, 6) == 0 ? M_BCAST : M_MCAST;
	return (true);
}

__cold static void
ether_drop(struct ifnet *ifp, struct mbuf *m)
{
	IFSTAT_INC(ifp, ierrors);
	m_freem(m);
}

__hot void
ether_input(struct ifnet *ifp, struct mbuf *m)
{
	const struct ether_header *eh;
	enum netisr_proto proto;

	if (if_monitors(ifp, MONITOR_TOP)) {
		m_freem(m);
		return;
	}
	if (m->m_pkthdr.len < ETHER_HDR_LEN) {
		ether_drop(ifp, m);
		return;
	}
	m = m_pullup(m, ETHER_HDR_LEN);
	KASSERT(m != NULL, ("ether_input: pullup of a checked length"));
	eh = mtod(m, const struct ether_header *);
	if (__predict_false((eh->ether_dhost[0] & 1) != 0))
		IFSTAT_INC(ifp, imcasts);
	if (if_monitors(ifp, MONITOR_HEADER)) {
		m_freem(m);
		return;
	}
	if (__predict_false(ifp->if_bridge != NULL)) {
		bridge_input(ifp, m);
		return;
	}
	if (__predict_false(memcmp(eh->ether_dhost, ifp->if_lladdr, 6) != 0) &&
	    !ether_tomany(ifp, m)) {
		m_freem(m);
		return;
	}
	switch (ntohs(eh->ether_type)) {
	case ETHERTYPE_IP:
		proto = NETISR_IP;
		break;
	case ETHERTYPE_IPV6:
		proto = NETISR_IPV6;
		break;
	case ETHERTYPE_ARP:
		proto = NETISR_ARP;
		break;
	default:
		m_freem(m);
		return;
	}
	m_strip(m, ETHER_HDR_LEN);
	if (__predict_false(netisr_dispatch(proto, m) != 0))
		IFSTAT_INC(ifp, iqdrops);
}

__hot static void
ether_nh_input(struct mbuf *m)
{
	ether_input(m->m_pkthdr.rcvif, m);
}

static int
ether_transmit(struct ifnet *ifp, struct mbuf *m)
{
	if_pcap_tap(ifp, m);
	return (if_send(ifp, m));
}

static void
ether_pass(void *arg, struct mbuf *m)
{
	ether_transmit(arg, m);
}

int
ether_send(struct ifnet *ifp, struct mbuf *m)
{
	if (__predict_true(ifp->if_impair == NULL))
		return (ether_transmit(ifp, m));
	if_impair_pass(ifp->if_impair, m, ether_pass, ifp);
	return (0);
}

__hot int
ether_frame(struct ifnet *ifp, struct mbuf *m, const uint8_t dst[6],
    uint16_t type)
{
	struct ether_header *eh;

	KASSERT(m->m_nextpkt == NULL, ("ether_frame: packet is queued"));
	KASSERT(m->m_pkthdr.len <= ifp->if_mtu ||
	    (m->m_pkthdr.csum_flags & CSUM_TSO) != 0,
	    ("ether_frame: %u bytes, mtu of %s is %u", m->m_pkthdr.len,
	    ifp->if_xname, ifp->if_mtu));
	m = m_prepend(m, ETHER_HDR_LEN);
	eh = mtod(m, struct ether_header *);
	memcpy(eh->ether_dhost, dst, 6);
	memcpy(eh->ether_shost, ifp->if_lladdr, 6);
	eh->ether_type = htons(type);
	return (ether_send(ifp, m));
}

void
ether_group(struct in_addr addr, uint8_t ll[6])
{
	const uint32_t group = ntohl(addr.s_addr) & 0x7fffff;

	memcpy(ll, (uint8_t[]){ 0x01, 0x00, 0x5e, (uint8_t)(group >> 16),
	    (uint8_t)(group >> 8), (uint8_t)group }, 6);
}

void
ether_group6(const struct in6_addr *addr, uint8_t ll[6])
{
	memcpy(ll, "\x33\x33", 2);
	memcpy(ll + 2, addr->s6_addr + 12, 4);
}

void
ether_init(void)
{
	static const struct netisr_handler ether_nh = {
		.nh_name = "ether", .nh_proto = NETISR_ETHER,
		.nh_handler = ether_nh_input, .nh_mpsafe = true,
	};

	netisr_register(&ether_nh);
}
