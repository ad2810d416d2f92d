/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control: selection of an algorithm, and functions shared by
 * algorithms.
 */
#include <string.h>

#include "kern/sysctl.h"
#include "netinet/tcp_var.h"

/* Generated from the list in meson.build. */
static const struct {
	const char	*name;
	const struct cc_algo *algo;
} cc_algos[] = {
#define	ENTRY(algo, name)	{ name, &tcp_cc_##algo },
	TCP_CCS(ENTRY)
};
#define	NAME(algo, name)	name,
static const char *const cc_names[] = { TCP_CCS(NAME) NULL };
static char cc_available[] = TCP_CC_WORDS;
static atomic_u32 cc_algorithm;		/* [a] index of the default */

/* RFC 6928, with net.inet.tcp.initcwnd segments. */
static uint32_t
initial_window(const struct tcpcb *tp)
{
	return (atomic_load_u32(&tcp_initcwnd) * tp->t_maxseg);
}

void
tcp_cc_init(struct tcpcb *tp)
{
	KASSERT(tp->t_maxseg > 0, ("tcp_cc_init: no segment size"));
	tp->snd_cwnd = initial_window(tp);
	/* RFC 5681 section 3.1: arbitrarily high */
	tp->snd_ssthresh = UINT32_MAX / 2;
	tp->t_cwndacked = 0;
	tp->t_usage = 0;
	tp->t_usageend = tp->snd_una;
	hystart_init(&tp->t_hystart);
	tcp_cc_choose(tp, tp->t_cc);
}

/* Disarms undo: this algorithm cannot undo a reduction by another one. */
void
tcp_cc_choose(struct tcpcb *tp, const struct cc_algo *cc)
{
	tp->t_cc = cc;
	tp->t_ccstate = (struct cc_state){ .words = { 0 } };
	tp->t_undo.armed = false;
	if (cc->cc_init != NULL)
		cc->cc_init(tp);
}

void
tcp_cc_undo(struct tcpcb *tp, const struct cc_state *before)
{
	tp->t_ccstate = *before;
	if (tp->t_cc->cc_undo != NULL)
		tp->t_cc->cc_undo(tp);
}

/* New data was acknowledged outside recovery. */
void
tcp_cc_acked(struct tcpcb *tp, uint32_t bytes)
{
	tp->t_cc->cc_ack_received(tp, bytes);
	if (__predict_false(tp->snd_cwnd > UINT32_MAX / 4))
		tp->snd_cwnd = UINT32_MAX / 4;
}

/* After sending: records the max in flight in a round trip. */
void
tcp_cc_sent(struct tcpcb *tp)
{
	const uint32_t flight = tp->snd_max - tp->snd_una;

	if (SEQ_LT(tp->snd_una, tp->t_usageend) && flight <= tp->t_usage)
		return;
	tp->t_usage = flight;
	tp->t_usageend = tp->snd_max;
}

/*
 * A window grows only while it is used: it limited the sender or, in slow
 * start, more than half of it was in flight (RFC 7661 section 4.2).
 */
bool
tcp_cc_validated(const struct tcpcb *tp)
{
	return ((tp->t_flags & TF_CWNDLIMITED) != 0 ||
	    (tp->snd_cwnd < tp->snd_ssthresh &&
	    tp->snd_cwnd / 2 < tp->t_usage));
}

/*
 * RFC 5681 section 4.1: after an idle time of more than an RTO the window is
 * no longer valid for the path.
 */
void
tcp_cc_afteridle(struct tcpcb *tp)
{
	if (tp->snd_una != tp->snd_max || tp->t_lastsend == 0)
		return;
	if (tp->t_cc->cc_after_idle != NULL)
		tp->t_cc->cc_after_idle(tp);
	/* a probe of a closed window sends no data */
	if (__predict_false(tp->snd_cwnd > initial_window(tp) &&
	    tp->snd_wnd > 0 && getuptime() - tp->t_lastsend > tp->t_rto))
		tp->snd_cwnd = initial_window(tp);
}

/*
 * RFC 5681 section 3.1 with appropriate byte counting (RFC 3465).  The limit
 * for one ACK is net.inet.tcp.abc_l_var.  It is off by default, as in Linux,
 * because receivers that merge segments acknowledge many at once.
 */
uint32_t
tcp_cc_slowstart(struct tcpcb *tp, uint32_t bytes)
{
	uint32_t limit = atomic_load_u32(&tcp_abc_l_var) * tp->t_maxseg;
	uint32_t room, grown;

	if (tp->snd_cwnd >= tp->snd_ssthresh)
		return (bytes);
	room = tp->snd_ssthresh - tp->snd_cwnd;
	grown = hystart_increase(tp,
	    limit != 0 && bytes > limit ? limit : bytes);
	if (grown > room)
		grown = room;
	tp->snd_cwnd += grown;
	return (bytes - (grown < bytes ? grown : bytes));
}

uint32_t
tcp_cc_reduced(const struct tcpcb *tp, unsigned num, unsigned den)
{
	uint32_t least = 2 * tp->t_maxseg;
	uint64_t part = (uint64_t)tp->t_prr.flight * num / den;

	return (part > least ? (uint32_t)part : least);
}

/* RFC 5681 section 3.1. */
void
tcp_cc_reno(struct tcpcb *tp, uint32_t bytes)
{
	if (!tcp_cc_validated(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		(void)tcp_cc_slowstart(tp, bytes);
		return;
	}
	tp->t_cwndacked += bytes;
	if (tp->t_cwndacked >= tp->snd_cwnd) {
		tp->t_cwndacked -= tp->snd_cwnd;
		tp->snd_cwnd += tp->t_maxseg;
	}
}

/* Linux's name of NewReno is "reno", and programs use it. */
const struct cc_algo *
tcp_cc_byname(const char *name, size_t len)
{
	size_t n = strnlen(name, len);

	if (n == 4 && memcmp(name, "reno", n) == 0)
		return (&tcp_cc_newreno);
	for (size_t i = 0; i < nitems(cc_algos); i++)
		if (n == strlen(cc_algos[i].name) &&
		    memcmp(name, cc_algos[i].name, n) == 0)
			return (cc_algos[i].algo);
	return (NULL);
}

const char *
tcp_cc_name(const struct cc_algo *algo)
{
	size_t i = 0;

	while (cc_algos[i].algo != algo)
		i++;
	return (cc_algos[i].name);
}

const struct cc_algo *
tcp_cc_default(void)
{
	return (cc_algos[atomic_load_u32(&cc_algorithm)].algo);
}

static const struct sysctl_oid cc_oids[] = {
	{ .oid_name = "net.inet.tcp.cc.algorithm", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &cc_algorithm,
	  .oid_names = cc_names,
	  .oid_descr = "congestion control of new connections: "
	  TCP_CC_NAMES },
	{ .oid_name = "net.inet.tcp.cc.available", .oid_type = CTL_STRING,
	  .oid_ptr = cc_available, .oid_max = sizeof(cc_available),
	  .oid_descr = "available congestion control algorithms" },
};

void
tcp_cc_sysctl_init(void)
{
	sysctl_register(cc_oids, nitems(cc_oids));
}
