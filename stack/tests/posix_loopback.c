/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program sends to its own host has arrived when the call returns, as on
 * Linux, whose softirq runs in the sender's context.  A timer that fires in the
 * same microseconds may delay it, so a few late ones pass.
 */
#include "posix.h"

#define	ROUNDS		50
#define	LATE_MAX	3

static bool
arrived(int fd, char want)
{
	char c = 0;

	if (recv(fd, &c, 1, MSG_DONTWAIT) == 1)
		return (c == want);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(recv(fd, &c, 1, 0), 1);
	return (false);
}

TEST(a_datagram_has_arrived)
{
	unsigned late = 0;
	int s[2];

	udp_pair(s);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(send(s[0], "d", 1, 0), 1);
		late += !arrived(s[1], 'd');
	}
	CHECK(late <= LATE_MAX);
	close_pair(s);
}

TEST(a_segment_has_arrived)
{
	unsigned late = 0;
	int s[2], on = 1;

	tcp_pair(s);
	OK(setsockopt(s[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(send(s[0], "s", 1, 0), 1);
		late += !arrived(s[1], 's');
	}
	CHECK(late <= LATE_MAX);
	close_pair(s);
}

TEST(a_connection_has_arrived)
{
	int l = listener(), late = 0;

	OK(fcntl(l, F_SETFL, O_NONBLOCK));
	for (int i = 0; i < ROUNDS; i++) {
		int c = connected_to(l), s = accept(l, NULL, NULL);

		if (s == -1) {
			CHECK_EQ(errno, EAGAIN);
			late++;
			CHECK(ready(l, POLLIN, 10000) & POLLIN);
			s = OK(accept(l, NULL, NULL));
		}
		OK(close(s));
		OK(close(c));
	}
	CHECK(late <= LATE_MAX);
	OK(close(l));
}

TEST(an_end_has_arrived)
{
	unsigned late = 0;
	int s[2];
	char c;

	for (int i = 0; i < ROUNDS; i++) {
		tcp_pair(s);
		OK(close(s[0]));
		late += recv(s[1], &c, 1, MSG_DONTWAIT) != 0;
		OK(close(s[1]));
	}
	CHECK(late <= LATE_MAX);
}

TEST(a_reset_has_arrived_with_the_data_before_it)
{
	const struct linger now = { .l_onoff = 1 };
	unsigned late = 0;
	int s[2];

	for (int i = 0; i < ROUNDS; i++) {
		struct sockaddr_in sin;
		socklen_t len = sizeof(sin);

		tcp_pair(s);
		OK(setsockopt(s[0], SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
		CHECK_EQ(send(s[0], "r", 1, 0), 1);
		OK(close(s[0]));
		late += getpeername(s[1], (struct sockaddr *)&sin, &len) == 0;
		CHECK(arrived(s[1], 'r'));
		OK(close(s[1]));
	}
	CHECK(late <= LATE_MAX);
}

TEST(an_unreachable_port_is_known)
{
	struct sockaddr_in sin;
	unsigned late = 0;
	int fd = bound(SOCK_DGRAM);

	sin = own_address(fd);
	OK(close(fd));
	for (int i = 0; i < ROUNDS; i++) {
		int error = 0;
		socklen_t len = sizeof(error);

		fd = OK(socket(AF_INET, SOCK_DGRAM, 0));
		OK(connect(fd, (struct sockaddr *)&sin, sizeof(sin)));
		CHECK_EQ(send(fd, "u", 1, 0), 1);
		OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
		late += error != ECONNREFUSED;
		OK(close(fd));
	}
	CHECK(late <= LATE_MAX);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
