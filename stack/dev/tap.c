/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TAP device with virtio-net headers: the host's side merges segments and
 * leaves checksums to us, and does the same for what we send, so that one
 * system call moves up to 64 KB.  A packet socket on an interface of the
 * host (if.<name>.driver="packet") has the same headers, and differs in
 * nothing but how it is opened.
 *
 * One receive thread per queue reads until the queue is empty.  Each frame is
 * read into a cluster and, behind it, 64 KB of storage: a small frame costs
 * one cluster, a large one is not copied.
 */
#include <errno.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <string.h>

#include "kern/synch.h"
#include "kern/thread.h"
#include "net/if_private.h"

#define	TAP_MTU		1500
#define	RX_HEADROOM	34	/* room for tunnels; aligns the IP header */
#define	RX_COPY		8192	/* bytes of a frame's rest to copy, at most */
#define	IOV_MAX_TX	128

struct tap_queue {
	struct tap_softc *tq_sc;	/* [I] */
	unsigned	 tq_index;	/* [I] */
	struct mach_devq *tq_devq;	/* [I] */
	struct thread	*tq_thread;	/* [I] */
	struct mbuf	*tq_small;	/* receive thread: next frame's start */
	struct mbuf	*tq_large;	/* and its rest */
	int		 tq_error;	/* of the last read, negative */
};

/* [I] immutable after attach, [a] atomic */
struct tap_softc {
	struct ifnet	 sc_if;
	atomic_u32	 sc_stop;	/* [a] */
	unsigned	 sc_nqueues;	/* [I] */
	uint16_t	 sc_group;	/* [I] that packet sockets share in */
	struct tap_queue sc_queues[];
};

/* What the host says of a frame, in our words. */
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
rx_refill(struct tap_queue *tq)
{
	if (tq->tq_small == NULL) {
		tq->tq_small = m_getcl(MCLBYTES);
		tq->tq_small->m_data += RX_HEADROOM;
	}
	if (tq->tq_large == NULL)
		tq->tq_large = m_getcl(MMAXBYTES);
}

/*
 * The last len bytes of a frame.  Few are copied, so that a full receive
 * buffer does not hold 64 KB of storage for every few of its bytes.
 */
static struct mbuf *
rx_rest(struct tap_queue *tq, uint32_t len)
{
	struct mbuf *m;

	if (len > RX_COPY) {
		m = tq->tq_large;
		tq->tq_large = NULL;
	} else {
		m = m_getcl(len <= MCLBYTES ? MCLBYTES : MJUMBYTES);
		memcpy(m->m_data, tq->tq_large->m_data, len);
	}
	m->m_len = len;
	return (m);
}

/* The frame of len bytes that was read into the queue's buffers. */
static struct mbuf *
rx_take(struct tap_queue *tq, uint32_t len)
{
	const uint32_t room = MCLBYTES - RX_HEADROOM;
	struct mbuf *m = tq->tq_small;

	KASSERT(len >= ETHER_HDR_LEN && len <= room + MMAXBYTES,
	    ("rx_take: frame of %u bytes", len));
	tq->tq_small = NULL;
	m->m_pkthdr.len = len;
	m->m_len = len < room ? len : room;
	if (len > room)
		m->m_next = rx_rest(tq, len - room);
	return (m);
}

/* One frame into the stack; a negative errno when there is none. */
static int
rx_one(struct tap_queue *tq)
{
	struct virtio_net_hdr vh;
	struct iovec iov[3] = { { &vh, sizeof(vh) } };
	struct ifnet *ifp = &tq->tq_sc->sc_if;
	struct mbuf *m;
	ssize_t n;

	rx_refill(tq);
	iov[1] = (struct iovec){ tq->tq_small->m_data, MCLBYTES - RX_HEADROOM };
	iov[2] = (struct iovec){ tq->tq_large->m_data, MMAXBYTES };
	n = mach_devq_readv(tq->tq_devq, iov, 3);
	if (n < 0)
		return ((int)n);
	if ((size_t)n < sizeof(vh) + ETHER_HDR_LEN) {
		atomic_count_u64(&ifp->if_count.ierrors, 1);
		return (0);
	}
	m = rx_take(tq, (uint32_t)((size_t)n - sizeof(vh)));
	rx_offloads(m, &vh);
	if_input(ifp, m, tq->tq_index);
	return (0);
}

