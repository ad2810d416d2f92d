/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tunables and counters of TCP, one table each.
 */
#include "kern/sysctl.h"
#include "netinet/tcp_lock.h"

struct tcpstat tcpstat COUNTERS;

/* variable, name, default, min, max, description */
#define	TCP_TUNABLES(X)							\
	X(tcp_do_sack, "sack", 1, 0, 1,					\
	    "offer selective acknowledgement (RFC 2018)")		\
	X(tcp_do_timestamps, "timestamps", 1, 0, 1,			\
	    "offer timestamps (RFC 7323)")				\
	X(tcp_do_wscale, "wscale", 1, 0, 1,				\
	    "offer window scaling (RFC 7323)")				\
	X(tcp_sendspace, "sendspace", 1048576, 4096, 16777216,		\
	    "send buffer of a new socket, bytes")			\
	X(tcp_recvspace, "recvspace", 1048576, 4096, 16777216,		\
	    "receive buffer of a new socket, bytes")			\
	X(tcp_sendbuf_max, "sendbuf_max", 4194304, 4096, 16777216,	\
	    "max automatic send buffer, bytes")				\
	X(tcp_sendbuf_inc, "sendbuf_inc", 131072, 4096, 16777216,	\
	    "min step of a send buffer's growth, bytes")		\
	X(tcp_recvbuf_max, "recvbuf_max", 6291456, 4096, 16777216,	\
	    "max automatic receive buffer, bytes; determines the window scale") \
	X(tcp_recvbuf_inc, "recvbuf_inc", 131072, 4096, 16777216,	\
	    "min step of a receive buffer's growth, bytes")		\
	X(tcp_sendbuf_auto, "sendbuf_auto", 1, 0, 1,			\
	    "send buffers grow until the network is the limit")		\
	X(tcp_recvbuf_auto, "recvbuf_auto", 1, 0, 1,			\
	    "receive buffers grow to what is read in two round trips")	\
	X(tcp_msl, "msl", 30000, 1, 120000,				\
	    "maximum segment lifetime, ms; TIME_WAIT lasts two")	\
	X(tcp_rexmit_min, "rexmit_min", 200, 1, 60000,			\
	    "min retransmission timeout beyond the RTT, ms")		\
	X(tcp_rexmit_initial, "rexmit_initial", 1000, 1, 60000,		\
	    "retransmission timeout before an RTT is known, ms")	\
	X(tcp_delacktime, "delacktime", 40, 1, 500,			\
	    "max delay of an ACK, ms")					\
	X(tcp_quickacks, "quickacks", 0, 0, 1000,			\
	    "initial ACKs without delay of a connection that only "	\
	    "receives; Linux: 16")					\
	X(tcp_initcwnd, "initcwnd", 10, 1, 100,				\
	    "initial congestion window, segments (RFC 6928)")		\
	X(tcp_notsent_lowat, "notsent_lowat", 4294967295, 1, 4294967295, \
	    "max unsent bytes of a writable socket; default of "		\
	    "TCP_NOTSENT_LOWAT")					\
	X(tcp_tsomax, "tsomax", 65536, 1460, 65536,			\
	    "max segment for segmentation offload, bytes")		\
	X(tcp_keepidle, "keepidle", 7200000, 1000, 4294967295,		\
	    "idle time before the first keep-alive probe, ms")		\
	X(tcp_keepintvl, "keepintvl", 75000, 1000, 4294967295,		\
	    "time between keep-alive probes, ms")			\
	X(tcp_keepcnt, "keepcnt", 9, 1, 127,				\
	    "unanswered keep-alive probes before the connection drops")	\
	X(tcp_keepinit, "keepinit", 75000, 1000, 600000,		\
	    "max time of a handshake, ms")				\
	X(tcp_syncachelimit, "syncache.cachelimit", 15360, 1, 1048576,	\
	    "max incomplete handshakes of all listeners")		\
	X(tcp_synbucketlimit, "syncache.bucketlimit", 30, 1, 65536,	\
	    "max incomplete handshakes in one of 512 hash buckets")	\
	X(tcp_synrexmtlimit, "syncache.rexmtlimit", 3, 0, 10,		\
	    "max retransmissions of a SYN-ACK")				\
	X(tcp_mtu_probing, "mtu_probing", 0, 0, 2,			\
	    "search for the path's MTU: 0 never, 1 when segments vanish, " \
	    "2 always (RFC 4821)")					\
	X(tcp_syncookies, "syncookies", 1, 0, 2,			\
	    "SYN cookies: 0 never, 1 when the SYN cache is full, 2 "	\
	    "always")							\
	X(tcp_maxtimewait, "maxtimewait", 32768, 0, 1048576,		\
	    "max connections in TIME_WAIT; more are closed at once")	\
	X(tcp_finwait2_timeout, "finwait2_timeout", 60000, 1000, 600000, \
	    "time in FIN_WAIT_2 of a closed socket, ms")		\
	X(tcp_maxreass, "maxreass", 1024, 1, 65536,			\
	    "max blocks of out-of-order data of a connection, each in "	\
	    "2560 bytes of memory; more blocks if they have 536 bytes on " \
	    "average, more memory up to 8 times the data")		\
	X(tcp_icmp_drops_syn, "icmp_drops_syn", 1, 0, 1,		\
	    "1: an ICMP unreachable error ends an attempt to connect, as "	\
	    "in Linux (RFC 5461 section 2.2); 0: it only explains a timeout " \
	    "(RFC 9293 MUST-56)")					\
	X(tcp_tolerate_missing_ts, "tolerate_missing_ts", 0, 0, 1,	\
	    "0: segments without the negotiated timestamps are dropped "	\
	    "(RFC 7323 section 3.2); 1: they are accepted, as in Linux")	\
	X(tcp_tlp_ackdelay, "tlp_ackdelay", 40, 0, 500,			\
	    "max delay of the peer's ACK that a tail loss probe of one "	\
	    "segment waits for, ms (RFC 8985 section 7.2); Linux: 200")	\
	X(tcp_tlp_min, "tlp_min", 10, 1, 1000,				\
	    "min delay of a tail loss probe, ms; Linux: 4")		\
	X(tcp_min_tso_segs, "min_tso_segs", 0, 0, 64,			\
	    "0: a burst for segmentation offload is as large as the windows " \
	    "permit; else it has about 1 ms of data, at least so many "	\
	    "segments, and at most half the congestion window; Linux: 2 "	\
	    "(ip-sysctl)")						\
	X(tcp_answer_unsent, "answer_unsent", 1, 0, 1,			\
	    "1: an ACK of data that was not sent is answered (RFC 9293 "	\
	    "section 3.10.7.4); 0: it is dropped, as in Linux")		\
	X(tcp_shutrd_keeps, "shutrd_keeps", 0, 0, 1,			\
	    "0: data received after shutdown(SHUT_RD) is discarded; 1: it " \
	    "can be read, as in Linux")					\
	X(tcp_notsent_fill, "notsent_fill", 0, 0, 1,			\
	    "TCP_NOTSENT_LOWAT: 0: a write adds units of 16 KB; 1: of half " \
	    "the peer's window, and fills a unit above the limit, as in "	\
	    "Linux")							\
	X(tcp_more_acked, "more_acked", 0, 0, 1,			\
	    "1: the next transmission, such as an answer to an ACK, "	\
	    "releases what MSG_MORE holds back, as in Linux")		\
	X(tcp_reduce_cwnd, "reduce_cwnd", 0, 0, 1,			\
	    "0: a loss reduces from the data in flight (RFC 5681 "	\
	    "equation 4, RFC 9438 section 4.6); 1: from the congestion "	\
	    "window, although it may not have been used, as in Linux")	\
	X(tcp_mss_of_path, "mss_of_path", 0, 0, 1,			\
	    "0: the MSS option has the interface's MTU (RFC 9293 section "	\
	    "3.7.1); 1: or a smaller MTU of the path, as in Linux")	\
	X(tcp_fastopen, "fastopen", 1, 0, 4294967295,			\
	    "TCP Fast Open (RFC 7413), a sum: 1 client, 2 server, 4 a "	\
	    "client sends data without a cookie, 512 a server accepts it, " \
	    "1024 all listeners, without TCP_FASTOPEN")			\
	X(tcp_fastopen_exp, "fastopen_exp", 0, 0, 1,			\
	    "1: a server that does not answer a request of a cookie gets "	\
	    "one more by the option of RFC 7413's experiment, as in Linux") \
	X(tcp_fastopen_hold, "fastopen_hold", 60, 0, 86400,		\
	    "seconds without Fast Open to a destination after a first SYN " \
	    "was lost, doubled by each further loss; 0: none")		\
	X(tcp_abc_l_var, "abc_l_var", 0, 0, 65535,			\
	    "max segments counted for an ACK in slow start; 0: no limit")

