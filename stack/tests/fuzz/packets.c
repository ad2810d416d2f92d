/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stack that receives the packets of a fuzz target.
 */
#include "boot/boot.h"
#include "packets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>

#include "dev/mem.h"
#include "kern/socketvar.h"
#include "kern/sysctl.h"
#include "machine/virtual/virtual.h"
#include "net/route.h"
#include "netinet/in_group.h"
#include "netinet/ip_private.h"
#include "netinet/ip_tunnel.h"
#include "netinet6/ip6_private.h"

#define	PAYLOAD_MAX	4000
#define	STEPS_MAX	100
#define	AFTERLIFE	(10 * NSEC_PER_MSEC)	/* what was queued */

/* Destinations of packets, indexed by STEP_TO. */
static const char *const addresses4[] = { "10.9.0.1", "239.1.2.3",
    "224.0.0.1", "10.9.0.255" };
static const char *const addresses6[] = { "2001:db8::1", "ff05::7", "ff02::1",
    "fe80::6d:65ff:fe6d:1" };

static struct ifnet *mem;
static struct socket *listeners[5];

static void
sent(void *arg, struct mbuf *m)
{
	(void)arg;
	m_freem(m);
}

static void
set(const char *name, const char *value)
{
	char why[128];

	if (sysctl_set(name, value, why, sizeof(why)) != 0)
		panic("%s", why);
}

static void
make_tunnel(const char *name, const char *key, const char *prefix)
{
	struct if_config ic = { .queues = 1, .ttl = 64,
	    .tunnel = "10.9.0.1 10.9.0.2" };
	char why[128];

	strcpy(ic.name, name);
	strcpy(ic.key, key);
	if (inet_config_set(&ic, prefix, why, sizeof(why)) != 0 ||
	    tunnel_create(&ic, *key != '\0', why, sizeof(why)) != 0 ||
	    route_subnets(if_byname(name)) != 0)
		panic("no tunnel");
}

static void
make_sockets(void)
{
	static const struct { int domain, type, protocol; } kinds[] = {
		{ AF_INET6, SOCK_DGRAM, 0 }, { AF_INET, SOCK_RAW, IPPROTO_ICMP },
		{ AF_INET6, SOCK_RAW, IPPROTO_ICMPV6 },
		{ AF_INET, SOCK_DGRAM, IPPROTO_ICMP },
		{ AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6 },
	};
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6,
	    .sin6_port = htons(80) };
	const int on = 1;

	for (size_t i = 0; i < nitems(kinds); i++)
		if (socreate(kinds[i].domain, kinds[i].type, kinds[i].protocol,
		    &listeners[i]) != 0)
			panic("no socket");
	if (sobind(listeners[0], (struct sockaddr *)&sin6, sizeof(sin6)) != 0 ||
	    sosetopt(listeners[0], IPPROTO_UDP, UDP_GRO, &on,
	    sizeof(on)) != 0 ||
	    sosetopt(listeners[0], IPPROTO_IPV6, IPV6_RECVERR, &on,
	    sizeof(on)) != 0)
		panic("no UDP socket");
}

static void
join(const char *group)
{
	struct in6_addr a;
	struct in_addr a4;

	if (inet_pton(AF_INET, group, &a4) == 1)
		a = in_map(a4);
	else if (inet_pton(AF_INET6, group, &a) != 1)
		panic("%s", group);
	if (in_group_join(mem, &a, NULL) != 0)
		panic("%s", group);
}

static void
setup(void)
{
	struct in6_addr a;

	mach_virtual_enter(true);
	if (stack_boot(NULL) != 0)
		panic("the stack does not boot");
	set("net.inet6.ip6.dad_count", "0");
	set("net.inet.raw.sockets", "1");
	set("net.inet.ip.forwarding", "1");
	set("net.inet6.ip6.forwarding", "1");
	mem = mem_attach("mem0", "10.9.0.1/24 10.8.0.1/16", 0, NULL, sent,
	    NULL);
	in6_ifattach(mem, true);
	if (inet_pton(AF_INET6, addresses6[0], &a) != 1 ||
	    in6_addr_add(mem, &a, 64, 0, NSEC_FOREVER, NSEC_FOREVER) != 0)
		panic("no address");
	make_tunnel("gif0", "", "10.50.0.1/24");
	make_tunnel("gre0", "42", "10.51.0.1/24");
	in6_ifattach(if_byname("gif0"), false);
	join(addresses4[1]);
	join(addresses6[1]);
	make_sockets();
}

static void
pass_time(nsec_t length)
{
	const nsec_t deadline = mach_uptime() + length;
	atomic_u32 word = 0;

	while (mach_uptime() < deadline)
		(void)mach_park(&word, 0, deadline);
}

