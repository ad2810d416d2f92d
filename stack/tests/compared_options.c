/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what the calls on socket options return: one line for each kind of
 * socket and option, with good and bad values, lengths and addresses.
 * compare.sh runs it on the kernel and on the stack.
 */
#include <netinet/ip.h>
#include <netinet/udp.h>

#include "posix.h"

/*
 * Options of the stack, and numbers that are none.  OWN: values are the
 * system's own choice, and only errors and lengths are compared.  SO_PASSCRED
 * is not compared: before Linux 6.16 all sockets had it, not only local ones.
 */
enum compared { ALL, OWN };
static const struct option {
	const char	*label;
	int		 level, name;
	enum compared	 compared;
} options[] = {
#define	O(level, name)		{ #name, level, name, ALL }
#define	OWN_VALUE(level, name)	{ #name, level, name, OWN }
	O(SOL_SOCKET, SO_ACCEPTCONN),
	O(SOL_SOCKET, SO_BROADCAST),
	O(SOL_SOCKET, SO_BSDCOMPAT),
	O(SOL_SOCKET, SO_DOMAIN),
	O(SOL_SOCKET, SO_DONTROUTE),
	O(SOL_SOCKET, SO_ERROR),
	OWN_VALUE(SOL_SOCKET, SO_INCOMING_CPU),
	O(SOL_SOCKET, SO_KEEPALIVE),
	O(SOL_SOCKET, SO_LINGER),
	O(SOL_SOCKET, SO_NO_CHECK),
	O(SOL_SOCKET, SO_OOBINLINE),
	O(SOL_SOCKET, SO_PROTOCOL),
	OWN_VALUE(SOL_SOCKET, SO_RCVBUF),
	OWN_VALUE(SOL_SOCKET, SO_RCVLOWAT),
	O(SOL_SOCKET, SO_RCVTIMEO),
	O(SOL_SOCKET, SO_REUSEADDR),
	O(SOL_SOCKET, SO_REUSEPORT),
	OWN_VALUE(SOL_SOCKET, SO_SNDBUF),
	O(SOL_SOCKET, SO_SNDLOWAT),
	O(SOL_SOCKET, SO_SNDTIMEO),
	O(SOL_SOCKET, SO_TIMESTAMP),
	O(SOL_SOCKET, SO_TIMESTAMPNS),
	O(SOL_SOCKET, SO_TYPE),
	O(SOL_SOCKET, SO_ZEROCOPY),
	O(SOL_SOCKET, 0),
	O(SOL_SOCKET, 1000),
	O(SOL_SOCKET, -1),
	O(IPPROTO_IP, IP_ADD_MEMBERSHIP),
	O(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT),
	O(IPPROTO_IP, IP_FREEBIND),
	OWN_VALUE(IPPROTO_IP, IP_MTU),
	O(IPPROTO_IP, IP_MTU_DISCOVER),
	OWN_VALUE(IPPROTO_IP, IP_MULTICAST_ALL),
	O(IPPROTO_IP, IP_MULTICAST_LOOP),
	O(IPPROTO_IP, IP_MULTICAST_TTL),
	O(IPPROTO_IP, IP_PKTINFO),
	O(IPPROTO_IP, IP_RECVERR),
	O(IPPROTO_IP, IP_RECVOPTS),
	O(IPPROTO_IP, IP_RECVORIGDSTADDR),
	O(IPPROTO_IP, IP_RECVTOS),
	O(IPPROTO_IP, IP_RECVTTL),
	O(IPPROTO_IP, IP_RETOPTS),
	O(IPPROTO_IP, IP_TOS),
	O(IPPROTO_IP, IP_TTL),
	O(IPPROTO_IP, 0),
	O(IPPROTO_IP, 1000),
	O(IPPROTO_IP, -1),
	O(IPPROTO_IPV6, IPV6_DONTFRAG),
	O(IPPROTO_IPV6, IPV6_MTU_DISCOVER),
	O(IPPROTO_IPV6, IPV6_MULTICAST_ALL),
	O(IPPROTO_IPV6, IPV6_MULTICAST_HOPS),
	O(IPPROTO_IPV6, IPV6_MULTICAST_LOOP),
	O(IPPROTO_IPV6, IPV6_RECVERR),
	O(IPPROTO_IPV6, IPV6_RECVHOPLIMIT),
	O(IPPROTO_IPV6, IPV6_RECVORIGDSTADDR),
	O(IPPROTO_IPV6, IPV6_RECVPKTINFO),
	O(IPPROTO_IPV6, IPV6_RECVTCLASS),
	O(IPPROTO_IPV6, IPV6_TCLASS),
	OWN_VALUE(IPPROTO_IPV6, IPV6_UNICAST_HOPS),
	O(IPPROTO_IPV6, IPV6_V6ONLY),
	O(IPPROTO_IPV6, IP_ADD_SOURCE_MEMBERSHIP),
	O(IPPROTO_IPV6, 1000),
	O(IPPROTO_TCP, TCP_CORK),
	OWN_VALUE(IPPROTO_TCP, TCP_DEFER_ACCEPT),
	O(IPPROTO_TCP, TCP_FASTOPEN),
	O(IPPROTO_TCP, TCP_FASTOPEN_CONNECT),
	O(IPPROTO_TCP, TCP_INQ),
	O(IPPROTO_TCP, TCP_KEEPCNT),
	O(IPPROTO_TCP, TCP_KEEPIDLE),
	O(IPPROTO_TCP, TCP_KEEPINTVL),
	O(IPPROTO_TCP, TCP_LINGER2),
	OWN_VALUE(IPPROTO_TCP, TCP_MAXSEG),
	O(IPPROTO_TCP, TCP_NODELAY),
	O(IPPROTO_TCP, TCP_NOTSENT_LOWAT),
	OWN_VALUE(IPPROTO_TCP, TCP_QUICKACK),
	O(IPPROTO_TCP, TCP_SYNCNT),
	O(IPPROTO_TCP, TCP_THIN_DUPACK),
	O(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS),
	O(IPPROTO_TCP, TCP_USER_TIMEOUT),
	OWN_VALUE(IPPROTO_TCP, TCP_WINDOW_CLAMP),
	O(IPPROTO_TCP, 1000),
	O(IPPROTO_UDP, UDP_GRO),
	O(IPPROTO_UDP, UDP_NO_CHECK6_RX),
	O(IPPROTO_UDP, UDP_NO_CHECK6_TX),
	O(IPPROTO_UDP, UDP_SEGMENT),
	O(IPPROTO_UDP, 1000),
	O(77, 1),
	O(-1, 1),
};