/* Frames until there are none.  True: there were some, or it failed. */
static bool
rx_burst(void *arg)
{
	struct tap_queue *tq = arg;
	bool some = false;

	while ((tq->tq_error = rx_one(tq)) == 0 &&
	    atomic_load_u32(&tq->tq_sc->sc_stop) == 0)
		some = true;
	return (some || tq->tq_error != -EAGAIN);
}

static void
rx_main(void *arg)
{
	struct tap_queue *tq = arg;

	while (atomic_load_acq_u32(&tq->tq_sc->sc_stop) == 0) {
		if (!spin_until(rx_burst, tq)) {
			mach_devq_wait(tq->tq_devq, NSEC_FOREVER);
		} else if (tq->tq_error != 0 && tq->tq_error != -EAGAIN &&
		    tq->tq_error != -EINTR) {
			console("%s: receive: %s", tq->tq_sc->sc_if.if_xname,
			    strerror(-tq->tq_error));
			break;
		}
	}
	m_freem(tq->tq_small);
	m_freem(tq->tq_large);
}

static void
tx_offloads(const struct mbuf *m, struct virtio_net_hdr *vh)
{
	const struct pkthdr *ph = &m->m_pkthdr;

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
		/* th_off: how much of the frame is headers. */
		m_copydata(m, (uint32_t)vh->csum_start + 12, 1, &tcpoff);
		vh->hdr_len = (uint16_t)(vh->csum_start + (tcpoff >> 4) * 4);
	}
}

/*
 * A chain of more pieces than one call takes (a socket written to in tiny
 * pieces, then sent at once) is copied together.
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

/* Any thread; the host's device takes frames of several at a time. */
static int
tap_transmit(struct ifnet *ifp, struct mbuf *m)
{
	struct tap_softc *sc = ifp->if_softc;
	struct virtio_net_hdr vh = { 0 };
	struct iovec iov[1 + IOV_MAX_TX];
	struct tap_queue *tq;
	ssize_t len;
	int n;

	tx_offloads(m, &vh);
	iov[0] = (struct iovec){ &vh, sizeof(vh) };
	n = m_toiov(m, iov + 1, IOV_MAX_TX);
	if (n == 0) {
		m = tx_collapse(m);
		n = m_toiov(m, iov + 1, IOV_MAX_TX);
	}
	tq = &sc->sc_queues[mach_curcpu() % sc->sc_nqueues];
	len = mach_devq_writev(tq->tq_devq, iov, n + 1);
	if (len < 0)
		atomic_count_u64(len == -EAGAIN ? &ifp->if_count.odrops :
		    &ifp->if_count.oerrors, 1);
	else {
		atomic_count_u64(&ifp->if_count.opackets, 1);
		atomic_count_u64(&ifp->if_count.obytes, m->m_pkthdr.len);
	}
	m_freem(m);
	return (len < 0 ? ENOBUFS : 0);
}

