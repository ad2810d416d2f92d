/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data transfer between descriptors (splice, sendfile), calls with a position,
 * which sockets do not support, and information about interfaces.
 */
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>

#include "posix.h"

TEST(a_pipe_is_spliced_to_a_socket)
{
	char buf[64];
	int s[2], p[2];

	tcp_pair(s);
	OK(pipe(p));
	CHECK_EQ(write(p[1], "0123456789", 10), 10);
	CHECK_EQ(splice(p[0], NULL, s[0], NULL, 4, 0), 4);
	CHECK_EQ(splice(p[0], NULL, s[0], NULL, 100, SPLICE_F_MOVE), 6);
	CHECK_EQ(recv(s[1], buf, 10, MSG_WAITALL), 10);
	CHECK(memcmp(buf, "0123456789", 10) == 0);
	FAILS(splice(p[0], NULL, s[0], NULL, 1, SPLICE_F_NONBLOCK), EAGAIN);
	OK(close(p[1]));
	CHECK_EQ(splice(p[0], NULL, s[0], NULL, 1, 0), 0);
	OK(close(p[0]));
	close_pair(s);
}

TEST(a_socket_is_spliced_to_a_pipe)
{
	char buf[64];
	int s[2], p[2];

	tcp_pair(s);
	OK(pipe(p));
	CHECK_EQ(send(s[0], "abcdefgh", 8, 0), 8);
	CHECK(ready(s[1], POLLIN, 10000) & POLLIN);
	CHECK_EQ(splice(s[1], NULL, p[1], NULL, 3, 0), 3);
	CHECK_EQ(splice(s[1], NULL, p[1], NULL, 100, 0), 5);
	CHECK_EQ(read(p[0], buf, sizeof(buf)), 8);
	CHECK(memcmp(buf, "abcdefgh", 8) == 0);
	OK(fcntl(s[1], F_SETFL, O_NONBLOCK));
	FAILS(splice(s[1], NULL, p[1], NULL, 1, 0), EAGAIN);
	OK(shutdown(s[0], SHUT_WR));
	CHECK(ready(s[1], POLLIN, 10000) & POLLIN);
	CHECK_EQ(splice(s[1], NULL, p[1], NULL, 1, 0), 0);
	close_pair(p);
	close_pair(s);
}

/* Data that does not fit into the pipe stays in the socket. */
TEST(a_full_pipe_loses_nothing)
{
	static char big[1 << 17], buf[1 << 17];
	int s[2], p[2], space = 100000;
	size_t got = 0, sent = 50000;

	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7 >> 2);
	tcp_pair(s);
	OK(setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &space, sizeof(space)));
	OK(pipe(p));
	CHECK_EQ(send(s[0], big, sent, 0), sent);
	OK(fcntl(p[1], F_SETPIPE_SZ, 4096));
	while (got < sent) {
		ssize_t n = splice(s[1], NULL, p[1], NULL, sent - got,
		    SPLICE_F_NONBLOCK);

		if (n == -1)
			CHECK_EQ(errno, EAGAIN);
		got += (size_t)OK(read(p[0], buf + got, sizeof(buf) - got));
	}
	CHECK(memcmp(buf, big, sent) == 0);
	close_pair(p);
	close_pair(s);
}

TEST(bad_splices_give_their_errors)
{
	int s[2], p[2], null = OK(open("/dev/null", O_RDWR));
	off64_t at = 0;

	tcp_pair(s);
	OK(pipe(p));
	FAILS(splice(s[0], NULL, s[1], NULL, 1, 0), EINVAL);
	FAILS(splice(s[0], NULL, null, NULL, 1, 0), EINVAL);
	FAILS(splice(s[0], &at, p[1], NULL, 1, 0), EINVAL);
	FAILS(splice(s[0], NULL, p[1], &at, 1, 0), ESPIPE);
	FAILS(splice(s[0], NULL, 9999, NULL, 1, 0), EBADF);
	CHECK_EQ(splice(s[0], NULL, p[1], NULL, 0, 0), 0);
	FAILS(sendfile(null, s[0], NULL, 1), EINVAL);
	FAILS(sendfile(s[0], 9999, NULL, 1), EBADF);
	OK(close(null));
	close_pair(p);
	close_pair(s);
}

