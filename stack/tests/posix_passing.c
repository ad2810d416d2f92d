/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What UNIX-domain sockets pass besides bytes: descriptors (SCM_RIGHTS) and
 * credentials (SCM_CREDENTIALS, SO_PEERCRED).
 */
#include <sys/un.h>

#include "posix_rights.h"

static void
pair(int type, int s[2])
{
	OK(socketpair(AF_UNIX, type, 0, s));
}

TEST(a_passed_pipe_works_after_it_was_closed)
{
	const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	int s[2], p[2], fd;
	char c;

	for (unsigned i = 0; i < 3; i++) {
		pair(types[i], s);
		OK(pipe(p));
		CHECK_EQ(send_fds(s[0], &p[1], 1, 0), 1);
		OK(close(p[1]));
		fd = receive_fd(s[1]);
		CHECK_EQ(write(fd, "x", 1), 1);
		OK(close(fd));
		CHECK_EQ(read(p[0], &c, 1), 1);
		CHECK_EQ(read(p[0], &c, 1), 0);
		OK(close(p[0]));
		close_pair(s);
	}
}

TEST(sockets_are_passed)
{
	int s[2], t[2], u[2], fds[2], flags;
	char c;

	pair(SOCK_STREAM, s);
	pair(SOCK_DGRAM, t);
	tcp_pair(u);
	fds[0] = t[1];
	fds[1] = u[1];
	CHECK_EQ(send_fds(s[0], fds, 2, 0), 1);
	OK(close(t[1]));
	OK(close(u[1]));
	CHECK_EQ(receive_fds(s[1], fds, 2, MSG_CMSG_CLOEXEC, &flags), 2);
	CHECK_EQ(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	send_byte(t[0]);
	send_byte(u[0]);
	CHECK_EQ(recv(fds[0], &c, 1, 0), 1);
	CHECK_EQ(recv(fds[1], &c, 1, 0), 1);
	OK(close(fds[0]));
	OK(close(fds[1]));
	OK(close(t[0]));
	OK(close(u[0]));
	close_pair(s);
}

TEST(descriptors_end_a_read_of_a_stream)
{
	int s[2], fd, flags;
	char buf[16];

	pair(SOCK_STREAM, s);
	CHECK_EQ(send(s[0], "ab", 2, 0), 2);
	CHECK_EQ(send_fds(s[0], &s[0], 1, 0), 1);
	CHECK_EQ(send(s[0], "cd", 2, 0), 2);
	CHECK_EQ(receive_fds(s[1], &fd, 1, 0, &flags), 1);
	CHECK_EQ(recv(s[1], buf, sizeof(buf), 0), 2);
	CHECK(memcmp(buf, "cd", 2) == 0);
	OK(close(fd));
	close_pair(s);
}

TEST(what_has_no_room_is_closed)
{
	int s[2], p[2], fds[2], flags;
	char c;

	pair(SOCK_STREAM, s);
	OK(pipe(p));
	fds[0] = fds[1] = p[1];
	CHECK_EQ(send_fds(s[0], fds, 2, 0), 1);
	CHECK_EQ(receive_fds(s[1], fds, 1, 0, &flags), 1);
	CHECK(flags & MSG_CTRUNC);
	OK(close(fds[0]));
	CHECK_EQ(send_fds(s[0], &p[1], 1, 0), 1);
	CHECK_EQ(receive_fds(s[1], fds, 0, 0, &flags), 0);
	CHECK(flags & MSG_CTRUNC);
	CHECK_EQ(send_fds(s[0], &p[1], 1, 0), 1);
	/* read() has no room for control messages */
	CHECK_EQ(read(s[1], &c, 1), 1);
	CHECK_EQ(send_fds(s[0], &p[1], 1, 0), 1);
	OK(close(p[1]));
	close_pair(s);				/* never received */
	CHECK_EQ(read(p[0], &c, 1), 0);
	OK(close(p[0]));
}

/* A length of control messages without a buffer is no room. */
TEST(what_has_no_buffer_is_closed)
{
	int s[2], p[2];
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_controllen = CMSG_SPACE(2 * sizeof(int)) };
	int fds[2];

	pair(SOCK_STREAM, s);
	OK(pipe(p));
	fds[0] = p[1];
	fds[1] = s[0];
	CHECK_EQ(send_fds(s[0], fds, 2, 0), 1);
	OK(close(p[1]));
	OK(close(s[0]));
	CHECK_EQ(OK(recvmsg(s[1], &msg, 0)), 1);
	CHECK(msg.msg_flags & MSG_CTRUNC);
	CHECK_EQ(msg.msg_controllen, 0);
	CHECK_EQ(read(p[0], &c, 1), 0);
	CHECK_EQ(recv(s[1], &c, 1, 0), 0);
	OK(close(p[0]));
	OK(close(s[1]));
}

