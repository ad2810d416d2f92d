/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A source of UDP packets on an interface in memory, like a traffic generator
 * on a link (RFC 2544 section 12: several flows).  Packets are copies of one
 * template; source port and destination rotate.  The source's thread receives
 * them, so that with direct dispatch one CPU does all their work.  With cold=1
 * packets are written a burst ahead and flushed from the caches, as a device
 * that writes to memory leaves them.
 */
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev/mem.h"
#include "kern/epoch.h"
#include "kern/thread.h"
#include "net/netisr.h"
#include "net/rx_burst.h"

#define	BURST		64	/* packets in one epoch section */
#define	FIRST_PORT	1024
#define	DISCARD_PORT	9	/* RFC 863 */
#define	FRAME_MAX	(MSIZE / 2) /* fits into an mbuf without a cluster */

struct template {
	struct ether_header eh;
	struct ip	 ip;
	struct udphdr	 uh;
} __attribute__((packed));

/* [I] immutable after start, [a] atomic */
struct mem_source {
	struct in_addr	 ms_from, ms_to;	/* [I] */
	uint64_t	 ms_len, ms_flows, ms_hosts, ms_count;	/* [I] */
	uint64_t	 ms_cold; /* [I] 1: flushed from the caches */
	uint64_t	 ms_rate;		/* [I] packets a second, or 0 */
	struct template	 ms_template;		/* [I] ip_dst is zero */
	uint32_t	 ms_sum; /* [I] checksum of its IP header */
	struct ifnet	*ms_ifp;		/* [I] */
	struct thread	*ms_thread;		/* [I] */
	atomic_u32	 ms_stop;		/* [a] */
};

/* Sets an option like "len=46"; false: unknown name. */
static bool
set_number(struct mem_source *ms, const char *name, const char *value)
{
	const struct {
		const char	*name;
		uint64_t	*number;
		uint64_t	 min, max;
	} numbers[] = {
		{ "len", &ms->ms_len, 28, 1500 },
		{ "flows", &ms->ms_flows, 1, 60000 },
		{ "hosts", &ms->ms_hosts, 1, 1 << 24 },
		{ "count", &ms->ms_count, 0, UINT64_MAX / 2 },
		{ "cold", &ms->ms_cold, 0, 1 },
		{ "rate", &ms->ms_rate, 0, 100000000 },
	};
	char *end;

	for (size_t i = 0; i < nitems(numbers); i++) {
		unsigned long long v;

		if (strcmp(name, numbers[i].name) != 0)
			continue;
		v = strtoull(value, &end, 10);
		*numbers[i].number = v;
		return (*value >= '0' && *value <= '9' && *end == '\0' &&
		    v >= numbers[i].min && v <= numbers[i].max);
	}
	return (false);
}

static bool
set_word(struct mem_source *ms, char *word)
{
	char *value = strchr(word, '=');

	if (value == NULL)
		return (false);
	*value++ = '\0';
	if (strcmp(word, "from") == 0)
		return (inet_pton(AF_INET, value, &ms->ms_from) == 1);
	if (strcmp(word, "to") == 0)
		return (inet_pton(AF_INET, value, &ms->ms_to) == 1);
	return (set_number(ms, word, value));
}

struct mem_source *
mem_source_create(const char *spec, char *why, size_t len)
{
	struct mem_source source = { .ms_len = 46, .ms_flows = 1,
	    .ms_hosts = 1 }, *ms;
	char copy[256], *save = NULL, *word;
	bool good = true;

	snprintf(copy, sizeof(copy), "%s", spec);
	for (word = strtok_r(copy, " ", &save); word != NULL && good;
	    word = strtok_r(NULL, " ", &save))
		good = set_word(&source, word);
	if (!good || source.ms_from.s_addr == INADDR_ANY ||
	    source.ms_to.s_addr == INADDR_ANY) {
		snprintf(why, len, "'%s' is not a source like 'from=10.9.0.2 "
		    "to=10.9.1.2 len=46 flows=64 hosts=1 count=0 cold=0 "
		    "rate=0' (28 to 1500 bytes; 1 to 60000 flows; 1 to "
		    "16777216 hosts; cold: 0 or 1; rate: to 100000000)", spec);
		return (NULL);
	}
	ms = kmalloc(sizeof(*ms));
	*ms = source;
	return (ms);
}

