/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "pcbinfo": one mutex over all connections and one for each, as in FreeBSD in
 * 2005.  A segment takes the first before its lookup and keeps it until it is
 * done, because it may change the table.  A segment that is expected next
 * cannot change the table; then the first mutex is released once the second is
 * held.  Socket calls and timers pass through the first before they take the
 * second.
 */
#include <netinet/tcp.h>

#include "kern/thread.h"
#include "netinet/tcp_lock.h"

static struct mtx tcpinfo;

/* The checker cannot follow a conditionally held lock. */
static void
info_lock(struct socket *so, const struct lock_site *site) NO_LOCK_ANALYSIS
{
	const bool held = mtx_owned(&tcpinfo);

	if (!held)
		mtx_lock(&tcpinfo);
	mtx_lock_at(&so->so_lock, site);
	if (!held)
		mtx_unlock(&tcpinfo);
}

static void
info_enter(struct socket *so)
{
	info_lock(so, LOCK_SITE);
}

/*
 * Header prediction (Jacobson, "4BSD header prediction", 1990): a new ACK
 * without data, or the next data without a new ACK.
 */
static bool
is_expected(const struct tcpcb *tp, const struct tcpseg *sg)
{
	const unsigned odd = TH_SYN | TH_FIN | TH_RST | TH_URG | TH_ACK;

	if (tp == NULL || tp->t_state != TCPS_ESTABLISHED ||
	    (sg->sg_flags & odd) != TH_ACK || sg->sg_seq != tp->rcv_nxt)
		return (false);
	if (sg->sg_len == 0)
		return (SEQ_GT(sg->sg_ack, tp->snd_una) &&
		    SEQ_LEQ(sg->sg_ack, tp->snd_max));
	return (sg->sg_ack == tp->snd_una && TAILQ_EMPTY(&tp->t_ooq));
}

static bool
info_segment(struct socket *so, struct tcpseg *sg) NO_LOCK_ANALYSIS
{
	const bool expected = is_expected(sototcpcb(so), sg);
	bool done;

	if (expected) {
		TCPLOCK_INC(predicted);
		mtx_unlock(&tcpinfo);
	}
	done = tcp_input_locked(so, sg);
	if (!expected)
		mtx_unlock(&tcpinfo);
	return (done);
}

static void
info_input(struct tcpseg *sg) NO_LOCK_ANALYSIS
{
	struct socket *so;

	do {
		mtx_lock(&tcpinfo);
		so = tcp_find(sg);
		if (so == NULL) {
			mtx_unlock(&tcpinfo);
			return;
		}
		solock(so);
	} while (!info_segment(so, sg));
}

static void
info_init(void)
{
	mtx_init(&tcpinfo, LC_TCPINFO);
}

static const struct so_lockops info_ops = {
	.sl_enter = info_enter, .sl_leave = tcp_lock_leave,
	.sl_sleep = tcp_lock_sleep, .sl_lock = info_lock,
	.sl_unlock = tcp_lock_leave, .sl_owned = tcp_lock_owned,
};

const struct tcp_lockops tcp_lock_pcbinfo = {
	.tlo_input = info_input,
	.tlo_lockops = &info_ops, .tlo_init = info_init,
};
