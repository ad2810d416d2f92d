/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP_INFO: the state of a connection as Linux's struct tcp_info, for iperf3
 * and other programs.
 */
#include <linux/tcp.h>
#include <string.h>

#include "netinet/tcp_var.h"

/*
 * Linux 6.18's structure is longer than older headers define, and programs
 * built with it request its full length.  The bytes after ours are zero.
 */
#define	TCP_INFO_LEN	280

/* Linux's numbers of the states (include/net/tcp_states.h). */
static const uint8_t linux_state[TCPS_COUNT] = {
	[TCPS_CLOSED] = 7, [TCPS_LISTEN] = 10, [TCPS_SYN_SENT] = 2,
	[TCPS_SYN_RECEIVED] = 3, [TCPS_ESTABLISHED] = 1,
	[TCPS_CLOSE_WAIT] = 8, [TCPS_FIN_WAIT_1] = 4, [TCPS_CLOSING] = 11,
	[TCPS_LAST_ACK] = 9, [TCPS_FIN_WAIT_2] = 5, [TCPS_TIME_WAIT] = 6,
};

/* Linux's enum tcp_ca_state. */
#define	CA_DISORDER	1
static const uint8_t linux_ca_state[] = {
	[TR_OPEN] = 0, [TR_CWR] = 2, [TR_FAST] = 3, [TR_TIMEOUT] = 4,
};

static uint32_t
usec(nsec_t t)
{
	nsec_t us = t / NSEC_PER_USEC;

	return (us < UINT32_MAX ? (uint32_t)us : UINT32_MAX);
}

static uint32_t
msec_since(nsec_t date)
{
	return ((uint32_t)((mach_uptime() - date) / NSEC_PER_MSEC));
}

static void
fill_options(const struct tcpcb *tp, struct tcp_info *ti)
{
	if (tp->t_flags & TF_TS)
		ti->tcpi_options |= TCPI_OPT_TIMESTAMPS;
	if (tp->t_flags & TF_ECN)
		ti->tcpi_options |= TCPI_OPT_ECN;
	if (tp->t_flags & TF_SACK)
		ti->tcpi_options |= TCPI_OPT_SACK;
	if (tp->t_flags & TF_WSCALE)
		ti->tcpi_options |= TCPI_OPT_WSCALE;
	if (tp->t_flags & TF_SYNDATA)
		ti->tcpi_options |= TCPI_OPT_SYN_DATA;
	ti->tcpi_snd_wscale = tp->snd_scale & 0xf;
	ti->tcpi_rcv_wscale = tp->rcv_scale & 0xf;
}

/* Lost bytes; Linux counts them until the retransmission is acknowledged. */
static uint32_t
missing(const struct tcpcb *tp)
{
	const struct tcp_sent *r;
	uint32_t bytes = tp->t_lostbytes;

	TAILQ_FOREACH(r, &tp->t_inflight, tlink)
		if (r->again)
			bytes += r->end - r->seq;
	return (bytes);
}

/* Segments that the peer has, with our SYN; data in it is no other segment. */
static uint32_t
delivered(const struct tcpcb *tp, uint32_t mss)
{
	const uint64_t data = tp->t_bytes_acked - tp->t_synacked +
	    tp->t_sackedbytes;

	if (tp->t_state < TCPS_ESTABLISHED)
		return (0);
	return ((uint32_t)((data + mss - 1) / mss) + 1);
}

static void
fill_sender(const struct tcpcb *tp, struct tcp_info *ti)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t mss = tp->t_maxseg;
	const bool probing = tcp_timer_running(tp, TT_PERSIST);

	ti->tcpi_ca_state = linux_ca_state[tp->t_recovery];
	if (tp->t_recovery == TR_OPEN && (tp->t_sackedbytes > 0 ||
	    tp->t_dupacks > 0))
		ti->tcpi_ca_state = CA_DISORDER;
	ti->tcpi_retransmits = (uint8_t)(probing ? 0 : tp->t_rxtshift);
	ti->tcpi_probes = (uint8_t)(probing ? tp->t_rxtshift :
	    tp->t_keepprobes);
	ti->tcpi_backoff = (uint8_t)tp->t_rxtshift;
	/* Linux counts packets, TCP counts bytes */
	ti->tcpi_unacked = (tp->snd_max - tp->snd_una + mss - 1) / mss;
	ti->tcpi_sacked = tp->t_sackedbytes / mss;
	ti->tcpi_lost = missing(tp) / mss;
	ti->tcpi_snd_ssthresh = tp->snd_ssthresh >= INT32_MAX ?
	    INT32_MAX : tp->snd_ssthresh / mss;	/* not determined yet */
	ti->tcpi_snd_cwnd = tp->snd_cwnd / mss;
	ti->tcpi_snd_wnd = tp->snd_wnd;
	ti->tcpi_total_retrans = tp->t_total_retrans;
	ti->tcpi_bytes_sent = tp->t_bytes_sent;
	ti->tcpi_bytes_acked = tp->t_bytes_acked;
	ti->tcpi_bytes_retrans = tp->t_rexmitbytes;
	ti->tcpi_dsack_dups = (uint32_t)(tp->t_dsackbytes / mss);
	ti->tcpi_reord_seen = tp->t_rack.reorderings;
	ti->tcpi_delivered = delivered(tp, mss);
	ti->tcpi_segs_out = tp->t_segs_out;
	ti->tcpi_data_segs_out = tp->t_data_segs_out;
	ti->tcpi_notsent_bytes = tcp_notsent(tp);
	/* no pacing */
	ti->tcpi_pacing_rate = ti->tcpi_max_pacing_rate = UINT64_MAX;
}

