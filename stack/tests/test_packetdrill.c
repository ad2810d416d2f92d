/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared object for packetdrill, driven as packetdrill drives it: raw
 * packets and calls through the table, a second thread for calls that block.
 */
#include "tests/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <unistd.h>

#include "api/packetdrill.h"

#define	PORT	8080
#define	ECHO	"ping"

static struct packetdrill_interface pd;
static const char stack_ip[] = "192.168.0.1", peer_ip[] = "192.0.2.1",
    stack_ip6[] = "fd3d:fa7b:d17d::1";

struct packet {
	struct iphdr	 ip;
	union {
		struct {
			struct tcphdr	 tcp;
			char		 data[64];
		};
		struct {
			struct icmphdr	 icmp;
			char		 echo[64];
		};
	};
};

static long long
now(void)
{
	struct timeval tv;

	CHECK_EQ(pd.gettimeofday(pd.userdata, &tv, NULL), 0);
	return (tv.tv_sec * 1000000LL + tv.tv_usec);
}

static uint16_t
sum(const void *p, size_t len, uint32_t start)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < len; i++)
		start += i % 2 == 0 ? (uint32_t)b[i] << 8 : b[i];
	while (start >> 16 != 0)
		start = (start & 0xffff) + (start >> 16);
	return (htons((uint16_t)~start));
}

static void
inject(struct packet *p, uint8_t proto, size_t len)
{
	p->ip.version = 4;
	p->ip.ihl = 5;
	p->ip.ttl = 64;
	p->ip.protocol = proto;
	p->ip.tot_len = htons((uint16_t)(sizeof(p->ip) + len));
	inet_pton(AF_INET, peer_ip, &p->ip.saddr);
	inet_pton(AF_INET, stack_ip, &p->ip.daddr);
	p->ip.check = sum(&p->ip, sizeof(p->ip), 0);
	if (proto == IPPROTO_TCP)
		/* the pseudo-header: both addresses, protocol, length */
		p->tcp.check = sum(&p->tcp, len, 0xc000 + 0x0201 + 0xc0a8 +
		    1 + IPPROTO_TCP + (uint32_t)len);
	else
		p->icmp.checksum = sum(&p->icmp, len, 0);
	CHECK_EQ(pd.netdev_send(pd.userdata, p, sizeof(p->ip) + len), 0);
}

static void
segment(uint8_t flags, uint32_t seq, uint32_t ack, const char *data)
{
	struct packet p = { .tcp = { .source = htons(1234),
	    .dest = htons(PORT), .seq = htonl(seq), .ack_seq = htonl(ack),
	    .doff = 5, .window = htons(60000) } };

	p.tcp.th_flags = flags;
	strcpy(p.data, data);
	inject(&p, IPPROTO_TCP, sizeof(p.tcp) + strlen(data));
}

/*
 * Receives the next IPv4 packet and skips IPv6's own messages; returns its
 * send time.
 */
static long long
receive(struct packet *p)
{
	size_t len;
	long long usecs;

	do {
		len = sizeof(*p);
		memset(p, 0, sizeof(*p));
		CHECK_EQ(pd.netdev_receive(pd.userdata, p, &len, &usecs), 0);
		CHECK(len >= sizeof(p->ip));
	} while (p->ip.version != 4);
	CHECK_EQ(ntohs(p->ip.tot_len), len);
	return (usecs);
}

static int
connected(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
	    .sin_port = htons(PORT) };
	int head = pd.socket(pd.userdata, AF_INET, SOCK_STREAM, 0), one = 1, fd;
	static uint32_t isn = 1000;
	struct packet p;

	CHECK(head >= 0);
	CHECK_EQ(pd.setsockopt(pd.userdata, head, SOL_SOCKET, SO_REUSEADDR,
	    &one, sizeof(one)), 0);
	CHECK_EQ(pd.bind(pd.userdata, head, (struct sockaddr *)&sin,
	    sizeof(sin)), 0);
	CHECK_EQ(pd.listen(pd.userdata, head, 1), 0);
	segment(TH_SYN, isn, 0, "");
	receive(&p);
	CHECK_EQ(p.tcp.th_flags, TH_SYN | TH_ACK);
	CHECK_EQ(ntohl(p.tcp.ack_seq), isn + 1);
	segment(TH_ACK, isn + 1, ntohl(p.tcp.seq) + 1, "");
	fd = pd.accept(pd.userdata, head, NULL, NULL);
	CHECK(fd >= 0);
	CHECK_EQ(pd.close(pd.userdata, head), 0);
	return (fd);
}

TEST(time_passes_only_in_sleep)
{
	long long start = now();

	usleep(20000);
	CHECK(now() - start < 1000);
	start = now();
	CHECK_EQ(pd.usleep(pd.userdata, 3600u * 1000000u), 0);
	CHECK(now() - start >= 3600LL * 1000000);
	CHECK(now() - start < 3600LL * 1000000 + 1000);
}

