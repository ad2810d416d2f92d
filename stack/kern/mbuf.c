/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on chains of mbufs.
 */
#include "kern/mbuf.h"

#include <string.h>

#define	PACK_MAX	256	/* longest mbuf that m_pack() copies */

bool
m_writable(const struct mbuf *m)
{
	return (m->m_ext == NULL ||
	    atomic_load_acq_u32(&m->m_ext->me_refs) == 1);
}

uint32_t
m_leadingspace(const struct mbuf *m)
{
	if (m->m_ext == NULL)
		return ((uint32_t)(m->m_data - m->m_dat));
	return (m_writable(m) ? (uint32_t)(m->m_data - m->m_ext->me_data) : 0);
}

uint32_t
m_trailingspace(const struct mbuf *m)
{
	const char *end = m->m_data + m->m_len;

	if (m->m_ext == NULL)
		return ((uint32_t)(m->m_dat + sizeof(m->m_dat) - end));
	return (m_writable(m) ? (uint32_t)(m->m_ext->me_data +
	    m->m_ext->me_size - end) : 0);
}

static void
move_header(struct mbuf *to, struct mbuf *from)
{
	to->m_pkthdr = from->m_pkthdr;
	to->m_flags = from->m_flags;
	to->m_nextpkt = from->m_nextpkt;
	from->m_nextpkt = NULL;
}

/*
 * Prepends an mbuf.  Its data is at its end, so that more headers fit before
 * it.  If a pullup moves data here, the IP header after the 14 bytes of
 * Ethernet is aligned.
 */
NOINLINE static struct mbuf *
prepend_mbuf(struct mbuf *m, uint32_t len)
{
	struct mbuf *h = m_get();

	KASSERT(len <= sizeof(h->m_dat), ("m_prepend: %u", len));
	h->m_data += (sizeof(h->m_dat) & ~7UL) - len;
	h->m_len = len;
	move_header(h, m);
	h->m_next = m;
	return (h);
}

__hot struct mbuf *
m_prepend(struct mbuf *m, uint32_t len)
{
	if (__predict_true(m_leadingspace(m) >= len)) {
		m->m_data -= len;
		m->m_len += len;
	} else {
		m = prepend_mbuf(m, len);
	}
	m->m_pkthdr.len += len;
	return (m);
}

/*
 * Headroom for a copy of the n bytes at off that keeps their alignment; at
 * most the space before them now.
 */
static size_t
aligned_room(const struct mbuf *m, uint32_t off, uint32_t n)
{
	const size_t odd = (uintptr_t)(m->m_data + off) % 8;

	return (64 + odd + n <= sizeof(m->m_dat) ? 64 + odd : odd);
}

struct mbuf *
m_pullup_far(struct mbuf *m, uint32_t len)
{
	struct mbuf *h;
	uint32_t have = 0;

	if (m->m_len >= len && m_writable(m))
		return (m);
	if (m_length(m) < len) {
		m_freem(m);
		return (NULL);
	}
	KASSERT(len <= sizeof(h->m_dat) - 64 - 8, ("m_pullup: %u", len));
	h = m_gethdr(aligned_room(m, 0, len));
	move_header(h, m);
	while (have < len) {
		uint32_t n = m->m_len < len - have ? m->m_len : len - have;

		memcpy(h->m_data + have, m->m_data, n);
		have += n;
		m->m_data += n;
		m->m_len -= n;
		if (m->m_len == 0)
			m = m_free(m);
	}
	h->m_len = len;
	h->m_next = m;
	return (h);
}

static void
trim_head(struct mbuf *m, uint32_t len)
{
	for (; len > 0 && m != NULL; m = m->m_next) {
		uint32_t n = m->m_len < len ? m->m_len : len;

		m->m_data += n;
		m->m_len -= n;
		len -= n;
	}
}

/* Keeps the first len bytes. */
NOINLINE static void
trim_tail(struct mbuf *m, uint32_t len)
{
	while (m->m_len < len) {
		len -= m->m_len;
		m = m->m_next;
		KASSERT(m != NULL, ("trim_tail: chain shorter by %u", len));
	}
	m->m_len = len;
	m_freem(m->m_next);
	m->m_next = NULL;
}