static void
fill_receiver(const struct tcpcb *tp, struct tcp_info *ti)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const struct sockbuf *sb = &tp->t_inp.inp_socket->so_rcv;

	ti->tcpi_rcv_mss = tp->t_rcvmss != 0 ? tp->t_rcvmss :
	    TCP_DEFAULT_MSS;
	ti->tcpi_advmss = tcp_mymss(tp) - (tp->t_flags & TF_TS ? TCP_TS_LEN :
	    0);
	ti->tcpi_ato = atomic_load_u32(&tcp_delacktime) * 1000;
	ti->tcpi_rcv_ssthresh = ti->tcpi_rcv_space = sb->sb_hiwat;
	ti->tcpi_rcv_rtt = usec(tp->t_srtt);
	ti->tcpi_bytes_received = tp->t_bytes_received;
	ti->tcpi_segs_in = tp->t_segs_in;
	ti->tcpi_data_segs_in = tp->t_data_segs_in;
	ti->tcpi_rcv_ooopack = tp->t_ooopack;
}

/*
 * What limits the sender: the program, if no data waits; the peer's window, if
 * the congestion window has room and the peer's has not; the buffer, if a
 * writer waits for space and all data was sent.
 */
static enum tcp_limit
what_limits(const struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const struct sockbuf *sb = &tp->t_inp.inp_socket->so_snd;
	const uint32_t flight = tp->snd_max - tp->snd_una;
	const uint32_t left = tcp_notsent(tp);

	if (sb->sb_cc == 0)
		return (TL_PROGRAM);
	if (left == 0)
		return (sb->sb_waiters > 0 ? TL_BUFFER : TL_BUSY);
	if (tcp_pipe(tp) < tp->snd_cwnd && tp->snd_wnd < flight +
	    (left < tp->t_maxseg ? left : tp->t_maxseg))
		return (TL_WINDOW);
	return (TL_BUSY);
}

void
tcp_info_limit(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const enum tcp_limit limit = what_limits(tp);
	nsec_t now;

	if (limit == tp->t_limit)
		return;
	now = getuptime();
	tp->t_limited[tp->t_limit] += now - tp->t_limitsince;
	tp->t_limit = limit;
	tp->t_limitsince = now;
}

/* Microseconds in a state, including the time since the last change. */
static uint64_t
limited(const struct tcpcb *tp, enum tcp_limit limit)
{
	nsec_t t = tp->t_limited[limit];

	if (tp->t_limit == limit)
		t += mach_uptime() - tp->t_limitsince;
	return (t / NSEC_PER_USEC);
}

static void
fill_limits(const struct tcpcb *tp, struct tcp_info *ti)
{
	ti->tcpi_rwnd_limited = limited(tp, TL_WINDOW);
	ti->tcpi_sndbuf_limited = limited(tp, TL_BUFFER);
	ti->tcpi_busy_time = limited(tp, TL_BUSY) + ti->tcpi_rwnd_limited +
	    ti->tcpi_sndbuf_limited;
}

int
tcp_getinfo(const struct tcpcb *tp, void *val, socklen_t *len)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct tcp_info ti;

	memset(&ti, 0, sizeof(ti));
	ti.tcpi_state = linux_state[tp->t_state];
	fill_options(tp, &ti);
	fill_sender(tp, &ti);
	fill_receiver(tp, &ti);
	fill_limits(tp, &ti);
	ti.tcpi_rto = usec(tp->t_rto);
	ti.tcpi_snd_mss = tp->t_maxseg;
	ti.tcpi_last_data_sent = msec_since(tp->t_lastsend);
	ti.tcpi_last_data_recv = msec_since(tp->t_lastdata);
	ti.tcpi_last_ack_recv = msec_since(tp->t_lastrecv);
	ti.tcpi_pmtu = tp->t_pathmtu != 0 ? tp->t_pathmtu :
	    tcp_mymss(tp) + tcp_hdrlen(&tp->t_inp.inp_conn);
	ti.tcpi_rtt = usec(tp->t_srtt);
	ti.tcpi_rttvar = usec(tp->t_rttvar);
	ti.tcpi_min_rtt = usec(tp->t_rttmin);
	/* RFC 5681's duplicate ACK threshold, or the distance observed */
	ti.tcpi_reordering = tp->t_rack.distance > 3 ? tp->t_rack.distance : 3;
	if (*len > TCP_INFO_LEN)
		*len = TCP_INFO_LEN;
	memset(val, 0, *len);
	memcpy(val, &ti, *len < sizeof(ti) ? *len : sizeof(ti));
	return (0);
}