/* The payload's checksum, if its protocol has one in its first 8 bytes. */
static void
fix_checksum(const struct fuzz_packet *p, struct mbuf *m, uint32_t off)
{
	const struct in_family *af = in_packetfamily(m);
	const uint32_t len = m->m_pkthdr.len - off;
	struct in_conninfo c;
	uint32_t at = 2, start = 0;
	uint16_t sum = 0;

	af_endpoints(af, m, &c);
	if (p->proto == IPPROTO_UDP)
		at = 6;
	else if (p->proto == IPPROTO_GRE)
		at = 4;
	if (p->proto == IPPROTO_UDP || p->proto == IPPROTO_ICMPV6)
		start = af_pseudo(af, &c, p->proto, len);
	if (len < at + sizeof(sum))
		return;
	memcpy(m->m_data + off + at, &sum, sizeof(sum));
	sum = in_fold(in_sum(m, off, len, start));
	memcpy(m->m_data + off + at, &sum, sizeof(sum));
}

static void
fill4(const struct fuzz_packet *p, struct ip *ip, uint32_t len)
{
	*ip = (struct ip){ .ip_v = IPVERSION, .ip_hl = 5, .ip_ttl = p->ttl,
	    .ip_p = p->proto, .ip_len = htons((uint16_t)(sizeof(*ip) + len)),
	    .ip_id = htons(p->id), .ip_off = htons(p->frag) };
	inet_pton(AF_INET, "10.9.0.2", &ip->ip_src);
	inet_pton(AF_INET, addresses4[(p->flags & STEP_TO) >> 2], &ip->ip_dst);
	ip->ip_sum = in_hdrsum(ip, sizeof(*ip));
}

static void
fill6(const struct fuzz_packet *p, struct ip6_hdr *ip6, uint32_t len)
{
	*ip6 = (struct ip6_hdr){ .ip6_nxt = p->proto, .ip6_hlim = p->ttl,
	    .ip6_plen = htons((uint16_t)len) };
	ip6->ip6_vfc = IP6_VERSION;
	inet_pton(AF_INET6, (p->choice & 1) ? "fe80::2" : "2001:db8::2",
	    &ip6->ip6_src);
	inet_pton(AF_INET6, addresses6[(p->flags & STEP_TO) >> 2],
	    &ip6->ip6_dst);
}

static void
receive(const struct fuzz_packet *p, const uint8_t *data, uint32_t len)
{
	const bool ipv6 = (p->flags & STEP_IPV6) != 0;
	const uint32_t hlen = ipv6 ? IP6_HDRLEN : IP_HDRLEN;
	struct mbuf *m = m_getcl(MJUMBYTES);
	struct ether_header eh = { .ether_type = htons(ipv6 ?
	    ETHERTYPE_IPV6 : ETHERTYPE_IP) };

	m->m_data += MEM_HEADROOM + ETHER_HDR_LEN;
	m->m_len = m->m_pkthdr.len = hlen + len;
	if (ipv6)
		fill6(p, mtod(m, struct ip6_hdr *), len);
	else
		fill4(p, mtod(m, struct ip *), len);
	memcpy(m->m_data + hlen, data, len);
	if (p->flags & STEP_CHECKSUM)
		fix_checksum(p, m, hlen);
	m = m_prepend(m, ETHER_HDR_LEN);
	memcpy(eh.ether_dhost, mem->if_lladdr, 6);
	memcpy(eh.ether_shost, "\2host\1", 6);
	memcpy(m->m_data, &eh, sizeof(eh));
	mem_input(mem, m);
}

/* Reads received data, so that each input starts in the same state. */
static void
clean_up(void)
{
	char buf[256];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t n;
	int error;

	pass_time(AFTERLIFE);
	for (size_t i = 0; i < nitems(listeners); i++)
		for (int flags = 0; flags <= MSG_ERRQUEUE;
		    flags += MSG_ERRQUEUE)
			do
				error = soreceive(listeners[i], &msg,
				    MSG_DONTWAIT | flags, &n);
			while (error != EWOULDBLOCK);
}

int
fuzz_packets(const uint8_t *data, size_t size,
    void (*shape)(struct fuzz_packet *))
{
	if (mem == NULL)
		setup();
	for (unsigned step = 0; size >= 4 && step < STEPS_MAX; step++) {
		size_t len = (size_t)data[2] << 8 | data[3];
		struct fuzz_packet p = { .flags = data[0], .choice = data[1],
		    .ttl = 64 };

		data += 4;
		size -= 4;
		if (len > size)
			len = size;
		if (len > PAYLOAD_MAX)
			break;
		shape(&p);
		receive(&p, data, (uint32_t)len);
		if (p.flags & STEP_LATER)
			pass_time(NSEC_PER_MSEC <<
			    2 * ((p.flags & STEP_LATER) >> 4));
		data += len;
		size -= len;
	}
	clean_up();
	return (0);
}
