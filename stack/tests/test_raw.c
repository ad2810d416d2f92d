/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw and ping sockets, and the errors of datagrams. */
#include "tests/check.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include <linux/errqueue.h>	/* needs the structures of time */

#include "kern/bpf_filter.h"
#include "tests/net.h"
#include "tests/packet6.h"

#define	LEFT	"10.9.0.2"
#define	ROUTER	"10.9.0.1"
#define	PROTO_TEST	253	/* RFC 3692 */
#define	SOL_RAW		255
#define	ICMP_FILTER	1

static struct socket *
raw(int domain, int protocol)
{
	struct socket *so;

	CHECK_EQ(socreate(domain, SOCK_RAW, protocol, &so), 0);
	return (so);
}

/* Receives a datagram; returns its length, or -1 if there is none. */
static int
got(struct socket *so, void *buf, size_t room)
{
	size_t n;

	if (t_tryrecv(so, buf, room, MSG_DONTWAIT, &n) != 0)
		return (-1);
	return ((int)n);
}

static int
send_to(struct socket *so, const char *ip, uint16_t port, const void *data,
    size_t len)
{
	struct sockaddr_in sin = t_addr(ip, port);
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_name = &sin, .msg_namelen = sizeof(sin),
	    .msg_iov = &iov, .msg_iovlen = 1 };
	size_t done;

	return (sosend(so, &msg, 0, &done));
}

static int
send_to6(struct socket *so, const char *ip, const void *data, size_t len)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6,
	    .sin6_addr = addr6(ip) };
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_name = &sin6, .msg_namelen = sizeof(sin6),
	    .msg_iov = &iov, .msg_iovlen = 1 };
	size_t done;

	return (sosend(so, &msg, 0, &done));
}

TEST(who_may_open_one_is_a_tunable)
{
	struct socket *so;

	CHECK_EQ(socreate(AF_INET, SOCK_RAW, 0, &so), EPROTONOSUPPORT);
	CHECK_EQ(socreate(AF_INET, SOCK_RAW, 256, &so), EPROTONOSUPPORT);
	set("net.inet.raw.sockets", "0");
	CHECK_EQ(socreate(AF_INET, SOCK_RAW, IPPROTO_ICMP, &so), EPERM);
	CHECK_EQ(socreate(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, &so), EPERM);
	set("net.inet.raw.sockets", "1");
	set("net.inet.raw.ping", "0");
	CHECK_EQ(socreate(AF_INET, SOCK_DGRAM, IPPROTO_ICMP, &so), EACCES);
	set("net.inet.raw.ping", "1");
	so = raw(AF_INET, PROTO_TEST);
	CHECK_EQ(t_getint(so, SOL_SOCKET, SO_PROTOCOL), PROTO_TEST);
	CHECK_EQ(t_getint(so, SOL_SOCKET, SO_TYPE), SOCK_RAW);
	soclose(so);
}