enum kind { TCP, TCP6, LISTENER, CONNECTED, UDP, UDP6, UDP_CONNECTED, KINDS };
static const char *const kind_names[] = { "tcp", "tcp6", "listener",
    "connected", "udp", "udp6", "udp-connected" };

/* Sockets of a kind; [1] may be -1. */
static void
make(enum kind kind, int s[2])
{
	s[1] = -1;
	switch (kind) {
	case TCP:
	case UDP:
		s[0] = OK(socket(AF_INET, kind == TCP ? SOCK_STREAM :
		    SOCK_DGRAM, 0));
		break;
	case TCP6:
	case UDP6:
		s[0] = OK(socket(AF_INET6, kind == TCP6 ? SOCK_STREAM :
		    SOCK_DGRAM, 0));
		break;
	case LISTENER:
		s[0] = listener();
		break;
	case CONNECTED:
		tcp_pair(s);
		break;
	default:
		udp_pair(s);
	}
}

static void
dispose(int s[2])
{
	const struct linger reset = { 1, 0 };	/* without TIME-WAIT */

	(void)setsockopt(s[0], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	OK(close(s[0]));
	if (s[1] != -1)
		OK(close(s[1]));
}

static const char *
error_name(int result)
{
	return (result == 0 ? "ok" : strerrorname_np(errno));
}

static void
get(int fd, const struct option *o, socklen_t len)
{
	unsigned char value[256];
	int r;

	memset(value, 0xee, sizeof(value));
	r = getsockopt(fd, o->level, o->name, value, &len);
	printf(" get=%s", error_name(r));
	if (r != 0)
		return;
	printf(":%d:", (int)len);
	for (socklen_t i = 0; i < len && o->compared == ALL; i++)
		printf("%02x", value[i]);
}

static void *volatile const no_address;

/* Sets an option, and reads it back. */
static void
set(int fd, const struct option *o, const void *value, socklen_t len)
{
	const int r = setsockopt(fd, o->level, o->name, value, len);

	printf(" set=%s", error_name(r));
	if (r == 0)
		get(fd, o, 16);
}

static void
print_gets(int fd, const struct option *o)
{
	static const socklen_t lens[] = { 4, 0, 1, 2, 3, 5, 8, 16, 256,
	    (socklen_t)-1 };
	unsigned char value[16];
	socklen_t len = 4;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		get(fd, o, lens[i]);
	printf(" %s", error_name(getsockopt(fd, o->level, o->name, no_address,
	    &len)));
	len = 0;
	printf(" %s", error_name(getsockopt(fd, o->level, o->name, no_address,
	    &len)));
	printf(" %s", error_name(getsockopt(fd, o->level, o->name, value,
	    no_address)));
}

static void
print_sets(int fd, const struct option *o)
{
	static const int values[] = { 0, 1, 2, -1, 3, 64, 127, 128, 255, 256,
	    32767, 32768, 65536, INT32_MAX, INT32_MIN };
	static const socklen_t lens[] = { 0, 1, 2, 3, 5, 8, 16, 32,
	    (socklen_t)-1 };
	const unsigned char bytes[32] = { 1 };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		set(fd, o, &values[i], sizeof(int));
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		set(fd, o, bytes, lens[i]);
	set(fd, o, no_address, sizeof(int));
	set(fd, o, no_address, 0);
}

static void
print_line(enum kind kind, const struct option *o)
{
	int s[2];

	printf("%s %d %s", kind_names[kind], o->level, o->label);
	make(kind, s);
	print_gets(s[0], o);
	print_sets(s[0], o);
	printf("\n");
	dispose(s);
}

static int
print_all(void)
{
	for (enum kind kind = TCP; kind < KINDS; kind++)
		for (size_t i = 0; i < sizeof(options) / sizeof(options[0]);
		    i++)
			print_line(kind, &options[i]);
	return (fflush(stdout));
}

TEST(every_option)
{
	CHECK_EQ(print_all(), 0);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
