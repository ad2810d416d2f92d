/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of TCP in one table.  The struct, the sysctl names
 * net.inet.tcp.stats.* and their descriptions are generated from it.
 */
#ifndef NETINET_TCP_STAT_H
#define NETINET_TCP_STAT_H

#include "kern/counter.h"

#define	TCP_STATS(X)							\
	X(rcvtotal, "segments received (a merged one counts once)")	\
	X(rcvshort, "shorter than the header or its length field")	\
	X(rcvbadsum, "wrong checksum")					\
	X(rcvbadopt, "malformed options")				\
	X(rcvbadsig, "segments dropped for an MD5 signature (RFC 2385)") \
	X(rcvdata, "segments received in order with data")		\
	X(rcvbyte, "bytes received in order")				\
	X(rcvdup, "segments without new data")				\
	X(rcvoo, "segments received out of order")			\
	X(rcvoodrop, "out-of-order segments dropped: queue full")	\
	X(rcvafterwin, "segments outside the window")			\
	X(rcvafterclose, "data for a closed socket")			\
	X(rcvdupack, "duplicate acknowledgements")			\
	X(rcvacktoomuch, "acknowledgements of unsent data")		\
	X(pawsdrop, "segments with an old timestamp")			\
	X(badrst, "resets not exactly at the left edge")		\
	X(badsyn, "SYNs in the middle of a connection")			\
	X(challenge, "challenge acknowledgements sent")			\
	X(noport, "segments to no connection and no listener")		\
	X(listendrop, "SYNs dropped: accept queue full")		\
	X(synadded, "SYNs entered in the SYN cache")			\
	X(synoverflow, "SYNs received with a full SYN cache")		\
	X(syncookiesent, "SYN cookies sent")				\
	X(syncookierecv, "SYN cookies accepted")			\
	X(fastopen, "connections accepted with data of their SYN")	\
	X(fastopenbad, "Fast Open cookies refused")			\
	X(fastopenover, "Fast Open requests above a listener's limit")	\
	X(fastopensent, "SYNs sent with data")				\
	X(fastopenacked, "SYNs whose data the peer has accepted")	\
	X(fastopenlost, "SYNs with a Fast Open option that timed out")	\
	X(icmpwindow, "ICMP errors that quote no data in flight")	\
	X(syntimeout, "handshakes that timed out")			\
	X(connattempt, "connections initiated")				\
	X(accepts, "connections accepted from the wire")		\
	X(connects, "connections established")				\
	X(closed, "connections closed")					\
	X(drops, "connections dropped")					\
	X(timewait, "connections that entered TIME_WAIT")		\
	X(timewaitover, "TIME_WAIT skipped: net.inet.tcp.maxtimewait")	\
	X(timewaitreuse, "TIME_WAIT ended early by a new SYN")		\
	X(sndtotal, "segments sent (a large one counts once)")		\
	X(sndpack, "segments sent with data")				\
	X(sndbyte, "bytes sent, retransmissions not counted")		\
	X(sndrexmitpack, "segments retransmitted")			\
	X(sndrexmitbyte, "bytes retransmitted")				\
	X(sndacks, "acknowledgements sent without data")		\
	X(sndwinup, "window updates sent")				\
	X(sndprobe, "window probes sent")				\
	X(sndrst, "resets sent")					\
	X(delack, "delayed acknowledgements sent by the timer")		\
	X(rexmttimeo, "retransmission timeouts")			\
	X(timeoutdrop, "connections dropped by timeout")		\
	X(persisttimeo, "persist timeouts")				\
	X(keepprobe, "keep-alive probes sent")				\
	X(keepdrops, "connections dropped by keep-alive")		\
	X(fastrexmit, "fast retransmissions")				\
	X(rcvdsack, "duplicate reports received (DSACK)")		\
	X(tlpprobe, "tail loss probes sent")				\
	X(undone, "reductions of the window undone as spurious")	\
	X(ecnmarks, "segments received with a congestion mark")		\
	X(ecnreductions, "reductions of the window for an ECN echo")	\
	X(sackrexmit, "retransmissions of holes reported by SACK")	\
	X(mtublackhole, "segments made smaller after timeouts")		\
	X(mtuprobe, "larger segments tried (RFC 4821)")			\
	X(mtuprobeok, "larger segments acknowledged")			\
	X(mturesent, "segments resent for a smaller path MTU")		\
	X(outerror, "segments that could not be sent")

#define	TCP_STAT_FIELD(name, descr)	atomic_u64 name;
struct tcpstat { TCP_STATS(TCP_STAT_FIELD) };

extern struct tcpstat tcpstat;

#define	TCPSTAT_INC(name)	counter_add(&tcpstat.name, 1)
#define	TCPSTAT_ADD(name, n)	counter_add(&tcpstat.name, (n))

#endif /* NETINET_TCP_STAT_H */
