/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transmit thread before an interface's driver.
 *
 * Deferred transmit: senders do not wait for the device (tx_abdicate in
 * iflib(4)).  The thread takes all queued frames and passes them to a driver
 * that accepts many with one call.
 *
 * A driver that is not MP-safe (IFF_NEEDSGIANT in FreeBSD 5 to 7) sends under
 * Giant.  Senders often hold locks that come after Giant.  Unless a sender
 * holds Giant already, its frames are therefore left to the thread, which
 * takes Giant.  This costs a thread switch for each burst, "a performance
 * penalty beyond just running with the Giant lock" (Watson 2004).
 */
#include <errno.h>
#include <stdio.h>

#include "kern/sysctl.h"
#include "kern/thread.h"
#include "kern/worker.h"
#include "net/if_driver.h"

#define	TXQ_MAX	4096	/* max frames; more are dropped */

/*
 * Locks used to protect struct if_txq members:
 *	[I] immutable after attach
 *	[q] tq_lock
 *	[a] atomic
 */
struct if_txq {
	struct ifnet	*tq_ifp;		/* [I] */
	int		(*tq_transmit)(struct ifnet *, struct mbuf *);
						/*
						 * [I] properties of the driver
						 */
	bool		 tq_lists;		/* [I] accepts many frames */
	bool		 tq_giant;		/* [I] needs Giant */
	bool		 tq_always; /* [I] only the thread calls it */
	struct worker	 tq_worker;
	struct mtx	 tq_lock;
	struct mbufq	 tq_frames GUARDED_BY(tq_lock);	/* [q] */
	/* [a] frames deferred for want of Giant */
	atomic_u64	 tq_deferred;
};

/* Passes frames linked by m_nextpkt to the driver. */
static int
driver_transmit(const struct if_txq *tq, struct mbuf *m)
{
	struct mbuf *next;
	int error = 0;

	if (tq->tq_lists)
		return (tq->tq_transmit(tq->tq_ifp, m));
	for (; m != NULL; m = next) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		if (tq->tq_transmit(tq->tq_ifp, m) != 0)
			error = ENOBUFS;
	}
	return (error);
}

/* Replaces the driver's function for if_send(). */
static int
txq_transmit(struct ifnet *ifp, struct mbuf *m)
{
	struct if_txq *tq = ifp->if_txq;
	unsigned lost;
	bool empty;

	if (!tq->tq_always && giant_owned())
		return (driver_transmit(tq, m));
	if (tq->tq_giant)
		atomic_count_u64(&tq->tq_deferred, 1);
	mtx_lock(&tq->tq_lock);
	empty = tq->tq_frames.mq_len == 0;
	m = mbufq_fill(&tq->tq_frames, m, TXQ_MAX);
	mtx_unlock(&tq->tq_lock);
	if (empty)
		worker_wake(&tq->tq_worker);
	lost = m_freelist(m);
	IFSTAT_ADD(ifp, odrops, lost);
	return (lost > 0 ? ENOBUFS : 0);
}

/* Passes all queued frames to the driver. */
static void
txq_send(struct if_txq *tq) REQUIRES(tq->tq_lock)
{
	struct mbufq frames;

	mbufq_take(&frames, &tq->tq_frames);
	mtx_unlock(&tq->tq_lock);
	if (tq->tq_giant)
		giant_lock();
	(void)driver_transmit(tq, frames.mq_head);
	if (tq->tq_giant)
		giant_unlock();
	mtx_lock(&tq->tq_lock);
}

static nsec_t
txq_work(void *arg)
{
	struct if_txq *tq = arg;

	mtx_assert_owned(&tq->tq_lock);
	if (tq->tq_frames.mq_len == 0)
		return (NSEC_FOREVER);
	txq_send(tq);
	return (0);
}

void
if_txq_create(struct ifnet *ifp, unsigned flags)
{
	struct if_txq *tq = kmalloc(sizeof(*tq));

	mtx_init(&tq->tq_lock, LC_DEVQ);
	mtx_private(&tq->tq_lock);
	mbufq_init(&tq->tq_frames);
	tq->tq_ifp = ifp;
	tq->tq_transmit = ifp->if_transmit;
	tq->tq_lists = (ifp->if_caps & IFCAP_BATCH) != 0;
	tq->tq_giant = (flags & TXQ_GIANT) != 0;
	tq->tq_always = (flags & TXQ_ALWAYS) != 0;
	tq->tq_worker = (struct worker){ .w_lock = &tq->tq_lock,
	    .w_fn = txq_work, .w_arg = tq, .w_wmesg = "transmit" };
	ifp->if_txq = tq;
	ifp->if_transmit = txq_transmit;
	ifp->if_caps |= IFCAP_BATCH;
	if (tq->tq_giant)
		sysctl_add(&(struct sysctl_oid){ .oid_type = CTL_U64,
		    .oid_ptr = &tq->tq_deferred, .oid_descr = "frames "
		    "deferred to the thread that takes Giant" },
		    "if.%s.stats.ogiant",
		    ifp->if_xname);
}

int
if_txq_start(struct if_txq *tq)
{
	char name[24];

	snprintf(name, sizeof(name), "swi: tx %s", tq->tq_ifp->if_xname);
	return (worker_start(&tq->tq_worker, name, MACH_CPU_ANY));
}

void
if_txq_stop(struct if_txq *tq)
{
	worker_stop(&tq->tq_worker);
	mtx_lock(&tq->tq_lock);
	(void)txq_work(tq);
	mtx_unlock(&tq->tq_lock);
}
