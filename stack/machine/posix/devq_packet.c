/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device queues that are packet sockets (packet(7)) with a receive ring
 * (Documentation/networking/packet_mmap.rst).
 *
 * The ring is of version 2: its slots are handed off one at a time.  Version 3
 * hands off blocks of many frames, and a partial block only after a timeout of
 * at least one millisecond, which would delay requests.  Slots have the size
 * of common frames.  A larger frame, merged from segments by the host, is kept
 * in the socket's buffer (TP_STATUS_COPY) and read from there without another
 * copy.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "machine/posix/devq.h"
#include "machine/posix/host.h"

#define	SLOT_SIZE	2048U
#define	SLOTS		1024U		/* in each queue */
#define	SLOT_HEADERS	192U		/* headers of the slot and the frame */
#define	BLOCK_SIZE	65536U		/* contiguous in the host's kernel */
#define	BUFFER_SIZE	(8 << 20)	/* bytes for large frames */

struct packet_devq {
	struct mach_devq q;
	char		*ring;		/* SLOTS of SLOT_SIZE */
	unsigned	 next;		/* slot that the host fills next */
};

static struct tpacket2_hdr *
packet_slot(const struct packet_devq *pq)
{
	return ((void *)(pq->ring + pq->next * SLOT_SIZE));
}

static atomic_u32 *
slot_status(struct tpacket2_hdr *h)
{
	return ((atomic_u32 *)&h->tp_status);
}

static int
packet_peek(struct mach_devq *q, struct mach_slot *slot)
{
	struct tpacket2_hdr *h = packet_slot((struct packet_devq *)q);
	uint32_t status = atomic_load_acq_u32(slot_status(h));

	if ((status & TP_STATUS_USER) == 0)
		return (-EAGAIN);
	if ((status & TP_STATUS_COPY) != 0)
		return (-EMSGSIZE);
	if (h->tp_snaplen < h->tp_len)
		return (-EIO);	/* the socket's buffer was full */
	slot->ms_data = (char *)h + h->tp_mac;
	slot->ms_len = h->tp_len;
	slot->ms_vnet = (const void *)(slot->ms_data -
	    sizeof(*slot->ms_vnet));
	return (0);
}

static void
packet_release(struct mach_devq *q)
{
	struct packet_devq *pq = (struct packet_devq *)q;

	atomic_store_rel_u32(slot_status(packet_slot(pq)), TP_STATUS_KERNEL);
	pq->next = (pq->next + 1) % SLOTS;
}

static void
packet_prefetch(struct mach_devq *q)
{
	const char *slot = (char *)packet_slot((struct packet_devq *)q);

	for (unsigned i = 0; i < SLOT_HEADERS; i += 64)
		mach_prefetch(slot + i);
}

static int
packet_send(struct mach_devq *q, const struct mach_frame *frames, unsigned n)
{
	struct mmsghdr msgs[MACH_SEND_MAX];
	long sent;

	for (unsigned i = 0; i < n; i++)
		msgs[i].msg_hdr = (struct msghdr){
		    .msg_iov = (struct iovec *)(uintptr_t)frames[i].mf_iov,
		    .msg_iovlen = frames[i].mf_niov };
	sent = host_call(SYS_sendmmsg, q->fd, msgs, n, MSG_DONTWAIT);
	return (sent >= 0 ? (int)sent : -errno);
}

static void
packet_close(struct mach_devq *q)
{
	struct packet_devq *pq = (struct packet_devq *)q;

	if (pq->ring != NULL)
		munmap(pq->ring, SLOTS * SLOT_SIZE);
}

static const struct devq_ops packet_ops = { .send = packet_send,
    .peek = packet_peek, .release = packet_release,
    .prefetch = packet_prefetch, .close = packet_close };

static int
packet_option(const struct packet_devq *pq, int name, const void *value,
    size_t len)
{
	return (devq_option(&pq->q, SOL_PACKET, name, value, len));
}

/* Options that must be set before the first frame. */
static int
packet_ring(struct packet_devq *pq)
{
	struct tpacket_req req = { .tp_block_size = BLOCK_SIZE,
	    .tp_block_nr = SLOTS * SLOT_SIZE / BLOCK_SIZE,
	    .tp_frame_size = SLOT_SIZE, .tp_frame_nr = SLOTS };
	int version = TPACKET_V2, on = 1, error;

	error = packet_option(pq, PACKET_VERSION, &version, sizeof(version));
	if (error == 0)
		error = packet_option(pq, PACKET_COPY_THRESH, &on, sizeof(on));
	if (error == 0)
		error = packet_option(pq, PACKET_RX_RING, &req, sizeof(req));
	if (error != 0)
		return (error);
	pq->ring = devq_map(SLOTS * SLOT_SIZE, pq->q.fd, 0);
	return (pq->ring == NULL ? errno : 0);
}

/* The host's limit applies unless the process is privileged. */
static void
packet_buffer(const struct packet_devq *pq)
{
	int size = BUFFER_SIZE;

	if (devq_option(&pq->q, SOL_SOCKET, SO_RCVBUFFORCE, &size,
	    sizeof(size)) != 0)
		(void)devq_option(&pq->q, SOL_SOCKET, SO_RCVBUF, &size,
		    sizeof(size));
}

/* The interface receives frames to any address. */
static int
packet_setup(struct packet_devq *pq, const char *ifname, unsigned group)
{
	int on = 1, fanout = (int)(group | PACKET_FANOUT_HASH << 16), error;
	struct packet_mreq mreq = { .mr_type = PACKET_MR_PROMISC };
	struct sockaddr_ll sll = { .sll_family = AF_PACKET,
	    .sll_protocol = htons(ETH_P_ALL) };

	error = devq_ifindex(ifname, &sll.sll_ifindex);
	mreq.mr_ifindex = sll.sll_ifindex;
	if (error == 0)
		error = packet_option(pq, PACKET_VNET_HDR, &on, sizeof(on));
	if (error == 0)
		error = packet_option(pq, PACKET_IGNORE_OUTGOING, &on,
		    sizeof(on));
	if (error == 0)
		error = packet_ring(pq);
	if (error != 0)
		return (error);
	packet_buffer(pq);
	if (host_call(SYS_bind, pq->q.fd, &sll, sizeof(sll)) != 0)
		return (errno);
	error = packet_option(pq, PACKET_ADD_MEMBERSHIP, &mreq, sizeof(mreq));
	if (error == 0 && group != 0)
		error = packet_option(pq, PACKET_FANOUT, &fanout,
		    sizeof(fanout));
	return (error);
}

int
mach_devq_open_packet(const char *ifname, unsigned group,
    struct mach_devq **qp)
{
	struct mach_devq *q;
	int error = devq_create(sizeof(struct packet_devq), &packet_ops,
	    (int)host_call(SYS_socket, AF_PACKET,
	    SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), &q);

	if (error != 0)
		return (error);
	error = packet_setup((struct packet_devq *)q, ifname, group);
	if (error != 0)
		mach_devq_close(q);
	else
		*qp = q;
	return (error);
}
