/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network buffers.  A packet is a chain of mbufs linked by m_next; packets are
 * queued by m_nextpkt.  Every mbuf has a packet header, which is valid only in
 * the first mbuf of a chain.  Data lies inside the mbuf, or in external
 * storage (a cluster) with a reference count.  Several mbufs may point into
 * one cluster: m_copym() shares instead of copying.  Shared storage must not
 * be written to.
 */
#ifndef KERN_MBUF_H
#define KERN_MBUF_H

#include "kern/systm.h"

struct ifnet;

#define	MSIZE		512	/* bytes of one mbuf, header included */
#define	MCLBYTES	2048	/* a cluster: one Ethernet frame */
#define	MJUMBYTES	16384	/* storage of socket writes */
#define	MMAXBYTES	65536	/* the rest of a received 64 KB segment */

/* External storage; freed with its last reference. */
struct mext {
	atomic_u32	 me_refs;	/* [a] */
	uint32_t	 me_size;	/* [I] MCLBYTES, MJUMBYTES, MMAXBYTES */
	char		 me_data[];
};

/* csum_flags of a received packet */
#define	CSUM_VALID	0x01	/* transport checksum known to be right */
/*
 * not computed yet (from a local sender): treat as valid, complete it before
 * forwarding
 */
#define	CSUM_PARTIAL	0x02
/* csum_flags of a packet to send */
/*
 * device computes: sum from csum_start, store at csum_start + csum_offset; the
 * pseudo header sum is in the field already
 */
#define	CSUM_TX		0x10
#define	CSUM_TSO	0x20	/* device cuts it into segments of tso_segsz */

struct pkthdr {
	uint32_t	 len;		/* bytes in the chain */
	uint32_t	 flowid;	/* hash of the flow, 0 unknown */
	struct ifnet	*rcvif;
	uint16_t	 csum_flags;
	union {
		struct {
			/* from start of the IP header */
			uint16_t	 csum_start, csum_offset;
		};
		/* after input of IP, of a packet for this host: offset and
		   number of its protocol (netinet/in_handoff.h) */
		struct {
			uint16_t	 upper_off;
			uint8_t		 upper_proto;
		};
	};
	uint16_t	 tso_segsz;	/* segment size of TSO or merged data */
};

#define	M_BCAST		0x01	/* link-level broadcast */
#define	M_MCAST		0x02
#define	M_LOCALCOPY	0x04	/* this host sent it: lo_copy() */
#define	M_EOR		0x08	/* a record ends with it: nothing is packed in */
/* The higher bits hold the queue of rcvif that received the packet. */
#define	M_QUEUE_SHIFT	8

struct mbuf {
	struct mbuf	*m_next;
	struct mbuf	*m_nextpkt;
	char		*m_data;
	uint32_t	 m_len;
	uint32_t	 m_flags;
	struct mext	*m_ext;		/* NULL: data is in m_dat */
	struct pkthdr	 m_pkthdr;
	char		 m_dat[MSIZE - 4 * sizeof(void *) -
			    2 * sizeof(uint32_t) - sizeof(struct pkthdr)];
/* separate cache lines: another CPU may write to the adjacent mbuf */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct mbuf) == MSIZE, "mbuf size");

#define	mtod(m, t)	((t)(void *)((m)->m_data))

/*
 * FIFO of packets.  The pointers are not adjacent, so that the compiler copies
 * them one by one.  As a pair they would be loaded before both stores have
 * left the store buffer.
 */
struct mbufq {
	struct mbuf	*mq_head;
	unsigned	 mq_len;
	struct mbuf	**mq_tail;
};

/*
 * Allocation never fails, because memory comes from the host; counters are in
 * mbuf.*.
 */
struct mbuf *m_get(void);		/* empty, data at start of m_dat */
struct mbuf *m_gethdr(size_t room);	/* empty, room bytes of headroom */
struct mbuf *m_getcl(uint32_t size);	/* with a cluster of this size */
struct mbuf *m_free(struct mbuf *);	/* frees one mbuf; returns m_next */
void	 m_freechain(struct mbuf *);
static inline void
m_freem(struct mbuf *m)		/* frees a chain; NULL is allowed */
{
	if (m != NULL)
		m_freechain(m);
}
/* Frees packets linked by m_nextpkt; returns how many. */
unsigned m_freelist(struct mbuf *);

