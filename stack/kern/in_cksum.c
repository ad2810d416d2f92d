/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Internet checksum (RFC 1071): a one's complement sum of 16-bit words in
 * memory order, computed eight bytes at a time.
 */
#include <string.h>

#include "kern/mbuf.h"

static uint64_t
add64(uint64_t sum, uint64_t v)
{
	sum += v;
	return (sum + (sum < v));	/* end-around carry */
}

/* Sum of contiguous bytes; a last odd byte is padded with zero. */
static uint64_t
sum_bytes(const char *p, uint32_t len)
{
	uint64_t sum = 0, w;

	for (; len >= sizeof(w); p += sizeof(w), len -= sizeof(w)) {
		memcpy(&w, p, sizeof(w));
		sum = add64(sum, w);
	}
	if (len > 0) {
		w = 0;
		memcpy(&w, p, len);
		sum = add64(sum, w);
	}
	return (sum);
}

static uint32_t
fold16(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return ((uint32_t)((sum & 0xffff) + (sum >> 16)));
}

uint32_t
in_sum(const struct mbuf *m, uint32_t off, uint32_t len, uint32_t initial)
{
	uint64_t sum = initial;
	bool odd = false;

	while (len > 0) {
		uint32_t n, part;

		KASSERT(m != NULL, ("in_sum: %u bytes missing", len));
		if (off >= m->m_len) {
			off -= m->m_len;
			m = m->m_next;
			continue;
		}
		n = m->m_len - off < len ? m->m_len - off : len;
		part = fold16(sum_bytes(m->m_data + off, n));
		/* RFC 1071 section 2 (B): starts at an odd byte, swapped. */
		if (odd)
			part = ((part & 0xff) << 8) | (part >> 8);
		sum += part;
		odd ^= n & 1;
		len -= n;
		off = 0;
		m = m->m_next;
	}
	return (fold16(sum));
}

uint16_t
in_fold(uint32_t sum)
{
	return ((uint16_t)~fold16(sum));
}
