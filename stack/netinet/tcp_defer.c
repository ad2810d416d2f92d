/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred output: ACKs until the end of a receive burst, and segments that
 * would overtake a transmit batch.
 *
 * A receiving thread collects the frames that it sends (net/if_txbatch.c) and
 * passes them to the driver after it unlocked the connection.  A segment that
 * another thread sends before that would overtake them.  The peer would then
 * take an old window for a new one (RFC 9293 section 3.10.7.4) or a gap for a
 * loss.  The other thread therefore hands its output off to the thread with
 * the batch, which runs output again after its frames were sent.
 */
#include "kern/netlock.h"
#include "kern/thread.h"
#include "net/if_txbatch.h"
#include "net/if_var.h"
#include "netinet/tcp_socket.h"
#include "netinet/tcp_var.h"

/* tcp_socket.batched */
#define	BATCHED_NONE	0U
#define	BATCHED		1U /* the batcher's batch has segments of the socket */
#define	BATCHED_MORE	2U /* ... and another thread handed output off to it */

/* Sends what is due at the end of a burst.  Consumes the reference. */
static void
output_late(void *arg)
{
	struct socket *so = arg;
	struct tcpcb *tp;

	giant_enter();
	net_enter();
	solock(so);
	so_check_time(so);
	tp = sototcpcb(so);
	if (tp != NULL && tp->t_state != TCPS_CLOSED) {
		/* unless a reader or our own data carried the ACK */
		if ((tp->t_flags & TF_ACKDEFERRED) && tp->t_unacked >= 2)
			tp->t_flags |= TF_ACKNOW;
		tp->t_flags &= ~(unsigned)TF_ACKDEFERRED;
		(void)tcp_output(tp);
	}
	sounlock_input(so);
	sorele(so);
	net_exit();
	giant_exit();
}

/*
 * ACKs are cumulative: one for each burst is enough, and an ACK costs the
 * peer's host about as much as a segment costs this one.  The ACK is not
 * deferred beyond a quarter of the window, because the peer would stop
 * sending.
 */
bool
tcp_ack_defer(struct tcpcb *tp)
{
	struct socket *so = tp->t_inp.inp_socket;

	if (so_lockwaits() || tp->rcv_nxt - tp->last_ack_sent >
	    (tp->rcv_adv - tp->last_ack_sent) / 4)
		return (false);
	if (tp->t_flags & TF_ACKDEFERRED)
		return (true);
	if (!tx_batch_later(output_late, so))
		return (false);
	soref(so);
	tp->t_flags |= TF_ACKDEFERRED;
	return (true);
}

/* The frames of the batch have been passed to the driver. */
static void
batch_sent(void *arg)
{
	struct socket *so = arg;

	if (atomic_swap_u32(&sototcp(so)->batched, BATCHED_NONE) ==
	    BATCHED_MORE)
		output_late(so);
	else
		sorele(so);
}

void
tcp_output_held(struct tcpcb *tp)
{
	struct socket *so = tp->t_inp.inp_socket;

	so_assert_locked(so);
	if (!tx_batch_holds() ||
	    atomic_load_u32(&sototcp(so)->batched) != BATCHED_NONE)
		return;
	if (so_lockwaits() || !tx_batch_sent(batch_sent, so)) {
		tx_batch_flush();
		return;
	}
	soref(so);
	so_assert_locked(&sototcp(so)->so);
	sototcp(so)->batcher = curthread;
	atomic_store_u32(&sototcp(so)->batched, BATCHED);
}

bool
tcp_output_handoff(struct tcpcb *tp)
{
	struct socket *so = tp->t_inp.inp_socket;
	uint32_t state = atomic_load_acq_u32(&sototcp(so)->batched);

	so_assert_locked(&sototcp(so)->so);
	if (__predict_true(state == BATCHED_NONE) ||
	    sototcp(so)->batcher == curthread)
		return (false);
	return (state == BATCHED_MORE ||
	    atomic_cmpset_u32(&sototcp(so)->batched, &state, BATCHED_MORE));
}