TEST(a_ping_is_answered_at_once)
{
	struct packet p = { .icmp = { .type = ICMP_ECHO } };
	long long sent = now(), usecs;

	memcpy(p.echo, ECHO, sizeof(ECHO));
	inject(&p, IPPROTO_ICMP, sizeof(p.icmp) + sizeof(ECHO));
	usecs = receive(&p);
	CHECK(usecs - sent < 1000);
	CHECK_EQ(p.icmp.type, ICMP_ECHOREPLY);
	CHECK_STREQ(p.echo, ECHO);
}

TEST(a_ping_over_ipv6_is_answered)
{
	struct {
		struct ip6_hdr ip;
		struct icmp6_hdr icmp;
	} p = { .icmp.icmp6_type = ICMP6_ECHO_REQUEST };
	struct in6_addr peer, stack;
	size_t len;
	long long usecs;

	inet_pton(AF_INET6, "2001:db8::1", &peer);
	inet_pton(AF_INET6, stack_ip6, &stack);
	p.ip.ip6_vfc = 6 << 4;
	p.ip.ip6_plen = htons(sizeof(p.icmp));
	p.ip.ip6_hlim = 64;
	p.ip.ip6_src = peer;
	p.ip.ip6_dst = stack;
	/* RFC 8200 section 8.1: both addresses, length, next header */
	p.ip.ip6_nxt = IPPROTO_ICMPV6;
	p.icmp.icmp6_cksum = sum(&p.ip.ip6_src, 32 + sizeof(p.icmp),
	    sizeof(p.icmp) + IPPROTO_ICMPV6);
	CHECK_EQ(pd.netdev_send(pd.userdata, &p, sizeof(p)), 0);
	do {	/* after the stack's own IPv6 messages */
		len = sizeof(p);
		CHECK_EQ(pd.netdev_receive(pd.userdata, &p, &len, &usecs), 0);
		CHECK(len > 0);
	} while (p.ip.ip6_nxt != IPPROTO_ICMPV6 ||
	    p.icmp.icmp6_type != ICMP6_ECHO_REPLY);
	CHECK(memcmp(&p.ip.ip6_dst, &peer, sizeof(peer)) == 0);
}

TEST(retransmission_has_its_exact_date)
{
	int fd = connected();
	struct packet p;
	long long first, second;

	CHECK_EQ(pd.write(pd.userdata, fd, "x", 1), 1);
	first = receive(&p);
	second = receive(&p);
	CHECK_EQ(p.data[0], 'x');
	/* RFC 6298 without variance: RTT 0, so the min timeout */
	CHECK(second - first >= 199000);
	CHECK(second - first <= 202000);
	segment(TH_RST, ntohl(p.tcp.ack_seq), 0, "");
	CHECK_EQ(pd.close(pd.userdata, fd), 0);
}

static long long read_end;

static void *
read_four(void *arg)
{
	char buf[5] = "";

	CHECK_EQ(pd.read(pd.userdata, *(int *)arg, buf, 4), 4);
	read_end = now();
	CHECK_STREQ(buf, ECHO);
	return (NULL);
}

TEST(a_blocked_call_ends_when_its_data_comes)
{
	int fd = connected();
	pthread_t reader;
	struct packet p;
	long long sent;

	CHECK_EQ(pd.write(pd.userdata, fd, "x", 1), 1);
	receive(&p);
	CHECK_EQ(pthread_create(&reader, NULL, read_four, &fd), 0);
	/* the thread may already sleep or not: both must work */
	usleep(100000);
	CHECK_EQ(pd.usleep(pd.userdata, 100000), 0);
	sent = now();
	segment(TH_ACK, ntohl(p.tcp.ack_seq), ntohl(p.tcp.seq) + 1, ECHO);
	CHECK_EQ(pd.usleep(pd.userdata, 1000000), 0);
	CHECK_EQ(pthread_join(reader, NULL), 0);
	CHECK(read_end - sent < 1000 || read_end - sent >= 1000000);
	segment(TH_RST, ntohl(p.tcp.ack_seq) + 4, 0, "");
	CHECK_EQ(pd.close(pd.userdata, fd), 0);
}

TEST(nothing_to_receive_ends_by_itself)
{
	struct packet p;
	size_t len;
	long long usecs;

	do {
		len = sizeof(p);
		CHECK_EQ(pd.netdev_receive(pd.userdata, &p, &len, &usecs), 0);
	} while (len != 0);
}

TEST(a_bad_packet_is_refused)
{
	CHECK_EQ(pd.netdev_send(pd.userdata, "", 0), -1);
	CHECK_EQ(errno, EMSGSIZE);
}

int
main(int argc, char **argv)
{
	packetdrill_interface_init("192.168.0.1/16 "
	    "inet6=fd3d:fa7b:d17d::1/48 net.inet.tcp.initcwnd=3",
	    &pd);
	return (check_main(argc, argv));
}
