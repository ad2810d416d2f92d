/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what each call returns on a socket, and in which states of the socket.
 * compare.sh runs it on the kernel and on the stack.
 */
#include <linux/sockios.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <termios.h>

#include "posix.h"

/* Sockets that do not wait: fd, its peer or -1. */
struct pair {
	int	 fd, peer;
};

static struct sockaddr_in target;	/* a listener's address */
static struct sockaddr_in silent;	/* an address that refuses */

static int
new_socket(int type)
{
	return (OK(socket(AF_INET, type | SOCK_NONBLOCK, 0)));
}

static struct pair
fresh_tcp(void)
{
	return ((struct pair){ new_socket(SOCK_STREAM), -1 });
}

static struct pair
bound_tcp(void)
{
	return ((struct pair){ bound(SOCK_STREAM | SOCK_NONBLOCK), -1 });
}

static struct pair
listening(void)
{
	const int fd = bound(SOCK_STREAM | SOCK_NONBLOCK);

	OK(listen(fd, 4));
	return ((struct pair){ fd, -1 });
}

static struct pair
connected(void)
{
	int s[2];

	tcp_pair(s);
	OK(fcntl(s[1], F_SETFL, O_NONBLOCK));
	return ((struct pair){ s[1], s[0] });
}

static struct pair
refused(void)
{
	const int fd = OK(socket(AF_INET, SOCK_STREAM, 0));

	FAILS(connect(fd, (struct sockaddr *)&silent, sizeof(silent)),
	    ECONNREFUSED);
	OK(fcntl(fd, F_SETFL, O_NONBLOCK));
	return ((struct pair){ fd, -1 });
}

/* Waits until the peer's FIN or reset has arrived. */
static void
await_end(int fd)
{
	CHECK(ready(fd, POLLIN | POLLRDHUP, 5000) != 0);
}

static struct pair
peer_shut(void)
{
	struct pair p = connected();

	OK(shutdown(p.peer, SHUT_WR));
	await_end(p.fd);
	return (p);
}

static void
reset_by(int peer)
{
	const struct linger none = { 1, 0 };

	OK(setsockopt(peer, SOL_SOCKET, SO_LINGER, &none, sizeof(none)));
	OK(close(peer));
}

static struct pair
peer_reset(void)
{
	struct pair p = connected();

	reset_by(p.peer);
	await_end(p.fd);
	p.peer = -1;
	return (p);
}

static struct pair
reset_after_end(void)
{
	struct pair p = peer_shut();

	reset_by(p.peer);
	CHECK(ready(p.fd, 0, 5000) != 0);
	p.peer = -1;
	return (p);
}

static struct pair
shut_for(int how)
{
	struct pair p = connected();

	OK(shutdown(p.fd, how));
	return (p);
}

static struct pair
shut_read(void)
{
	return (shut_for(SHUT_RD));
}

static struct pair
shut_write(void)
{
	return (shut_for(SHUT_WR));
}

static struct pair
shut_both(void)
{
	return (shut_for(SHUT_RDWR));
}

static struct pair
shut_read_with_data(void)
{
	struct pair p = connected();

	send_byte(p.peer);
	CHECK(ready(p.fd, POLLIN, 5000) != 0);
	OK(shutdown(p.fd, SHUT_RD));
	return (p);
}

static struct pair
with_data(void)
{
	struct pair p = connected();

	send_byte(p.peer);
	CHECK(ready(p.fd, POLLIN, 5000) != 0);
	return (p);
}

static struct pair
fresh_udp(void)
{
	return ((struct pair){ new_socket(SOCK_DGRAM), -1 });
}

static struct pair
bound_udp(void)
{
	return ((struct pair){ bound(SOCK_DGRAM | SOCK_NONBLOCK), -1 });
}

static struct pair
connected_udp(void)
{
	int s[2];

	udp_pair(s);
	OK(fcntl(s[0], F_SETFL, O_NONBLOCK));
	return ((struct pair){ s[0], s[1] });
}

static struct pair
shut_udp(void)
{
	struct pair p = connected_udp();

	OK(shutdown(p.fd, SHUT_RDWR));
	return (p);
}

static struct pair
refused_udp(void)
{
	struct pair p = connected_udp();

	OK(close(p.peer));
	send_byte(p.fd);
	CHECK(ready(p.fd, POLLIN, 5000) != 0);
	p.peer = -1;
	return (p);
}

