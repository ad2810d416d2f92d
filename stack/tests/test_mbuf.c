/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains of mbufs and the Internet checksum. */
#include "tests/check.h"

#include "kern/kern_private.h"
#include "kern/mbuf_private.h"
#include "kern/sysctl.h"

static struct mbuf *
chain_of(const char *text, uint32_t piece)
{
	struct mbuf *head = m_getcl(MCLBYTES), *m = head;
	uint32_t len = (uint32_t)strlen(text), off;

	head->m_pkthdr.len = len;
	for (off = 0; off < len; off += m->m_len) {
		if (off > 0)
			m = m->m_next = m_getcl(MCLBYTES);
		m->m_data += 16;
		m->m_len = len - off < piece ? len - off : piece;
		memcpy(m->m_data, text + off, m->m_len);
	}
	return (head);
}

static const char *
text_of(const struct mbuf *m)
{
	static char text[4096];

	m_copydata(m, 0, m->m_pkthdr.len, text);
	text[m->m_pkthdr.len] = '\0';
	CHECK_EQ(m_length(m), m->m_pkthdr.len);
	return (text);
}

TEST(copies_share_and_outlive_the_original)
{
	struct mbuf *m = chain_of("the quick brown fox", 4), *c;

	c = m_copym(m, 3, 10);
	CHECK_EQ(m_leadingspace(m), 0);	/* shared: read only */
	m_freem(m);
	CHECK_STREQ(text_of(c), " quick bro");
	m_freem(c);
}

TEST(pullup_makes_a_private_contiguous_head)
{
	struct mbuf *m = chain_of("abcdefghij", 3), *c;

	c = m_copym(m, 0, 10);
	c = m_pullup(c, 8);
	CHECK(c->m_len >= 8);
	c->m_data[0] = 'X';
	CHECK_STREQ(text_of(m), "abcdefghij");
	CHECK_STREQ(text_of(c), "Xbcdefghij");
	CHECK(m_pullup(c, 11) == NULL);	/* frees */
	m_freem(m);
}

TEST(adjust_and_prepend)
{
	struct mbuf *m = chain_of("0123456789", 4);

	m_adj(m, 5);
	CHECK_STREQ(text_of(m), "56789");
	m_adj(m, -2);
	CHECK_STREQ(text_of(m), "567");
	m = m_prepend(m, 2);
	memcpy(m->m_data, "ab", 2);
	CHECK_STREQ(text_of(m), "ab567");
	m_freem(m);
}

/* A packet whose storage is shared gets its Ethernet header in a new mbuf. */
TEST(what_follows_a_prepended_header_is_aligned_once_pulled_up)
{
	static const uint32_t headers[] = { 8, 14, 20, 40 };

	for (unsigned i = 0; i < nitems(headers); i++) {
		struct mbuf *m = m_getcl(MCLBYTES), *c;

		m->m_len = m->m_pkthdr.len = 40;
		memset(m->m_data, 0, 40);
		c = m_prepend(m_copym(m, 0, 40), headers[i]);
		memset(c->m_data, 0, headers[i]);
		CHECK_EQ(c->m_len, headers[i]);
		c = m_pullup(c, headers[i] + 40);
		CHECK_EQ((uintptr_t)(c->m_data + headers[i]) % 4, 0);
		m_freem(c);
		m_freem(m);
	}
}

TEST(a_copy_is_as_aligned_as_what_it_is_of)
{
	for (uint32_t len = 14; len + 64 + 2 <= sizeof(((struct mbuf *)0)->m_dat);
	    len += 4) {
		struct mbuf *m = m_gethdr(64 + 2), *c;

		m->m_len = m->m_pkthdr.len = len;
		memset(m->m_data, 0, len);
		c = m_copym(m, 0, len);
		CHECK_EQ((uintptr_t)c->m_data % 8, 2);
		m_freem(c);
		m_freem(m);
	}
}

TEST(socket_writes_become_clusters)
{
	struct iovec iov[3] = { { "abc", 3 }, { "", 0 }, { "defgh", 5 } };
	struct mbuf *m = m_uiotombuf(iov, 3, 2, 5);

	CHECK_STREQ(text_of(m), "cdefg");
	m_freem(m);
}

