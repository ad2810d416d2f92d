/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UNIX-domain sockets as programs use them: names, connections and the three
 * types.  Pairs are in posix_unixpair.c, descriptors and credentials in
 * posix_passing.c.
 */
#include <stddef.h>
#include <sys/un.h>

#include "posix_child.h"

static char dir[] = "/tmp/stack-unix-XXXXXX";

static socklen_t
path_name(struct sockaddr_un *sun, const char *name)
{
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	snprintf(sun->sun_path, sizeof(sun->sun_path), "%s/%s", dir, name);
	return ((socklen_t)sizeof(*sun));
}

static socklen_t
abstract_name(struct sockaddr_un *sun, const char *name)
{
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1, "%s%d", name,
	    (int)getpid());
	return ((socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
	    strlen(sun->sun_path + 1)));
}

static int
unix_bound(int type, const char *name)
{
	struct sockaddr_un sun;
	socklen_t len = path_name(&sun, name);
	int fd = OK(socket(AF_UNIX, type, 0));

	OK(bind(fd, (struct sockaddr *)&sun, len));
	return (fd);
}

static int
unix_connect(int fd, const char *name)
{
	struct sockaddr_un sun;
	socklen_t len = path_name(&sun, name);

	return (connect(fd, (struct sockaddr *)&sun, len));
}

static void
unix_unlink(const char *name)
{
	struct sockaddr_un sun;

	(void)path_name(&sun, name);
	OK(unlink(sun.sun_path));
}

TEST(a_path_name_is_a_file)
{
	int l = unix_bound(SOCK_STREAM, "s"), c, a;
	struct sockaddr_un sun, other;
	socklen_t len = sizeof(sun);
	struct stat st;

	(void)path_name(&other, "s");
	OK(stat(other.sun_path, &st));
	CHECK(S_ISSOCK(st.st_mode));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(bind(c, (struct sockaddr *)&other, sizeof(other)), EADDRINUSE);
	(void)path_name(&sun, "t");
	FAILS(bind(l, (struct sockaddr *)&sun, sizeof(sun)), EINVAL);
	FAILS(stat(sun.sun_path, &st), ENOENT);
	/* the socket does not listen */
	FAILS(unix_connect(c, "s"), ECONNREFUSED);
	FAILS(unix_connect(c, "nothing"), ENOENT);
	OK(listen(l, 1));
	OK(unix_connect(c, "s"));
	FAILS(unix_connect(c, "s"), EISCONN);
	a = OK(accept(l, (struct sockaddr *)&sun, &len));
	/* the socket has no name */
	CHECK_EQ(len, sizeof(sa_family_t));
	CHECK_EQ(sun.sun_family, AF_UNIX);
	len = sizeof(sun);
	OK(getpeername(c, (struct sockaddr *)&sun, &len));
	CHECK_STREQ(sun.sun_path, other.sun_path);
	CHECK_EQ(len, offsetof(struct sockaddr_un, sun_path) +
	    strlen(other.sun_path) + 1);
	len = sizeof(sun);
	OK(getsockname(a, (struct sockaddr *)&sun, &len));
	CHECK_STREQ(sun.sun_path, other.sun_path);
	OK(close(l));
	OK(close(c));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(unix_connect(c, "s"), ECONNREFUSED);	/* the file remains */
	unix_unlink("s");
	FAILS(unix_connect(c, "s"), ENOENT);
	OK(close(c));
	OK(close(a));
}

