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

static void
info_lock(struct socket *so, const struct lock_site *site)
    ACQUIRES(so->so_lock)
{
	if (mtx_owned(&tcpinfo)) {
		mtx_lock_at(&so->so_lock, site);
		return;
	}
	mtx_lock(&tcpinfo);
	mtx_lock_at(&so->so_lock, site);
	mtx_unlock(&tcpinfo);
}

static void
info_enter(struct socket *so) ACQUIRES(so->so_lock)
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
info_segment(struct socket *so, struct tcpseg *sg)
    RELEASES(tcpinfo, so->so_lock)
{
	bool done;

	if (is_expected(sototcpcb(so), sg)) {
		TCPLOCK_INC(predicted);
		mtx_unlock(&tcpinfo);
		return (tcp_input_locked(so, sg));
	}
	done = tcp_input_locked(so, sg);
	mtx_unlock(&tcpinfo);
	return (done);
}

static void
info_input(struct tcpseg *sg)
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