TEST(a_raw_socket_hears_its_protocol_with_the_header)
{
	struct socket *a = raw(AF_INET, PROTO_TEST);
	struct socket *b = raw(AF_INET, PROTO_TEST);
	struct socket *other = raw(AF_INET, PROTO_TEST + 1);
	struct sockaddr_in sin = t_addr("10.9.0.3", 0);
	uint8_t buf[200];
	struct mbuf *m;

	CHECK_EQ(soconnect(b, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	mem_input(mem[0], packet(0, LEFT, ROUTER, PROTO_TEST, 30));
	CHECK_EQ(got(a, buf, sizeof(buf)), 50);
	CHECK_EQ(buf[0], 0x45);
	CHECK_EQ(buf[20], 0);
	CHECK_EQ(buf[49], 29);
	CHECK_EQ(got(b, buf, sizeof(buf)), -1);	/* from another */
	CHECK_EQ(got(other, buf, sizeof(buf)), -1);
	CHECK_EQ(sent[0].mq_len, 0);		/* no ICMP error is sent */
	mem_input(mem[0], packet(0, "10.9.0.3", ROUTER, PROTO_TEST, 30));
	CHECK_EQ(got(b, buf, sizeof(buf)), 50);
	soclose(a);
	soclose(b);
	soclose(other);
	mem_input(mem[0], packet(0, LEFT, ROUTER, PROTO_TEST, 30));
	m = take_sent(0);
	CHECK_EQ(icmp_in(m)->icmp_code, ICMP_UNREACH_PROTOCOL);
	m_freem(m);
}

TEST(a_raw_socket_sends_behind_a_header_or_with_its_own)
{
	struct socket *so = raw(AF_INET, PROTO_TEST);
	struct ip ip = { .ip_hl = 5, .ip_ttl = 3, .ip_p = 99,
	    .ip_dst = addr(LEFT) };
	struct mbuf *m;

	CHECK_EQ(send_to(so, LEFT, 0, "abc", 3), 0);
	m = take_sent(0);
	CHECK_EQ(IP_AT(m)->ip_p, PROTO_TEST);
	CHECK_EQ(IP_AT(m)->ip_src.s_addr, addr(ROUTER).s_addr);
	CHECK(memcmp(IP_AT(m) + 1, "abc", 3) == 0);
	m_freem(m);
	t_setint(so, IPPROTO_IP, IP_HDRINCL, 1);
	CHECK_EQ(send_to(so, LEFT, 0, &ip, sizeof(ip)), 0);
	m = take_sent(0);
	CHECK_EQ(IP_AT(m)->ip_p, 99);
	CHECK_EQ(IP_AT(m)->ip_ttl, 3);
	CHECK_EQ(IP_AT(m)->ip_src.s_addr, addr(ROUTER).s_addr);
	CHECK_EQ(ntohs(IP_AT(m)->ip_len), sizeof(ip));
	CHECK(IP_AT(m)->ip_id != 0);
	CHECK_EQ(in_hdrsum(IP_AT(m), IP_HDRLEN), 0);
	m_freem(m);
	CHECK_EQ(send_to(so, LEFT, 0, &ip, sizeof(ip) - 1), EINVAL);
	ip.ip_hl = 6;
	CHECK_EQ(send_to(so, LEFT, 0, &ip, sizeof(ip)), EINVAL);
	soclose(so);
}

TEST(icmp_is_filtered_by_type)
{
	struct socket *so = raw(AF_INET, IPPROTO_ICMP);
	uint32_t filter = 1U << ICMP_ECHO;
	uint8_t buf[200];

	mem_input(mem[0], echo_request(ROUTER, 8));
	CHECK_EQ(got(so, buf, sizeof(buf)), 36);
	CHECK_EQ(sosetopt(so, SOL_RAW, ICMP_FILTER, &filter, sizeof(filter)),
	    0);
	mem_input(mem[0], echo_request(ROUTER, 8));
	CHECK_EQ(got(so, buf, sizeof(buf)), -1);
	CHECK_EQ(sent[0].mq_len, 2);	/* the host answers nevertheless */
	soclose(so);
}

/* SO_ATTACH_FILTER: the filter begins where the program's data begins. */
TEST(packets_are_filtered_by_content)
{
	struct sock_filter prog[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, IP_HDRLEN),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMP_ECHO, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 30), BPF_STMT(BPF_RET | BPF_K, 0)
	};
	const struct sock_fprog fprog = { nitems(prog), prog };
	const uint64_t before = counter("net.inet.raw.stats.filtered");
	struct socket *so = raw(AF_INET, IPPROTO_ICMP);
	uint8_t buf[200];

	CHECK_EQ(sosetopt(so, SOL_SOCKET, SO_ATTACH_FILTER, &fprog,
	    sizeof(fprog)), 0);
	mem_input(mem[0], echo_request(ROUTER, 8));
	CHECK_EQ(got(so, buf, sizeof(buf)), 30);
	prog[1].k = ICMP_TIMESTAMP;
	CHECK_EQ(sosetopt(so, SOL_SOCKET, SO_ATTACH_FILTER, &fprog,
	    sizeof(fprog)), 0);
	mem_input(mem[0], echo_request(ROUTER, 8));
	CHECK_EQ(got(so, buf, sizeof(buf)), -1);
	CHECK_EQ(counter("net.inet.raw.stats.filtered"), before + 1);
	soclose(so);
	/* segments of TCP are not filtered */
	CHECK_EQ(socreate(AF_INET, SOCK_STREAM, 0, &so), 0);
	CHECK_EQ(sosetopt(so, SOL_SOCKET, SO_ATTACH_FILTER, &fprog,
	    sizeof(fprog)), EOPNOTSUPP);
	soclose(so);
}