#define	STATE(name)	{ #name, name }
static const struct {
	const char	*name;
	struct pair	(*make)(void);
} states[] = {
	STATE(fresh_tcp), STATE(bound_tcp), STATE(listening), STATE(connected),
	STATE(refused), STATE(peer_shut), STATE(peer_reset),
	STATE(reset_after_end), STATE(shut_read), STATE(shut_write),
	STATE(shut_both), STATE(shut_read_with_data), STATE(with_data),
	STATE(fresh_udp), STATE(bound_udp), STATE(connected_udp),
	STATE(shut_udp), STATE(refused_udp),
};

/* Calls that return -1 and errno, or a number that does not depend on time. */
static char buffer[16];
static struct termios terminal;
static int pipe_fds[2], file_fd;

static long
connect_to(int fd, sa_family_t family, const struct sockaddr_in *to,
    socklen_t len)
{
	struct sockaddr_in sin = *to;

	sin.sin_family = family;
	return (connect(fd, (struct sockaddr *)&sin, len));
}

static long
bind_to(int fd, sa_family_t family, in_addr_t address, socklen_t len)
{
	const struct sockaddr_in sin = {
		.sin_family = family, .sin_addr.s_addr = htonl(address)
	};

	return (bind(fd, (const struct sockaddr *)&sin, len));
}

static long
send_to(int fd, sa_family_t family, const struct sockaddr_in *to, socklen_t len)
{
	struct sockaddr_in sin = *to;

	sin.sin_family = family;
	return (sendto(fd, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&sin, len));
}

static long
accept_one(int fd)
{
	const int new = accept(fd, NULL, NULL);

	if (new == -1)
		return (-1);
	OK(close(new));
	return (0);
}

static long
name_of(int (*call)(int, struct sockaddr *, socklen_t *), int fd, socklen_t len)
{
	struct sockaddr_storage ss;

	return (call(fd, (struct sockaddr *)&ss, &len) == 0 ? (long)len : -1);
}

static long
option_of(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return (getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value :
	    -1);
}

static long
ioctl_of(int fd, unsigned long request)
{
	int value = 0;

	return (ioctl(fd, request, &value) == 0 ? value : -1);
}

static long
poll_of(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP |
	    POLLPRI };

	return (poll(&p, 1, 0) == -1 ? -1 : p.revents);
}

static long
lock_of(int fd, int cmd, short type)
{
	struct flock lock = { .l_type = type };

	return (fcntl(fd, cmd, &lock) == 0 ? lock.l_type : -1);
}

static const struct sockaddr_in any_port_zero = {
	.sin_family = AF_INET
};

