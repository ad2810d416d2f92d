/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mirror at the end of a wire: answers ARP for every address, and sends
 * an IP packet back with its addresses swapped.  Swapping changes neither
 * the header's checksum nor the transport's, so nothing is recomputed, and
 * what the stack got wrong it will notice itself.
 */
#include <net/ethernet.h>
#include <netinet/if_ether.h>
#include <netinet/ip.h>

#include "dev/mem.h"
#include "kern/synch.h"
#include "tests/check.h"
#include "tests/net.h"

#define	QUEUE_MAX	4096	/* frames; more are lost */
#define	HEADROOM	34	/* aligns the IP header, as a driver does */

struct mirror {
	struct mtx	 lock;
	struct mbufq	 queue;		/* [lock] */
	struct ifnet	*ifp;		/* [I] */
};

/* Everything in one private, contiguous piece, as a device would write it. */
static struct mbuf *
copy_frame(struct mbuf *m)
{
	const struct pkthdr *ph = &m->m_pkthdr;
	struct mbuf *n = m_getcl(ph->len > MCLBYTES - HEADROOM ? MMAXBYTES :
	    MCLBYTES);

	n->m_data += HEADROOM;
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
reflect_arp(struct mbuf *m)
{
	struct ether_header *eh = mtod(m, struct ether_header *);
	struct ether_arp *ea = (struct ether_arp *)(void *)(eh + 1);
	uint8_t target[4];

	memcpy(target, ea->arp_tpa, 4);
	memcpy(ea->arp_tha, ea->arp_sha, 6);
	memcpy(ea->arp_tpa, ea->arp_spa, 4);
	memcpy(ea->arp_sha, "\x02mirro", 6);
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
	memcpy(eh->ether_shost, "\x02mirro", 6);
}

static void
mirror_output(void *arg, struct mbuf *m)
{
	struct mirror *mi = arg;
	const struct ether_header *eh;

	m = copy_frame(m);
	eh = mtod(m, const struct ether_header *);
	if (eh->ether_type == htons(ETHERTYPE_ARP))
		reflect_arp(m);
	else
		reflect_ip(m);
	mtx_lock(&mi->lock);
	if (mi->queue.mq_len < QUEUE_MAX)
		mbufq_enqueue(&mi->queue, m);
	else
		m_freem(m);
	wakeup(&mi->queue);
	mtx_unlock(&mi->lock);
}

static void
mirror_main(void *arg)
{
	struct mirror *mi = arg;
	struct mbuf *m;

	mtx_lock(&mi->lock);
	for (;;) {
		while ((m = mbufq_dequeue(&mi->queue)) == NULL)
			msleep(&mi->queue, &mi->lock, 0, "mirror",
			    NSEC_FOREVER);
		mtx_unlock(&mi->lock);
		mem_input(mi->ifp, m);
		mtx_lock(&mi->lock);
	}
}

void
t_mirror_attach(const char *name, const char *prefix, unsigned caps,
    const struct impair_config *impair)
{
	struct mirror *mi = kmalloc(sizeof(*mi));

	mtx_init(&mi->lock, LC_NETISR);
	mbufq_init(&mi->queue);
	mi->ifp = mem_attach(name, prefix, caps, impair, mirror_output, mi);
	(void)t_thread(mirror_main, mi);
}
