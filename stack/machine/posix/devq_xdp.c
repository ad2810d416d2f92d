/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device queues that are AF_XDP sockets (Documentation/networking/af_xdp.rst).
 *
 * Socket and host share an area of frames and four rings of frame addresses:
 * fill (free frames, to the host), receive (filled frames), send (frames to
 * send, to the host) and completion (sent frames).  Each frame is permanently
 * assigned to receiving or sending.  It is always in one of the rings or free,
 * so that the numbers can be verified.  The receive thread uses fill and
 * receive; one sender at a time uses the others.
 */
#include <errno.h>
#include <linux/if_xdp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "machine/posix/devq.h"
#include "machine/posix/host.h"
#include "machine/posix/xdp_program.h"

#define	FRAME_SIZE	2048U	/* min size that the host allows */
#define	RX_FRAMES	2048U
#define	TX_FRAMES	1024U
#define	KICKS_MAX	64	/* max calls to send one batch */

/*
 * One producer and one consumer; indices wrap.  Each end caches the index that
 * it advances.
 */
struct ring {
	atomic_u32	*producer, *consumer, *flags;
	void		*entries;
	uint32_t	 size;		/* a power of two */
	uint32_t	 mine;		/* the index that this end advances */
};

struct xdp_devq {
	struct mach_devq q;
	char		*frames;	/* RX_FRAMES, then TX_FRAMES */
	struct ring	 fill, receive, send, completion;
	uint64_t	 free[TX_FRAMES];	/* addresses */
	unsigned	 nfree;
	int		 link;		/* link of the BPF program, or -1 */
};

static uint64_t *
ring_address(const struct ring *r, uint32_t i)
{
	return ((uint64_t *)r->entries + (i & (r->size - 1)));
}

static struct xdp_desc *
ring_desc(const struct ring *r, uint32_t i)
{
	return ((struct xdp_desc *)r->entries + (i & (r->size - 1)));
}

/* The host does not poll the ring, and needs a system call. */
static bool
ring_asleep(const struct ring *r)
{
	return ((atomic_load_u32(r->flags) & XDP_RING_NEED_WAKEUP) != 0);
}

static uint32_t
ring_count(const struct ring *r)
{
	return (atomic_load_acq_u32(r->producer) -
	    atomic_load_acq_u32(r->consumer));
}

static int
xdp_peek(struct mach_devq *q, struct mach_slot *slot)
{
	struct xdp_devq *xq = (struct xdp_devq *)q;
	const struct xdp_desc *d = ring_desc(&xq->receive, xq->receive.mine);

	if (atomic_load_acq_u32(xq->receive.producer) == xq->receive.mine) {
		if (ring_asleep(&xq->fill))
			host_call(SYS_recvfrom, q->fd, NULL, 0, MSG_DONTWAIT,
			    NULL, NULL);
		return (-EAGAIN);
	}
	slot->ms_data = xq->frames + d->addr;
	slot->ms_len = d->len;
	slot->ms_vnet = NULL;
	return (0);
}

/* Returns frames to the fill ring, which has room for all of them. */
static void
xdp_release(struct mach_devq *q)
{
	struct xdp_devq *xq = (struct xdp_devq *)q;
	uint64_t addr = ring_desc(&xq->receive, xq->receive.mine)->addr;

	*ring_address(&xq->fill, xq->fill.mine++) =
	    addr & ~(uint64_t)(FRAME_SIZE - 1);
	atomic_store_rel_u32(xq->receive.consumer, ++xq->receive.mine);
	atomic_store_rel_u32(xq->fill.producer, xq->fill.mine);
}

/* A stale descriptor still addresses a frame of this area. */
static void
xdp_prefetch(struct mach_devq *q)
{
	struct xdp_devq *xq = (struct xdp_devq *)q;

	mach_prefetch(xq->frames +
	    ring_desc(&xq->receive, xq->receive.mine)->addr);
}

/* Frees frames that have been sent. */
static void
tx_reclaim(struct xdp_devq *xq)
{
	struct ring *r = &xq->completion;
	uint32_t end = atomic_load_acq_u32(r->producer);

	while (r->mine != end)
		xq->free[xq->nfree++] = *ring_address(r, r->mine++);
	atomic_store_rel_u32(r->consumer, r->mine);
}