#define	CALL(name, expression)						\
static long call_##name(int fd) { return ((long)(expression)); }
#define	CALLS(X)							\
	X(accept, accept_one(fd))					\
	X(bind, bind_to(fd, AF_INET, INADDR_LOOPBACK, 16))		\
	X(bind_unspec_any, bind_to(fd, AF_UNSPEC, INADDR_ANY, 16))	\
	X(bind_unspec, bind_to(fd, AF_UNSPEC, INADDR_LOOPBACK, 16))	\
	X(bind_short, bind_to(fd, AF_INET, INADDR_LOOPBACK, 8))		\
	X(bind_other, bind_to(fd, AF_INET6, INADDR_LOOPBACK, 16))	\
	X(bind_foreign, bind_to(fd, AF_INET, 0x08080808, 16))		\
	X(connect, connect_to(fd, AF_INET, &target, 16))		\
	X(connect_refused, connect_to(fd, AF_INET, &silent, 16))	\
	X(connect_unspec, connect_to(fd, AF_UNSPEC, &target, 16))	\
	X(connect_short, connect_to(fd, AF_INET, &target, 8))		\
	X(connect_2, connect_to(fd, AF_UNSPEC, &target, 2))		\
	X(connect_1, connect_to(fd, AF_INET, &target, 1))		\
	X(connect_other, connect_to(fd, AF_INET6, &target, 16))		\
	X(connect_unix, connect_to(fd, AF_UNIX, &target, 16))		\
	X(connect_port_0, connect_to(fd, AF_INET, &any_port_zero, 16))	\
	X(listen, listen(fd, 4))					\
	X(listen_negative, listen(fd, -1))				\
	X(shutdown_read, shutdown(fd, SHUT_RD))				\
	X(shutdown_write, shutdown(fd, SHUT_WR))			\
	X(shutdown_both, shutdown(fd, SHUT_RDWR))			\
	X(shutdown_3, shutdown(fd, 3))					\
	X(shutdown_negative, shutdown(fd, -1))				\
	X(send, send(fd, "x", 1, MSG_NOSIGNAL))				\
	X(send_nothing, send(fd, "", 0, MSG_NOSIGNAL))			\
	X(send_urgent, send(fd, "x", 1, MSG_NOSIGNAL | MSG_OOB))	\
	X(send_to, send_to(fd, AF_INET, &target, 16))			\
	X(send_to_unspec, send_to(fd, AF_UNSPEC, &target, 16))		\
	X(send_to_other, send_to(fd, AF_INET6, &target, 16))		\
	X(send_to_short, send_to(fd, AF_INET, &target, 8))		\
	X(send_to_port_0, send_to(fd, AF_INET, &any_port_zero, 16))	\
	X(receive, recv(fd, buffer, 1, 0))				\
	X(receive_nothing, recv(fd, buffer, 0, 0))			\
	X(receive_peek, recv(fd, buffer, 1, MSG_PEEK))			\
	X(receive_urgent, recv(fd, buffer, 1, MSG_OOB))			\
	X(receive_error, recv(fd, buffer, 1, MSG_ERRQUEUE))		\
	X(receive_all, recv(fd, buffer, 2, MSG_WAITALL))		\
	X(read, read(fd, buffer, 1))					\
	X(read_nothing, read(fd, buffer, 0))				\
	X(write_nothing, write(fd, buffer, 0))				\
	X(sockname, name_of(getsockname, fd, 128))			\
	X(sockname_short, name_of(getsockname, fd, 4))			\
	X(peername, name_of(getpeername, fd, 128))			\
	X(error, option_of(fd, SO_ERROR))				\
	X(accepts, option_of(fd, SO_ACCEPTCONN))			\
	X(poll, poll_of(fd))						\
	X(readable, ioctl_of(fd, FIONREAD))				\
	X(unsent, ioctl_of(fd, SIOCOUTQ))				\
	X(at_mark, ioctl_of(fd, SIOCATMARK))				\
	X(unknown_ioctl, ioctl_of(fd, 0x5499))				\
	X(seek, lseek(fd, 0, SEEK_CUR))					\
	X(pread, pread(fd, buffer, 1, 0))				\
	X(pwrite, pwrite(fd, buffer, 1, 0))				\
	X(sync, fsync(fd))						\
	X(datasync, fdatasync(fd))					\
	X(truncate, ftruncate(fd, 0))					\
	X(allocate, fallocate(fd, 0, 0, 1))				\
	X(posix_allocate, posix_fallocate(fd, 0, 1))			\
	X(advise, posix_fadvise(fd, 0, 1, POSIX_FADV_NORMAL))		\
	X(advise_unknown, posix_fadvise(fd, 0, 1, 77))			\
	X(advise_negative, posix_fadvise(fd, 0, -1, POSIX_FADV_NORMAL))	\
	X(allocate_nothing, fallocate(fd, 0, 0, 0))			\
	X(allocate_unknown, fallocate(fd, 0x4000, 0, 1))		\
	X(flock, flock(fd, LOCK_SH | LOCK_NB))				\
	X(flock_exclusive, flock(fd, LOCK_EX))				\
	X(flock_end, flock(fd, LOCK_UN))				\
	X(flock_unknown, flock(fd, 99))					\
	X(file_lock, lock_of(fd, F_OFD_SETLK, F_WRLCK))			\
	X(file_lock_wait, lock_of(fd, F_OFD_SETLKW, F_RDLCK))		\
	X(file_lock_held, lock_of(fd, F_OFD_GETLK, F_WRLCK))		\
	X(file_lock_unknown, lock_of(fd, F_OFD_SETLK, 7))		\
	X(lock, lock_of(fd, F_SETLK, F_RDLCK))				\
	X(lock_end, lock_of(fd, F_SETLK, F_UNLCK))			\
	X(lock_unknown, lock_of(fd, F_SETLK, 7))			\
	X(lock_held, lock_of(fd, F_GETLK, F_WRLCK))			\
	X(lock_held_end, lock_of(fd, F_GETLK, F_UNLCK))			\
	X(lock_held_unknown, lock_of(fd, F_GETLK, 7))			\
	X(lockf, lockf(fd, F_TLOCK, 1))					\
	X(lockf_wait, lockf(fd, F_LOCK, 1))				\
	X(lockf_held, lockf(fd, F_TEST, 1))				\
	X(lockf_end, lockf(fd, F_ULOCK, 1))				\
	X(lockf_unknown, lockf(fd, 7, 1))				\
	X(tty, isatty(fd))						\
	X(foreground, tcgetpgrp(fd))					\
	X(terminal, tcgetattr(fd, &terminal))				\
	X(terminal_flush, tcflush(fd, TCIFLUSH))			\
	X(terminal_drain, tcdrain(fd))					\
	X(terminal_session, tcgetsid(fd))				\
	X(terminal_name, ttyname(fd) != NULL)				\
	X(directory, fchdir(fd))					\
	X(open_at, openat(fd, "name", O_RDONLY))			\
	X(tee_from, tee(fd, pipe_fds[1], 1, SPLICE_F_NONBLOCK))		\
	X(tee_to, tee(pipe_fds[0], fd, 1, SPLICE_F_NONBLOCK))		\
	X(splice_file, splice(fd, NULL, file_fd, NULL, 1, SPLICE_F_NONBLOCK)) \
	X(copy_from, copy_file_range(fd, NULL, file_fd, NULL, 1, 0))	\
	X(copy_to, copy_file_range(file_fd, NULL, fd, NULL, 1, 0))	\
	X(sendfile_from, sendfile(file_fd, fd, NULL, 1))		\
	X(read_ahead, readahead(fd, 0, 1))				\
	X(sync_range, sync_file_range(fd, 0, 1, 0))			\
	X(sync_fs, syncfs(fd))						\
	X(pipe_size, fcntl(fd, F_GETPIPE_SZ))				\
	X(lease, fcntl(fd, F_GETLEASE))					\
	X(seals, fcntl(fd, F_GET_SEALS))				\
	X(unknown_fcntl, fcntl(fd, 999))				\
	X(flags, fcntl(fd, F_GETFL))					\
	X(owner, fcntl(fd, F_GETOWN))					\
	X(set_owner, fcntl(fd, F_SETOWN, 0))				\
	X(signal, fcntl(fd, F_GETSIG))					\
	X(duplicate, fcntl(fd, F_DUPFD, -1))				\
	X(path_limit, fpathconf(fd, _PC_PIPE_BUF))			\
	X(attributes, fgetxattr(fd, "user.none", buffer, 1))		\
	X(attribute_other, fgetxattr(fd, "other.none", buffer, 1))	\
	X(set_attribute, fsetxattr(fd, "user.none", "x", 1, 0))		\
	X(remove_attribute, fremovexattr(fd, "user.none"))

