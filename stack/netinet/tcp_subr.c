/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP control blocks: creation, destruction, and ICMP errors.
 *
 * A block lives as long as its connection or its descriptor, whichever ends
 * last.  After the connection has ended, a program may still read options,
 * statistics and the error.  tcp_close() therefore removes the block from the
 * tables and sets state CLOSED; it is freed with the descriptor.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "netinet/tcp_fastopen.h"
#include "netinet/tcp_syncache.h"

const char *const tcp_state_names[TCPS_COUNT] = {
	"CLOSED", "LISTEN", "SYN_SENT", "SYN_RECEIVED", "ESTABLISHED",
	"CLOSE_WAIT", "FIN_WAIT_1", "CLOSING", "LAST_ACK", "FIN_WAIT_2",
	"TIME_WAIT"
};

struct inpcbtable tcp_table;
static struct protosw tcp6_protosw;	/* [I] after boot */
static struct siphash_key tcp_isskey, tcp_tskey;	/* [I] after boot */
static atomic_u32 tcp_ntimewait;	/* [a] connections in TIME_WAIT */

void
tcp_init(void)
{
	giant_component("tcp");
	in_pcbtable_init(&tcp_table, "tcp", true);
	mach_random(&tcp_isskey, sizeof(tcp_isskey));
	mach_random(&tcp_tskey, sizeof(tcp_tskey));
	tcp_syncache_init();
	tcp_fastopen_init();
	tcp_sysctl_init();
	tcp6_protosw = tcp_protosw;
	tcp6_protosw.pr_name = "tcp6";
	tcp6_protosw.pr_domain = AF_INET6;
	tcp6_protosw.pr_namelen = sizeof(struct sockaddr_in6);
	protosw_register(&tcp_protosw);
	protosw_register(&tcp6_protosw);
	in_proto_register(IPPROTO_TCP, tcp_input, tcp_ctlinput);
}

unsigned
tcp_offers(void)
{
	return ((atomic_load_u32(&tcp_do_timestamps) ? TF_TS : 0) |
	    (atomic_load_u32(&tcp_do_wscale) ? TF_WSCALE : 0) |
	    (atomic_load_u32(&tcp_do_sack) ? TF_SACK : 0));
}

/* The state of a block that is zero but for its inpcb. */
static void
init_state(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	tp->t_state = TCPS_CLOSED;
	tp->t_maxseg = TCP_DEFAULT_MSS;
	tp->t_rto = tcp_msec(&tcp_rexmit_initial);
	tp->t_rttmin = NSEC_FOREVER;
	tp->t_cc = tcp_cc_default();
	tp->t_armed = NSEC_FOREVER;
	for (int i = 0; i < TT_COUNT; i++)
		tp->t_deadline[i] = NSEC_FOREVER;
	tp->t_flags = tcp_offers();
	TAILQ_INIT(&tp->t_ooq);
	TAILQ_INIT(&tp->t_oorecent);
	tcp_sent_init(tp);
	callout_init(&tp->t_callout);
}

/* Creates the block of a new socket. */
struct tcpcb *
tcp_newtcpcb(struct socket *so) REQUIRES(so->so_lock)
{
	struct tcpcb *tp = kmalloc_aligned(sizeof(*tp),
	    _Alignof(struct tcpcb));

	KASSERT(so->so_pcb == NULL, ("tcp_newtcpcb: socket has a pcb"));
	in_pcbinit(&tp->t_inp, so, &tcp_table);
	so_assert_locked(tp->t_inp.inp_socket);
	init_state(tp);
	soref(so);
	so->so_pcb = tp;
	return (tp);
}

void
tcp_copyopts(struct tcpcb *tp, const struct tcpcb *from)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	tp->t_flags |= from->t_flags & (TF_NODELAY | TF_CORK | TF_QUICKACK);
	tp->t_notsentmax = from->t_notsentmax;
	tp->t_usermss = from->t_usermss;
	tp->t_cc = from->t_cc;
	tp->t_keepidle = from->t_keepidle;
	tp->t_keepintvl = from->t_keepintvl;
	tp->t_keepcnt = from->t_keepcnt;
	tp->t_usertimeo = from->t_usertimeo;
	tp->t_linger2 = from->t_linger2;
	tp->t_windowclamp = from->t_windowclamp;
}

void
tcp_renew(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const struct tcpcb old = *tp;

	KASSERT(tp->t_state == TCPS_CLOSED, ("tcp_renew: state %s",
	    tcp_state_names[tp->t_state]));
	KASSERT(TAILQ_EMPTY(&tp->t_ooq), ("tcp_renew: segments queued"));
	in_pcbdissolve(&tp->t_inp);
	tcp_timer_stopall(tp);
	memset((char *)tp + sizeof(tp->t_inp), 0,
	    sizeof(*tp) - sizeof(tp->t_inp));
	init_state(tp);
	tcp_copyopts(tp, &old);
	tp->t_flags |= old.t_flags & (TF_FOCONNECT | TF_FONOCOOKIE);
	tp->t_fastopen = old.t_fastopen;
	tp->t_deferaccept = old.t_deferaccept;
	tp->t_syncnt = old.t_syncnt;
	tp->t_thin = old.t_thin;
}

