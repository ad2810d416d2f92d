/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP (RFC 9293): the control block, and the functions shared by the files of
 * TCP.  tcp_seg.h has a segment during input.
 *
 *	tcp_input.c	checks, lookup, the steps of RFC 9293 section
 *			3.10.7.4, dispatch by state
 *	tcp_syn.c	the handshake, either side
 *	tcp_syncache.c	incomplete handshakes; tcp_syncookie.c: SYN cookies
 *	tcp_fastopen.c	TCP Fast Open: server; tcp_fastopen_client.c
 *	tcp_ack.c	acknowledgements, windows, round-trip times
 *	tcp_sendmap.c	records of sent segments and their fate (SACK)
 *	tcp_rack.c	loss detection (RACK), tail loss probes (TLP)
 *	tcp_ecn.c	congestion marks
 *	tcp_recover.c	recovery from losses and timeouts, and undoing it
 *	tcp_cc.c	congestion control; tcp_cc_NAME.c are its algorithms
 *	tcp_hystart.c	the end of slow start (HyStart++)
 *	tcp_reass.c	data in and out of order, FIN
 *	tcp_defer.c	deferred ACKs and output
 *	tcp_urgent.c	urgent data, either way
 *	tcp_output.c	building and sending segments; tcp_header.h
 *	tcp_record.c	records (MSG_EOR)
 *	tcp_respond.c	resets and answers without data
 *	tcp_lock.c	the choice of locking; tcp_lock_NAME.c: strategies
 *	tcp_timer.c	timeouts
 *	tcp_subr.c	creation and destruction of control blocks, ICMP errors
 *	tcp_usrreq.c	socket operations; tcp_sockopt.c, tcp_info.c: options
 *	tcp_buf.c	automatic buffer sizes
 *	tcp_mtu.c	the path's MTU, from ICMP and from probes
 *	tcp_opt.c	options on the wire
 *	tcp_sysctl.c	tunables and counters
 *
 * so_lock protects the control block, or the lock that net.inet.tcp.input
 * selects (tcp_lock.h).  tcp_close() and tcp_drop() may free the block; input
 * and timers return STEP_GONE or false after them.
 */
#ifndef NETINET_TCP_VAR_H
#define NETINET_TCP_VAR_H

#include "kern/callout.h"
#include "kern/thread.h"
#include "netinet/in_pcb.h"
#include "netinet/tcp_cc.h"
#include "netinet/tcp_opt.h"
#include "netinet/tcp_recover.h"
#include "netinet/tcp_seg.h"
#include "netinet/tcp_seq.h"
#include "netinet/tcp_stat.h"
#include "netinet/tcp_sysctl.h"

#define	TCP_HDRLEN	20
#define	TCP_DEFAULT_MSS	536		/* until the connection has an MSS */
#define	TCP_MSS_MIN	88		/* protects against tiny segments */
#define	TCP_TS_LEN	12		/* timestamps, padded */
#define	TCP_RTO_MAX	(60 * NSEC_PER_SEC)	/* RFC 6298 (2.5) */
#define	TCP_LINGER2_NONE	NSEC_FOREVER	/* no FIN_WAIT_2 */

enum tcp_state {
	TCPS_CLOSED, TCPS_LISTEN, TCPS_SYN_SENT, TCPS_SYN_RECEIVED,
	TCPS_ESTABLISHED, TCPS_CLOSE_WAIT, TCPS_FIN_WAIT_1, TCPS_CLOSING,
	TCPS_LAST_ACK, TCPS_FIN_WAIT_2, TCPS_TIME_WAIT, TCPS_COUNT
};
extern const char *const tcp_state_names[TCPS_COUNT];

/* Timers that are due together run in this order. */
enum tcp_timer {
	TT_REORDER,	/* RACK reordering timer (RFC 8985 section 6.2) */
	TT_PROBE,	/* tail loss probe */
	TT_REXMT,	/* retransmission */
	TT_PERSIST, /* window probe, or override of silly window avoidance */
	TT_KEEP,	/* handshake timeout, then keep-alive */
	TT_2MSL,	/* TIME_WAIT, or FIN_WAIT_2 of a closed socket */
	TT_DELACK,
	TT_COUNT
};