TEST(a_socket_has_no_position)
{
	/* through a variable, so that the compiler does not warn */
	volatile int few = -1, many = 2000;
	char c;
	struct iovec iov = { &c, 1 };
	int s[2];

	tcp_pair(s);
	FAILS(lseek(s[0], 0, SEEK_CUR), ESPIPE);
	FAILS(pread(s[0], &c, 1, 0), ESPIPE);
	FAILS(pwrite(s[0], &c, 1, 0), ESPIPE);
	FAILS(preadv(s[0], &iov, 1, 0), ESPIPE);
	FAILS(pwritev(s[0], &iov, 1, 0), ESPIPE);
	FAILS(readv(s[0], &iov, few), EINVAL);
	FAILS(writev(s[0], &iov, many), EINVAL);
	close_pair(s);
}

/* The entry of the loopback interface with an address of a family. */
static struct ifaddrs *
find_loopback(struct ifaddrs *all, int family)
{
	for (; all != NULL; all = all->ifa_next)
		if ((all->ifa_flags & IFF_LOOPBACK) && all->ifa_addr != NULL &&
		    all->ifa_addr->sa_family == family)
			break;
	CHECK(all != NULL);
	return (all);
}

static struct in_addr
ask_address(int fd, unsigned long what, struct ifreq *req)
{
	struct sockaddr_in sin;

	OK(ioctl(fd, what, req));
	memcpy(&sin, &req->ifr_addr, sizeof(sin));
	CHECK_EQ(sin.sin_family, AF_INET);
	return (sin.sin_addr);
}

TEST(the_loopback_interface_is_described)
{
	int fd = OK(socket(AF_INET, SOCK_DGRAM, 0));
	struct ifreq req = { 0 };
	struct in6_addr ones;
	struct ifaddrs *all, *lo;
	struct sockaddr_in6 sin6;
	struct sockaddr_in sin;
	char name[IF_NAMESIZE];
	unsigned index;

	memset(&ones, 0xff, sizeof(ones));
	OK(getifaddrs(&all));
	lo = find_loopback(all, AF_INET6);
	memcpy(&sin6, lo->ifa_addr, sizeof(sin6));
	CHECK(IN6_IS_ADDR_LOOPBACK(&sin6.sin6_addr));
	memcpy(&sin6, lo->ifa_netmask, sizeof(sin6));
	CHECK(IN6_ARE_ADDR_EQUAL(&sin6.sin6_addr, &ones));
	lo = find_loopback(all, AF_INET);
	memcpy(&sin, lo->ifa_addr, sizeof(sin));
	CHECK_EQ(sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", lo->ifa_name);
	index = if_nametoindex(lo->ifa_name);
	CHECK(index > 0);
	CHECK(if_indextoname(index, name) != NULL);
	CHECK_STREQ(name, lo->ifa_name);
	CHECK_EQ(ask_address(fd, SIOCGIFADDR, &req).s_addr,
	    htonl(INADDR_LOOPBACK));
	CHECK_EQ(ask_address(fd, SIOCGIFNETMASK, &req).s_addr,
	    htonl(0xff000000));
	OK(ioctl(fd, SIOCGIFFLAGS, &req));
	CHECK((req.ifr_flags & (IFF_UP | IFF_LOOPBACK)) ==
	    (IFF_UP | IFF_LOOPBACK));
	OK(ioctl(fd, SIOCGIFHWADDR, &req));
	CHECK_EQ(req.ifr_hwaddr.sa_family, ARPHRD_LOOPBACK);
	OK(ioctl(fd, SIOCGIFINDEX, &req));
	CHECK_EQ(req.ifr_ifindex, index);
	memset(req.ifr_name, 0, sizeof(req.ifr_name));
	OK(ioctl(fd, SIOCGIFNAME, &req));
	CHECK_STREQ(req.ifr_name, lo->ifa_name);
	freeifaddrs(all);
	snprintf(req.ifr_name, sizeof(req.ifr_name), "nothing");
	FAILS(ioctl(fd, SIOCGIFADDR, &req), ENODEV);
	CHECK_EQ(if_nametoindex("nothing"), 0);
	CHECK(if_indextoname(99999, name) == NULL);
	CHECK_EQ(errno, ENXIO);
	OK(close(fd));
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
