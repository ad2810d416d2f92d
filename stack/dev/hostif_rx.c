/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reception of frames from the host.
 *
 * A device that is read: a frame is read into a cluster followed by 64 KB of
 * storage.  A small frame occupies one cluster, and a large one is not copied.
 * A device with a shared ring: its small frames are copied at once, so that
 * slots are returned to the host without delay.
 */
#include <errno.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <string.h>

#include "dev/hostif.h"

#define	RX_HEADROOM	34	/* room for tunnels; aligns the IP header */
#define	RX_COPY		8192	/* max bytes of a frame's rest to copy */
#define	RX_TINY		256	/* max bytes of a frame without a cluster */

/* Converts the host's offload header to packet flags. */
static void
rx_offloads(struct mbuf *m, const struct virtio_net_hdr *vh)
{
	struct pkthdr *ph = &m->m_pkthdr;

	if ((vh->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0 &&
	    vh->csum_start >= ETHER_HDR_LEN) {
		ph->csum_flags = CSUM_PARTIAL;
		ph->csum_start = (uint16_t)(vh->csum_start - ETHER_HDR_LEN);
		ph->csum_offset = vh->csum_offset;
	} else if ((vh->flags & VIRTIO_NET_HDR_F_DATA_VALID) != 0)
		ph->csum_flags = CSUM_VALID;
	switch (vh->gso_type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV6:
		ph->tso_segsz = vh->gso_size;
		break;
	}
}

static void
rx_refill(struct hostif_queue *hq)
{
	if (hq->hq_small == NULL) {
		hq->hq_small = m_getcl(MCLBYTES);
		hq->hq_small->m_data += RX_HEADROOM;
	}
	if (hq->hq_large == NULL)
		hq->hq_large = m_getcl(MMAXBYTES);
}

void
hostif_free(struct hostif_queue *hq)
{
	m_freem(hq->hq_small);
	m_freem(hq->hq_large);
}

/*
 * The last len bytes of a frame.  A short rest is copied, so that a full
 * receive buffer does not hold 64 KB of storage for a few bytes.
 */
static struct mbuf *
rx_rest(struct hostif_queue *hq, uint32_t len)
{
	struct mbuf *m;

	if (len > RX_COPY) {
		m = hq->hq_large;
		hq->hq_large = NULL;
	} else {
		m = m_getcl(len <= MCLBYTES ? MCLBYTES : MJUMBYTES);
		memcpy(m->m_data, hq->hq_large->m_data, len);
	}
	m->m_len = len;
	return (m);
}

/* Makes a packet of the len bytes read into the queue's buffers. */
static struct mbuf *
rx_frame(struct hostif_queue *hq, uint32_t len)
{
	const uint32_t room = MCLBYTES - RX_HEADROOM;
	struct mbuf *m = hq->hq_small;

	KASSERT(len >= ETHER_HDR_LEN && len <= room + MMAXBYTES,
	    ("rx_frame: frame of %u bytes", len));
	hq->hq_small = NULL;
	m->m_pkthdr.len = len;
	m->m_len = len < room ? len : room;
	if (len > room)
		m->m_next = rx_rest(hq, len - room);
	return (m);
}

static void
rx_input(struct hostif_queue *hq, struct mbuf *m)
{
	hq->hq_bytes += m->m_pkthdr.len;
	if_input(&hq->hq_if->hi_if, m, hq->hq_index);
}

int
hostif_read(struct hostif_queue *hq)
{
	struct virtio_net_hdr vh;
	struct iovec iov[3] = { { &vh, sizeof(vh) } };
	struct ifnet *ifp = &hq->hq_if->hi_if;
	struct mbuf *m;
	ssize_t n;

	rx_refill(hq);
	iov[1] = (struct iovec){ hq->hq_small->m_data, MCLBYTES - RX_HEADROOM };
	iov[2] = (struct iovec){ hq->hq_large->m_data, MMAXBYTES };
	n = mach_devq_readv(hq->hq_devq, iov, 3);
	if (n < 0)
		return ((int)n);
	if ((size_t)n < sizeof(vh) + ETHER_HDR_LEN) {
		IFSTAT_INC(ifp, ierrors);
		return (0);
	}
	m = rx_frame(hq, (uint32_t)((size_t)n - sizeof(vh)));
	rx_offloads(m, &vh);
	rx_input(hq, m);
	return (0);
}

static struct mbuf *
rx_copy(const struct mach_slot *slot)
{
	struct mbuf *m = slot->ms_len <= RX_TINY ? m_get() : m_getcl(MCLBYTES);

	KASSERT(slot->ms_len <= MCLBYTES - RX_HEADROOM,
	    ("rx_copy: slot of %u bytes", slot->ms_len));
	m->m_data += RX_HEADROOM;
	m->m_len = m->m_pkthdr.len = slot->ms_len;
	memcpy(m->m_data, slot->ms_data, slot->ms_len);
	if (slot->ms_vnet != NULL)
		rx_offloads(m, slot->ms_vnet);
	return (m);
}

int
hostif_take(struct hostif_queue *hq)
{
	struct ifnet *ifp = &hq->hq_if->hi_if;
	struct mach_slot slot;
	struct mbuf *m = NULL;
	int error = mach_devq_peek(hq->hq_devq, &slot);

	if (error != 0 && error != -EMSGSIZE && error != -EIO)
		return (error);
	if (error == 0 && slot.ms_len >= ETHER_HDR_LEN)
		m = rx_copy(&slot);
	mach_devq_release(hq->hq_devq);
	if (atomic_load_u32(&net_prefetch) != 0)
		mach_devq_prefetch(hq->hq_devq);
	if (error == -EMSGSIZE)
		return (hostif_read(hq));
	if (m != NULL)
		rx_input(hq, m);
	else
		IFSTAT_INC(ifp, ierrors);
	return (0);
}