#define	TCP_TUNABLE_VAR(var, name, def, min, max, descr)		\
	atomic_u32 var = def;
TCP_TUNABLES(TCP_TUNABLE_VAR)

#define	TCP_TUNABLE_OID(var, name, def, min, max, descr)		\
	{ .oid_name = "net.inet.tcp." name, .oid_type = CTL_U32,	\
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &var,		\
	  .oid_min = min, .oid_max = max, .oid_descr = descr },
#define	TCP_STAT_OID(name, descr)					\
	{ .oid_name = "net.inet.tcp.stats." #name, .oid_type = CTL_U64,	\
	  .oid_ptr = &tcpstat.name, .oid_descr = descr },

atomic_u32 tcp_syncount;

static const struct sysctl_oid tcp_oids[] = {
	{ .oid_name = "net.inet.tcp.syncache.count", .oid_type = CTL_U32,
	  .oid_ptr = &tcp_syncount, .oid_max = UINT32_MAX,
	  .oid_descr = "incomplete handshakes" },
	TCP_TUNABLES(TCP_TUNABLE_OID)
	TCP_STATS(TCP_STAT_OID)
};

void
tcp_sysctl_init(void)
{
	sysctl_register(tcp_oids, nitems(tcp_oids));
	tcp_cc_sysctl_init();
	tcp_ecn_sysctl_init();
	tcp_lock_init();
	tcp_table_init();
	tcp_personality_init();
}