#define	TF_ACKNOW	0x0001	/* an ACK must be sent at once */
#define	TF_NODELAY	0x0002	/* Nagle's algorithm is off */
#define	TF_CORK		0x0004	/* TCP_CORK: full segments only */
#define	TF_MORE		0x0008	/* MSG_MORE: more data will follow */
#define	TF_FORCE	0x0010	/* persist: send what fits */
#define	TF_TS		0x0020	/* timestamps negotiated (or offered) */
#define	TF_WSCALE	0x0040	/* window scaling negotiated (or offered) */
#define	TF_SACK		0x0080	/* SACK negotiated (or offered) */
#define	TF_QUICKACK	0x0100	/* TCP_QUICKACK: no ACK is delayed */
#define	TF_CWNDLIMITED	0x0200	/* the congestion window limited sending */
#define	TF_TIMEDWAIT	0x0400	/* counted in tcp_ntimewait */
#define	TF_ECN		0x0800	/* ECN negotiated (or offered) */
#define	TF_ECNECHO	0x1000	/* a mark was received: ACKs carry ECE */
#define	TF_ECNCWR	0x2000	/* new data will carry CWR */
/* an ACK is due at the end of the receive burst */
#define	TF_ACKDEFERRED 0x4000
#define	TF_NOPUSH	0x8000	/* MSG_MORE of the last write: no PSH */
/* a delayed ACK was sent without data, and data was not answered since */
#define	TF_ONEWAY	0x10000
#define	TF_RECORDS	0x20000	/* MSG_EOR: the send buffer has records */
/* Fast Open: the program has the connection before the handshake is complete */
#define	TF_FASTOPEN	0x40000
#define	TF_FOGRANT	0x80000	/* our SYN-ACK has a new cookie */
#define	TF_FOCONNECT	0x100000 /* TCP_FASTOPEN_CONNECT */
#define	TF_FODEFER	0x200000 /* our SYN waits for data */
#define	TF_FOSYN	0x400000 /* our first SYN has the option */
#define	TF_SYNDATA	0x800000 /* data of a SYN was acknowledged */
#define	TF_FONOCOOKIE	0x1000000 /* TCP_FASTOPEN_NO_COOKIE */
/* our SYN or SYN-ACK has the experimental format of the option */
#define	TF_FOEXP	0x2000000
#define	TF_FOWAIT	0x4000000 /* a write waits to send what follows its SYN */

/* The search for the path's MTU (RFC 4821). */
struct tcp_mtu {
	uint32_t	 high;		/* upper limit of the search */
	bool		 failed;	/* a probe was lost: high is a guess */
	uint32_t	 probe;		/* size of the probe in flight, or 0 */
	tcp_seq		 seq, end;	/* its data */
	nsec_t		 next;		/* no probe before this time */
};

/* Contiguous data received out of order: a block of the SACK option. */
struct tcp_ooblock {
	TAILQ_ENTRY(tcp_ooblock) link;	/* in the order of the stream */
	TAILQ_ENTRY(tcp_ooblock) rlink;	/* in the order of arrival */
	tcp_seq		 seq;
	uint32_t	 len;
	bool		 fin;		/* a FIN follows */
	struct mbuf	*m, *last;	/* the data; its last mbuf */
	uint64_t	 memory;	/* that the data occupies */
};

/*
 * What limits the sender: the program, the network, the peer's window, the
 * send buffer.
 */
enum tcp_limit { TL_PROGRAM, TL_BUSY, TL_WINDOW, TL_BUFFER, TL_COUNT };

/* [s] everything: lock of the socket */
struct tcpcb {
	/* must be first, because so_pcb points to both */
	struct inpcb	 t_inp;
	enum tcp_state	 t_state;
	unsigned	 t_flags;	/* TF_* */
	struct tcp_fastopen *t_fastopen; /* of a listener or its child, or NULL */

	/* Send sequence space (RFC 9293 figure 3). */
	tcp_seq		 iss, snd_una;
	tcp_seq		 snd_max;	/* SND.NXT: never decreases */
	tcp_seq		 snd_wl1, snd_wl2;
	tcp_seq		 snd_small;	/* end of the last small segment */
	tcp_seq		 snd_up;	/* end of urgent data, or snd_una */
	uint32_t	 snd_wnd, max_sndwnd;
	/* Receive sequence space (RFC 9293 figure 4). */
	tcp_seq		 irs, rcv_nxt;
	tcp_seq		 rcv_adv;	/* right edge advertised */
	tcp_seq		 last_ack_sent;
	uint8_t		 snd_scale, rcv_scale;