void
m_adj(struct mbuf *m, int64_t len)
{
	uint32_t total = m->m_pkthdr.len;
	uint32_t n = (uint32_t)(len < 0 ? -len : len);

	KASSERT(n <= total, ("m_adj: %lld of %u", (long long)len, total));
	if (len >= 0)
		trim_head(m, n);
	else
		trim_tail(m, total - n);
	m->m_pkthdr.len = total - n;
}

/*
 * Makes an mbuf for n bytes of m from off: shares storage, copies small data.
 */
static struct mbuf *
share(const struct mbuf *m, uint32_t off, uint32_t n)
{
	struct mbuf *s;

	if (m->m_ext == NULL) {
		s = m_gethdr(aligned_room(m, off, n));
		memcpy(s->m_data, m->m_data + off, n);
	} else {
		s = m_get();
		s->m_ext = m->m_ext;
		atomic_fetchadd_u32(&s->m_ext->me_refs, 1);
		s->m_data = m->m_data + off;
	}
	s->m_len = n;
	return (s);
}

struct mbuf *
m_copym(const struct mbuf *m, uint32_t off, uint32_t len)
{
	struct mbuf *head = NULL, **tail = &head;
	const struct mbuf *first = m;
	uint32_t left = len;

	/* an offset after the last byte is valid only for length 0 */
	while (len > 0 && off > 0 && off >= m->m_len) {
		off -= m->m_len;
		m = m->m_next;
		KASSERT(m != NULL, ("m_copym: offset beyond by %u", off));
	}
	for (; left > 0; m = m->m_next) {
		uint32_t n;

		KASSERT(m != NULL, ("m_copym: %u of %u missing", left, len));
		n = m->m_len - off < left ? m->m_len - off : left;
		if (n > 0) {
			*tail = share(m, off, n);
			tail = &(*tail)->m_next;
		}
		left -= n;
		off = 0;
	}
	if (head == NULL)
		head = m_get();
	head->m_flags = first->m_flags;
	head->m_pkthdr = first->m_pkthdr;
	head->m_pkthdr.len = len;
	return (head);
}

void
m_copydata_far(const struct mbuf *m, uint32_t off, uint32_t len, void *buf)
{
	char *to = buf;

	while (len > 0) {
		uint32_t n;

		KASSERT(m != NULL, ("m_copydata: %u bytes missing", len));
		if (off >= m->m_len) {
			off -= m->m_len;
			m = m->m_next;
			continue;
		}
		n = m->m_len - off < len ? m->m_len - off : len;
		memcpy(to, m->m_data + off, n);
		to += n;
		len -= n;
		off = 0;
		m = m->m_next;
	}
}

void
m_cat(struct mbuf *m, struct mbuf *n)
{
	while (m->m_next != NULL)
		m = m->m_next;
	m->m_next = n;
}

struct mbuf *
m_pack(struct mbuf *last, struct mbuf *m)
{
	struct mbuf *next;

	last->m_next = NULL;
	for (; m != NULL; m = next) {
		next = m->m_next;
		m->m_next = NULL;
		if (m->m_len <= PACK_MAX && (last->m_flags & M_EOR) == 0 &&
		    m_trailingspace(last) >= m->m_len) {
			memcpy(last->m_data + last->m_len, m->m_data, m->m_len);
			last->m_len += m->m_len;
			m_free(m);
		} else {
			last->m_next = m;
			last = m;
		}
	}
	return (last);
}

uint64_t
m_memory(const struct mbuf *m)
{
	uint64_t size = 0;

	for (; m != NULL; m = m->m_next) {
		size += MSIZE;
		if (m->m_ext != NULL)
			size += m->m_ext->me_size /
			    atomic_load_u32(&m->m_ext->me_refs);
	}
	return (size);
}

uint32_t
m_length(const struct mbuf *m)
{
	uint32_t len = 0;

	for (; m != NULL; m = m->m_next)
		len += m->m_len;
	return (len);
}