TEST(checksums_of_ipv6_are_made_and_checked)
{
	struct socket *so = raw(AF_INET6, IPPROTO_ICMPV6);
	struct socket *test = raw(AF_INET6, PROTO_TEST);
	struct icmp6_filter filter;
	const uint8_t request[12] = { ICMP6_ECHO_REQUEST };
	uint8_t buf[200];
	struct mbuf *m;
	int at = 3;

	CHECK_EQ(send_to6(so, HOST6(0), request, sizeof(request)), 0);
	m = take_sent(0);
	CHECK_EQ(in_fold(in_sum(m, ETHER_HDR_LEN + IP6_HDRLEN, 12,
	    in6_pseudo(&ip6_of(m)->ip6_src, &ip6_of(m)->ip6_dst,
	    IPPROTO_ICMPV6, 12))), 0);
	m_freem(m);
	mem_input(mem[0], echo6(0, ROUTER6(0), 8));
	CHECK_EQ(got(so, buf, sizeof(buf)), 16);	/* without header */
	CHECK_EQ(buf[0], ICMP6_ECHO_REQUEST);
	ICMP6_FILTER_SETBLOCKALL(&filter);
	CHECK_EQ(sosetopt(so, IPPROTO_ICMPV6, ICMP6_FILTER, &filter,
	    sizeof(filter)), 0);
	mem_input(mem[0], echo6(0, ROUTER6(0), 8));
	CHECK_EQ(got(so, buf, sizeof(buf)), -1);
	CHECK_EQ(sosetopt(test, IPPROTO_IPV6, IPV6_CHECKSUM, &at, sizeof(at)),
	    EINVAL);
	mem_input(mem[0], packet6(0, HOST6(0), ROUTER6(0), PROTO_TEST, 8));
	CHECK_EQ(got(test, buf, sizeof(buf)), 8);
	mem_input(mem[0], packet6(0, HOST6(0), ROUTER6(0), PROTO_TEST, 0));
	CHECK_EQ(got(test, buf, sizeof(buf)), 0);
	t_setint(test, IPPROTO_IPV6, IPV6_CHECKSUM, 4);
	mem_input(mem[0], packet6(0, HOST6(0), ROUTER6(0), PROTO_TEST, 8));
	CHECK_EQ(got(test, buf, sizeof(buf)), -1);
	CHECK_EQ(counter("net.inet.raw.stats.checksum"), 1);
	CHECK_EQ(send_to6(test, HOST6(0), request, 5), EINVAL);
	CHECK_EQ(send_to6(test, HOST6(0), request, 6), 0);
	soclose(so);
	soclose(test);
}

TEST(a_ping_socket_sends_requests_and_hears_its_replies)
{
	uint8_t request[16] = { ICMP_ECHO, [7] = 1, [8] = 'x' }, buf[200];
	struct socket *so, *other;
	struct mbuf *m, *r;

	CHECK_EQ(socreate(AF_INET, SOCK_DGRAM, IPPROTO_ICMP, &so), 0);
	CHECK_EQ(socreate(AF_INET, SOCK_DGRAM, IPPROTO_ICMP, &other), 0);
	CHECK_EQ(send_to(so, LEFT, 0, request, sizeof(request)), 0);
	m = take_sent(0);
	CHECK_EQ(icmp_in(m)->icmp_type, ICMP_ECHO);
	CHECK(icmp_in(m)->icmp_id != 0);
	CHECK_EQ(icmp_in(m)->icmp_seq, htons(1));
	request[0] = ICMP_ECHOREPLY;
	CHECK_EQ(send_to(so, LEFT, 0, request, sizeof(request)), EINVAL);
	CHECK_EQ(send_to(so, LEFT, 0, request, 7), EINVAL);
	/* the reply, then one with another identifier */
	for (unsigned i = 0; i < 2; i++) {
		struct icmp *icp;

		r = packet(0, LEFT, ROUTER, IPPROTO_ICMP, 16);
		icp = (struct icmp *)(void *)(r->m_data + ETHER_HDR_LEN +
		    IP_HDRLEN);
		memcpy(icp, icmp_in(m), 16);
		icp->icmp_type = ICMP_ECHOREPLY;
		icp->icmp_id = (uint16_t)(icmp_in(m)->icmp_id + i);
		icp->icmp_cksum = 0;
		icp->icmp_cksum = in_fold(in_sum(r, ETHER_HDR_LEN + IP_HDRLEN,
		    16, 0));
		mem_input(mem[0], r);
	}
	CHECK_EQ(got(so, buf, sizeof(buf)), 16);
	CHECK_EQ(buf[0], ICMP_ECHOREPLY);
	CHECK_EQ(buf[8], 'x');
	CHECK_EQ(got(so, buf, sizeof(buf)), -1);
	CHECK_EQ(got(other, buf, sizeof(buf)), -1);
	m_freem(m);
	soclose(so);
	soclose(other);
}

/* An ICMP error of the left host about the last packet sent. */
static void
answer_error(uint8_t type, uint8_t code)
{
	struct mbuf *m = take_sent(0), *r;
	struct icmp *icp;
	uint32_t len = m->m_pkthdr.len - ETHER_HDR_LEN;

	r = packet(0, LEFT, ROUTER, IPPROTO_ICMP, 8 + len);
	icp = (struct icmp *)(void *)(r->m_data + ETHER_HDR_LEN + IP_HDRLEN);
	memset(icp, 0, 8);
	icp->icmp_type = type;
	icp->icmp_code = code;
	m_copydata(m, ETHER_HDR_LEN, len, (char *)icp + 8);
	icp->icmp_cksum = in_fold(in_sum(r, ETHER_HDR_LEN + IP_HDRLEN,
	    8 + len, 0));
	mem_input(mem[0], r);
	m_freem(m);
}