	uint32_t	 t_maxseg;	/* data bytes of a full segment */
	uint16_t	 t_usermss;	/* TCP_MAXSEG, 0: not set */
	uint16_t	 t_peermss;	/* MSS option of the peer */
	uint32_t	 t_pathmtu;	/* from ICMP or probes, 0: unknown */
	struct tcp_mtu	 t_mtu;
	bool		 t_used;	/* has been connected before */
	unsigned	 t_unacked; /* segments received since our last ACK */
	unsigned	 t_quickacks;	/* ACKs that must not be delayed */
	uint32_t	 t_rcvmss;	/* longest segment received */
	uint32_t	 t_windowclamp;	/* TCP_WINDOW_CLAMP, 0: none */

	/* Timestamps (RFC 7323). */
	uint32_t	 ts_recent, ts_offset;
	nsec_t		 ts_recent_time;

	/* Timers; one callout serves the earliest deadline. */
	struct callout	 t_callout;
	nsec_t		 t_armed; /* when the callout fires, or NSEC_FOREVER */
	nsec_t		 t_deadline[TT_COUNT];

	/* Round-trip time (RFC 6298). */
	nsec_t		 t_srtt, t_rttvar, t_rto, t_rttmin;
	nsec_t		 t_rttlast;	/* the latest sample */
	nsec_t		 t_rttstart;	/* segment being timed, or 0 */
	tcp_seq		 t_rttseq;
	unsigned	 t_rxtshift;	/* back-off */
	nsec_t		 t_rxtsince;	/* send time of the timed-out segment */
	nsec_t		 t_lastsend, t_lastrecv;

	/* Congestion control. */
	const struct cc_algo *t_cc;
	uint32_t	 snd_cwnd, snd_ssthresh;
	/* bytes acked towards Reno's next increase */
	uint32_t	 t_cwndacked;
	uint32_t	 t_usage;	/* max bytes in flight ... */
	tcp_seq		 t_usageend;	/* ... until this is acknowledged */
	struct cc_state	 t_ccstate;	/* private to t_cc */
	struct hystart	 t_hystart;
	unsigned	 t_dupacks;	/* only without SACK */

	/* Data in flight and recovery. */
	TAILQ_HEAD(tcp_sentlist, tcp_sent) t_sent;
	TAILQ_HEAD(tcp_senttime, tcp_sent) t_inflight;
	struct tcp_senttime t_lost;
	struct tcp_sent	*t_senthint;	/* where the last search ended */
	unsigned	 t_nsent;	/* records */
	struct tcp_sent	 t_sentown;	/* preallocated record */
	bool		 t_sentused;	/* ... and whether it is in use */
	uint32_t	 t_sackedbytes, t_lostbytes;
	enum tcp_recovery t_recovery;
	enum tcp_frto	 t_frto;
	tcp_seq		 snd_recover;	/* recovery ends when it is acked */
	struct tcp_rack	 t_rack;
	struct tcp_tlp	 t_tlp;
	struct tcp_prr	 t_prr;
	struct tcp_undo	 t_undo;
	uint64_t	 t_rexmitbytes, t_dsackbytes;

	/* Reassembly. */
	TAILQ_HEAD(tcp_ooblocks, tcp_ooblock) t_ooq;
	/* the same blocks; those that received data last are first */
	TAILQ_HEAD(, tcp_ooblock) t_oorecent;
	unsigned	 t_oolen;	/* blocks */
	uint32_t	 t_oobytes;	/* their data */
	uint64_t	 t_oomemory;	/* bytes that the data occupies */
	struct tcp_sackblock t_dsack;	/* last duplicate range; empty: none */

	/* Keep-alive and limits. */
	nsec_t		 t_keepidle, t_keepintvl;
	nsec_t		 t_keepnext;	/* when the next probe is due */
	unsigned	 t_keepcnt, t_keepprobes;
	nsec_t		 t_usertimeo;	/* TCP_USER_TIMEOUT, 0: none */
	nsec_t		 t_deferaccept;	/* TCP_DEFER_ACCEPT, 0: none */
	nsec_t		 t_linger2;	/* TCP_LINGER2, 0: default */
	unsigned	 t_syncnt;	/* TCP_SYNCNT, 0: default */
	uint32_t	 t_notsentmax;	/* TCP_NOTSENT_LOWAT, 0: default */
	bool		 t_thin;	/* TCP_THIN_LINEAR_TIMEOUTS: kept only */
	nsec_t		 t_challenge_time;
	/* challenge ACKs in the second that starts at the time */
	unsigned	 t_challenges;
	/* from ICMP, only reported after a timeout */
	int		 t_softerror;

