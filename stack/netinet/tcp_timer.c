/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP timers.  A connection has a deadline for each timer and one callout for
 * the earliest.  On the data path, setting a timer is a store, and the callout
 * is moved only if it would fire too late.  When it fires, it runs the due
 * timers and sleeps until the next deadline.
 *
 * A pending callout holds a reference to the socket, which is its argument.  A
 * callout that fires after the control block was freed detects that under the
 * socket's lock.
 */
#include <errno.h>

#include "kern/planted.h"
#include "netinet/tcp_var.h"

#define	ONEWAY_QUICKACKS 64	/* see timer_delack() */
#define	MAX_REXMT	15		/* as Linux's tcp_retries2 */
#define	MAX_SYN_REXMT	6		/* as Linux's tcp_syn_retries */

static void	tcp_timer_fire(void *);

static void
timer_ref(struct socket *so)
{
	if (!PLANTED(TIMER_REF))
		soref(so);
}

static void
timer_rele(struct socket *so)
{
	if (!PLANTED(TIMER_REF))
		sorele(so);
}

static void
timer_arm(struct tcpcb *tp, nsec_t when, nsec_t now)
{
	struct socket *so = tp->t_inp.inp_socket;

	tp->t_armed = when;
	if (!callout_reset(&tp->t_callout, when > now ? when - now : 0,
	    tcp_timer_fire, so))
		timer_ref(so);
}

__hot void
tcp_timer_set(struct tcpcb *tp, enum tcp_timer which, nsec_t delay)
{
	nsec_t now = getuptime();

	KASSERT(tp->t_state != TCPS_CLOSED, ("tcp_timer_set: %d on a closed "
	    "connection", which));
	tp->t_deadline[which] = now + delay;
	if (__predict_false(tp->t_deadline[which] < tp->t_armed))
		timer_arm(tp, tp->t_deadline[which], now);
}

void
tcp_timer_clear(struct tcpcb *tp, enum tcp_timer which)
{
	tp->t_deadline[which] = NSEC_FOREVER;
}

bool
tcp_timer_running(const struct tcpcb *tp, enum tcp_timer which)
{
	return (tp->t_deadline[which] != NSEC_FOREVER);
}

void
tcp_timer_stopall(struct tcpcb *tp)
{
	for (int i = 0; i < TT_COUNT; i++)
		tp->t_deadline[i] = NSEC_FOREVER;
	tp->t_armed = NSEC_FOREVER;
	if (callout_stop(&tp->t_callout))
		timer_rele(tp->t_inp.inp_socket);
}

/* RFC 6298 (5.5), with the limit of RFC 9293 section 3.8.3. */
static nsec_t
backoff(const struct tcpcb *tp)
{
	nsec_t rto = tp->t_rto;

	for (unsigned i = 0; i < tp->t_rxtshift && rto < TCP_RTO_MAX; i++)
		rto *= 2;
	return (rto < TCP_RTO_MAX ? rto : TCP_RTO_MAX);
}

/* Time until TCP_USER_TIMEOUT ends the connection (RFC 5482); 0: now. */
static nsec_t
user_timeout_left(const struct tcpcb *tp, nsec_t since, nsec_t now)
{
	if (tp->t_usertimeo == 0)
		return (NSEC_FOREVER);
	return (now - since < tp->t_usertimeo ?
	    tp->t_usertimeo - (now - since) : 0);
}

/*
 * When a segment is repeated: after delay, but not beyond the time at which
 * TCP_USER_TIMEOUT ends the connection.
 */
static nsec_t
repeat_delay(const struct tcpcb *tp, nsec_t delay, nsec_t since, nsec_t now)
{
	const nsec_t left = user_timeout_left(tp, since, now);

	/* none is left if a keep-alive probe was due only afterwards */
	return (left > 0 && left < delay ? left : delay);
}

unsigned
tcp_synlimit(const struct tcpcb *tp)
{
	return (tp->t_syncnt != 0 ? tp->t_syncnt : MAX_SYN_REXMT);
}

static bool
timer_gaveup(struct tcpcb *tp, nsec_t now)
{
	unsigned limit = tp->t_state < TCPS_ESTABLISHED ? tcp_synlimit(tp) :
	    MAX_REXMT;

	if (tp->t_rxtshift == 0)
		tp->t_rxtsince = now - tp->t_rto;
	if (user_timeout_left(tp, tp->t_rxtsince, now) == 0)
		return (true);
	return (++tp->t_rxtshift > limit);
}