TEST(a_look_gives_descriptors_of_its_own)
{
	int s[2], p[2], fd, again, flags;
	char c;

	pair(SOCK_DGRAM, s);
	OK(pipe(p));
	CHECK_EQ(send_fds(s[0], &p[1], 1, 0), 1);
	OK(close(p[1]));
	CHECK_EQ(receive_fds(s[1], &again, 1, MSG_PEEK, &flags), 1);
	fd = receive_fd(s[1]);
	CHECK(fd != again);
	OK(close(fd));
	CHECK_EQ(write(again, "x", 1), 1);
	OK(close(again));
	CHECK_EQ(read(p[0], &c, 1), 1);
	CHECK_EQ(read(p[0], &c, 1), 0);
	OK(close(p[0]));
	close_pair(s);
}

TEST(bad_descriptors_are_not_sent)
{
	int s[2], fd = 9999, many[FDS_MAX];
	struct iovec iov = { "x", 1 };
	union control control = { .buf = "" };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
		.msg_controllen = CMSG_SPACE(sizeof(int))
	};

	pair(SOCK_STREAM, s);
	FAILS(send_fds(s[0], &fd, 1, 0), EBADF);
	for (unsigned i = 0; i < FDS_MAX; i++)
		many[i] = s[0];
	CHECK_EQ(send_fds(s[0], many, FDS_MAX, 0), 1);
	control.align = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
		.cmsg_len = 4096
	};
	FAILS(sendmsg(s[0], &msg, 0), EINVAL);
	control.align.cmsg_len = CMSG_LEN(sizeof(int));
	control.align.cmsg_type = 77;
	FAILS(sendmsg(s[0], &msg, 0), EINVAL);
	close_pair(s);
}

/* The collector may run later, when a socket is closed. */
static void
await_eof(int fd)
{
	int s[2];
	char c;

	for (int i = 0; i < 500; i++) {
		pair(SOCK_DGRAM, s);
		close_pair(s);
		if (ready(fd, POLLIN, 10) & POLLHUP)
			break;
	}
	CHECK_EQ(read(fd, &c, 1), 0);
	OK(close(fd));
}

TEST(sockets_that_only_refer_to_each_other_are_collected)
{
	int a[2], b[2], p[2];

	/* itself */
	pair(SOCK_STREAM, a);
	OK(pipe(p));
	CHECK_EQ(send_fds(a[0], &a[1], 1, 0), 1);
	CHECK_EQ(send_fds(a[0], &p[1], 1, 0), 1);
	OK(close(p[1]));
	close_pair(a);
	await_eof(p[0]);

	/* a ring of two */
	pair(SOCK_DGRAM, a);
	pair(SOCK_DGRAM, b);
	OK(pipe(p));
	CHECK_EQ(send_fds(a[0], &b[1], 1, 0), 1);
	CHECK_EQ(send_fds(b[0], &a[1], 1, 0), 1);
	CHECK_EQ(send_fds(b[0], &p[1], 1, 0), 1);
	OK(close(p[1]));
	close_pair(a);
	close_pair(b);
	await_eof(p[0]);
}