	/* Receive rate of the program, for tcp_buf.c. */
	nsec_t		 t_readtime;
	uint64_t	 t_readmark;	/* bytes read before that time */

	/* Statistics for TCP_INFO. */
	uint64_t	 t_bytes_acked, t_bytes_received;
	uint64_t	 t_bytes_sent;
	uint32_t	 t_segs_out, t_segs_in, t_total_retrans;
	uint32_t	 t_synacked;	/* bytes of our SYN that the SYN-ACK acknowledged */
	uint32_t	 t_data_segs_out, t_data_segs_in, t_ooopack;
	nsec_t		 t_lastdata;	/* when data was last received */
	enum tcp_limit	 t_limit;
	nsec_t		 t_limitsince;
	nsec_t		 t_limited[TL_COUNT];	/* time until then by limit */
} __attribute__((aligned(64)));	/* no cache line is shared by two connections */

#define	sototcpcb(so)	((struct tcpcb *)(so)->so_pcb)

/*
 * The number of segments in len bytes, and the bytes in a last partial one.
 * Most lengths fit one segment, and a division would cost as much as a lock.
 */
static inline uint32_t
tcp_segments(const struct tcpcb *tp, uint32_t len)
{
	return (len <= tp->t_maxseg ? len > 0 :
	    (len + tp->t_maxseg - 1) / tp->t_maxseg);
}

static inline uint32_t
tcp_tail(const struct tcpcb *tp, uint32_t len)
{
	return (len < tp->t_maxseg ? len : len % tp->t_maxseg);
}

/* RFC 5961 section 5.2: the ACKs that can come from the peer. */
static inline bool
tcp_ack_plausible(const struct tcpcb *tp, tcp_seq ack)
{
	const tcp_seq least = tp->snd_una - tp->max_sndwnd;

	return (ack - least <= tp->snd_max - least);
}

/* The peer has sent FIN (RFC 9293 section 3.10.7.4). */
static inline bool
tcp_has_fin(const struct tcpcb *tp)
{
	return (tp->t_state != TCPS_ESTABLISHED &&
	    tp->t_state != TCPS_FIN_WAIT_1 && tp->t_state != TCPS_FIN_WAIT_2);
}

/* We have closed our side, and the peer has not acknowledged that. */
static inline bool
tcp_sends_fin(enum tcp_state state)
{
	return (state == TCPS_FIN_WAIT_1 || state == TCPS_CLOSING ||
	    state == TCPS_LAST_ACK);
}

/* Length of IP and TCP header without options. */
static inline uint32_t
tcp_hdrlen(const struct in_conninfo *c)
{
	return (in_family(&c->faddr)->af_hdrlen + TCP_HDRLEN);
}
/* The peer's MSS if its SYN has no option (RFC 9293 MUST-15). */
static inline uint16_t
tcp_defaultmss(const struct in_conninfo *c)
{
	return ((uint16_t)(in_family(&c->faddr)->af_minmtu - tcp_hdrlen(c)));
}

/* tcp_subr.c */
extern struct inpcbtable tcp_table;
void	 tcp_init(void);
struct tcpcb *tcp_newtcpcb(struct socket *so) REQUIRES(so->so_lock);
/* Copies the options of level TCP that children of a listener inherit. */
void	 tcp_copyopts(struct tcpcb *tp, const struct tcpcb *)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/*
 * Makes a closed block as new, but for the address and port that bind() named
 * and for the options, which stay as in Linux.
 */
void	 tcp_renew(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock);
unsigned tcp_offers(void);	/* TF_TS, TF_WSCALE, TF_SACK */
/*
 * Ends the connection: removes it from the tables and notifies the socket.
 * Frees the block unless a descriptor still references the socket.  The caller
 * must not use the block afterwards.
 */
