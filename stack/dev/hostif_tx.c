/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transmission of frames to the host, many with one call.
 */
#include <errno.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>

#include "dev/hostif.h"

#define	TX_IOV		192	/* iovec entries of one call */

/* Frames of one call. */
struct tx_call {
	struct hostif_queue *tx_queue;
	unsigned	 tx_n, tx_niov;
	struct mbuf	*tx_mbufs[MACH_SEND_MAX];
	struct mach_frame tx_frames[MACH_SEND_MAX];
	struct virtio_net_hdr tx_vnet[MACH_SEND_MAX];
	struct iovec	 tx_iov[TX_IOV];
};

static void
tx_offloads(const struct mbuf *m, struct virtio_net_hdr *vh)
{
	const struct pkthdr *ph = &m->m_pkthdr;

	*vh = (struct virtio_net_hdr){ 0 };
	if ((ph->csum_flags & CSUM_TX) != 0) {
		vh->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		vh->csum_start = (uint16_t)(ph->csum_start + ETHER_HDR_LEN);
		vh->csum_offset = ph->csum_offset;
	}
	if ((ph->csum_flags & CSUM_TSO) != 0) {
		uint8_t tcpoff, version;

		KASSERT((ph->csum_flags & CSUM_TX) != 0 && ph->tso_segsz != 0,
		    ("tx_offloads: segments of %u without checksum",
		    ph->tso_segsz));
		m_copydata(m, ETHER_HDR_LEN, 1, &version);
		vh->gso_type = version >> 4 == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 :
		    VIRTIO_NET_HDR_GSO_TCPV6;
		vh->gso_size = ph->tso_segsz;
		/* th_off: length of the headers. */
		m_copydata(m, (uint32_t)vh->csum_start + 12, 1, &tcpoff);
		vh->hdr_len = (uint16_t)(vh->csum_start + (tcpoff >> 4) * 4);
	}
}

/*
 * Copies a chain with more pieces than one call accepts into one buffer (tiny
 * writes sent at once).
 */
static struct mbuf *
tx_collapse(struct mbuf *m)
{
	struct mbuf *head = m_getcl(MMAXBYTES), *n = head;
	uint32_t off;

	head->m_pkthdr = m->m_pkthdr;
	for (off = 0; off < m->m_pkthdr.len; off += n->m_len) {
		if (off > 0)
			n = n->m_next = m_getcl(MMAXBYTES);
		n->m_len = m->m_pkthdr.len - off;
		if (n->m_len > MMAXBYTES)
			n->m_len = MMAXBYTES;
		m_copydata(m, off, n->m_len, n->m_data);
	}
	m_freem(m);
	return (head);
}

/* False: this call has no room for the frame. */
static bool
tx_add(struct tx_call *tx, struct mbuf *m)
{
	struct iovec *iov = &tx->tx_iov[tx->tx_niov];
	unsigned room = TX_IOV - tx->tx_niov, used = 0, i = tx->tx_n;
	int n;

	if (i == MACH_SEND_MAX || room < 2)
		return (false);
	if (tx->tx_queue->hq_if->hi_ops->vnet) {
		tx_offloads(m, &tx->tx_vnet[i]);
		iov[used++] = (struct iovec){ &tx->tx_vnet[i],
		    sizeof(tx->tx_vnet[i]) };
	}
	n = m_toiov(m, iov + used, (int)(room - used));
	if (n == 0)
		return (false);
	used += (unsigned)n;
	tx->tx_frames[i] = (struct mach_frame){ iov, used };
	tx->tx_mbufs[i] = m;
	tx->tx_niov += used;
	tx->tx_n++;
	return (true);
}

static int
tx_call(struct tx_call *tx, unsigned from)
{
	struct hostif_queue *hq = tx->tx_queue;
	bool serial = hq->hq_if->hi_ops->serial;
	int n;

	if (!serial)
		return (mach_devq_send(hq->hq_devq, tx->tx_frames + from,
		    tx->tx_n - from));
	mtx_lock(&hq->hq_txlock);
	n = mach_devq_send(hq->hq_devq, tx->tx_frames + from,
	    tx->tx_n - from);
	mtx_unlock(&hq->hq_txlock);
	return (n);
}

/*
 * Sends the collected frames.  A frame that the device refuses is dropped
 * alone; if the device is full, the rest is dropped, too.
 */
static int
tx_flush(struct tx_call *tx)
{
	const struct ifnet *ifp = &tx->tx_queue->hq_if->hi_if;
	unsigned sent = 0, lost = 0;
	uint64_t bytes = 0;

	while (sent + lost < tx->tx_n) {
		int n = tx_call(tx, sent + lost);

		if (n == -EAGAIN) {
			IFSTAT_ADD(ifp, odrops, tx->tx_n - sent - lost);
			break;
		} else if (n < 0) {
			IFSTAT_INC(ifp, oerrors);
			lost++;
			continue;
		}
		for (unsigned i = 0; i < (unsigned)n; i++)
			bytes += tx->tx_mbufs[sent + lost + i]->m_pkthdr.len;
		sent += (unsigned)n;
	}
	lost = tx->tx_n - sent;
	IFSTAT_ADD(ifp, opackets, sent);
	IFSTAT_ADD(ifp, obytes, bytes);
	for (unsigned i = 0; i < tx->tx_n; i++)
		m_freem(tx->tx_mbufs[i]);
	tx->tx_n = tx->tx_niov = 0;
	return (lost > 0 ? ENOBUFS : 0);
}

/* Called by any thread; several may send on one queue at a time. */
int
hostif_transmit(struct ifnet *ifp, struct mbuf *m)
{
	struct hostif *hi = ifp->if_softc;
	struct tx_call tx;
	struct mbuf *next;
	int error = 0;

	tx.tx_queue = &hi->hi_queues[mach_curcpu() % hi->hi_nqueues];
	tx.tx_n = tx.tx_niov = 0;
	for (; m != NULL; m = next) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		if (tx_add(&tx, m))
			continue;
		if (tx.tx_n > 0 && tx_flush(&tx) != 0)
			error = ENOBUFS;
		if (!tx_add(&tx, m))
			(void)tx_add(&tx, tx_collapse(m));
	}
	if (tx_flush(&tx) != 0)
		error = ENOBUFS;
	return (error);
}
