/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared definitions of ARP: the table (arp.c) and the packets (arp_packet.c).
 */
#ifndef NETINET_ARP_PRIVATE_H
#define	NETINET_ARP_PRIVATE_H

#include "kern/counter.h"
#include "net/if_var.h"

#define	ARP_STATS(X)							\
	X(requests, "requests sent")					\
	X(replies, "requests answered")					\
	X(received, "ARP packets received")				\
	X(bad, "malformed ARP packets")					\
	X(conflicts, "packets of other hosts with our address")		\
	X(defences, "announcements because of these")			\
	X(evicted, "entries evicted by others")				\
	X(timeouts, "addresses without an answer")			\
	X(dropped, "packets dropped: address not resolved")

extern struct arpstat {
#define	X(name, descr) atomic_u64 name;
	ARP_STATS(X)
#undef X
} arpstat;

#define	ARPSTAT_INC(name)	counter_add(&arpstat.name, 1)

/* A request for an address, and the sending of one. */
struct mbuf *arp_request(const struct ifnet *, struct in_addr target);
void	 arp_broadcast(struct ifnet *, struct mbuf *);
/*
 * Stores a sender's addresses if the table has an entry, or if create is set
 * (RFC 826).
 */
void	 arp_learn(struct ifnet *, struct in_addr, const uint8_t lladdr[6],
	    bool create);

#endif /* NETINET_ARP_PRIVATE_H */
