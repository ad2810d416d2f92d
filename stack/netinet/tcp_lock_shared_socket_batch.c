/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "shared-socket-batch" (Bluhm, "running TCP input in parallel", 2025): the
 * segments of a receive burst are deferred to its end, and consecutive
 * segments for one socket keep its lock.
 *
 * All TCP segments of a burst are therefore processed after its other packets.
 * A segment dropped before its lookup leaves the lock held.
 */
#include "net/rx_burst.h"
#include "netinet/in_hints.h"
#include "netinet/tcp_lock.h"

/* [o] the thread whose hints hold it */
struct tcp_lock_batch {
	struct mbufq	 tb_segments;	/* [o] deferred */
	struct socket	*tb_so;		/* [o] locked and referenced; or NULL */
	const void	*tb_pcb;	/* [o] its pcb when it was locked */
	unsigned	 tb_run;	/* [o] segments since then */
};

static struct tcp_lock_batch *
batch_mine(void)
{
	struct tcp_lock_batch *tb = thread_hints(IN_LOCK_BATCH, sizeof(*tb));

	if (__predict_false(tb->tb_segments.mq_tail == NULL))
		mbufq_init(&tb->tb_segments);
	return (tb);
}

static void
count_run(unsigned n)
{
	atomic_u64 *const buckets[] = { &tcp_lockstat.run1,
	    &tcp_lockstat.run2, &tcp_lockstat.run4, &tcp_lockstat.run8,
	    &tcp_lockstat.run16, &tcp_lockstat.run32 };
	size_t i = 0;

	while (i < nitems(buckets) && n > 1U << i)
		i++;
	counter_add(i < nitems(buckets) ? buckets[i] : &tcp_lockstat.runmore,
	    1);
}

/* Unlocks the socket that the last segment left locked. */
static void
batch_drop(struct tcp_lock_batch *tb)
{
	struct socket *so = tb->tb_so;

	if (so == NULL)
		return;
	so_assert_locked(so);
	tb->tb_so = NULL;
	count_run(tb->tb_run);
	sounlock_input(so);
	sorele(so);
}

/* Whether the last segment left the socket locked, with the same pcb. */
static inline bool
batch_holds(const struct tcp_lock_batch *tb, struct socket *so)
{
	if (so != tb->tb_so)
		return (false);
	so_assert_locked(so);
	return (so->so_pcb == tb->tb_pcb);
}

/* Locks the socket of a segment, unless the last segment left it locked. */
static void
batch_lock(struct tcp_lock_batch *tb, struct socket *so)
    ACQUIRES(so->so_lock)
{
	if (batch_holds(tb, so)) {
		so_assert_locked(so);
		TCPLOCK_INC(kept);
		sorele(so);
		tb->tb_run++;
		return;
	}
	if (tb->tb_so != NULL)
		TCPLOCK_INC(switched);
	else
		TCPLOCK_INC(cold);
	batch_drop(tb);
	solock(so);
	forget_uptime();
	tb->tb_so = so;
	tb->tb_run = 1;
}

/*
 * Keeps the segment's socket locked, perhaps a new child, if more segments may
 * follow.  Not analysed, because tb_so records the lock that is kept.
 */
static void
batch_keep(struct tcp_lock_batch *tb, struct socket *so, bool done)
    RELEASES(so->so_lock) NO_LOCK_ANALYSIS
{
	const struct tcpcb *tp = sototcpcb(so);

	if (so != tb->tb_so) {
		count_run(tb->tb_run);
		tb->tb_run = 1;
	}
	tb->tb_so = so;
	tb->tb_pcb = tp;
	if (!done || tp == NULL || tp->t_state == TCPS_CLOSED)
		batch_drop(tb);
}

static bool
batch_deliver(struct tcp_lock_batch *tb, struct socket *so, struct tcpseg *sg)
{
	bool done;

	batch_lock(tb, so);
	done = tcp_socket_input(&so, sg);
	batch_keep(tb, so, done);
	return (done);
}

static void
batch_input(struct tcpseg *sg)
{
	struct tcp_lock_batch *tb = batch_mine();
	struct socket *so;

	do
		so = tcp_find(sg);
	while (so != NULL && !batch_deliver(tb, so, sg));
}

static bool
batch_defer(struct mbuf *m, unsigned hlen)
{
	KASSERT(rx_burst_is_open(),
	    ("batch_defer: a segment without a burst"));
	(void)hlen;
	mbufq_enqueue(&batch_mine()->tb_segments, m);
	return (true);
}

static void
batch_last(void)
{
	struct tcp_lock_batch *tb = batch_mine();
	struct mbuf *m;

	while ((m = mbufq_dequeue(&tb->tb_segments)) != NULL)
		in_handoff_resume(HANDOFF_BATCH, m);
	batch_drop(tb);
}

const struct tcp_lockops tcp_lock_shared_socket_batch = {
	.tlo_net = NETLOCK_SHARED, .tlo_lockops = &tcp_lock_mutex,
	.tlo_defer = batch_defer, .tlo_rx_burst_end = batch_last,
	.tlo_input = batch_input,
};