/* A handshake ends without a reset, because its SYN may be forged. */
static struct tcpcb *
timer_giveup(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	int error = tp->t_softerror != 0 ? tp->t_softerror : ETIMEDOUT;

	TCPSTAT_INC(timeoutdrop);
	if (tp->t_state >= TCPS_ESTABLISHED) {
		tcp_drop(tp, error);
	} else {
		TCPSTAT_INC(syntimeout);
		tp->t_inp.inp_socket->so_error = error;
		tcp_close(tp);
	}
	return (NULL);
}

static struct tcpcb *
timer_rexmt(struct tcpcb *tp, nsec_t now)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (timer_gaveup(tp, now))
		return (timer_giveup(tp));
	TCPSTAT_INC(rexmttimeo);
	tcp_timer_set(tp, TT_REXMT, repeat_delay(tp, backoff(tp), tp->t_rxtsince,
	    now));
	if (tp->t_state < TCPS_ESTABLISHED) {
		/* ECN may be the cause (RFC 3168 section 6.1.1.1) */
		tp->t_flags &= ~(unsigned)TF_ECN;
		(void)tcp_sendsyn(tp);
		return (tp);
	}
	tcp_mtu_timeout(tp);
	tcp_recover_timeout(tp);
	(void)tcp_output(tp);
	return (tp);
}

/* RFC 9293 section 3.8.6.1: probes a closed window, without limit. */
static struct tcpcb *
timer_persist(struct tcpcb *tp, nsec_t now)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	TCPSTAT_INC(persisttimeo);
	if (tp->t_rxtshift == 0)
		tp->t_rxtsince = now;
	/* a peer that answers may keep its window closed without limit */
	if (tp->t_rxtshift >= MAX_REXMT ||
	    (tp->t_rxtshift > 0 &&
	    user_timeout_left(tp, tp->t_rxtsince, now) == 0))
		return (timer_giveup(tp));
	/* Set before output, which would start with the first interval. */
	tp->t_rxtshift++;
	tcp_timer_set(tp, TT_PERSIST, repeat_delay(tp, backoff(tp), tp->t_rxtsince,
	    now));
	tp->t_flags |= TF_FORCE;
	tp->t_flags &= ~(unsigned)TF_NOPUSH;
	(void)tcp_output(tp);
	tp->t_flags &= ~(unsigned)TF_FORCE;
	if (tcp_timer_running(tp, TT_REXMT))
		tcp_timer_clear(tp, TT_PERSIST);	/* data was sent */
	else if (tp->t_inp.inp_socket->so_snd.sb_cc > 0)
		tcp_sendprobe(tp);
	return (tp);
}

void
tcp_timer_persist(struct tcpcb *tp)
{
	if (!tcp_timer_running(tp, TT_PERSIST)) {
		tp->t_rxtshift = 0;
		tcp_timer_set(tp, TT_PERSIST, backoff(tp));
	}
}

static nsec_t
keepidle(const struct tcpcb *tp)
{
	return (tp->t_keepidle != 0 ? tp->t_keepidle :
	    tcp_msec(&tcp_keepidle));
}

/* Starts or stops keep-alive, after the handshake or by SO_KEEPALIVE. */
void
tcp_timer_keep(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	tp->t_keepprobes = 0;
	if (tp->t_inp.inp_socket->so_options & SOO_KEEPALIVE)
		tcp_timer_set(tp, TT_KEEP, keepidle(tp));
	else
		tcp_timer_clear(tp, TT_KEEP);
}

/*
 * Sets the timer for the next probe.  Input does not set it: if the peer has
 * answered meanwhile, the connection is idle again after keepidle.
 */
static void
await_keepnext(struct tcpcb *tp, nsec_t now)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	const nsec_t left = tp->t_keepnext - now, idle = keepidle(tp);

	tcp_timer_set(tp, TT_KEEP, left < idle ? left : idle);
}

