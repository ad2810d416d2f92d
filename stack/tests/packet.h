/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A router in one process for tests: mem0 is 10.9.0.1/24 and mem1 is
 * 10.9.1.1/24, a host 10.9.<i>.2 is behind each.  What the stack sends is
 * kept for the test to look at; direct dispatch makes it there when the
 * call that caused it returns.
 */
#ifndef TESTS_PACKET_H
#define TESTS_PACKET_H

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/if_ether.h>
#include <netinet/ip_icmp.h>

#include "boot/boot.h"
#include "dev/mem.h"
#include "kern/kern_private.h"
#include "kern/sysctl.h"
#include "net/route.h"
#include "netinet/ip_private.h"

#define	ETHER_ALIGN	2	/* aligns the IP header, as drivers do */
#define	HOST_MAC(i)	((uint8_t[6]){ 0x02, 'h', 'o', 's', 't', (i) })
#define	IP_AT(m)	((const struct ip *)(void *)((m)->m_data + ETHER_HDR_LEN))

static struct ifnet *mem[2];
static struct mbufq sent[2];		/* frames that left each interface */

static inline struct in_addr
addr(const char *text)
{
	struct in_addr a;

	CHECK_EQ(inet_pton(AF_INET, text, &a), 1);
	return (a);
}

/* Copies a frame into one mbuf. */
static inline void
keep(void *arg, struct mbuf *m)
{
	struct mbuf *whole = m_getcl(MMAXBYTES);

	whole->m_data += ETHER_ALIGN;
	m_copydata(m, 0, m->m_pkthdr.len, whole->m_data);
	whole->m_len = m->m_pkthdr.len;
	whole->m_pkthdr = m->m_pkthdr;
	m_freem(m);
	mbufq_enqueue(arg, whole);
}

static inline void
set(const char *name, const char *value)
{
	char why[256] = "";

	if (sysctl_set(name, value, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
}

static inline uint64_t
counter(const char *name)
{
	char value[64];

	CHECK_EQ(sysctl_get(name, value, sizeof(value)), 0);
	return (strtoull(value, NULL, 10));
}

/* A frame with room for len bytes after the Ethernet header. */
static inline struct mbuf *
frame(unsigned i, uint16_t type, uint32_t len)
{
	struct mbuf *m = m_getcl(len <= 1500 ? MCLBYTES : MMAXBYTES);
	struct ether_header *eh;

	m->m_data += ETHER_ALIGN;
	eh = mtod(m, struct ether_header *);
	memset(m->m_data, 0, ETHER_HDR_LEN + len);
	m->m_len = m->m_pkthdr.len = ETHER_HDR_LEN + len;
	memcpy(eh->ether_dhost, mem[i]->if_lladdr, 6);
	memcpy(eh->ether_shost, HOST_MAC(i), 6);
	eh->ether_type = htons(type);
	return (m);
}

static inline void
seal(struct ip *ip)
{
	ip->ip_sum = 0;
	ip->ip_sum = in_hdrsum(ip, (unsigned)ip->ip_hl << 2);
}

/* An IPv4 packet from a host; its payload counts up from zero. */
static inline struct mbuf *
packet(unsigned i, const char *src, const char *dst, uint8_t proto,
    uint32_t payload)
{
	struct mbuf *m = frame(i, ETHERTYPE_IP, IP_HDRLEN + payload);
	struct ip *ip = (struct ip *)(void *)(m->m_data + ETHER_HDR_LEN);

	*ip = (struct ip){ .ip_v = IPVERSION, .ip_hl = IP_HDRLEN >> 2,
	    .ip_len = htons((uint16_t)(IP_HDRLEN + payload)), .ip_ttl = 9,
	    .ip_p = proto, .ip_src = addr(src), .ip_dst = addr(dst) };
	seal(ip);
	for (uint32_t k = 0; k < payload; k++)
		((char *)(ip + 1))[k] = (char)k;
	return (m);
}

static inline struct mbuf *
echo_request(const char *dst, uint32_t payload)
{
	struct mbuf *m = packet(0, "10.9.0.2", dst, IPPROTO_ICMP,
	    ICMP_MINLEN + payload);
	const uint32_t off = ETHER_HDR_LEN + IP_HDRLEN;
	struct icmp *icp = (struct icmp *)(void *)(m->m_data + off);

	icp->icmp_type = ICMP_ECHO;
	icp->icmp_code = 0;
	icp->icmp_cksum = 0;
	icp->icmp_cksum = in_fold(in_sum(m, off, m->m_len - off, 0));
	return (m);
}

/* ARP from a link address behind an interface. */
static inline struct mbuf *
arp_frame(unsigned i, uint16_t op, const uint8_t sha[6], struct in_addr spa,
    struct in_addr tpa)
{
	struct mbuf *m = frame(i, ETHERTYPE_ARP, sizeof(struct ether_arp));
	struct ether_arp *ea = (void *)(m->m_data + ETHER_HDR_LEN);

	ea->arp_hrd = htons(ARPHRD_ETHER);
	ea->arp_pro = htons(ETHERTYPE_IP);
	ea->arp_hln = 6;
	ea->arp_pln = 4;
	ea->arp_op = htons(op);
	memcpy(ea->arp_sha, sha, 6);
	memcpy(ea->arp_spa, &spa, 4);
	memcpy(ea->arp_tpa, &tpa, 4);
	return (m);
}

static inline void
learn_host(unsigned i, const char *ip)
{
	mem_input(mem[i], arp_frame(i, ARPOP_REPLY, HOST_MAC(i), addr(ip),
	    mem[i]->if_addr));
}

/* The ARP packet in a frame that was sent. */
static inline const struct ether_arp *
arp_in(const struct mbuf *m)
{
	const struct ether_header *eh =
	    (const struct ether_header *)(const void *)m->m_data;

	CHECK_EQ(ntohs(eh->ether_type), ETHERTYPE_ARP);
	CHECK_EQ(m->m_pkthdr.len, ETHER_HDR_LEN + sizeof(struct ether_arp));
	return ((const struct ether_arp *)(const void *)(eh + 1));
}

/* The ICMP message in a frame that was sent. */
static inline const struct icmp *
icmp_in(const struct mbuf *m)
{
	const struct ip *ip = IP_AT(m);
	const uint32_t off = ETHER_HDR_LEN + IP_HDRLEN;

	CHECK_EQ(ip->ip_p, IPPROTO_ICMP);
	CHECK_EQ(in_hdrsum(ip, IP_HDRLEN), 0);
	CHECK_EQ(in_fold(in_sum(m, off, m->m_pkthdr.len - off, 0)), 0);
	return ((const struct icmp *)(const void *)(ip + 1));
}

static inline struct mbuf *
take_sent(unsigned i)
{
	struct mbuf *m = mbufq_dequeue(&sent[i]);

	CHECK(m != NULL);
	return (m);
}

static inline void
start_over(void)
{
	mbufq_drain(&sent[0]);
	mbufq_drain(&sent[1]);
}

static inline void
boot_router(void)
{
	static const char *const nets[] = { "10.9.0.1/24", "10.9.1.1/24" };
	static const char *const hosts[] = { "10.9.0.2", "10.9.1.2" };
	char name[] = "mem0";

	CHECK_EQ(stack_boot(NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		mbufq_init(&sent[i]);
		name[3] = (char)('0' + i);
		mem[i] = mem_attach(name, nets[i], 0, NULL, keep, &sent[i]);
		learn_host(i, hosts[i]);
	}
	set("net.inet.ip.forwarding", "1");
	set("net.inet.icmp.icmplim", "1000000");
}

#endif /* TESTS_PACKET_H */