/*
 * A locally administered address (IEEE 802), the same at each boot so that
 * peers need not learn a new one.
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

static int
open_tap(const struct tap_softc *sc, struct mach_devq **q)
{
	unsigned caps = sc->sc_if.if_caps;

	return (mach_devq_open_tap(sc->sc_if.if_xname, sc->sc_nqueues > 1,
	    ((caps & IFCAP_RXCSUM) != 0 ? TUN_F_CSUM : 0) |
	    ((caps & IFCAP_TSO4) != 0 ? TUN_F_TSO4 | TUN_F_TSO6 : 0), q));
}

static int
open_packet(const struct tap_softc *sc, struct mach_devq **q)
{
	return (mach_devq_open_packet(sc->sc_if.if_xname,
	    sc->sc_nqueues > 1 ? sc->sc_group : 0, q));
}

static int
open_queues(struct tap_softc *sc, int (*open)(const struct tap_softc *,
    struct mach_devq **))
{
	int error = 0;

	for (unsigned i = 0; i < sc->sc_nqueues && error == 0; i++) {
		sc->sc_queues[i].tq_sc = sc;
		sc->sc_queues[i].tq_index = i;
		error = open(sc, &sc->sc_queues[i].tq_devq);
	}
	return (error);
}

static int
tap_start(struct ifnet *ifp)
{
	struct tap_softc *sc = ifp->if_softc;
	char name[24];
	int error = 0;

	for (unsigned i = 0; i < sc->sc_nqueues && error == 0; i++) {
		snprintf(name, sizeof(name), "intr: %.10s:%hhu",
		    sc->sc_if.if_xname, (unsigned char)i);
		error = kthread_create(name, MACH_CPU_ANY, rx_main,
		    &sc->sc_queues[i], &sc->sc_queues[i].tq_thread);
	}
	if (error == 0)
		arp_announce(ifp);
	return (error);
}

static int
attach(const struct if_config *ic, int (*open)(const struct tap_softc *,
    struct mach_devq **))
{
	struct tap_softc *sc;
	struct ifnet *ifp;
	int error;

	sc = kmalloc(sizeof(*sc) + ic->queues * sizeof(sc->sc_queues[0]));
	sc->sc_nqueues = ic->queues;
	mach_random(&sc->sc_group, sizeof(sc->sc_group));
	sc->sc_group |= 1;	/* 0 would be none */
	ifp = &sc->sc_if;
	if_initname(ifp, ic, TAP_MTU);
	ifp->if_softc = sc;
	ifp->if_output = ether_output;
	ifp->if_transmit = tap_transmit;
	ifp->if_caps = if_offload_caps(ic);
	make_lladdr(ifp);
	error = open_queues(sc, open);
	if (error == 0)
		if_attach(ifp);
	return (error);	/* on error the boot stops: the host closes them */
}

static int
tap_attach(const struct if_config *ic, char *why, size_t len)
{
	int error = attach(ic, open_tap);

	if (error != 0)
		snprintf(why, len, "%s; may this user open /dev/net/tun, was "
		    "the device made for it, as 'ip tuntap add %s mode tap user "
		    "UID multi_queue vnet_hdr', and is nobody else using it?",
		    strerror(error), ic->name);
	return (error);
}

static int
packet_attach(const struct if_config *ic, char *why, size_t len)
{
	int error = attach(ic, open_packet);

	if (error != 0)
		snprintf(why, len, "%s; is it an interface of the host, is it "
		    "up, and has this user the capability CAP_NET_RAW?",
		    strerror(error));
	return (error);
}

static void
tap_detach(struct ifnet *ifp)
{
	struct tap_softc *sc = ifp->if_softc;

	atomic_store_rel_u32(&sc->sc_stop, 1);
	for (unsigned i = 0; i < sc->sc_nqueues; i++) {
		mach_devq_wake(sc->sc_queues[i].tq_devq);
		kthread_join(sc->sc_queues[i].tq_thread);
	}
	/* Others may still send; the process's end closes the queues. */
}

void
tap_init(void)
{
	static struct if_driver driver = { .name = "tap",
	    .attach = tap_attach, .start = tap_start,
	    .detach = tap_detach };

	static struct if_driver packet = { .name = "packet",
	    .attach = packet_attach, .start = tap_start,
	    .detach = tap_detach };

	if_driver_register(&driver);
	if_driver_register(&packet);
}