CALLS(CALL)
#define	ENTRY(name, expression)	{ #name, call_##name },
static const struct call {
	const char	*name;
	long		(*fn)(int fd);
} calls[] = { CALLS(ENTRY) };
#define	NCALLS	(sizeof(calls) / sizeof(calls[0]))

#define	NSTATES	(sizeof(states) / sizeof(states[0]))
#define	RESULT_LEN 32

static void
store_result(const struct call *c, int fd, char *result)
{
	const char *name = NULL;
	long r;

	errno = 0;
	r = c->fn(fd);
	if (errno != 0 && r <= 0)
		name = strerrorname_np(errno);
	snprintf(result, RESULT_LEN, "%ld%s%s", r, name != NULL ? "," : "",
	    name != NULL ? name : "");
}

/* One line for each result: the states in which the call has it, or "ALL". */
static void
print_results(const struct call *c, char results[NSTATES][RESULT_LEN])
{
	for (size_t i = 0; i < NSTATES; i++) {
		size_t before = 0, alike = 0;

		for (size_t k = 0; k < NSTATES; k++)
			if (strcmp(results[k], results[i]) == 0) {
				before += k < i;
				alike++;
			}
		if (before > 0)
			continue;
		printf("%s=%s:%s", c->name, results[i],
		    alike == NSTATES ? " ALL" : "");
		for (size_t k = i; k < NSTATES && alike < NSTATES; k++)
			if (strcmp(results[k], results[i]) == 0)
				printf(" %s", states[k].name);
		printf("\n");
	}
}

static void
dispose(struct pair p)
{
	if (p.peer != -1)
		reset_by(p.peer);
	OK(close(p.fd));
}

TEST(one_call)
{
	static char results[NSTATES][RESULT_LEN];

	for (size_t k = 0; k < NCALLS; k++) {
		for (size_t i = 0; i < NSTATES; i++) {
			const struct pair p = states[i].make();

			store_result(&calls[k], p.fd, results[i]);
			dispose(p);
		}
		print_results(&calls[k], results);
	}
	CHECK_EQ(fflush(stdout), 0);
}

static void
prepare(void)
{
	char name[] = "/tmp/compared-XXXXXX";
	int l = listener(), s = bound(SOCK_STREAM);

	signal(SIGPIPE, SIG_IGN);
	target = own_address(l);
	silent = own_address(s);	/* bound, but does not listen */
	file_fd = OK(mkstemp(name));
	OK(unlink(name));
	OK(pipe(pipe_fds));
}

int
main(int argc, char **argv)
{
	prepare();
	return (posix_main(argc, argv));
}