TEST(a_file_that_was_replaced_is_another_name)
{
	int old = unix_bound(SOCK_DGRAM, "r"), new, c;
	char buf[8];

	unix_unlink("r");
	new = unix_bound(SOCK_DGRAM, "r");
	c = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	OK(unix_connect(c, "r"));
	CHECK_EQ(send(c, "new", 3, 0), 3);
	CHECK_EQ(recv(new, buf, sizeof(buf), MSG_DONTWAIT), 3);
	FAILS(recv(old, buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
	unix_unlink("r");
	OK(close(c));
	OK(close(old));
	OK(close(new));
}

TEST(abstract_names_are_bytes)
{
	struct sockaddr_un sun, got;
	socklen_t len = abstract_name(&sun, "stack-test"), glen = sizeof(got);
	int l = OK(socket(AF_UNIX, SOCK_STREAM, 0)), c, d;

	OK(bind(l, (struct sockaddr *)&sun, len));
	OK(listen(l, 1));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(connect(c, (struct sockaddr *)&sun, len - 1), ECONNREFUSED);
	OK(connect(c, (struct sockaddr *)&sun, len));
	OK(getpeername(c, (struct sockaddr *)&got, &glen));
	CHECK_EQ(glen, len);
	CHECK(memcmp(&got, &sun, len) == 0);
	OK(close(l));
	d = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	OK(bind(d, (struct sockaddr *)&sun, len));	/* free again */
	OK(close(d));
	OK(close(c));
	/* the kernel chooses the name */
	d = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	OK(bind(d, (struct sockaddr *)&sun, sizeof(sa_family_t)));
	glen = sizeof(got);
	OK(getsockname(d, (struct sockaddr *)&got, &glen));
	CHECK_EQ(glen, sizeof(sa_family_t) + 6);
	CHECK_EQ(got.sun_path[0], 0);
	OK(close(d));
}

static void
accept_one(int fd)
{
	OK(close(OK(accept(fd, NULL, NULL))));
}

TEST(a_full_queue_holds_clients_back)
{
	int l = unix_bound(SOCK_STREAM, "q"), c[8], n = 0;
	struct later t;

	OK(listen(l, 1));
	do {
		CHECK(n < 8);
		c[n] = OK(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
	} while (unix_connect(c[n], "q") == 0 && ++n);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(n, 2);			/* the backlog plus one */
	OK(fcntl(c[n], F_SETFL, 0));
	later(&t, 20, accept_one, l);
	OK(unix_connect(c[n], "q"));
	later_join(&t);
	CHECK(ready(l, POLLIN, 10000) & POLLIN);
	OK(close(l));
	CHECK(ready(c[n], POLLIN, 10000) & POLLHUP);
	for (int i = 0; i <= n; i++)
		OK(close(c[i]));
	unix_unlink("q");
}

static void
connect_late(int fd)
{
	(void)unix_connect(fd, "x");
}

/* The connect may succeed or fail; either way later calls must work. */
TEST(a_socket_is_closed_while_it_connects)
{
	int l = unix_bound(SOCK_STREAM, "x"), c, d, a;
	struct later t;

	OK(listen(l, 0));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	OK(unix_connect(c, "x"));		/* the queue is full */
	d = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	later(&t, 0, connect_late, d);
	nap(30);
	OK(close(d));
	a = OK(accept(l, NULL, NULL));
	later_join(&t);
	OK(fcntl(l, F_SETFL, O_NONBLOCK));
	while ((d = accept(l, NULL, NULL)) != -1)
		OK(close(d));
	CHECK_EQ(errno, EAGAIN);
	OK(close(a));
	OK(close(c));
	OK(close(l));
	unix_unlink("x");
}

TEST(who_is_never_accepted_is_reset)
{
	int l = unix_bound(SOCK_STREAM, "n");
	int c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	char buf[1];

	OK(listen(l, 4));
	OK(unix_connect(c, "n"));
	CHECK_EQ(send(c, "x", 1, 0), 1);
	OK(close(l));
	FAILS(recv(c, buf, 1, 0), ECONNRESET);
	FAILS(send(c, "x", 1, MSG_NOSIGNAL), EPIPE);
	OK(close(c));
	unix_unlink("n");
}

static void
shut_reading(int fd)
{
	OK(shutdown(fd, SHUT_RD));
}

TEST(shutting_a_listener_ends_accept)
{
	int l = unix_bound(SOCK_STREAM, "l");
	int c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	struct later t;

	OK(listen(l, 1));
	later(&t, 30, shut_reading, l);
	FAILS(accept(l, NULL, NULL), EINVAL);
	later_join(&t);
	FAILS(unix_connect(c, "l"), ECONNREFUSED);
	OK(close(l));
	OK(close(c));
	unix_unlink("l");
}

TEST(messages_of_a_connection_keep_their_bounds)
{
	int l = unix_bound(SOCK_SEQPACKET, "p"), c, a;
	char buf[16];
	struct iovec iov = { buf, 4 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	OK(listen(l, 1));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	FAILS(unix_connect(c, "p"), EPROTOTYPE);
	OK(close(c));
	c = OK(socket(AF_UNIX, SOCK_SEQPACKET, 0));
	FAILS(send(c, "x", 1, MSG_NOSIGNAL), ENOTCONN);
	OK(unix_connect(c, "p"));
	a = OK(accept(l, NULL, NULL));
	CHECK_EQ(send(c, "first", 5, 0), 5);
	CHECK_EQ(send(c, "2", 1, 0), 1);
	CHECK_EQ(recvmsg(a, &msg, 0), 4);
	CHECK(msg.msg_flags & MSG_TRUNC);
	CHECK_EQ(recv(a, buf, sizeof(buf), 0), 1);
	OK(close(c));
	CHECK_EQ(recv(a, buf, sizeof(buf), 0), 0);
	OK(close(a));
	OK(close(l));
	unix_unlink("p");
}

TEST(datagrams_have_bounds_and_senders)
{
	int a = unix_bound(SOCK_DGRAM, "a"), b = unix_bound(SOCK_DGRAM, "b");
	int c = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	struct sockaddr_un sun, from;
	socklen_t len = path_name(&sun, "b"), flen = sizeof(from);
	char buf[16];

	FAILS(send(c, "x", 1, 0), ENOTCONN);
	CHECK_EQ(sendto(a, "one", 3, 0, (struct sockaddr *)&sun, len), 3);
	CHECK_EQ(sendto(c, "", 0, 0, (struct sockaddr *)&sun, len), 0);
	CHECK_EQ(recv(b, buf, 1, MSG_TRUNC | MSG_PEEK), 3);
	CHECK_EQ(recvfrom(b, buf, sizeof(buf), 0, (struct sockaddr *)&from,
	    &flen), 3);
	(void)path_name(&sun, "a");
	CHECK_STREQ(from.sun_path, sun.sun_path);
	flen = sizeof(from);
	CHECK_EQ(recvfrom(b, buf, sizeof(buf), 0, (struct sockaddr *)&from,
	    &flen), 0);
	CHECK_EQ(flen, 0);
	OK(unix_connect(a, "b"));
	OK(unix_connect(b, "a"));
	/* it receives only from its peer */
	FAILS(unix_connect(c, "b"), EPERM);
	CHECK_EQ(send(b, "back", 4, 0), 4);
	CHECK_EQ(recv(a, buf, sizeof(buf), 0), 4);
	OK(close(b));
	FAILS(send(a, "x", 1, 0), ECONNREFUSED);
	FAILS(send(a, "x", 1, 0), ENOTCONN);
	FAILS(sendto(c, "x", 1, 0, (struct sockaddr *)&sun, 1), EINVAL);
	OK(close(a));
	OK(close(c));
	unix_unlink("a");
	unix_unlink("b");
}

TEST(bad_calls_give_their_errors)
{
	struct sockaddr_un sun;
	socklen_t len = path_name(&sun, "e");
	int s = OK(socket(AF_UNIX, SOCK_STREAM, 0)), value = 0;
	int d = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
	socklen_t vlen = sizeof(value);
	char c;

	FAILS(listen(s, 1), EINVAL);
	FAILS(accept(s, NULL, NULL), EINVAL);
	FAILS(listen(d, 1), EOPNOTSUPP);
	CHECK_EQ(recv(s, &c, 1, 0), -1);
	CHECK(errno == ENOTCONN || errno == EINVAL);	/* POSIX, Linux */
	FAILS(send(s, &c, 1, MSG_NOSIGNAL), ENOTCONN);
	FAILS(sendto(s, &c, 1, 0, (struct sockaddr *)&sun, len), EOPNOTSUPP);
	FAILS(getpeername(s, (struct sockaddr *)&sun, &len), ENOTCONN);
	sun.sun_family = AF_INET;
	FAILS(bind(s, (struct sockaddr *)&sun, sizeof(sun)), EINVAL);
	len = path_name(&sun, "no/such/directory");
	FAILS(bind(s, (struct sockaddr *)&sun, len), ENOENT);
	FAILS(socket(AF_UNIX, SOCK_STREAM, 6), EPROTONOSUPPORT);
	OK(getsockopt(s, SOL_SOCKET, SO_DOMAIN, &value, &vlen));
	CHECK_EQ(value, AF_UNIX);
	OK(close(s));
	OK(close(d));
}

int
main(int argc, char **argv)
{
	int status;

	CHECK(mkdtemp(dir) != NULL);
	status = check_main(argc, argv);
	OK(rmdir(dir));
	return (status);
}
