/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces on devices of the host: attach, receive threads, detach.
 *
 * Each queue has a receive thread that receives frames until there are none.
 * Frames that it sends meanwhile (ACKs, forwarded packets) leave at the end of
 * a burst, so that a driver that accepts batches is called once.
 */
#include "dev/hostif.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/epoch.h"
#include "kern/synch.h"
#include "kern/thread.h"
#include "net/if_ether.h"
#include "net/if_lro.h"
#include "net/if_txbatch.h"
#include "net/netisr.h"
#include "net/rx_burst.h"
#include "netinet/arp.h"

#define	HOSTIF_MTU	1500
#define	RX_BURST	64	/* max frames; output waits until its end */
#define	RX_WAKE		16 /* wakeups are deferred for this many frames ... */
#define	RX_WAKEBYTES	65536	/* ... or bytes */

/*
 * Receives until there are no more frames.  True: there were some, or an
 * error.  The first frame's wakeups are flushed at once.  Later ones are
 * flushed after several frames, because each woken thread would take this CPU
 * until the next frame.
 */
static bool
rx_burst(void *arg)
{
	struct hostif_queue *hq = arg;
	const struct hostif *hi = hq->hq_if;
	struct tx_batch batch;
	uint64_t woken = hq->hq_bytes;
	unsigned n = 0;

	wakeup_hold();
	/* One epoch section for the burst instead of one for each packet. */
	epoch_enter();
	netisr_burst_begin();
	tx_batch_begin(&batch);
	rx_burst_collect_begin();
	if_lro_begin();
	do {
		hq->hq_error = hi->hi_ops->receive(hq);
		if (n % RX_WAKE == 0 ||
		    hq->hq_bytes - woken >= RX_WAKEBYTES) {
			wakeup_release();
			wakeup_hold();
			woken = hq->hq_bytes;
		}
	} while (hq->hq_error == 0 && ++n < RX_BURST);
	if_lro_end();
	rx_burst_collect_end();
	tx_batch_end(&batch);
	wakeup_release();
	epoch_exit();
	netisr_burst_end();
	return (n > 0 || hq->hq_error != -EAGAIN);
}

static void
rx_main(void *arg)
{
	struct hostif_queue *hq = arg;
	struct hostif *hi = hq->hq_if;

	while (atomic_load_acq_u32(&hi->hi_stop) == 0) {
		if (!spin_until(rx_burst, hq)) {
			mach_devq_wait(hq->hq_devq, NSEC_FOREVER);
		} else if (hq->hq_error != 0 && hq->hq_error != -EAGAIN &&
		    hq->hq_error != -EINTR) {
			console("%s: receive: %s", hi->hi_if.if_xname,
			    strerror(-hq->hq_error));
			break;
		}
	}
	hostif_free(hq);
}

/*
 * A locally administered address (IEEE 802).  It is the same after each boot,
 * so that neighbours' caches stay valid.
 */
static void
make_lladdr(struct ifnet *ifp)
{
	uint32_t h = 2166136261u;	/* FNV-1a of the name */

	for (const char *p = ifp->if_xname; *p != '\0'; p++)
		h = (h ^ (uint8_t)*p) * 16777619u;
	memcpy(ifp->if_lladdr + 2, &ifp->if_addr, 4);
	ifp->if_lladdr[0] = 0x02;
	ifp->if_lladdr[1] = (uint8_t)(h ^ h >> 8 ^ h >> 16 ^ h >> 24);
}

int
hostif_attach(const struct hostif_ops *ops, const struct if_config *ic,
    char *why, size_t len)
{
	struct hostif *hi;
	struct ifnet *ifp;
	int error;

	if (ic->mtu > ops->mtu_max) {
		snprintf(why, len, "mtu %u: the max of this driver is %u",
		    ic->mtu, ops->mtu_max);
		return (EINVAL);
	}
	hi = kmalloc(sizeof(*hi) + ic->queues * sizeof(hi->hi_queues[0]));
	hi->hi_ops = ops;
	hi->hi_nqueues = ic->queues;
	for (unsigned i = 0; i < hi->hi_nqueues; i++) {
		hi->hi_queues[i].hq_if = hi;
		hi->hi_queues[i].hq_index = i;
		mtx_init(&hi->hi_queues[i].hq_txlock, LC_DEVQ);
	}
	ifp = &hi->hi_if;
	if_initname(ifp, ic, HOSTIF_MTU);
	ifp->if_softc = hi;
	ether_ifattach(ifp);
	ifp->if_transmit = hostif_transmit;
	ifp->if_caps = (if_offload_caps(ic) & ops->caps) | IFCAP_BATCH;
	make_lladdr(ifp);
	error = ops->open(hi, why, len);
	if (error == 0)
		if_attach(ifp);
	/* on an error the boot fails; the host closes the devices */
	return (error);
}

int
hostif_start(struct ifnet *ifp)
{
	struct hostif *hi = ifp->if_softc;
	char name[24];
	int error = 0;

	for (unsigned i = 0; i < hi->hi_nqueues && error == 0; i++) {
		snprintf(name, sizeof(name), "intr: %.10s:%hhu",
		    ifp->if_xname, (unsigned char)i);
		error = kthread_create(name, MACH_CPU_ANY, rx_main,
		    &hi->hi_queues[i], &hi->hi_queues[i].hq_thread);
	}
	if (error == 0)
		arp_announce(ifp);
	return (error);
}

void
hostif_detach(struct ifnet *ifp)
{
	struct hostif *hi = ifp->if_softc;

	atomic_store_rel_u32(&hi->hi_stop, 1);
	for (unsigned i = 0; i < hi->hi_nqueues; i++) {
		mach_devq_wake(hi->hi_queues[i].hq_devq);
		kthread_join(hi->hi_queues[i].hq_thread);
	}
	/*
	 * Other threads may still send; queues are closed when the process
	 * ends.
	 */
}
