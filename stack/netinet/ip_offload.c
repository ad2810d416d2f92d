/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums and segmentation in software, for either family.
 */
#include "netinet/ip_offload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "kern/thread.h"
#include "net/if_txbatch.h"
#include "netinet/in_family.h"
#include "netinet/ip_stat.h"

/*
 * The field holds the pseudo header's sum already.  The header is writable,
 * because the stack or the driver made it; only data after it is shared.
 */
void
csum_complete(struct mbuf *m)
{
	uint32_t start = m->m_pkthdr.csum_start;
	uint32_t at = start + m->m_pkthdr.csum_offset;
	uint16_t sum;

	KASSERT(at + sizeof(sum) <= m->m_len,
	    ("csum_complete: field at %u of %u bytes", at, m->m_len));
	sum = in_fold(in_sum(m, start, m->m_pkthdr.len - start, 0));
	/* RFC 768: zero means no checksum; TCP accepts either. */
	if (sum == 0)
		sum = 0xffff;
	memcpy(m->m_data + at, &sum, sizeof(sum));
	m->m_pkthdr.csum_flags &= (uint16_t)~CSUM_TX;
	IPSTAT_INC(swcsum);
}

struct mbuf *
m_copyheaders(const struct mbuf *m, uint32_t len)
{
	struct mbuf *h = m_gethdr(64);

	m_copydata(m, 0, len, h->m_data);
	h->m_len = len;
	h->m_pkthdr = m->m_pkthdr;
	h->m_flags = m->m_flags & (M_BCAST | M_MCAST);
	return (h);
}

/*
 * Makes one segment of a large TCP packet: bytes [off, off + len) of its data.
 * FIN and PSH go into the last segment only, CWR into the first (RFC 3168).
 */
static struct mbuf *
tso_segment(const struct mbuf *m, uint32_t hlen, uint32_t hdrlen, uint32_t off,
    uint32_t len, bool last)
{
	struct mbuf *s = m_copyheaders(m, hdrlen);
	struct tcphdr *th = (struct tcphdr *)(void *)(s->m_data + hlen);
	const struct in_family *af = in_packetfamily(s);
	struct in_conninfo c;

	m_cat(s, m_copym(m, hdrlen + off, len));
	s->m_pkthdr.len = hdrlen + len;
	s->m_pkthdr.csum_flags = CSUM_TX;
	s->m_pkthdr.tso_segsz = 0;
	th->th_seq = htonl(ntohl(th->th_seq) + off);
	if (!last)
		th->th_flags &= (uint8_t)~(TH_FIN | TH_PUSH);
	if (off > 0)
		th->th_flags &= (uint8_t)~0x80;
	/* the sum does not depend on the direction */
	af_endpoints(af, s, &c);
	th->th_sum = af_pseudo(af, &c, IPPROTO_TCP, hdrlen - hlen + len);
	return (s);
}

int
tso_transmit(struct ifnet *ifp, struct mbuf *m, uint32_t hlen,
    void (*header)(struct mbuf *, uint32_t hlen),
    int (*send)(struct ifnet *, struct mbuf *, const void *nexthop),
    const void *nexthop)
{
	uint32_t hdrlen, off, len, total, segsz = m->m_pkthdr.tso_segsz;
	const bool batch_here = curthread->td_tx_batch == NULL;
	struct tx_batch batch;
	struct mbuf *s;
	struct tcphdr th;
	int error = 0;

	m_copydata(m, hlen, sizeof(th), &th);
	hdrlen = hlen + ((uint32_t)th.th_off << 2);
	if (hdrlen > m->m_pkthdr.len || segsz == 0) {
		IPSTAT_INC(toosmall);
		m_freem(m);
		return (EINVAL);
	}
	total = m->m_pkthdr.len - hdrlen;
	if (batch_here)
		tx_batch_begin(&batch);
	for (off = 0; off < total && error == 0; off += len) {
		len = total - off < segsz ? total - off : segsz;
		IPSTAT_INC(swtso);
		s = tso_segment(m, hlen, hdrlen, off, len, off + len == total);
		header(s, hlen);
		error = send(ifp, s, nexthop);
	}
	if (batch_here)
		tx_batch_end(&batch);
	m_freem(m);
	return (error);
}

uint32_t
tso_wirelen(const struct mbuf *m, uint32_t hlen)
{
	const struct pkthdr *ph = &m->m_pkthdr;
	struct tcphdr th;

	if (ph->tso_segsz == 0 || ph->len < hlen + sizeof(th))
		return (ph->len);
	m_copydata(m, hlen, sizeof(th), &th);
	return (hlen + ((uint32_t)th.th_off << 2) + ph->tso_segsz);
}
