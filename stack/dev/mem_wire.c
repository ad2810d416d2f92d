/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The far end of an interface in memory: a sink or a mirror.  Swapping the
 * addresses of a packet changes neither the header's checksum nor the
 * transport's, so a mirror recomputes nothing, and what the stack got wrong
 * it will notice itself.
 */
#include <net/ethernet.h>
#include <netinet/if_ether.h>
#include <netinet/ip.h>
#include <string.h>

#include "dev/mem.h"
#include "kern/synch.h"
#include "kern/thread.h"

#define	QUEUE_MAX	4096	/* frames; more are lost */
#define	FAR_LLADDR	"\x02" "wire\1"

/*
 * Locks used to protect struct mem_wire members:
 *	[I] immutable after start
 *	[q] mw_lock
 */
struct mem_wire {
	struct mtx	 mw_lock;
	struct mbufq	 mw_queue;	/* [q] on the way back */
	bool		 mw_stop;	/* [q] */
	bool		 mw_mirror;	/* [I] */
	struct ifnet	*mw_ifp;	/* [I] */
	struct thread	*mw_thread;	/* [I] */
};

/* Everything in one private, contiguous piece, as a device would write it. */
static struct mbuf *
copy_frame(struct mbuf *m)
{
	const struct pkthdr *ph = &m->m_pkthdr;
	struct mbuf *n = m_getcl(ph->len > MCLBYTES - MEM_HEADROOM ?
	    MMAXBYTES : MCLBYTES);

	n->m_data += MEM_HEADROOM;
	m_copydata(m, 0, ph->len, n->m_data);
	n->m_len = n->m_pkthdr.len = ph->len;
	if (ph->csum_flags & CSUM_TX) {
		n->m_pkthdr.csum_flags = CSUM_PARTIAL;
		n->m_pkthdr.csum_start = ph->csum_start;
		n->m_pkthdr.csum_offset = ph->csum_offset;
	}
	if (ph->csum_flags & CSUM_TSO)
		n->m_pkthdr.tso_segsz = ph->tso_segsz;
	m_freem(m);
	return (n);
}

static void
answer_arp(struct mbuf *m)
{
	struct ether_header *eh = mtod(m, struct ether_header *);
	struct ether_arp *ea = (struct ether_arp *)(void *)(eh + 1);
	uint8_t target[4];

	memcpy(target, ea->arp_tpa, 4);
	memcpy(ea->arp_tha, ea->arp_sha, 6);
	memcpy(ea->arp_tpa, ea->arp_spa, 4);
	memcpy(ea->arp_sha, FAR_LLADDR, 6);
	memcpy(ea->arp_spa, target, 4);
	ea->arp_op = htons(ARPOP_REPLY);
	memcpy(eh->ether_dhost, ea->arp_tha, 6);
	memcpy(eh->ether_shost, ea->arp_sha, 6);
}

static void
reflect_ip(struct mbuf *m)
{
	struct ether_header *eh = mtod(m, struct ether_header *);
	struct ip *ip = (struct ip *)(void *)(eh + 1);
	struct in_addr src = ip->ip_src;

	ip->ip_src = ip->ip_dst;
	ip->ip_dst = src;
	memcpy(eh->ether_dhost, eh->ether_shost, 6);
	memcpy(eh->ether_shost, FAR_LLADDR, 6);
}

void
mem_wire_output(void *arg, struct mbuf *m)
{
	struct mem_wire *mw = arg;
	const struct ether_header *eh = mtod(m, const struct ether_header *);
	bool arp = eh->ether_type == htons(ETHERTYPE_ARP), first;
	bool ip = eh->ether_type == htons(ETHERTYPE_IP);

	if (!arp && !(ip && mw->mw_mirror)) {
		m_freem(m);
		return;
	}
	m = copy_frame(m);
	if (arp) {
		/* At once: who asks holds no lock. */
		answer_arp(m);
		mem_input(mw->mw_ifp, m);
		return;
	}
	reflect_ip(m);
	mtx_lock(&mw->mw_lock);
	first = mw->mw_queue.mq_len == 0;
	if (mw->mw_queue.mq_len < QUEUE_MAX) {
		mbufq_enqueue(&mw->mw_queue, m);
		m = NULL;
	}
	if (first)
		wakeup(&mw->mw_queue);
	mtx_unlock(&mw->mw_lock);
	m_freem(m);
}

static void
wire_main(void *arg)
{
	struct mem_wire *mw = arg;
	struct mbufq back;
	struct mbuf *m;

	mtx_lock(&mw->mw_lock);
	while (!mw->mw_stop) {
		if (mw->mw_queue.mq_len == 0) {
			msleep(&mw->mw_queue, &mw->mw_lock, 0, "wire",
			    NSEC_FOREVER);
			continue;
		}
		mbufq_take(&back, &mw->mw_queue);
		mtx_unlock(&mw->mw_lock);
		while ((m = mbufq_dequeue(&back)) != NULL)
			mem_input(mw->mw_ifp, m);
		mtx_lock(&mw->mw_lock);
	}
	mtx_unlock(&mw->mw_lock);
}

struct mem_wire *
mem_wire_create(bool mirror)
{
	struct mem_wire *mw = kmalloc(sizeof(*mw));

	mtx_init(&mw->mw_lock, LC_DEVQ);
	mbufq_init(&mw->mw_queue);
	mw->mw_mirror = mirror;
	return (mw);
}

int
mem_wire_start(struct mem_wire *mw, struct ifnet *ifp)
{
	mw->mw_ifp = ifp;
	if (!mw->mw_mirror)
		return (0);
	return (kthread_create("intr: wire", MACH_CPU_ANY, wire_main, mw,
	    &mw->mw_thread));
}

void
mem_wire_stop(struct mem_wire *mw)
{
	if (mw->mw_thread == NULL)
		return;
	mtx_lock(&mw->mw_lock);
	mw->mw_stop = true;
	wakeup(&mw->mw_queue);
	mtx_unlock(&mw->mw_lock);
	kthread_join(mw->mw_thread);
	mbufq_drain(&mw->mw_queue);
}