void
tcp_setstate(struct tcpcb *tp, enum tcp_state state)
{
	so_assert_locked(tp->t_inp.inp_socket);
	if (tp->t_flags & TF_TIMEDWAIT) {
		tp->t_flags &= ~(unsigned)TF_TIMEDWAIT;
		atomic_fetchadd_u32(&tcp_ntimewait, UINT32_MAX);
	}
	if (state == TCPS_TIME_WAIT) {
		tp->t_flags |= TF_TIMEDWAIT;
		atomic_fetchadd_u32(&tcp_ntimewait, 1);
	}
	tp->t_state = state;
}

/*
 * RFC 6528: a clock of 4 microseconds plus a keyed hash of the connection.
 * Numbers of one connection increase, and reveal nothing about those of
 * another.
 */
tcp_seq
tcp_newiss(const struct in_conninfo *c)
{
	uint64_t words[IN_CONNWORDS];
	size_t n = in_connwords(c, words);

	return ((tcp_seq)siphash_words(&tcp_isskey, words, n) +
	    (tcp_seq)(mach_uptime() / (4 * NSEC_PER_USEC)));
}

/*
 * RFC 7323 section 5.4: offset of a connection's timestamps.  It is a hash, so
 * that a SYN cookie need not store it.
 */
uint32_t
tcp_tsoffset(const struct in_conninfo *c)
{
	uint64_t words[IN_CONNWORDS];
	size_t n = in_connwords(c, words);

	return ((uint32_t)siphash_words(&tcp_tskey, words, n));
}

/*
 * RFC 9293 section 3.7.1: the interface's MTU minus fixed headers, or
 * TCP_MAXSEG (0: not set).
 */
uint16_t
tcp_offermss(const struct in_conninfo *c, uint16_t usermss)
{
	uint32_t mss = tcp_defaultmss(c), mtu;
	struct in6_addr src;

	if (in_family(&c->faddr)->af_route(c, &src, &mtu) &&
	    mtu > tcp_hdrlen(c))
		mss = mtu - tcp_hdrlen(c);
	if (usermss != 0 && usermss < mss)
		mss = usermss;
	return ((uint16_t)(mss < 65495 ? mss : 65495));
}

uint16_t
tcp_advmss(const struct in_conninfo *c, uint16_t usermss)
{
	const uint32_t headers = tcp_hdrlen(c);
	const uint16_t mss = tcp_offermss(c, usermss);

	if (__predict_true(atomic_load_u32(&tcp_mss_of_path) == 0))
		return (mss);
	return ((uint16_t)(in_pmtu(&c->faddr, c->zone, mss + headers) -
	    headers));
}

uint32_t
tcp_mymss(const struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	return (tcp_offermss(&tp->t_inp.inp_conn, tp->t_usermss));
}

/* Computes the data bytes of a full segment from all limits. */
void
tcp_setmss(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const uint32_t headers = tcp_hdrlen(&tp->t_inp.inp_conn);
	uint32_t mss = tcp_mymss(tp);

	if (tp->t_peermss != 0 && tp->t_peermss < mss)
		mss = tp->t_peermss;
	if (tp->t_pathmtu != 0 && tp->t_pathmtu - headers < mss)
		mss = tp->t_pathmtu - headers;
	if (mss < TCP_MSS_MIN)
		mss = TCP_MSS_MIN;
	tp->t_maxseg = mss - (tp->t_flags & TF_TS ? TCP_TS_LEN : 0);
}

void
tcp_discard(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;

	KASSERT(tp->t_state == TCPS_CLOSED, ("tcp_discard: state %s",
	    tcp_state_names[tp->t_state]));
	KASSERT(TAILQ_EMPTY(&tp->t_ooq), ("tcp_discard: segments queued"));
	in_pcbremove(&tp->t_inp);
	tcp_timer_stopall(tp);
	so->so_pcb = NULL;
	tcp_fastopen_free(tp);
	kfree(tp);
	sorele(so);
}

void
tcp_close(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;

	KASSERT(tp->t_state != TCPS_CLOSED, ("tcp_close: closed already"));
	tcp_setstate(tp, TCPS_CLOSED);
	tcp_fastopen_ended(tp, false);
	tcp_timer_stopall(tp);
	tcp_reass_flush(tp);
	tcp_sent_flush(tp);
	in_pcbended(&tp->t_inp);
	TCPSTAT_INC(closed);
	(void)sounqueue(so);
	soisdisconnected(so);
	if (so->so_state & SS_NOFDREF)
		tcp_discard(tp);
}