/* True if no other mbuf points into this one's storage. */
bool	 m_writable(const struct mbuf *);
uint32_t m_leadingspace(const struct mbuf *);	/* 0 if shared storage */
uint32_t m_trailingspace(const struct mbuf *);	/* 0 if shared storage */
/* Prepends len bytes to the packet, in a new mbuf if there is no room. */
struct mbuf *m_prepend(struct mbuf *, uint32_t len);
/*
 * Makes the first len bytes contiguous and writable.  If the chain is shorter,
 * frees it and returns NULL.
 */
__cold struct mbuf *m_pullup_far(struct mbuf *, uint32_t len);
static inline struct mbuf *
m_pullup(struct mbuf *m, uint32_t len)
{
	if (__predict_true(m->m_len >= len && m->m_ext == NULL))
		return (m);
	return (m_pullup_far(m, len));
}
/* Trims from head (len > 0) or tail (len < 0); fixes m_pkthdr.len. */
void	 m_adj(struct mbuf *, int64_t len);
/* Like m_adj(), for len bytes that lie within the first mbuf. */
static inline void
m_strip(struct mbuf *m, uint32_t len)
{
	KASSERT(len <= m->m_len, ("m_strip: %u of %u", len, m->m_len));
	m->m_data += len;
	m->m_len -= len;
	m->m_pkthdr.len -= len;
}
/*
 * Shares bytes [off, off + len) of a chain; copies the packet header if off is
 * 0.
 */
struct mbuf *m_copym(const struct mbuf *m, uint32_t off, uint32_t len);
__cold void m_copydata_far(const struct mbuf *, uint32_t off, uint32_t len,
	    void *);
static inline void
m_copydata(const struct mbuf *m, uint32_t off, uint32_t len, void *buf)
{
	if (__predict_true(off + len <= m->m_len))
		copy_bytes(buf, m->m_data + off, len);
	else
		m_copydata_far(m, off, len, buf);
}
/* Returns len bytes from off: in place if contiguous, else copied to buf. */
static inline const void *
m_peek(const struct mbuf *m, uint32_t off, uint32_t len, void *buf)
{
	if (__predict_true(off + len <= m->m_len))
		return (m->m_data + off);
	m_copydata_far(m, off, len, buf);
	return (buf);
}
/* appends; does not update the packet header */
void	 m_cat(struct mbuf *, struct mbuf *);
/*
 * Like m_cat() to the last mbuf of a chain, but copies short mbufs to the end
 * of the one before if its storage is writable and has room, so that they do
 * not occupy a cluster each.  Returns the new last mbuf.  With m_pack(m,
 * m->m_next) a chain packs itself.
 */
struct mbuf *m_pack(struct mbuf *last, struct mbuf *);
uint32_t m_length(const struct mbuf *);
/* Bytes that a chain occupies: mbufs, storage, its part of shared storage. */
uint64_t m_memory(const struct mbuf *);
/*
 * Converts receive offloads to transmit offloads: the device segments what a
 * device merged, and computes a checksum that is still partial.
 */
void	 m_offload_rx_to_tx(struct mbuf *);
/* Copies bytes of an iovec into a new chain of MJUMBYTES clusters. */
struct mbuf *m_uiotombuf(const struct iovec *, int iovcnt, size_t skip,
	    size_t len);
/*
 * Describes a chain as an iovec; returns the entries used, 0 if more than max
 * are needed.
 */
int	 m_toiov(const struct mbuf *, struct iovec *, int max);

void	 mbufq_init(struct mbufq *);
void	 mbufq_enqueue(struct mbufq *, struct mbuf *);
struct mbuf *mbufq_dequeue(struct mbufq *);
/*
 * Takes the first packet of a burst; with net.prefetch, prefetches the headers
 * of the next packet.
 */
extern atomic_u32 net_prefetch;
struct mbuf *mbufq_next(struct mbufq *);
/* moves all packets */
void	 mbufq_take(struct mbufq *to, struct mbufq *from);
void	 mbufq_concat(struct mbufq *to, struct mbufq *from); /* appends to to */
void	 mbufq_drain(struct mbufq *);		/* frees all packets */
/*
 * Queues packets linked by m_nextpkt while fewer than max are queued; returns
 * the rest, or NULL.
 */
struct mbuf *mbufq_fill(struct mbufq *, struct mbuf *, unsigned max);

/* Internet checksum of len bytes from off (RFC 1071), not complemented. */
uint32_t in_sum(const struct mbuf *, uint32_t off, uint32_t len,
	    uint32_t initial);
uint16_t in_fold(uint32_t sum);			/* complemented, folded */

#endif /* KERN_MBUF_H */