/* Copies a frame into the send ring; returns an errno value. */
static int
tx_put(struct xdp_devq *xq, const struct mach_frame *frame)
{
	uint64_t addr;
	size_t len = 0;

	for (unsigned i = 0; i < frame->mf_niov; i++)
		len += frame->mf_iov[i].iov_len;
	if (len > FRAME_SIZE)
		return (EMSGSIZE);
	if (xq->nfree == 0)
		return (EAGAIN);
	addr = xq->free[--xq->nfree];
	len = 0;
	for (unsigned i = 0; i < frame->mf_niov; i++) {
		memcpy(xq->frames + addr + len, frame->mf_iov[i].iov_base,
		    frame->mf_iov[i].iov_len);
		len += frame->mf_iov[i].iov_len;
	}
	*ring_desc(&xq->send, xq->send.mine++) =
	    (struct xdp_desc){ .addr = addr, .len = (uint32_t)len };
	return (0);
}

/* The host sends a limited number of frames with each call. */
static void
tx_kick(const struct xdp_devq *xq)
{
	long done;

	if (!ring_asleep(&xq->send))
		return;
	for (unsigned i = 0; i < KICKS_MAX; i++) {
		done = host_call(SYS_sendto, xq->q.fd, NULL, 0, MSG_DONTWAIT,
		    NULL, 0);
		if (done >= 0 || errno != EAGAIN)
			break;
	}
}

static int
xdp_send(struct mach_devq *q, const struct mach_frame *frames, unsigned n)
{
	struct xdp_devq *xq = (struct xdp_devq *)q;
	unsigned i;
	int error = 0;

	if (xq->nfree < n)
		tx_reclaim(xq);
	for (i = 0; i < n && error == 0; i++)
		error = tx_put(xq, &frames[i]);
	if (error != 0)
		i--;
	atomic_store_rel_u32(xq->send.producer, xq->send.mine);
	tx_kick(xq);
	return (i > 0 ? (int)i : -error);
}

/* Sends frames that the host did not send at the last call. */
static void
xdp_before_wait(struct mach_devq *q)
{
	struct xdp_devq *xq = (struct xdp_devq *)q;

	if (ring_count(&xq->send) > 0)
		tx_kick(xq);
}

/* The host frees the rest when the process ends. */
static void
xdp_close(struct mach_devq *q)
{
	struct xdp_devq *xq = (struct xdp_devq *)q;

	if (xq->link >= 0)
		host_close(xq->link);
	if (xq->frames != NULL)
		munmap(xq->frames, (RX_FRAMES + TX_FRAMES) * FRAME_SIZE);
}

static const struct devq_ops xdp_ops = { .send = xdp_send,
    .peek = xdp_peek, .release = xdp_release, .prefetch = xdp_prefetch,
    .before_wait = xdp_before_wait, .close = xdp_close };

void
mach_devq_xdp_frames(struct mach_devq *q, struct mach_xdp_frames *f)
{
	struct xdp_devq *xq = (struct xdp_devq *)q;

	*f = (struct mach_xdp_frames){
		.fill = ring_count(&xq->fill),
		.receive = ring_count(&xq->receive),
		.free = xq->nfree + ring_count(&xq->completion),
		.send = ring_count(&xq->send),
	};
}

/* Returns an errno value. */
static int
ring_map(const struct xdp_devq *xq, struct ring *r, uint32_t size,
    size_t entry, const struct xdp_ring_offset *off, uint64_t page)
{
	char *p = devq_map(off->desc + size * entry, xq->q.fd, page);

	if (p == NULL)
		return (errno);
	r->producer = (atomic_u32 *)(void *)(p + off->producer);
	r->consumer = (atomic_u32 *)(void *)(p + off->consumer);
	r->flags = (atomic_u32 *)(void *)(p + off->flags);
	r->entries = p + off->desc;
	r->size = size;
	return (0);
}

