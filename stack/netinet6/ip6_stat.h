/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of IPv6, ICMPv6, neighbour discovery and multicast listeners:
 * net.inet6.{ip6,icmp6,nd6,mld}.stats.*.
 */
#ifndef NETINET6_IP6_STAT_H
#define NETINET6_IP6_STAT_H

#include "kern/counter.h"

#define	IP6_STATS(X)							\
	X(total, "packets received")					\
	X(toosmall, "shorter than an IPv6 header or than they say")	\
	X(badvers, "version is not 6")					\
	X(badaddr, "addresses that cannot be on this link")		\
	X(notconfigured, "on an interface without IPv6")		\
	X(notmember, "to a multicast group nobody here is in")		\
	X(tentative, "to an address that may be another's still")	\
	X(delivered, "given to an upper protocol")			\
	X(badoptions, "extension headers that are malformed")		\
	X(exthdrtoomany, "more extension headers or options than allowed") \
	X(unknownheader, "with a header or protocol unknown here")	\
	X(cantforward, "not for this host, and forwarding is off")	\
	X(forward, "forwarded")						\
	X(noroute, "no route")						\
	X(hoplimit, "not forwarded: no hops left")			\
	X(toobig, "not forwarded: longer than the next link takes")	\
	X(localout, "packets sent from here")				\
	X(fragments, "fragments received")				\
	X(atomicfrags, "fragments that are a whole datagram (RFC 6946)") \
	X(fragdropped, "fragments dropped: limits, overlap, malformed")	\
	X(fragtimeout, "datagrams given up: fragments missing")		\
	X(reassembled, "datagrams reassembled")				\
	X(fragmented, "datagrams cut into fragments")			\
	X(ofragments, "fragments sent")					\
	X(cantfrag, "too long and not to be fragmented")

#define	ICMP6_STATS(X)							\
	X(received, "ICMPv6 messages received")				\
	X(tooshort, "shorter than their type asks for")			\
	X(checksum, "wrong checksum")					\
	X(echo, "echo requests answered")				\
	X(errors, "error messages received")				\
	X(badquote, "error messages that quote too little")		\
	X(sent, "error messages sent")					\
	X(suppressed, "errors not sent: about an error, multicast, nobody") \
	X(ratelimited, "errors not sent: over net.inet6.icmp6.errppslimit") \
	X(pathmtu, "paths whose MTU was told")

#define	ND6_STATS(X)							\
	X(solicits, "neighbour solicitations sent")			\
	X(adverts, "neighbour advertisements sent")			\
	X(received, "neighbour discovery messages received")		\
	X(bad, "malformed, or from beyond this link")			\
	X(dadduplicates, "addresses not used, as another has them")	\
	X(timeouts, "neighbours that did not answer")			\
	X(dropped, "packets dropped while waiting for a neighbour")	\
	X(full, "neighbours forgotten to make room for others")		\
	X(routersolicits, "router solicitations sent")			\
	X(routeradverts, "router advertisements heeded")		\
	X(redirects, "redirects heeded")

#define	MLD_STATS(X)							\
	X(queries, "queries received")					\
	X(bad, "queries that are malformed or from beyond this link")	\
	X(reports, "reports sent")

#define	STAT6_FIELD(name, descr)	atomic_u64 name;

struct ip6stat { IP6_STATS(STAT6_FIELD) };
struct icmp6stat { ICMP6_STATS(STAT6_FIELD) };
struct nd6stat { ND6_STATS(STAT6_FIELD) };
struct mldstat { MLD_STATS(STAT6_FIELD) };

extern struct ip6stat ip6stat;
extern struct icmp6stat icmp6stat;
extern struct nd6stat nd6stat;
extern struct mldstat mldstat;

#define	IP6STAT_INC(name)	counter_add(&ip6stat.name, 1)
#define	ICMP6STAT_INC(name)	counter_add(&icmp6stat.name, 1)
#define	ND6STAT_INC(name)	counter_add(&nd6stat.name, 1)
#define	MLDSTAT_INC(name)	counter_add(&mldstat.name, 1)

#endif /* NETINET6_IP6_STAT_H */
