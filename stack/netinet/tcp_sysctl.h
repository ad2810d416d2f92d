/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tunables of TCP (tcp_sysctl.c describes them); times are in milliseconds.
 */
#ifndef NETINET_TCP_SYSCTL_H
#define NETINET_TCP_SYSCTL_H

#include "kern/systm.h"

extern atomic_u32 tcp_sendspace, tcp_recvspace;
extern atomic_u32 tcp_sendbuf_auto, tcp_sendbuf_max, tcp_sendbuf_inc;
extern atomic_u32 tcp_recvbuf_auto, tcp_recvbuf_max, tcp_recvbuf_inc;
extern atomic_u32 tcp_msl, tcp_rexmit_min, tcp_rexmit_initial;
extern atomic_u32 tcp_delacktime, tcp_initcwnd, tcp_notsent_lowat, tcp_tsomax;
extern atomic_u32 tcp_keepidle, tcp_keepintvl, tcp_keepcnt, tcp_keepinit;
extern atomic_u32 tcp_maxtimewait, tcp_finwait2_timeout;
extern atomic_u32 tcp_syncachelimit, tcp_synbucketlimit, tcp_synrexmtlimit;
extern atomic_u32 tcp_syncookies, tcp_mtu_probing, tcp_quickacks;
#define	MTU_PROBING_ALWAYS	2
#define	SYNCOOKIES_ALWAYS	2
extern atomic_u32 tcp_syncount;		/* entries in the SYN cache */
extern atomic_u32 tcp_maxreass, tcp_abc_l_var, tcp_min_tso_segs;
extern atomic_u32 tcp_tlp_min, tcp_answer_unsent, tcp_shutrd_keeps;
extern atomic_u32 tcp_reduce_cwnd, tcp_more_acked, tcp_notsent_fill;
extern atomic_u32 tcp_icmp_drops_syn, tcp_tolerate_missing_ts, tcp_tlp_ackdelay;
extern atomic_u32 tcp_mss_of_path;
extern atomic_u32 tcp_fastopen, tcp_fastopen_hold, tcp_fastopen_exp;
#define	FASTOPEN_CLIENT		1U
#define	FASTOPEN_SERVER		2U
#define	FASTOPEN_BARE		4U	/* a client needs no cookie */
#define	FASTOPEN_OPEN		0x200U	/* a server requires none */
#define	FASTOPEN_ALL		0x400U	/* all listeners, without TCP_FASTOPEN */
extern atomic_u32 tcp_do_sack, tcp_do_timestamps, tcp_do_wscale;
void	 tcp_sysctl_init(void);
void	 tcp_personality_init(void);	/* after the tunables it sets */

static inline nsec_t
tcp_msec(atomic_u32 *tunable)
{
	return (atomic_load_u32(tunable) * NSEC_PER_MSEC);
}

#endif /* NETINET_TCP_SYSCTL_H */