static int
receive_error(struct socket *so, struct msghdr *msg,
    struct sock_extended_err *ee, struct sockaddr_in *offender)
{
	const struct cmsghdr *cm;
	size_t n;
	int error;

	error = soreceive(so, msg, MSG_ERRQUEUE | MSG_DONTWAIT, &n);
	if (error != 0)
		return (error);
	CHECK(msg->msg_flags & MSG_ERRQUEUE);
	cm = CMSG_FIRSTHDR(msg);
	CHECK(cm != NULL && cm->cmsg_type == IP_RECVERR);
	memcpy(ee, CMSG_DATA(cm), sizeof(*ee));
	memcpy(offender, CMSG_DATA(cm) + sizeof(*ee), sizeof(*offender));
	CHECK_EQ(n, 3);
	return (0);
}

TEST(errors_of_datagrams_are_kept_for_who_asks)
{
	char buf[100], control[200];
	struct sockaddr_in to, offender;
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_name = &to, .msg_namelen = sizeof(to),
	    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
	    .msg_controllen = sizeof(control) };
	struct socket *so = t_socket(SOCK_DGRAM);
	struct sock_extended_err ee;
	size_t n;

	CHECK_EQ(send_to(so, "10.9.0.9", 33434, "abc", 3), 0);
	start_over();
	CHECK_EQ(send_to(so, LEFT, 33434, "abc", 3), 0);
	answer_error(ICMP_TIMXCEED, 0);
	/* neither connected nor IP_RECVERR */
	CHECK_EQ(sopoll(so, POLLIN), 0);
	t_setint(so, IPPROTO_IP, IP_RECVERR, 1);
	CHECK_EQ(send_to(so, LEFT, 33434, "abc", 3), 0);
	answer_error(ICMP_TIMXCEED, 0);
	CHECK(sopoll(so, POLLIN) & POLLERR);
	CHECK_EQ(t_tryrecv(so, buf, 1, MSG_DONTWAIT, &n), EHOSTUNREACH);
	CHECK_EQ(receive_error(so, &msg, &ee, &offender), 0);
	CHECK(memcmp(buf, "abc", 3) == 0);
	CHECK_EQ(ntohs(to.sin_port), 33434);
	CHECK_EQ(to.sin_addr.s_addr, addr(LEFT).s_addr);
	CHECK_EQ(ee.ee_errno, EHOSTUNREACH);
	CHECK_EQ(ee.ee_origin, SO_EE_ORIGIN_ICMP);
	CHECK_EQ(ee.ee_type, ICMP_TIMXCEED);
	CHECK_EQ(offender.sin_addr.s_addr, addr(LEFT).s_addr);
	CHECK_EQ(receive_error(so, &msg, &ee, &offender), EWOULDBLOCK);
	CHECK_EQ(sopoll(so, POLLIN), 0);
	/* MSG_CTRUNC: no buffer for the control message */
	CHECK_EQ(send_to(so, LEFT, 33434, "abc", 3), 0);
	answer_error(ICMP_TIMXCEED, 0);
	msg.msg_control = NULL;
	msg.msg_controllen = 0;
	CHECK_EQ(soreceive(so, &msg, MSG_ERRQUEUE, &n), 0);
	CHECK(msg.msg_flags & MSG_CTRUNC);
	/* the quote ends with the header */
	CHECK_EQ(send_to(so, LEFT, 33434, "", 0), 0);
	answer_error(ICMP_TIMXCEED, 0);
	CHECK_EQ(soreceive(so, &msg, MSG_ERRQUEUE, &n), 0);
	CHECK_EQ(n, 0);
	soclose(so);
}

TEST(a_raw_socket_sends_in_spite_of_errors)
{
	struct socket *so = raw(AF_INET, PROTO_TEST);
	char c;
	size_t n;

	t_setint(so, IPPROTO_IP, IP_RECVERR, 1);
	CHECK_EQ(send_to(so, LEFT, 0, "abcdefgh", 8), 0);
	answer_error(ICMP_TIMXCEED, 0);
	CHECK_EQ(send_to(so, LEFT, 0, "abcdefgh", 8), 0);
	m_freem(take_sent(0));
	CHECK_EQ(t_tryrecv(so, &c, 1, MSG_DONTWAIT, &n), EHOSTUNREACH);
	soclose(so);
}

static void
fresh(void)
{
	t_sleep(5 * 1000);
	learn_host(0, LEFT);
	learn_host6(0, HOST6(0));
	start_over();
}

int
main(int argc, char **argv)
{
	boot_router6();
	set("net.inet.raw.sockets", "1");
	return (router6_main(argc, argv, fresh));
}
