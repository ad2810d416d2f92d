/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network buffers.  A packet is a chain of mbufs linked by m_next; packets
 * are queued by m_nextpkt.  Every mbuf has a packet header (valid in the
 * first of a chain only), room for headers inside, or a reference to
 * shared, counted external storage (a cluster), which several mbufs may
 * point into: m_copym() shares, it does not copy.  Shared storage is not
 * written to.
 */
#ifndef KERN_MBUF_H
#define KERN_MBUF_H

#include "kern/systm.h"

struct ifnet;

#define	MSIZE		512	/* bytes of one mbuf, header included */
#define	MCLBYTES	2048	/* a cluster: one Ethernet frame */
#define	MJUMBYTES	16384	/* what socket writes are stored in */
#define	MMAXBYTES	65536	/* the rest of a received 64 KB segment */

/* Storage; freed when the last reference goes. */
struct mext {
	atomic_u32	 me_refs;	/* [a] */
	uint32_t	 me_size;	/* [I] MCLBYTES, MJUMBYTES, MMAXBYTES */
	char		 me_data[];
};

/* csum_flags of a received packet */
#define	CSUM_VALID	0x01	/* transport checksum known to be right */
#define	CSUM_PARTIAL	0x02	/* not computed yet (from a local sender),
				   the packet is good all the same; must be
				   completed if it is forwarded */
/* csum_flags of a packet to send */
#define	CSUM_TX		0x10	/* device computes: sum from csum_start, store
				   at csum_start + csum_offset; the pseudo
				   header sum is in the field already */
#define	CSUM_TSO	0x20	/* cut into segments of tso_segsz */

struct pkthdr {
	uint32_t	 len;		/* bytes in the chain */
	uint32_t	 flowid;	/* hash of the flow, 0 unknown */
	struct ifnet	*rcvif;
	uint16_t	 csum_flags;
	uint16_t	 csum_start;	/* from start of the IP header */
	uint16_t	 csum_offset;
	uint16_t	 tso_segsz;	/* of sent, or received (merged), data */
};

#define	M_BCAST		0x01	/* link-level broadcast */
#define	M_MCAST		0x02
/* The rest says which queue of rcvif it was received on. */
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
} __attribute__((aligned(64)));	/* another CPU may write to its neighbour */
_Static_assert(sizeof(struct mbuf) == MSIZE, "mbuf size");

#define	mtod(m, t)	((t)(void *)((m)->m_data))

/*
 * FIFO of packets.  The pointers are apart, so that they are copied one by
 * one: as a pair they would be loaded before both stores have left the CPU.
 */
struct mbufq {
	struct mbuf	*mq_head;
	unsigned	 mq_len;
	struct mbuf	**mq_tail;
};

/* Allocation never fails (memory is the host's); counters in mbuf.*. */
struct mbuf *m_get(void);		/* empty, data at start of m_dat */
struct mbuf *m_gethdr(size_t room);	/* empty, room bytes of headroom */
struct mbuf *m_getcl(uint32_t size);	/* with a cluster of that size */
struct mbuf *m_free(struct mbuf *);	/* one; returns m_next */
void	 m_freechain(struct mbuf *);
static inline void
m_freem(struct mbuf *m)		/* a chain; NULL is fine */
{
	if (m != NULL)
		m_freechain(m);
}
/* Packets that are linked by m_nextpkt; returns how many. */
unsigned m_freelist(struct mbuf *);

/* Nobody else points into this one's storage. */
bool	 m_writable(const struct mbuf *);
uint32_t m_leadingspace(const struct mbuf *);	/* 0 if shared storage */
uint32_t m_trailingspace(const struct mbuf *);	/* 0 if shared storage */
/* len bytes in front of the packet, in a new mbuf if need be. */
struct mbuf *m_prepend(struct mbuf *, uint32_t len);
/* First len bytes contiguous and private (writable); NULL and the chain
   freed if it is shorter. */
COLD struct mbuf *m_pullup_far(struct mbuf *, uint32_t len);
static inline struct mbuf *
m_pullup(struct mbuf *m, uint32_t len)
{
	if (__predict_true(m->m_len >= len && m->m_ext == NULL))
		return (m);
	return (m_pullup_far(m, len));
}
/* Trims from head (len > 0) or tail (len < 0); fixes m_pkthdr.len. */
void	 m_adj(struct mbuf *, int64_t len);
/* The same for what is at the head of the first mbuf. */
static inline void
m_strip(struct mbuf *m, uint32_t len)
{
	KASSERT(len <= m->m_len, ("m_strip: %u of %u", len, m->m_len));
	m->m_data += len;
	m->m_len -= len;
	m->m_pkthdr.len -= len;
}
/* Shares bytes [off, off + len) of a chain; header from m if off is 0. */
struct mbuf *m_copym(const struct mbuf *m, uint32_t off, uint32_t len);
COLD void m_copydata_far(const struct mbuf *, uint32_t off, uint32_t len,
	    void *);
static inline void
m_copydata(const struct mbuf *m, uint32_t off, uint32_t len, void *buf)
{
	if (__predict_true(off + len <= m->m_len))
		copy_bytes(buf, m->m_data + off, len);
	else
		m_copydata_far(m, off, len, buf);
}
/* len bytes from off: where they are, or a copy in buf if they are apart. */
static inline const void *
m_peek(const struct mbuf *m, uint32_t off, uint32_t len, void *buf)
{
	if (__predict_true(off + len <= m->m_len))
		return (m->m_data + off);
	m_copydata_far(m, off, len, buf);
	return (buf);
}
void	 m_cat(struct mbuf *, struct mbuf *);	/* appends; fixes no header */
uint32_t m_length(const struct mbuf *);
/*
 * A segment that the receiving device merged leaves as a segment that the
 * sending one cuts; a checksum that was left to a device still is.
 */
void	 m_turnoffloads(struct mbuf *);
/* Bytes from an iovec into a new chain of MJUMBYTES clusters. */
struct mbuf *m_uiotombuf(const struct iovec *, int iovcnt, size_t skip,
	    size_t len);
/* Chain to iovec; returns entries used, 0 if more than max are needed. */
int	 m_toiov(const struct mbuf *, struct iovec *, int max);

void	 mbufq_init(struct mbufq *);
void	 mbufq_enqueue(struct mbufq *, struct mbuf *);
struct mbuf *mbufq_dequeue(struct mbufq *);
/* The same in a loop over a burst: with net.prefetch, the headers of the
   next packet are on their way into the cache meanwhile. */
extern atomic_u32 net_prefetch;
struct mbuf *mbufq_next(struct mbufq *);
void	 mbufq_take(struct mbufq *to, struct mbufq *from);	/* moves all */
void	 mbufq_concat(struct mbufq *to, struct mbufq *from);	/* behind to's */
void	 mbufq_drain(struct mbufq *);		/* frees all */
/*
 * Packets that are linked by m_nextpkt, while fewer than max are queued;
 * returns those for which there is no room, or NULL.
 */
struct mbuf *mbufq_fill(struct mbufq *, struct mbuf *, unsigned max);

/* Internet checksum of len bytes from off (RFC 1071), not complemented. */
uint32_t in_sum(const struct mbuf *, uint32_t off, uint32_t len,
	    uint32_t initial);
uint16_t in_fold(uint32_t sum);			/* complemented, folded */

#endif /* KERN_MBUF_H */