static void
template_make(struct mem_source *ms)
{
	struct template *t = &ms->ms_template;
	uint16_t word;

	memcpy(t->eh.ether_dhost, ms->ms_ifp->if_lladdr, 6);
	memcpy(t->eh.ether_shost, "\x02" "from\1", 6);
	t->eh.ether_type = htons(ETHERTYPE_IP);
	t->ip = (struct ip){ .ip_v = IPVERSION, .ip_hl = sizeof(struct ip) >> 2,
	    .ip_len = htons((uint16_t)ms->ms_len), .ip_ttl = IPDEFTTL,
	    .ip_p = IPPROTO_UDP, .ip_src = ms->ms_from };
	t->uh.uh_dport = htons(DISCARD_PORT);
	t->uh.uh_ulen = htons((uint16_t)(ms->ms_len - sizeof(struct ip)));
	for (size_t i = 0; i < sizeof(t->ip); i += sizeof(word)) {
		memcpy(&word, (const char *)&t->ip + i, sizeof(word));
		ms->ms_sum += word;
	}
}

/* Makes the n-th packet; its UDP checksum is zero: none (RFC 768). */
static struct mbuf *
source_packet(const struct mem_source *ms, uint64_t n)
{
	uint32_t len = ETHER_HDR_LEN + (uint32_t)ms->ms_len;
	struct mbuf *m = len <= FRAME_MAX ? m_get() : m_getcl(MCLBYTES);
	struct template *t;
	struct in_addr to = { htonl(ntohl(ms->ms_to.s_addr) +
	    (uint32_t)(n % ms->ms_hosts)) };

	m->m_data += MEM_HEADROOM;
	t = mtod(m, struct template *);
	m->m_len = m->m_pkthdr.len = len;
	*t = ms->ms_template;
	t->ip.ip_dst = to;
	t->ip.ip_sum = in_fold(ms->ms_sum + (to.s_addr & 0xffff) +
	    (to.s_addr >> 16));
	t->uh.uh_sport = htons((uint16_t)(FIRST_PORT + n % ms->ms_flows));
	return (m);
}

/* Packets from the n-th on, each received right after it is written. */
static void
burst_warm(const struct mem_source *ms, uint64_t n, uint64_t end)
{
	for (; n < end; n++)
		mem_input(ms->ms_ifp, source_packet(ms, n));
}

static void
burst_cold(const struct mem_source *ms, uint64_t n, uint64_t end)
{
	struct mbufq burst;
	struct mbuf *m;

	mbufq_init(&burst);
	for (; n < end; n++) {
		m = source_packet(ms, n);
		mach_cache_flush(m->m_data, m->m_len);
		mbufq_enqueue(&burst, m);
	}
	while ((m = mbufq_next(&burst)) != NULL)
		mem_input(ms->ms_ifp, m);
}

/* Number of packets due since start; waits if the n-th is not due. */
static uint64_t
source_due(struct mem_source *ms, nsec_t start, uint64_t n)
{
	nsec_t now = mach_uptime(), date;

	if (ms->ms_rate == 0)
		return (UINT64_MAX);
	date = start + (n + 1) / ms->ms_rate * NSEC_PER_SEC +
	    (n + 1) % ms->ms_rate * NSEC_PER_SEC / ms->ms_rate;
	if (now < date)
		(void)mach_park(&ms->ms_stop, 0, date);
	now = mach_uptime() - start;
	return (now / NSEC_PER_SEC * ms->ms_rate +
	    now % NSEC_PER_SEC * ms->ms_rate / NSEC_PER_SEC);
}

static void
source_main(void *arg)
{
	struct mem_source *ms = arg;
	void (*burst)(const struct mem_source *, uint64_t, uint64_t) =
	    ms->ms_cold != 0 ? burst_cold : burst_warm;
	uint64_t n = 0, end = ms->ms_count != 0 ? ms->ms_count : UINT64_MAX;
	nsec_t start = mach_uptime();

	while (n < end && atomic_load_u32(&ms->ms_stop) == 0) {
		uint64_t due = source_due(ms, start, n), last;

		if (due > end)
			due = end;
		if (due <= n)
			continue;
		last = due - n < BURST ? due : n + BURST;
		netisr_burst_begin();
		epoch_enter();
		rx_burst_begin();
		burst(ms, n, last);
		rx_burst_end();
		epoch_exit();
		netisr_burst_end();
		n = last;
	}
}

int
mem_source_start(struct mem_source *ms, struct ifnet *ifp)
{
	ms->ms_ifp = ifp;
	template_make(ms);
	return (kthread_create("intr: source", MACH_CPU_ANY, source_main, ms,
	    &ms->ms_thread));
}

void
mem_source_stop(struct mem_source *ms)
{
	atomic_store_u32(&ms->ms_stop, 1);
	mach_unpark(&ms->ms_stop, 1);
	kthread_join(ms->ms_thread);
}