static int
xdp_rings(struct xdp_devq *xq)
{
	const struct {
		struct ring	*ring;
		int		 option;
		uint32_t	 size;
		size_t		 entry, offset;
		uint64_t	 page;
	} rings[] = {
#define	RING(ring, option, size, entry, off, page)			\
	{ &xq->ring, option, size, entry,				\
	    offsetof(struct xdp_mmap_offsets, off), page }
		RING(fill, XDP_UMEM_FILL_RING, RX_FRAMES, sizeof(uint64_t),
		    fr, XDP_UMEM_PGOFF_FILL_RING),
		RING(completion, XDP_UMEM_COMPLETION_RING, TX_FRAMES,
		    sizeof(uint64_t), cr, XDP_UMEM_PGOFF_COMPLETION_RING),
		RING(receive, XDP_RX_RING, RX_FRAMES, sizeof(struct xdp_desc),
		    rx, XDP_PGOFF_RX_RING),
		RING(send, XDP_TX_RING, TX_FRAMES, sizeof(struct xdp_desc),
		    tx, XDP_PGOFF_TX_RING),
#undef RING
	};
	struct xdp_mmap_offsets offsets;
	socklen_t len = sizeof(offsets);
	int error = 0;

	for (size_t i = 0; i < 4 && error == 0; i++)
		error = devq_option(&xq->q, SOL_XDP, rings[i].option,
		    &rings[i].size, sizeof(rings[i].size));
	if (error == 0 && host_call(SYS_getsockopt, xq->q.fd, SOL_XDP,
	    XDP_MMAP_OFFSETS, &offsets, &len) != 0)
		error = errno;
	for (size_t i = 0; i < 4 && error == 0; i++)
		error = ring_map(xq, rings[i].ring, rings[i].size,
		    rings[i].entry, (const void *)((const char *)&offsets +
		    rings[i].offset), rings[i].page);
	return (error);
}

/* Assigns the frames to the fill ring and the free list. */
static void
xdp_frames(struct xdp_devq *xq)
{
	for (uint32_t i = 0; i < RX_FRAMES; i++)
		*ring_address(&xq->fill, xq->fill.mine++) =
		    (uint64_t)i * FRAME_SIZE;
	atomic_store_rel_u32(xq->fill.producer, xq->fill.mine);
	while (xq->nfree < TX_FRAMES) {
		xq->free[xq->nfree] = (uint64_t)(RX_FRAMES + xq->nfree) *
		    FRAME_SIZE;
		xq->nfree++;
	}
}

static int
xdp_setup(struct xdp_devq *xq, int ifindex, uint32_t queue)
{
	struct sockaddr_xdp sxdp = { .sxdp_family = AF_XDP,
	    .sxdp_flags = XDP_USE_NEED_WAKEUP,
	    .sxdp_ifindex = (uint32_t)ifindex, .sxdp_queue_id = queue };
	struct xdp_umem_reg reg = {
	    .len = (uint64_t)(RX_FRAMES + TX_FRAMES) * FRAME_SIZE,
	    .chunk_size = FRAME_SIZE };
	int error;

	xq->frames = devq_map(reg.len, -1, 0);
	if (xq->frames == NULL)
		return (errno);
	reg.addr = (uintptr_t)xq->frames;
	error = devq_option(&xq->q, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg));
	if (error == 0)
		error = xdp_rings(xq);
	if (error != 0)
		return (error);
	xdp_frames(xq);
	return (host_call(SYS_bind, xq->q.fd, &sxdp, sizeof(sxdp)) != 0 ?
	    errno : 0);
}

static int
open_queue(int ifindex, uint32_t queue, int map, struct mach_devq **qp)
{
	struct mach_devq *q;
	struct xdp_devq *xq;
	int error = devq_create(sizeof(struct xdp_devq), &xdp_ops,
	    (int)host_call(SYS_socket, AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0), &q);

	if (error != 0)
		return (error);
	xq = (struct xdp_devq *)q;
	xq->link = -1;
	error = xdp_setup(xq, ifindex, queue);
	if (error == 0)
		error = xdp_map_set(map, queue, q->fd);
	if (error != 0)
		mach_devq_close(q);
	else
		*qp = q;
	return (error);
}

int
mach_devq_open_xdp(const char *ifname, unsigned n, struct mach_devq *queues[],
    const char **step)
{
	int map = -1, link = -1, ifindex, error;
	unsigned opened = 0;

	*step = "interface";
	error = devq_ifindex(ifname, &ifindex);
	if (error == 0) {
		*step = "map of sockets";
		map = xdp_map_create(n);
		error = map < 0 ? -map : 0;
	}
	for (; error == 0 && opened < n; opened += error == 0) {
		*step = "socket";
		error = open_queue(ifindex, opened, map, &queues[opened]);
	}
	if (error == 0) {
		*step = "program on the interface";
		link = xdp_program_attach(map, ifindex);
		error = link < 0 ? -link : 0;
	}
	if (error == 0)
		((struct xdp_devq *)queues[0])->link = link;
	while (error != 0 && opened > 0)
		mach_devq_close(queues[--opened]);
	if (map >= 0)
		host_close(map);
	return (error);
}