/* RFC 9293 section 3.8.4. */
static struct tcpcb *
timer_keep(struct tcpcb *tp, nsec_t now) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	unsigned limit = tp->t_keepcnt != 0 ? tp->t_keepcnt :
	    atomic_load_u32(&tcp_keepcnt);
	nsec_t idle = now - tp->t_lastrecv;

	if (tp->t_state < TCPS_ESTABLISHED)
		return (timer_giveup(tp));
	if ((tp->t_inp.inp_socket->so_options & SOO_KEEPALIVE) == 0)
		return (tp);
	if (idle < keepidle(tp)) {
		tp->t_keepprobes = 0;
		tcp_timer_set(tp, TT_KEEP, keepidle(tp) - idle);
		return (tp);
	}
	if (tp->t_keepprobes > 0 && now < tp->t_keepnext) {
		await_keepnext(tp, now);
		return (tp);
	}
	/* as in Linux, the user timeout replaces the probe limit */
	if (tp->t_usertimeo == 0 ? tp->t_keepprobes >= limit :
	    tp->t_keepprobes > 0 &&
	    user_timeout_left(tp, tp->t_lastrecv, now) == 0) {
		TCPSTAT_INC(keepdrops);
		return (timer_giveup(tp));
	}
	TCPSTAT_INC(keepprobe);
	tp->t_keepprobes++;
	tcp_sendprobe(tp);
	tp->t_keepnext = now + repeat_delay(tp, tp->t_keepintvl != 0 ?
	    tp->t_keepintvl : tcp_msec(&tcp_keepintvl), tp->t_lastrecv, now);
	await_keepnext(tp, now);
	return (tp);
}

/* The program has closed both sides, so the timer must end the connection. */
bool
tcp_timer_finwait2(struct tcpcb *tp) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	if (tp->t_linger2 == TCP_LINGER2_NONE) {
		tcp_close(tp);
		return (false);
	}
	tcp_timer_set(tp, TT_2MSL, tp->t_linger2 != 0 ? tp->t_linger2 :
	    tcp_msec(&tcp_finwait2_timeout));
	return (true);
}

static struct tcpcb *
timer_2msl(struct tcpcb *tp, nsec_t now) REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	(void)now;
	tcp_close(tp);
	return (NULL);
}

/*
 * No data went back while the ACK was delayed.  A peer that sends small segments
 * with Nagle's algorithm waits for each ACK, so the next ones are sent at once,
 * and after them when the program has read (tcp_rcvd()), until data goes back
 * (account_ack()).  Linux leaves its "pingpong mode" here.
 */
static struct tcpcb *
timer_delack(struct tcpcb *tp, nsec_t now)
{
	(void)now;
	TCPSTAT_INC(delack);
	tp->t_quickacks = ONEWAY_QUICKACKS;
	tp->t_flags |= TF_ACKNOW | TF_ONEWAY;
	(void)tcp_output(tp);
	return (tp);
}

static struct tcpcb *
timer_reorder(struct tcpcb *tp, nsec_t now)
{
	(void)now;
	tcp_recover_reorder(tp);
	return (tp);
}

static struct tcpcb *
timer_probe(struct tcpcb *tp, nsec_t now)
    REQUIRES(tp->t_inp.inp_socket->so_lock)
{
	(void)now;
	if (tp->t_state >= TCPS_ESTABLISHED)	/* else see TF_FASTOPEN */
		tcp_tlp_probe(tp);
	return (tp);
}

static struct tcpcb *(*const timer_fns[TT_COUNT])(struct tcpcb *, nsec_t) = {
	[TT_REXMT] = timer_rexmt,
	[TT_PERSIST] = timer_persist,
	[TT_KEEP] = timer_keep,
	[TT_2MSL] = timer_2msl,
	[TT_DELACK] = timer_delack,
	[TT_REORDER] = timer_reorder,
	[TT_PROBE] = timer_probe,
};

/* Runs the due timers; NULL if one ended the connection. */
static struct tcpcb *
timer_run(struct tcpcb *tp, nsec_t now)
{
	for (int i = 0; i < TT_COUNT && tp != NULL; i++) {
		if (tp->t_deadline[i] > now)
			continue;
		tp->t_deadline[i] = NSEC_FOREVER;
		tp = timer_fns[i](tp, now);
	}
	return (tp);
}

static void
tcp_timer_fire(void *arg)
{
	struct socket *so = arg;
	struct tcpcb *tp;
	nsec_t next = NSEC_FOREVER, now;

	solock(so);
	forget_uptime();
	now = getuptime();
	tp = sototcpcb(so);
	if (tp != NULL && tp->t_state != TCPS_CLOSED)
		tp = timer_run(tp, now);
	else
		tp = NULL;
	if (tp != NULL && !callout_pending(&tp->t_callout)) {
		tp->t_armed = NSEC_FOREVER;
		for (int i = 0; i < TT_COUNT; i++)
			if (tp->t_deadline[i] < next)
				next = tp->t_deadline[i];
		if (next != NSEC_FOREVER)
			timer_arm(tp, next, now);
	}
	sounlock_input(so);
	timer_rele(so);
}