TEST(what_can_still_be_received_is_not_collected)
{
	int a[2], b[2], fd, inner;
	char c;

	/* b[1] waits in a[1], and a message with a[0] in b[1] */
	pair(SOCK_STREAM, a);
	pair(SOCK_STREAM, b);
	CHECK_EQ(send_fds(a[0], &b[1], 1, 0), 1);
	CHECK_EQ(send_fds(b[0], &a[0], 1, 0), 1);
	OK(close(a[0]));
	close_pair(b);
	fd = receive_fd(a[1]);
	inner = receive_fd(fd);
	send_byte(inner);
	CHECK_EQ(recv(a[1], &c, 1, 0), 1);
	OK(close(inner));
	OK(close(fd));
	OK(close(a[1]));
}

TEST(a_connection_that_waits_is_collected_with_its_listener)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int l = OK(socket(AF_UNIX, SOCK_STREAM, 0)), c, p[2];
	socklen_t len = sizeof(sun);

	OK(bind(l, (struct sockaddr *)&sun, sizeof(sa_family_t)));
	OK(getsockname(l, (struct sockaddr *)&sun, &len));
	OK(listen(l, 4));
	c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	OK(connect(c, (struct sockaddr *)&sun, len));
	OK(pipe(p));
	CHECK_EQ(send_fds(c, &l, 1, 0), 1);
	CHECK_EQ(send_fds(c, &p[1], 1, 0), 1);
	OK(close(p[1]));
	OK(close(l));
	OK(close(c));
	await_eof(p[0]);
}

#ifdef __SANITIZE_THREAD__
#define	LINKS		500	/* one thread: the other builds have all */
#else
#define	LINKS		2000
#endif

TEST(a_long_chain_is_closed)
{
	int p[2], s[2], held, fd;
	char c;

	/* each socket is in a message in the next one's buffer */
	OK(pipe(p));
	held = p[1];
	for (int i = 0; i < LINKS; i++) {
		pair(SOCK_STREAM, s);
		CHECK_EQ(send_fds(s[0], &held, 1, 0), 1);
		OK(close(held));
		OK(close(s[0]));
		held = s[1];
	}
	OK(close(held));
	fd = p[0];
	CHECK(ready(fd, POLLIN, 10000) & POLLHUP);
	CHECK_EQ(read(fd, &c, 1), 0);
	OK(close(fd));
}

TEST(the_peer_is_known)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int s[2];

	pair(SOCK_STREAM, s);
	OK(getsockopt(s[0], SOL_SOCKET, SO_PEERCRED, &cred, &len));
	CHECK_EQ(cred.pid, getpid());
	CHECK_EQ(cred.uid, geteuid());
	CHECK_EQ(cred.gid, getegid());
	close_pair(s);
}

static void
check_credentials(int fd)
{
	char c;
	struct iovec iov = { &c, 1 };
	union control control = { .buf = "" };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
		.msg_controllen = CMSG_SPACE(sizeof(struct ucred))
	};
	struct cmsghdr *cm;
	struct ucred cred;

	CHECK_EQ(recvmsg(fd, &msg, 0), 1);
	cm = CMSG_FIRSTHDR(&msg);
	CHECK(cm != NULL);
	CHECK_EQ(cm->cmsg_type, SCM_CREDENTIALS);
	CHECK_EQ(cm->cmsg_len, CMSG_LEN(sizeof(cred)));
	memcpy(&cred, CMSG_DATA(cm), sizeof(cred));
	CHECK_EQ(cred.pid, getpid());
	CHECK_EQ(cred.uid, getuid());
}

