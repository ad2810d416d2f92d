/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of IPv4 and ICMP, one table each.  The structs, the sysctl names
 * net.inet.{ip,icmp}.stats.* and their descriptions are generated from it.
 */
#ifndef NETINET_IP_STAT_H
#define NETINET_IP_STAT_H

#include "kern/counter.h"

#define	IP_STATS(X)							\
	X(total, "packets received")					\
	X(toosmall, "shorter than the header or its length field")	\
	X(badvers, "version is not 4")					\
	X(badhlen, "header length below 20 or beyond the packet")	\
	X(badsum, "wrong header checksum")				\
	X(badaddr, "invalid source address")				\
	X(badoptions, "malformed options")				\
	X(sourceroute, "source routes, refused")			\
	X(delivered, "delivered to an upper protocol")			\
	X(noproto, "upper protocol unknown")				\
	X(notmember, "to multicast groups without members")		\
	X(cantforward, "to another host, with forwarding off")		\
	X(forward, "forwarded")						\
	X(fastforward, "of these, by the fast path")			\
	X(noroute, "no route")						\
	X(localout, "packets sent by this host")			\
	X(fragments, "fragments received")				\
	X(fragdropped, "fragments dropped: limits or overlap")		\
	X(fragtimeout, "datagrams timed out in reassembly")		\
	X(fragevicted, "datagrams evicted by others in reassembly")	\
	X(reassembled, "datagrams reassembled")				\
	X(fragmented, "datagrams fragmented")				\
	X(ofragments, "fragments sent")					\
	X(cantfrag, "too long, with don't-fragment")			\
	X(swcsum, "checksums computed because the device cannot")	\
	X(swtso, "segments cut because the device cannot")

#define	ICMP_STATS(X)							\
	X(received, "ICMP messages received")				\
	X(tooshort, "shorter than an ICMP header")			\
	X(checksum, "wrong ICMP checksum")				\
	X(echo, "echo requests answered")				\
	X(bcastecho, "echo requests to a broadcast address, ignored")	\
	X(errors, "error messages received")				\
	X(badquote, "error messages with a truncated quote")		\
	X(redirects, "redirects accepted")				\
	X(badredirects, "redirects refused: not from the current hop, " \
	    "or to an invalid one")					\
	X(sent, "error messages sent")					\
	X(suppressed, "errors not sent: about an error, fragment, broadcast") \
	X(ratelimited, "errors not sent: over net.inet.icmp.icmplim")

#define	STAT_FIELD(name, descr)	atomic_u64 name;

struct ipstat { IP_STATS(STAT_FIELD) };
struct icmpstat { ICMP_STATS(STAT_FIELD) };

extern struct ipstat ipstat;
extern struct icmpstat icmpstat;

#define	IPSTAT_INC(name)	counter_add(&ipstat.name, 1)
#define	ICMPSTAT_INC(name)	counter_add(&icmpstat.name, 1)

#endif /* NETINET_IP_STAT_H */