/* RFC 1071 literally: adds 16-bit words one by one. */
static uint16_t
reference_sum(const unsigned char *p, size_t len)
{
	uint32_t sum = 0;
	uint16_t w;

	for (; len > 0; len -= len > 1 ? 2 : 1, p += 2) {
		w = 0;
		memcpy(&w, p, len > 1 ? 2 : 1);
		sum += w;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return ((uint16_t)~sum);
}

TEST(checksum_equals_the_reference_for_any_cut)
{
	char text[1200];
	unsigned state = 1;

	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		state = state * 1103515245 + 12345;
		text[i] = (char)(1 + (state >> 16) % 255);
	}
	text[sizeof(text) - 1] = '\0';
	for (uint32_t piece = 1; piece < 300; piece += 7)
		for (uint32_t off = 0; off < 9; off++) {
			struct mbuf *m = chain_of(text, piece);
			uint32_t len = m->m_pkthdr.len - 2 * off;

			CHECK_EQ(in_fold(in_sum(m, off, len, 0)),
			    reference_sum((unsigned char *)text + off, len));
			m_freem(m);
		}
}

/* Returns after how many allocations a freed buffer is reused. */
static unsigned
reuse_distance(const char *recycling, unsigned most)
{
	char why[128] = "";
	struct mbuf *first, *m;
	unsigned n = 0;

	CHECK_EQ(sysctl_set("kern.mbuf.recycle", recycling, why, sizeof(why)),
	    0);
	first = m_getcl(MCLBYTES);
	m_freem(first);
	do {
		m = m_getcl(MCLBYTES);
		m_freem(m);
	} while (m != first && ++n < most);
	CHECK_EQ(sysctl_set("kern.mbuf.recycle", "lifo", why, sizeof(why)), 0);
	return (n);
}

TEST(what_was_freed_last_or_first_is_used_next)
{
	unsigned n;

	CHECK_EQ(reuse_distance("lifo", 10), 0);
	n = reuse_distance("fifo", 100000);
	CHECK(n > 3000 && n < 100000);
	CHECK_EQ(reuse_distance("lifo", 10), 0);
}

/* Packets of first, first + 1, ... bytes. */
static struct mbuf *
list_of(unsigned n, uint32_t first)
{
	struct mbuf *list = NULL, *m;

	while (n-- > 0) {
		m = m_get();
		m->m_len = first + n;
		m->m_nextpkt = list;
		list = m;
	}
	return (list);
}

TEST(a_queue_takes_as_many_as_there_is_room_for)
{
	struct mbufq mq;
	struct mbuf *m;

	mbufq_init(&mq);
	CHECK(mbufq_fill(&mq, NULL, 5) == NULL);
	CHECK(mbufq_fill(&mq, list_of(3, 0), 5) == NULL);
	CHECK_EQ(m_freelist(mbufq_fill(&mq, list_of(4, 3), 5)), 2);
	m = list_of(1, 0);
	CHECK(mbufq_fill(&mq, m, 5) == m);
	m_freem(m);
	for (uint32_t i = 0; i < 5; i++) {
		CHECK_EQ(mq.mq_len, 5 - i);
		m = mbufq_dequeue(&mq);
		CHECK_EQ(m->m_len, i);
		m_freem(m);
	}
	CHECK(mbufq_fill(&mq, list_of(2, 0), 5) == NULL);
	mbufq_drain(&mq);
	CHECK_EQ(mq.mq_len, 0);
	CHECK(mbufq_dequeue(&mq) == NULL);
}

TEST(no_two_share_a_cache_line)
{
	struct mbuf *m[8];

	for (unsigned i = 0; i < nitems(m); i++) {
		m[i] = m_get();
		CHECK_EQ((uintptr_t)m[i] % 64, 0);
	}
	for (unsigned i = 0; i < nitems(m); i++)
		m_freem(m[i]);
}

TEST(nothing_is_left)
{
	char n[32];

	CHECK_EQ(sysctl_get("mbuf.outstanding", n, sizeof(n)), 0);
	CHECK_STREQ(n, "0");
	CHECK_EQ(sysctl_get("mbuf.cluster.outstanding", n, sizeof(n)), 0);
	CHECK_STREQ(n, "0");
}

int
main(int argc, char **argv)
{
	sysctl_init();
	mbuf_init();
	return (check_main(argc, argv));
}