TEST(credentials_come_with_messages)
{
	int s[2], one = 1;

	pair(SOCK_DGRAM, s);
	OK(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
	send_byte(s[0]);
	check_credentials(s[1]);
	close_pair(s);
	pair(SOCK_STREAM, s);
	OK(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
	send_byte(s[0]);
	check_credentials(s[1]);
	close_pair(s);
}

/* The process that a message's credentials name; 0: they are unknown. */
static pid_t
sender_of(int fd)
{
	union { char buf[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align; } control;
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control.buf, .msg_controllen = sizeof(control) };
	const struct cmsghdr *cm;
	struct ucred cred;

	CHECK_EQ(OK(recvmsg(fd, &msg, 0)), 1);
	cm = CMSG_FIRSTHDR(&msg);
	CHECK(cm != NULL && cm->cmsg_type == SCM_CREDENTIALS);
	memcpy(&cred, CMSG_DATA(cm), sizeof(cred));
	if (cred.pid == 0) {
		CHECK_EQ(cred.uid, 65534);
		CHECK_EQ(cred.gid, 65534);
	}
	return (cred.pid);
}

/* Credentials are attached when a message is sent (unix(7)). */
TEST(credentials_are_those_of_the_time_of_sending)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	int s[2], one = 1, zero = 0;

	for (size_t i = 0; i < 3; i++) {
		pair(types[i], s);
		send_byte(s[0]);
		OK(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &one, 4));
		CHECK_EQ(sender_of(s[1]), 0);
		send_byte(s[0]);
		CHECK_EQ(sender_of(s[1]), getpid());
		/* the sender's option attaches them, too */
		OK(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &zero, 4));
		OK(setsockopt(s[0], SOL_SOCKET, SO_PASSCRED, &one, 4));
		send_byte(s[0]);
		OK(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &one, 4));
		CHECK_EQ(sender_of(s[1]), getpid());
		close_pair(s);
	}
}

TEST(credentials_wait_for_accept)
{
	const struct sockaddr_un sun = { .sun_family = AF_UNIX,
	    .sun_path = "\0credentials_wait_for_accept" };
	int l = OK(socket(AF_UNIX, SOCK_STREAM, 0)), s[2], one = 1;

	OK(bind(l, (const struct sockaddr *)&sun, sizeof(sun)));
	OK(listen(l, 1));
	s[0] = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	OK(connect(s[0], (const struct sockaddr *)&sun, sizeof(sun)));
	send_byte(s[0]);
	s[1] = OK(accept(l, NULL, NULL));
	OK(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
	CHECK_EQ(sender_of(s[1]), getpid());
	close_pair(s);
	OK(close(l));
}

/*
 * Threads pass sockets around rings and close them under each other's hands;
 * nothing may break, and everything must be closed in the end.
 */
#define	STRESS_THREADS	4
#define	STRESS_TURNS	300

static void *
stress(void *arg)
{
	int *ring = arg, s[2], fd, flags;

	for (int i = 0; i < STRESS_TURNS; i++) {
		pair(i % 2 ? SOCK_STREAM : SOCK_DGRAM, s);
		(void)send_fds(s[0], &s[1], 1, MSG_DONTWAIT);
		(void)send_fds(ring[0], &s[i % 2], 1, MSG_DONTWAIT);
		if (ready(ring[1], POLLIN, 0) != 0 && i % 3 != 0 &&
		    receive_fds(ring[1], &fd, 1, MSG_PEEK, &flags) == 1)
			OK(close(fd));
		close_pair(s);
	}
	return (NULL);
}

TEST(threads_pass_and_close_at_once)
{
	pthread_t t[STRESS_THREADS];
	int ring[2], p[2];

	pair(SOCK_STREAM, ring);
	OK(pipe(p));
	CHECK_EQ(send_fds(ring[0], &p[1], 1, 0), 1);
	OK(close(p[1]));
	for (int i = 0; i < STRESS_THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, stress, ring), 0);
	for (int i = 0; i < STRESS_THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	close_pair(ring);
	await_eof(p[0]);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
