/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets in messages of the kernel's UNIX-domain sockets: between parent and
 * child in both directions, between children, and inside a process.
 */
#include "posix_child.h"
#include "posix_rights.h"

/* The sockets of the kernel. */
static void
channel(int s[2])
{
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
}

static void
hand_over(int to, int fd)
{
	CHECK_EQ(send_fds(to, &fd, 1, 0), 1);
	OK(close(fd));
}

TEST(a_process_gets_its_own_socket)
{
	int c[2], s[2], fd;

	channel(c);
	tcp_pair(s);
	hand_over(c[0], s[1]);
	fd = receive_fd(c[1]);
	send_byte(s[0]);
	expect_byte(fd);
	send_byte(fd);
	expect_byte(s[0]);
	OK(close(fd));
	expect_end(s[0]);
	OK(close(s[0]));
	close_pair(c);
}

static void
serve_handed(int from)
{
	int fd = receive_fd(from);

	answer_one(fd);
	OK(close(fd));
}

TEST(a_child_gets_a_connection)
{
	int c[2], s[2];
	pid_t pid;

	channel(c);
	pid = child(serve_handed, c[1]);
	tcp_pair(s);
	hand_over(c[0], s[1]);
	expect_answer(s[0], pid);
	close_pair(c);
}

static void
hand_over_new(int to)
{
	int s[2];

	tcp_pair(s);
	send_byte(s[0]);
	CHECK_EQ(send_fds(to, s, 2, 0), 1);
}

TEST(a_parent_gets_connections_of_a_child)
{
	int c[2], s[2], flags;

	channel(c);
	ends_well(child(hand_over_new, c[0]));
	CHECK_EQ(receive_fds(c[1], s, 2, MSG_CMSG_CLOEXEC, &flags), 2);
	expect_byte(s[1]);
	send_byte(s[1]);
	expect_byte(s[0]);
	CHECK_EQ(OK(fcntl(s[0], F_GETFD)), FD_CLOEXEC);
	OK(close(s[1]));
	expect_end(s[0]);
	OK(close(s[0]));
	close_pair(c);
}

static void
talk_to_another(int to)
{
	int s[2];

	tcp_pair(s);
	hand_over(to, s[1]);
	send_byte(s[0]);
	expect_byte(s[0]);
	expect_end(s[0]);
}

TEST(children_pass_connections_to_each_other)
{
	int c[2];
	pid_t pid;

	channel(c);
	pid = child(serve_handed, c[1]);
	ends_well(child(talk_to_another, c[0]));
	ends_well(pid);
	close_pair(c);
}

TEST(a_discarded_message_closes_its_socket)
{
	int c[2], s[2];

	channel(c);
	tcp_pair(s);
	hand_over(c[0], s[1]);
	close_pair(c);
	expect_end(s[0]);
	OK(close(s[0]));
}

TEST(a_socket_outlives_its_sender)
{
	int c[2], l, fd;
	struct sockaddr_in sin;

	channel(c);
	l = listener();
	sin = own_address(l);
	hand_over(c[0], l);
	l = receive_fd(c[1]);
	fd = OK(socket(AF_INET, SOCK_STREAM, 0));
	OK(connect(fd, (struct sockaddr *)&sin, sizeof(sin)));
	OK(close(OK(accept(l, NULL, NULL))));
	expect_end(fd);
	OK(close(fd));
	OK(close(l));
	close_pair(c);
}

TEST(sockets_and_pipes_are_in_one_message)
{
	int c[2], s[2], p[2], fds[3], flags;

	channel(c);
	tcp_pair(s);
	OK(pipe(p));
	CHECK_EQ(send_fds(c[0], (int[]){ p[1], s[1], c[0] }, 3, 0), 1);
	CHECK_EQ(receive_fds(c[1], fds, 3, 0, &flags), 3);
	send_byte(fds[1]);
	expect_byte(s[0]);
	CHECK_EQ(OK(write(fds[0], "x", 1)), 1);
	expect_byte(p[0]);
	CHECK_EQ(OK(write(fds[2], "x", 1)), 1);
	expect_byte(c[1]);
	for (unsigned i = 0; i < 3; i++)
		OK(close(fds[i]));
	close_pair(p);
	close_pair(s);
	close_pair(c);
}

TEST(a_message_that_is_peeked_at_gives_a_copy)
{
	int c[2], s[2], fd, copy, flags;

	channel(c);
	tcp_pair(s);
	hand_over(c[0], s[1]);
	CHECK_EQ(receive_fds(c[1], &copy, 1, MSG_PEEK, &flags), 1);
	fd = receive_fd(c[1]);
	send_byte(copy);
	expect_byte(s[0]);
	OK(close(copy));
	send_byte(fd);
	expect_byte(s[0]);
	OK(close(fd));
	expect_end(s[0]);
	OK(close(s[0]));
	close_pair(c);
}

TEST(several_messages_are_sent_and_received_at_once)
{
	struct iovec iov = { (char[]){ 'x' }, 1 };
	union control control[2] = { 0 };
	struct mmsghdr vec[2] = { 0 };
	int c[2], s[2], fds[2];

	OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, c));
	tcp_pair(s);
	for (unsigned i = 0; i < 2; i++) {
		vec[i].msg_hdr.msg_iov = &iov;
		vec[i].msg_hdr.msg_iovlen = 1;
		put_fds(&vec[i].msg_hdr, &control[i], &s[i], 1);
	}
	CHECK_EQ(OK(sendmmsg(c[0], vec, 2, 0)), 2);
	close_pair(s);
	CHECK_EQ(OK(recvmmsg(c[1], vec, 2, 0, NULL)), 2);
	for (unsigned i = 0; i < 2; i++)
		memcpy(&fds[i], CMSG_DATA(CMSG_FIRSTHDR(&vec[i].msg_hdr)),
		    sizeof(int));
	send_byte(fds[0]);
	expect_byte(fds[1]);
	close_pair(fds);
	close_pair(c);
}

TEST(a_closed_descriptor_is_refused)
{
	int c[2], s[2];

	channel(c);
	tcp_pair(s);
	OK(close(s[1]));
	FAILS(send_fds(c[0], s, 2, 0), EBADF);
	send_byte(c[0]);
	expect_byte(c[1]);
	OK(close(s[0]));
	close_pair(c);
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
