/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drivers that are not MP-safe (IFF_NEEDSGIANT of FreeBSD 5 to 7).
 *
 * Such a driver sends under Giant.  Who sends often holds locks that Giant
 * must not follow; so unless it has Giant already, its frames are queued for
 * a thread that takes Giant and sends them: a switch of threads for each
 * burst, "a performance penalty beyond just running with the Giant lock"
 * (Watson 2004).
 */
#include <errno.h>

#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/if_private.h"

#define	QUEUE_MAX	1024	/* frames that wait for the thread */
#define	BURST_MAX	32	/* frames that a driver gets at once */

/*
 * Locks used to protect struct if_giant members:
 *	[I] immutable after attach
 *	[t] the task queue's lock
 *	[a] atomic
 */
struct if_giant {
	struct if_giant	*ig_next;	/* [I] */
	struct ifnet	*ig_ifp;	/* [I] */
	int		(*ig_transmit)(struct ifnet *, struct mbuf *); /* [I]
					   the driver's own */
	struct mbufq	 ig_frames;	/* [t] */
	atomic_u64	 ig_deferred;	/* [a] */
};

static struct {
	struct mtx	 lock;
	struct if_giant	*interfaces;	/* [I] after boot */
	struct thread	*thread;	/* [I] after boot */
	bool		 asleep;	/* [t] */
	bool		 stop;		/* [t] */
} taskq;

/* Queues what there is room for; true if that was all. */
static bool
defer(struct if_giant *ig, struct mbuf *m)
{
	struct mbuf *next;
	unsigned lost = 0;

	mtx_lock(&taskq.lock);
	for (; m != NULL; m = next) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		if (taskq.stop || ig->ig_frames.mq_len >= QUEUE_MAX) {
			m_freem(m);
			lost++;
		} else
			mbufq_enqueue(&ig->ig_frames, m);
	}
	if (taskq.asleep) {
		taskq.asleep = false;
		wakeup(&taskq);
	}
	mtx_unlock(&taskq.lock);
	IFSTAT_ADD(ig->ig_ifp, odrops, lost);
	return (lost == 0);
}

static int
giant_transmit(struct ifnet *ifp, struct mbuf *m)
{
	struct if_giant *ig = ifp->if_giant;

	if (giant_owned())
		return (ig->ig_transmit(ifp, m));
	atomic_count_u64(&ig->ig_deferred, 1);
	return (defer(ig, m) ? 0 : ENOBUFS);
}

/* As many as a driver takes at once, linked by m_nextpkt; or NULL. */
static struct mbuf *
take_burst(struct if_giant *ig) REQUIRES(taskq.lock)
{
	unsigned max = (ig->ig_ifp->if_caps & IFCAP_BATCH) != 0 ? BURST_MAX : 1;
	struct mbuf *head = NULL, **tail = &head;

	for (; max > 0 && ig->ig_frames.mq_len > 0; max--) {
		*tail = mbufq_dequeue(&ig->ig_frames);
		tail = &(*tail)->m_nextpkt;
	}
	return (head);
}

/* Sends all that waits; false if there was nothing. */
static bool
send_waiting(struct if_giant *ig) REQUIRES(taskq.lock)
{
	struct mbuf *m = take_burst(ig);

	if (m == NULL)
		return (false);
	do {
		mtx_unlock(&taskq.lock);
		giant_lock();
		(void)ig->ig_transmit(ig->ig_ifp, m);
		giant_unlock();
		mtx_lock(&taskq.lock);
	} while ((m = take_burst(ig)) != NULL);
	return (true);
}

static void
taskq_main(void *arg)
{
	bool idle = true;

	(void)arg;
	mtx_lock(&taskq.lock);
	while (!taskq.stop || !idle) {
		idle = true;
		for (struct if_giant *ig = taskq.interfaces; ig != NULL;
		    ig = ig->ig_next)
			idle &= !send_waiting(ig);
		if (idle && !taskq.stop) {
			taskq.asleep = true;
			msleep(&taskq, &taskq.lock, 0, "giantq", NSEC_FOREVER);
			idle = false;
		}
	}
	mtx_unlock(&taskq.lock);
}

static int
taskq_start(void)
{
	if (taskq.thread != NULL)
		return (0);
	mtx_init(&taskq.lock, LC_TASKQUEUE);
	return (kthread_create("giant taskq", MACH_CPU_ANY, taskq_main, NULL,
	    &taskq.thread));
}

int
if_giant_attach(struct ifnet *ifp)
{
	struct if_giant *ig;
	int error = taskq_start();

	if (error != 0)
		return (error);
	ig = kmalloc(sizeof(*ig));
	ig->ig_ifp = ifp;
	ig->ig_transmit = ifp->if_transmit;
	mbufq_init(&ig->ig_frames);
	mtx_lock(&taskq.lock);
	ig->ig_next = taskq.interfaces;
	taskq.interfaces = ig;
	mtx_unlock(&taskq.lock);
	ifp->if_giant = ig;
	ifp->if_transmit = giant_transmit;
	sysctl_add(&(struct sysctl_oid){ .oid_type = CTL_U64,
	    .oid_ptr = &ig->ig_deferred, .oid_descr = "sends put off to the "
	    "thread that holds Giant" }, "if.%s.stats.ogiant", ifp->if_xname);
	return (0);
}

void
if_giant_stop(void)
{
	if (taskq.thread == NULL)
		return;
	mtx_lock(&taskq.lock);
	taskq.stop = true;
	wakeup(&taskq);
	mtx_unlock(&taskq.lock);
	kthread_join(taskq.thread);
	taskq.thread = NULL;
}
