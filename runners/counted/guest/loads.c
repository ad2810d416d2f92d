/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Loads: a fixed number of units of work, which windows divide.
 *
 * A load is local, over the loopback interface of left, or routed, from left
 * through router to right.  Caches and estimators of the kernel are warm before
 * the first window.
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"
#include "mark.h"

#define WRITE_SIZE	16384
#define BATCH		16
#define FIRST_PORT	7000

static struct sockaddr_storage	address;
static socklen_t		address_length;
static char			buffer[4 * WRITE_SIZE];

static int
make_socket(int type)
{
	int fd, one = 1;

	fd = TRY(socket(address.ss_family, type, 0));
	if (type == SOCK_STREAM)
		TRY(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	return (fd);
}

static int
listen_on(int type)
{
	int fd = make_socket(type);

	TRY(bind(fd, (struct sockaddr *)&address, address_length));
	if (type == SOCK_STREAM)
		TRY(listen(fd, 64));
	return (fd);
}

static int
connect_to(int type)
{
	int fd = make_socket(type);

	TRY(connect(fd, (struct sockaddr *)&address, address_length));
	return (fd);
}

static void
serve_datagrams(int fd)
{
	struct sockaddr_storage from;
	socklen_t length;

	for (;;) {
		length = sizeof(from);
		TRY(recvfrom(fd, buffer, sizeof(buffer), 0,
		    (struct sockaddr *)&from, &length));
		TRY(sendto(fd, buffer, 1, 0, (struct sockaddr *)&from, length));
	}
}

static void
echo_bytes(int fd)
{
	while (read(fd, buffer, 1) == 1)
		TRY(write(fd, buffer, 1));
}

/* A number of bytes follows its number; then one byte goes back. */
static void
swallow(int fd)
{
	long wanted;
	ssize_t got;

	while (read(fd, &wanted, sizeof(wanted)) == sizeof(wanted)) {
		for (; wanted > 0; wanted -= got)
			got = TRY(read(fd, buffer, sizeof(buffer)));
		TRY(write(fd, "", 1));
	}
}

static void
serve_connections(int fd, void (*serve)(int))
{
	int one = 1, connected;

	for (;;) {
		connected = TRY(accept(fd, NULL, NULL));
		TRY(setsockopt(connected, IPPROTO_TCP, TCP_NODELAY, &one,
		    sizeof(one)));
		serve(connected);
		close(connected);
	}
}

static void
serve_echo(int fd)
{
	serve_connections(fd, echo_bytes);
}

static void
serve_stream(int fd)
{
	serve_connections(fd, swallow);
}

static void
round_trips(int fd, int other, long units)
{
	(void)other;
	for (; units > 0; units--) {
		TRY(send(fd, buffer, 1, 0));
		TRY(recv(fd, buffer, sizeof(buffer), 0));
	}
}

static void
stream(int fd, int other, long units)
{
	long left = units * WRITE_SIZE;

	(void)other;
	TRY(write(fd, &left, sizeof(left)));
	while (left > 0)
		left -= TRY(write(fd, buffer,
		    left < WRITE_SIZE ? (size_t)left : WRITE_SIZE));
	TRY(read(fd, buffer, 1));
}

static void
connections(int fd, int other, long units)
{
	(void)fd;
	(void)other;
	for (; units > 0; units--) {
		int connected = connect_to(SOCK_STREAM);

		TRY(send(connected, buffer, 1, 0));
		TRY(recv(connected, buffer, 1, 0));
		close(connected);
	}
}

/* Packets in batches, which no queue drops. */
static void
forward(int fd, int other, long units)
{
	for (; units > 0; units -= BATCH) {
		for (int i = 0; i < BATCH; i++)
			TRY(send(fd, buffer, 18, 0));
		for (int i = 0; i < BATCH; i++)
			TRY(recv(other, buffer, sizeof(buffer), 0));
	}
}

static const struct load {
	const char	*name;
	const char	*to;
	int		 type;
	void		(*serve)(int);	/* NULL: left reads at the other end */
	void		(*work)(int, int, long);
	long		 warm_up;
	long		 units;
} loads[] = {
#define BOTH(load, where, four, six, ...)				\
	{ "counted." load "/" where "/ipv4", four, __VA_ARGS__ },	\
	{ "counted." load "/" where "/ipv6", six, __VA_ARGS__ }
#define LOCAL(load, ...)	BOTH(load, "local", "127.0.0.1", "::1", __VA_ARGS__)
#define ROUTED(load, ...)	BOTH(load, "routed", "10.2.0.1", "fd02::1", __VA_ARGS__)
	LOCAL("tcp.rr", SOCK_STREAM, serve_echo, round_trips, 1024, 64),
	ROUTED("tcp.rr", SOCK_STREAM, serve_echo, round_trips, 1024, 64),
	LOCAL("udp.rr", SOCK_DGRAM, serve_datagrams, round_trips, 512, 64),
	ROUTED("udp.rr", SOCK_DGRAM, serve_datagrams, round_trips, 512, 64),
	LOCAL("tcp.stream", SOCK_STREAM, serve_stream, stream, 512, 64),
	ROUTED("tcp.stream", SOCK_STREAM, serve_stream, stream, 512, 64),
	LOCAL("tcp.connect", SOCK_STREAM, serve_echo, connections, 64, 32),
	ROUTED("udp.forward", SOCK_DGRAM, NULL, forward, 512, 64),
};

static void
set_address(const struct load *load)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;
	struct sockaddr_in *four = (struct sockaddr_in *)&address;
	in_port_t port = htons(FIRST_PORT + (load - loads));

	memset(&address, 0, sizeof(address));
	if (inet_pton(AF_INET, load->to, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = port;
		address_length = sizeof(*four);
	} else {
		inet_pton(AF_INET6, load->to, &six->sin6_addr);
		six->sin6_family = AF_INET6;
		six->sin6_port = port;
		address_length = sizeof(*six);
	}
}

static void
server_ended(int number)
{
	(void)number;
	errno = ECHILD;
	die("the server of a load ended");
}

static pid_t
start_server(const struct load *load, enum host host)
{
	int ready[2];
	pid_t child;

	TRY(pipe(ready));
	child = TRY(fork());
	if (child == 0) {
		enter(host);
		int fd = listen_on(load->type);

		TRY(write(ready[1], "", 1));
		load->serve(fd);
	}
	TRY(read(ready[0], buffer, 1));
	close(ready[0]);
	close(ready[1]);
	return (child);
}

/* Moves the next window away from where the last one was between two ticks. */
static void
spin(unsigned turns)
{
	while (turns-- > 0)
		__asm__ volatile("");
}

static void
run_windows(const struct load *load, int fd, int other, unsigned windows,
    unsigned seed)
{
	load->work(fd, other, load->warm_up);
	for (unsigned i = 0; i < windows; i++) {
		spin((seed * 7919 + i * 10007) % 65536);
		mark_begin();
		load->work(fd, other, load->units);
		mark_end();
		printf("counted: window %s %ld\n", load->name, load->units);
	}
}

static void
run_load(const struct load *load, unsigned windows, unsigned seed)
{
	enum host host = strstr(load->name, "/local/") != NULL ? LEFT : RIGHT;
	int fd = -1, other = -1;
	pid_t child = 0;

	set_address(load);
	if (load->serve != NULL) {
		signal(SIGCHLD, server_ended);
		child = start_server(load, host);
	} else {
		enter(host);
		other = listen_on(load->type);
		enter(LEFT);
	}
	if (load->work != connections)
		fd = connect_to(load->type);
	run_windows(load, fd, other, windows, seed);
	if (child != 0) {
		signal(SIGCHLD, SIG_DFL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	close(fd);
	close(other);
}

void
run_loads(const char *only, unsigned windows, unsigned seed)
{
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		if (strncmp(loads[i].name, only, strlen(only)) == 0)
			run_load(&loads[i], windows, seed);
}
