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
	X(toosmall, "shorter than the header or its length field")	\
	X(badvers, "version is not 6")					\
	X(badaddr, "invalid addresses for this link")			\
	X(notconfigured, "on an interface without IPv6")		\
	X(notmember, "to multicast groups without members")		\
	X(tentative, "to a tentative address")				\
	X(delivered, "delivered to an upper protocol")			\
	X(badoptions, "malformed extension headers")			\
	X(exthdrtoomany, "more extension headers or options than allowed") \
	X(unknownheader, "unknown header or protocol")			\
	X(cantforward, "to another host, with forwarding off")		\
	X(forward, "forwarded")						\
	X(noroute, "no route")						\
	X(hoplimit, "not forwarded: hop limit exceeded")		\
	X(toobig, "not forwarded: longer than the next link's MTU")	\
	X(localout, "packets sent by this host")			\
	X(fragments, "fragments received")				\
	X(atomicfrags, "atomic fragments (RFC 6946)")			\
	X(fragdropped, "fragments dropped: limits, overlap, malformed")	\
	X(fragtimeout, "datagrams timed out in reassembly")		\
	X(fragevicted, "datagrams evicted by others in reassembly")	\
	X(reassembled, "datagrams reassembled")				\
	X(fragmented, "datagrams fragmented")				\
	X(ofragments, "fragments sent")					\
	X(cantfrag, "too long, with don't-fragment")

#define	ICMP6_STATS(X)							\
	X(received, "ICMPv6 messages received")				\
	X(tooshort, "shorter than their type requires")			\
	X(checksum, "wrong checksum")					\
	X(echo, "echo requests answered")				\
	X(errors, "error messages received")				\
	X(badquote, "error messages with a truncated quote")		\
	X(sent, "error messages sent")					\
	X(suppressed, "errors not sent: about an error, multicast, ::")	\
	X(ratelimited, "errors not sent: over net.inet6.icmp6.errppslimit") \
	X(pathmtu, "path MTUs received")

#define	ND6_STATS(X)							\
	X(solicits, "neighbour solicitations sent")			\
	X(adverts, "neighbour advertisements sent")			\
	X(received, "neighbour discovery messages received")		\
	X(bad, "malformed, or not from this link")			\
	X(dadduplicates, "duplicate addresses, not used")		\
	X(timeouts, "neighbours without an answer")			\
	X(dropped, "packets dropped: neighbour not resolved")		\
	X(full, "neighbours evicted by others")				\
	X(toomanyprefixes, "prefixes and addresses not accepted: "	\
	    "net.inet6.ip6.maxifprefixes")				\
	X(toomanyrouters, "default routers not accepted: there are 16")	\
	X(routersolicits, "router solicitations sent")			\
	X(routeradverts, "router advertisements accepted")		\
	X(redirects, "redirects accepted")

#define	MLD_STATS(X)							\
	X(queries, "queries received")					\
	X(bad, "queries malformed or not from this link")		\
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