void	 tcp_close(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock);
/* Like tcp_close(), and resets the peer and sets so_error. */
void	 tcp_drop(struct tcpcb *tp, int error)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
void	 tcp_discard(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock);	/* frees a closed block */
/* False: closed at once. */
bool	 tcp_timewait(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
tcp_seq	 tcp_newiss(const struct in_conninfo *);
uint32_t tcp_tsoffset(const struct in_conninfo *);
uint16_t tcp_offermss(const struct in_conninfo *, uint16_t usermss);
/* The MSS option: as tcp_offermss(), or for net.inet.tcp.mss_of_path. */
uint16_t tcp_advmss(const struct in_conninfo *, uint16_t usermss);
void	 tcp_setmss(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock);
/* the MSS that we advertise */
uint32_t tcp_mymss(const struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
void	 tcp_setstate(struct tcpcb *, enum tcp_state);
void	 tcp_ctlinput(int error, const struct in_conninfo *,
	    const uint8_t *header, uint32_t mtu, const struct in_icmperr *);

/* tcp_input.c */
void	 tcp_input(struct mbuf *, unsigned hlen);

/* tcp_syn.c */
enum tcp_step tcp_listen_input(struct socket *head, const struct tcpseg *,
	    struct socket **child) REQUIRES(head->so_lock);
/* A child accepted by Fast Open processes its SYN. */
enum tcp_step tcp_listen_fast(struct tcpcb *tp, struct tcpseg *)
    REQUIRES(tp->t_inp.inp_socket->so_lock);
NOINLINE enum tcp_step tcp_synsent_input(struct tcpcb *tp, struct tcpseg *)
    REQUIRES(tp->t_inp.inp_socket->so_lock);
enum tcp_step tcp_synreceived_ack(struct tcpcb *tp, struct tcpseg *)
    REQUIRES(tp->t_inp.inp_socket->so_lock);
void	 tcp_synreceived_answer(struct tcpcb *tp, const struct tcpseg *)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
void	 tcp_usr_copy(struct socket *head, struct socket *copy)
	    REQUIRES(head->so_lock, copy->so_lock);
/* fast: as MSG_FASTOPEN; the SYN may wait for data. */
int	 tcp_connect(struct tcpcb *tp, const struct in_endpoint *, bool fast)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
int	 tcp_sendsyn(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock);

/* tcp_ack.c */
enum tcp_step tcp_ack_input(struct tcpcb *tp, struct tcpseg *)
    REQUIRES(tp->t_inp.inp_socket->so_lock);
void	 tcp_updatewindow(struct tcpcb *, const struct tcpseg *);
void	 tcp_rttsample(struct tcpcb *, nsec_t rtt);
void	 tcp_setrto(struct tcpcb *);

/* The effects of an ACK. */
struct tcp_acked {
	nsec_t		 now;
	uint32_t	 acked;		/* bytes that snd_una advanced */
	uint32_t	 delivered;	/* bytes delivered, by ACK or SACK */
	bool		 duplicate;	/* RFC 5681 section 2 */
	bool		 again;		/* covers retransmitted data */
	bool		 original;	/* covers data sent only once */
	bool		 dsack;
	bool		 marked;	/* the peer echoed a congestion mark */
	bool		 has_ts;
	uint32_t	 tsecr;
	tcp_seq		 fack;		/* highest delivered before this ACK */
	bool		 reordered;	/* original below fack was delivered */
};

/* tcp_sendmap.c */
void	 tcp_sent_init(struct tcpcb *);
void	 tcp_sent_flush(struct tcpcb *);
void	 tcp_sent_add(struct tcpcb *, tcp_seq seq, tcp_seq end, nsec_t now);
void	 tcp_sent_ack(struct tcpcb *, tcp_seq ack, struct tcp_acked *);
__cold void	 tcp_sent_sack(struct tcpcb *, tcp_seq start, tcp_seq end,
	    struct tcp_acked *);
__cold void tcp_sent_set(struct tcpcb *, struct tcp_sent *, enum tcp_sentstate);
void	 tcp_sent_lose(struct tcpcb *, uint32_t len);
void	 tcp_sent_unlose(struct tcpcb *);
void	 tcp_sent_renege(struct tcpcb *);
bool	 tcp_sent_after(const struct tcp_sent *, nsec_t time, tcp_seq end);

/* tcp_rack.c */
void	 tcp_rack_init(struct tcpcb *);
void	 tcp_rack_delivered(struct tcpcb *, const struct tcp_sent *,
	    struct tcp_acked *);
__cold void	 tcp_rack_dsack(struct tcpcb *);
void	 tcp_rack_recovered(struct tcpcb *);
bool	 tcp_rack_detect(struct tcpcb *, nsec_t now);
void	 tcp_rack_timeout(struct tcpcb *, nsec_t now);
void	 tcp_tlp_schedule(struct tcpcb *);
void	 tcp_tlp_probe(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
bool	 tcp_tlp_acked(struct tcpcb *, tcp_seq ack, const struct tcp_acked *);

/* tcp_recover.c */
void	 tcp_recover_init(struct tcpcb *);
void	 tcp_sack_input(struct tcpcb *, const struct tcpseg *,
	    struct tcp_acked *);
void	 tcp_recover(struct tcpcb *tp, tcp_seq ack, const struct tcp_acked *)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
__cold void	 tcp_recover_rexmit(struct tcpcb *, uint32_t len, nsec_t now);
void	 tcp_recover_reorder(struct tcpcb *);
void	 tcp_recover_timeout(struct tcpcb *);
void	 tcp_recover_resend(struct tcpcb *);
__cold void	 tcp_recover_reopened(struct tcpcb *);
uint32_t tcp_pipe(const struct tcpcb *);

/* tcp_ecn.c */
void	 tcp_ecn_sysctl_init(void);
uint8_t	 tcp_ecn_field(const struct mbuf *);
unsigned tcp_ecn_request(const struct tcpcb *);
unsigned tcp_ecn_requested(const struct tcpseg *);
void	 tcp_ecn_accepted(struct tcpcb *, const struct tcpseg *);
uint8_t	 tcp_ecn_synflags(unsigned wants, uint8_t flags);
enum tcp_step tcp_ecn_input(struct tcpcb *, struct tcpseg *);
uint8_t	 tcp_ecn_output(struct tcpcb *, bool fresh, uint8_t *ecn);

/* tcp_reass.c */
/*
 * As in Linux, data is an answer if data was received shortly before, or a
 * SYN-ACK for which a write has waited.
 */
__cold bool tcp_isanswer(const struct tcpcb *);
enum tcp_step tcp_data_input(struct tcpcb *tp, struct tcpseg *)
    REQUIRES(tp->t_inp.inp_socket->so_lock);
void	 tcp_reass_flush(struct tcpcb *);
/*
 * Keeps data and FIN of the peer's SYN until the handshake is complete (RFC
 * 9293 section 3.10.7.3).
 */
__cold void tcp_reass_later(struct tcpcb *, struct tcpseg *);
/* Delivers the data of a SYN at once, but not its FIN. */
__cold void tcp_reass_fast(struct tcpcb *tp, struct tcpseg *)
    REQUIRES(tp->t_inp.inp_socket->so_lock);
__cold unsigned tcp_reass_sack(const struct tcpcb *, struct tcp_sackblock *);
/* Whether the next ACK has SACK blocks to report. */
static inline bool
tcp_reass_reports(const struct tcpcb *tp)
{
	return (!TAILQ_EMPTY(&tp->t_ooq) ||
	    tp->t_dsack.start != tp->t_dsack.end);
}
/* Reports [start, end) as a duplicate in the next ACK (RFC 2883). */
void	 tcp_dsack_report(struct tcpcb *, tcp_seq start, tcp_seq end);

/* tcp_urgent.c */
struct tcphdr;
tcp_seq	 tcp_urgent_byte(const struct tcphdr *);
enum tcp_step tcp_urgent_input(struct tcpcb *tp, struct tcpseg *)
    REQUIRES(tp->t_inp.inp_socket->so_lock);
__cold void	 tcp_urgent_send(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/* Sets the urgent pointer of a segment that begins at seq. */
void	 tcp_urgent_output(const struct tcpcb *, tcp_seq seq, struct tcphdr *);
/*
 * Whether the segment that begins at seq has an urgent pointer.  seq may lie
 * below snd_una: a probe announces what is urgent, but nothing acknowledged.
 */
static inline bool
tcp_is_urgent(const struct tcpcb *tp, tcp_seq seq)
{
	return (__predict_false(SEQ_GT(tp->snd_up, tp->snd_una)) &&
	    SEQ_GT(tp->snd_up, seq));
}

/* tcp_mtu.c */
/* the handshake is complete */
void	 tcp_mtu_init(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock);
/* Takes over what the host knows of the path. */
void	 tcp_mtu_recall(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
void	 tcp_mtu_icmp(struct tcpcb *tp, uint32_t mtu)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);	/* by ICMP */
void	 tcp_mtu_timeout(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/* Bytes to send as one probe from snd_max; 0: no probe now. */
uint32_t tcp_mtu_probe(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/* snd_una has advanced */
void	 tcp_mtu_acked(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
__cold void	 tcp_mtu_resent(struct tcpcb *, tcp_seq, uint32_t len);

/* tcp_buf.c: called after a read and after a write; may enlarge the buffer. */
void	 tcp_recvbuf_tune(struct tcpcb *);
void	 tcp_sendbuf_tune(struct tcpcb *);

/*
 * tcp_defer.c.  tcp_ack_defer(): true if the due ACK is deferred to the end of
 * the receive burst.  tcp_output_handoff() runs before output: true if another
 * thread holds segments of the connection in its transmit batch and will send
 * the rest.  tcp_output_held() runs after output and marks this thread as that
 * holder.
 */
bool	 tcp_ack_defer(struct tcpcb *);
void	 tcp_output_held(struct tcpcb *);
bool	 tcp_output_handoff(struct tcpcb *);

/* tcp_output.c */
int	 tcp_output(struct tcpcb *);
/* Bytes in the send buffer that have never been sent. */
uint32_t tcp_notsent(const struct tcpcb *tp)
    REQUIRES(tp->t_inp.inp_socket->so_lock);
/*
 * A writer adds no data beyond this number of unsent bytes; above INT32_MAX:
 * no limit.
 */
uint32_t tcp_notsentmax(const struct tcpcb *);
/* Sends new data, else retransmits the last segment and returns false. */
bool	 tcp_sendtail(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock);
void	 tcp_sendprobe(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
uint32_t tcp_rcvwindow(struct tcpcb *);
/* The sequence number of a segment without data. */
tcp_seq	 tcp_emptyseq(const struct tcpcb *);
/* Our timestamp clock: milliseconds (RFC 7323 section 5.4). */
static inline uint32_t
tcp_clock_ts(uint32_t offset, nsec_t when)
{
	return ((uint32_t)(when / NSEC_PER_MSEC) + offset);
}
uint32_t tcp_now_ts(const struct tcpcb *);
uint32_t tcp_ts_at(const struct tcpcb *, nsec_t);
/* Whether the rate limit permits a challenge ACK (RFC 5961 section 7). */
bool	 tcp_challenge_ok(struct tcpcb *);

/* tcp_burst.c: bytes of a burst that may have most bytes, and should have min_segs. */
__cold uint32_t tcp_burst_paced(const struct tcpcb *, uint32_t most,
	    uint32_t min_segs);

/* tcp_respond.c */
/*
 * Sends a segment without data or window in response to another one, with the
 * options of the socket that responds (TOS, TTL, interface; NULL: no socket).
 */
__cold void  tcp_respond(const struct tcpseg *, const struct ip_sendopts *,
	    tcp_seq seq, tcp_seq ack, uint8_t flags, uint32_t tsval);
__cold void  tcp_reset(const struct tcpseg *, const struct ip_sendopts *);

/* tcp_timer.c */
void	 tcp_timer_set(struct tcpcb *, enum tcp_timer, nsec_t delay);
void	 tcp_timer_clear(struct tcpcb *, enum tcp_timer);
bool	 tcp_timer_running(const struct tcpcb *, enum tcp_timer);
void	 tcp_timer_stopall(struct tcpcb *);
void	 tcp_timer_persist(struct tcpcb *);
void	 tcp_timer_keep(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/*
 * Starts the FIN_WAIT_2 timer of a closed socket; false: the connection was
 * closed instead.
 */
bool	 tcp_timer_finwait2(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
unsigned tcp_synlimit(const struct tcpcb *);	/* max SYN retransmissions */

/* tcp_usrreq.c, tcp_sockopt.c, tcp_info.c */
extern const struct protosw tcp_protosw;
void	 tcp_usrclosed(struct tcpcb *);
void	 tcp_rcvd(struct socket *so) REQUIRES(so->so_lock);
int	 tcp_setopt(struct socket *so, int level, int name, const void *,
	    socklen_t)
	    REQUIRES(so->so_lock);
int	 tcp_getopt(struct socket *so, int level, int name, void *, socklen_t *)
	    REQUIRES(so->so_lock);
__cold void	 tcp_readcontrol(struct socket *so, struct msghdr *, size_t room)
	    REQUIRES(so->so_lock);
int	 tcp_getinfo(const struct tcpcb *tp, void *, socklen_t *)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/* Records what limits the sender, after output. */
void	 tcp_info_limit(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);

#endif /* NETINET_TCP_VAR_H */
