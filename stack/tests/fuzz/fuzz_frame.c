/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet frames into a booted stack with sockets: ARP, IPv4 and ICMP, IPv6
 * with its extension headers, fragments, ICMPv6 and neighbour discovery, UDP and
 * TCP over both.  An input is a sequence of frames, each behind two bytes of length
 * (network order) and one of flags, which help the fuzzer past what it
 * cannot guess: checksums, and the sequence numbers that the stack chose.
 */
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <string.h>

#include "boot/boot.h"
#include "dev/mem.h"
#include "fuzz.h"
#include "kern/socketvar.h"
#include "kern/sysctl.h"
#include "net/if_lro.h"
#include "netinet6/ip6_var.h"

/* repairs the IP header's; the others count as valid */
#define	FIX_CHECKSUMS	0x1
#define	FIX_ACK		0x2	/* acknowledges all data of the stack */
#define	JOIN		0x4	/* in one burst with the next frame (LRO) */
#define	PORT		80
#define	FRAME_MAX	4000
#define	ETHER_ALIGN	2	/* aligns the IP header */

static struct ifnet *mem;
static struct socket *tcp_listener, *udp;
/* sequence number after the stack's last segment */
static uint32_t sent_end;

/* The TCP header in a frame, or NULL if it is incomplete. */
static struct tcphdr *
find_tcp(uint8_t *frame, size_t len)
{
	struct ip *ip = (struct ip *)(void *)(frame + ETHER_HDR_LEN);
	size_t off;

	if (len < ETHER_HDR_LEN + sizeof(*ip))
		return (NULL);
	if (ip->ip_v == 6 && frame[ETHER_HDR_LEN + 6] == IPPROTO_TCP)
		off = ETHER_HDR_LEN + IP6_HDRLEN;
	else if (ip->ip_v != 6 && ip->ip_p == IPPROTO_TCP)
		off = ETHER_HDR_LEN + (size_t)ip->ip_hl * 4;
	else
		return (NULL);
	if (len < off + sizeof(struct tcphdr))
		return (NULL);
	return ((struct tcphdr *)(void *)(frame + off));
}

static void
sent(void *arg, struct mbuf *m)
{
	_Alignas(8) uint8_t buf[128 + ETHER_ALIGN];
	uint8_t *frame = buf + ETHER_ALIGN;
	uint32_t len = m_length(m);
	struct tcphdr *th;

	(void)arg;
	if (len > 128)
		len = 128;
	m_copydata(m, 0, len, frame);
	if ((th = find_tcp(frame, len)) != NULL)
		sent_end = ntohl(th->th_seq) +
		    ((th->th_flags & (TH_SYN | TH_FIN)) != 0);
	m_freem(m);
}

/* For both families. */
static struct socket *
bound(int type)
{
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(PORT)
	};
	struct socket *so;

	if (socreate(AF_INET6, type, 0, &so) != 0 ||
	    sobind(so, (struct sockaddr *)&sin6, sizeof(sin6)) != 0)
		panic("no socket");
	return (so);
}

static void
setup(void)
{
	static const struct in6_addr addr6 =
	    { .s6_addr = { 0x20, 1, 0xd, 0xb8, [15] = 1 } };
	char why[128];

	if (mem != NULL)
		return;
	if (stack_boot(NULL) != 0)
		panic("the stack does not boot");
	mem = mem_attach("mem0", "10.9.0.1/24 10.8.0.1/16", 0, NULL, sent,
	    NULL);
	if (sysctl_set("net.inet6.ip6.dad_count", "0", why, sizeof(why)) != 0)
		panic("%s", why);
	in6_ifattach(mem, true);
	if (in6_addr_add(mem, &addr6, 64, 0, NSEC_FOREVER, NSEC_FOREVER) != 0)
		panic("no address");
	tcp_listener = bound(SOCK_STREAM);
	udp = bound(SOCK_DGRAM);
	if (solisten(tcp_listener, 8) != 0)
		panic("no listener");
}

/* Repairs the fields that the flags select. */
static void
repair(uint8_t *frame, size_t len, unsigned flags)
{
	struct ip *ip = (struct ip *)(void *)(frame + ETHER_HDR_LEN);
	struct tcphdr *th = find_tcp(frame, len);
	size_t hlen;
	uint32_t sum = 0;

	if ((flags & FIX_ACK) && th != NULL)
		th->th_ack = htonl(sent_end);
	if (!(flags & FIX_CHECKSUMS) ||
	    len < ETHER_HDR_LEN + sizeof(*ip) || ip->ip_v == 6)
		return;
	hlen = (size_t)ip->ip_hl * 4;
	if (len < ETHER_HDR_LEN + hlen)
		return;
	ip->ip_sum = 0;
	for (size_t i = 0; i + 1 < hlen; i += 2)
		sum += (uint32_t)frame[ETHER_HDR_LEN + i] << 8 |
		    frame[ETHER_HDR_LEN + i + 1];
	ip->ip_sum = htons((uint16_t)~((sum & 0xffff) + (sum >> 16)));
}

static void
receive(const uint8_t *data, size_t len, unsigned flags)
{
	struct mbuf *m = m_getcl(len + ETHER_ALIGN <= MCLBYTES ?
	    MCLBYTES : MJUMBYTES);
	uint8_t *frame;

	m->m_data += ETHER_ALIGN;
	frame = mtod(m, uint8_t *);
	memcpy(frame, data, len);
	repair(frame, len, flags);
	m->m_len = m->m_pkthdr.len = (uint32_t)len;
	if (flags & FIX_CHECKSUMS)
		m->m_pkthdr.csum_flags = CSUM_VALID;
	mem->if_lro = (flags & JOIN) != 0;
	mem_input(mem, m);
}

/*
 * Reads received data and closes all connections, so that each input starts in
 * the same state.
 */
static void
clean_up(void)
{
	char buf[2048];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct linger reset = { .l_onoff = 1 };
	struct socket *so;
	size_t n;

	while (soreceive(udp, &msg, MSG_DONTWAIT, &n) == 0)
		;
	while (soaccept(tcp_listener, MSG_DONTWAIT, NULL, NULL, &so) == 0) {
		(void)soreceive(so, &msg, MSG_DONTWAIT, &n);
		(void)sosend(so, &msg, MSG_DONTWAIT, &n);
		(void)sosetopt(so, SOL_SOCKET, SO_LINGER, &reset,
		    sizeof(reset));
		(void)soclose(so);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{

	setup();
	if_lro_begin();
	while (size > 3) {
		size_t len = (size_t)data[0] << 8 | data[1];
		const unsigned flags = data[2];

		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		if (len > FRAME_MAX || len == 0)
			break;
		receive(data, len, flags);
		data += len;
		size -= len;
	}
	if_lro_end();
	clean_up();
	return (0);
}
