/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP Fast Open (tcp(7)), both ends.  The kernel's servers accept data of a
 * SYN only with a sysctl, and the stack's with its tunable (loopback.conf);
 * programs see the difference in TCP_INFO only.
 */
#include "posix.h"

#define	CONNECT	30		/* TCP_FASTOPEN_CONNECT, linux/tcp.h */
#define	KEY	33		/* TCP_FASTOPEN_KEY */
#define	ROUNDS	4
#define	LONG	(600 << 10)	/* more than a request of a child carries */

static int
fast_listener(void)
{
	int l = listener(), limit = 8, got = 0;
	socklen_t len = sizeof(got);

	OK(setsockopt(l, IPPROTO_TCP, TCP_FASTOPEN, &limit, sizeof(limit)));
	OK(getsockopt(l, IPPROTO_TCP, TCP_FASTOPEN, &got, &len));
	CHECK_EQ(got, limit);
	return (l);
}

static long
send_to(int s, const struct sockaddr_in *sin, const char *text)
{
	return (sendto(s, text, strlen(text), MSG_FASTOPEN,
	    (const struct sockaddr *)sin, sizeof(*sin)));
}

static void
expect(int s, const char *text)
{
	char buf[64] = "";

	CHECK_EQ(recv(s, buf, strlen(text), MSG_WAITALL), (long)strlen(text));
	CHECK(strcmp(buf, text) == 0);
}

/* Request and answer; true: the request was in the SYN. */
static bool
serve(int l, int c)
{
	struct tcp_info ti = { .tcpi_options = 0 };
	socklen_t len = sizeof(ti);
	int s = OK(accept(l, NULL, NULL));

	expect(s, "request");
	CHECK_EQ(send(s, "answer", 6, 0), 6);
	expect(c, "answer");
	OK(getsockopt(s, IPPROTO_TCP, TCP_INFO, &ti, &len));
	OK(close(c));
	OK(close(s));
	return ((ti.tcpi_options & TCPI_OPT_SYN_DATA) != 0);
}

TEST(sendto_connects_and_sends)
{
	const int l = fast_listener();
	const struct sockaddr_in sin = own_address(l);
	bool fast = false;

	for (int i = 0; i < ROUNDS; i++) {
		int c = OK(socket(AF_INET, SOCK_STREAM, 0));

		CHECK_EQ(send_to(c, &sin, "request"), 7);
		FAILS(send_to(c, &sin, "request"), EISCONN);
		fast = serve(l, c);
	}
	CHECK(fast || getenv("STACK_CONF") == NULL);
	OK(close(l));
}

TEST(connect_leaves_the_syn_to_the_first_write)
{
	const int l = fast_listener(), on = 1;
	const struct sockaddr_in sin = own_address(l);
	bool fast = false;

	for (int i = 0; i < ROUNDS; i++) {
		int c = OK(socket(AF_INET, SOCK_STREAM, 0));

		OK(setsockopt(c, IPPROTO_TCP, CONNECT, &on, sizeof(on)));
		OK(connect(c, (const struct sockaddr *)&sin, sizeof(sin)));
		CHECK_EQ(write(c, "request", 7), 7);
		fast = serve(l, c);
	}
	CHECK(fast || getenv("STACK_CONF") == NULL);
	OK(close(l));
}

TEST(a_refused_call_leaves_the_socket_usable)
{
	const int l = fast_listener();
	const struct sockaddr_in sin = own_address(l);
	struct sockaddr_in none;
	int c, gone;

	c = OK(socket(AF_INET, SOCK_STREAM, 0));
	gone = bound(SOCK_STREAM);
	none = own_address(gone);
	OK(close(gone));
	FAILS(send_to(c, &none, "request"), ECONNREFUSED);
	CHECK_EQ(send_to(c, &sin, "request"), 7);
	(void)serve(l, c);
	OK(close(l));
}

/* As connect(), the next call returns the result of one that did not wait. */
TEST(the_result_is_returned_once)
{
	const int l = fast_listener();
	const struct sockaddr_in sin = own_address(l);
	char text[16] = "";

	for (int i = 0; i < ROUNDS; i++) {
		int c = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)), s;
		long n = send_to(c, &sin, "early");

		CHECK(n == 5 || (n == -1 && errno == EINPROGRESS));
		CHECK(ready(c, POLLOUT, 10000) & POLLOUT);
		OK(fcntl(c, F_SETFL, 0));
		CHECK_EQ(send_to(c, &sin, "later"), 5);
		FAILS(send_to(c, &sin, "later"), EISCONN);
		OK(close(c));
		s = OK(accept(l, NULL, NULL));
		n = n == 5 ? 10 : 5;
		CHECK_EQ(recv(s, text, sizeof(text), MSG_WAITALL), n);
		OK(close(s));
	}
	OK(close(l));
}

static void
accept_long(int l)
{
	static char got[LONG];
	const int s = OK(accept(l, NULL, NULL));

	CHECK_EQ(recv(s, got, sizeof(got), MSG_WAITALL), LONG);
	for (size_t i = 0; i < sizeof(got); i++)
		CHECK_EQ((unsigned char)got[i], bulk_byte(i));
}

/* In a process of its own, because a child of fork() may have no threads. */
static pid_t
reader(int l)
{
	const pid_t pid = OK(fork());

	if (pid != 0)
		return (pid);
	accept_long(l);
	_exit(0);
}

/* A call that may wait sends all, whatever the SYN has room for. */
TEST(a_long_request_is_sent_whole)
{
	static char text[LONG];
	const int l = fast_listener(), on = 1;
	const struct sockaddr_in sin = own_address(l);

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)bulk_byte(i);
	for (int i = 0; i < ROUNDS; i++) {
		int c = OK(socket(AF_INET, SOCK_STREAM, 0));
		const pid_t pid = reader(l);
		int status;

		if (i % 2 == 0) {
			CHECK_EQ(sendto(c, text, LONG, MSG_FASTOPEN,
			    (const struct sockaddr *)&sin, sizeof(sin)), LONG);
		} else {
			OK(setsockopt(c, IPPROTO_TCP, CONNECT, &on, sizeof(on)));
			OK(connect(c, (const struct sockaddr *)&sin,
			    sizeof(sin)));
			CHECK_EQ(send(c, text, LONG, 0), LONG);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		OK(close(c));
	}
	OK(close(l));
}

TEST(wrong_names_are_refused)
{
	const struct sockaddr_in unspec = { .sin_family = AF_UNSPEC };
	int c = OK(socket(AF_INET, SOCK_STREAM, 0));

	FAILS(sendto(c, "x", 1, MSG_FASTOPEN, NULL, 0), EINVAL);
	FAILS(send_to(c, &unspec, "x"), EOPNOTSUPP);
	OK(close(c));
}

TEST(keys_are_read_back)
{
	const int l = fast_listener();
	const uint8_t key[32] = { 1, [16] = 2 };
	uint8_t got[32];
	socklen_t len = sizeof(got);

	FAILS(setsockopt(l, IPPROTO_TCP, KEY, key, 15), EINVAL);
	OK(setsockopt(l, IPPROTO_TCP, KEY, key, 16));
	OK(getsockopt(l, IPPROTO_TCP, KEY, got, &len));
	CHECK_EQ(len, 16);
	OK(setsockopt(l, IPPROTO_TCP, KEY, key, 32));
	len = sizeof(got);
	OK(getsockopt(l, IPPROTO_TCP, KEY, got, &len));
	CHECK_EQ(len, 32);
	CHECK(memcmp(got, key, sizeof(got)) == 0);
	OK(close(l));
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