/*
 * Resets a connection, with a timestamp if it uses them (RFC 7323 section
 * 3.2).
 */
static void
send_reset(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const struct tcpseg sg = { .sg_conn = tp->t_inp.inp_conn,
	    .sg_opt = { .has_ts = (tp->t_flags & TF_TS) != 0,
	    .tsval = tp->ts_recent } };

	TCPSTAT_INC(sndrst);
	tcp_respond(&sg, &tp->t_inp.inp_opts, tcp_emptyseq(tp), tp->rcv_nxt,
	    TH_RST | TH_ACK, tcp_now_ts(tp));
}

/* RFC 9293 section 3.10.5: no reset after both FINs were exchanged. */
static bool
wants_reset(enum tcp_state state)
{
	return (state == TCPS_SYN_RECEIVED || state == TCPS_ESTABLISHED ||
	    state == TCPS_CLOSE_WAIT || state == TCPS_FIN_WAIT_1 ||
	    state == TCPS_FIN_WAIT_2);
}

static void
drop_silently(struct tcpcb *tp, int error)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	TCPSTAT_INC(drops);
	tp->t_inp.inp_socket->so_error = error;
	tcp_close(tp);
}

void
tcp_drop(struct tcpcb *tp, int error) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (wants_reset(tp->t_state))
		send_reset(tp);
	drop_silently(tp, error);
}

bool
tcp_timewait(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	struct socket *so = tp->t_inp.inp_socket;

	TCPSTAT_INC(timewait);
	tcp_setstate(tp, TCPS_TIME_WAIT);
	tcp_reass_flush(tp);
	for (int i = 0; i < TT_COUNT; i++)
		tcp_timer_clear(tp, i);
	soisdisconnected(so);
	(void)tcp_output(tp);		/* the ACK of a FIN */
	if (atomic_load_u32(&tcp_ntimewait) >
	    atomic_load_u32(&tcp_maxtimewait)) {
		TCPSTAT_INC(timewaitover);
		tcp_close(tp);
		return (false);
	}
	tcp_timer_set(tp, TT_2MSL, 2 * tcp_msec(&tcp_msl));
	return (true);
}

/* RFC 9293 SHLD-25, SHLD-26: the peer's host has no such port. */
static bool
is_hard(int error)
{
	return (error == ECONNREFUSED || error == ENOPROTOOPT);
}

/*
 * RFC 5927 section 4.1: an ICMP error must quote data in flight.  RFC 9293
 * section 3.9.2.2: unreachable errors do not end an established connection.  A
 * handshake ends unless net.inet.tcp.icmp_drops_syn is 0, so that a program
 * soon tries another address.  Errors of a port or protocol are hard ones.
 */
static void
icmp_error_for(struct tcpcb *tp, int error, tcp_seq seq, uint32_t mtu)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	/* an accepted child of Fast Open is a connection for the program */
	const bool opening = tp->t_state < TCPS_ESTABLISHED &&
	    ((tp->t_flags & TF_FASTOPEN) == 0 ||
	    tp->t_inp.inp_socket->so_head != NULL);

	if (tp->t_state == TCPS_LISTEN)
		return;
	if (SEQ_LT(seq, opening ? tp->iss : tp->snd_una) ||
	    SEQ_GEQ(seq, tp->snd_max)) {
		TCPSTAT_INC(icmpwindow);
		return;
	}
	if (error == EMSGSIZE)
		tcp_mtu_icmp(tp, mtu);
	else if (opening &&
	    (atomic_load_u32(&tcp_icmp_drops_syn) != 0 || is_hard(error)))
		drop_silently(tp, error);	/* the peer is not reached */
	else
		tp->t_softerror = error;
}

void
tcp_ctlinput(int error, const struct in_conninfo *c, const uint8_t *header,
    uint32_t mtu, const struct in_icmperr *ie)
{
	struct socket *so = in_pcblookup_conn(&tcp_table, c);
	struct tcpcb *tp;
	tcp_seq seq;

	(void)ie;
	memcpy(&seq, header + offsetof(struct tcphdr, th_seq), sizeof(seq));
	if (so == NULL) {
		if (error != EMSGSIZE)
			tcp_syncache_unreach(c, ntohl(seq), is_hard(error));
		return;
	}
	solock(so);
	tp = sototcpcb(so);
	if (tp != NULL && tp->t_state != TCPS_CLOSED) {
		so_assert_locked(tp->t_inp.inp_socket);
		icmp_error_for(tp, error, ntohl(seq), mtu);
	}
	sounlock_input(so);
	sorele(so);
}