struct mbuf *
m_uiotombuf(const struct iovec *iov, int iovcnt, size_t skip, size_t len)
{
	struct mbuf *head = NULL, **tail = &head, *m = NULL;
	size_t total = len;

	while (len > 0) {
		size_t n, room;

		KASSERT(iovcnt > 0, ("m_uiotombuf: %zu bytes missing", len));
		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			iov++;
			iovcnt--;
			continue;
		}
		if (m == NULL || m_trailingspace(m) == 0) {
			m = m_getcl(len > MCLBYTES ? MJUMBYTES : MCLBYTES);
			*tail = m;
			tail = &m->m_next;
		}
		n = iov->iov_len - skip < len ? iov->iov_len - skip : len;
		room = m_trailingspace(m);
		if (n > room)
			n = room;
		memcpy(m->m_data + m->m_len, (char *)iov->iov_base + skip, n);
		m->m_len += (uint32_t)n;
		skip += n;
		len -= n;
	}
	if (head == NULL)
		head = m_get();
	head->m_pkthdr.len = (uint32_t)total;
	return (head);
}

int
m_toiov(const struct mbuf *m, struct iovec *iov, int max)
{
	int n = 0;

	for (; m != NULL; m = m->m_next) {
		if (m->m_len == 0)
			continue;
		if (n == max)
			return (0);
		iov[n].iov_base = m->m_data;
		iov[n++].iov_len = m->m_len;
	}
	return (n);
}

void
mbufq_init(struct mbufq *mq)
{
	mq->mq_head = NULL;
	mq->mq_tail = &mq->mq_head;
	mq->mq_len = 0;
}

void
mbufq_enqueue(struct mbufq *mq, struct mbuf *m)
{
	KASSERT(m->m_nextpkt == NULL, ("mbufq_enqueue: packet is queued"));
	*mq->mq_tail = m;
	mq->mq_tail = &m->m_nextpkt;
	mq->mq_len++;
}

struct mbuf *
mbufq_dequeue(struct mbufq *mq)
{
	struct mbuf *m = mq->mq_head;

	if (m == NULL)
		return (NULL);
	mq->mq_head = m->m_nextpkt;
	if (mq->mq_head == NULL)
		mq->mq_tail = &mq->mq_head;
	mq->mq_len--;
	m->m_nextpkt = NULL;
	return (m);
}

struct mbuf *
mbufq_next(struct mbufq *mq)
{
	struct mbuf *m = mbufq_dequeue(mq);

	if (atomic_load_u32(&net_prefetch) != 0 && mq->mq_head != NULL) {
		mach_prefetch(mq->mq_head->m_data);
		mach_prefetch(mq->mq_head->m_nextpkt);
	}
	return (m);
}

void
mbufq_take(struct mbufq *to, struct mbufq *from)
{
	mbufq_init(to);
	mbufq_concat(to, from);
}

void
mbufq_concat(struct mbufq *to, struct mbufq *from)
{
	if (from->mq_head == NULL)
		return;
	*to->mq_tail = from->mq_head;
	to->mq_tail = from->mq_tail;
	to->mq_len += from->mq_len;
	mbufq_init(from);
}

unsigned
m_freelist(struct mbuf *m)
{
	struct mbuf *next;
	unsigned n;

	for (n = 0; m != NULL; m = next, n++) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		m_freem(m);
	}
	return (n);
}

void
mbufq_drain(struct mbufq *mq)
{
	(void)m_freelist(mq->mq_head);
	mbufq_init(mq);
}

struct mbuf *
mbufq_fill(struct mbufq *mq, struct mbuf *m, unsigned max)
{
	struct mbuf *next;

	for (; m != NULL && mq->mq_len < max; m = next) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		mbufq_enqueue(mq, m);
	}
	return (m);
}

void
m_offload_rx_to_tx(struct mbuf *m)
{
	struct pkthdr *ph = &m->m_pkthdr;
	uint16_t flags = 0;

	if ((ph->csum_flags & CSUM_PARTIAL) != 0)
		flags |= CSUM_TX;
	if (ph->tso_segsz != 0)
		flags |= CSUM_TSO;
	ph->csum_flags = flags;
}
