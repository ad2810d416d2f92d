/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "tools/load_server.h"

#define	STALL		5	/* seconds; max time for a request line */
#define	BACKLOG		16

static _Noreturn void
die(const char *tool, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", tool, what, strerror(errno));
	exit(1);
}

/* Reads the words of a line; false: too many, or none. */
static bool
hear_line(int fd, char *line)
{
	ssize_t n;

	for (size_t len = 0; len < LOAD_LINE - 1; len += (size_t)n) {
		n = recv(fd, line + len, LOAD_LINE - 1 - len, 0);
		if (n <= 0)
			return (false);
		line[len + (size_t)n] = '\0';
		if (strchr(line, '\n') != NULL)
			return (true);
	}
	return (false);
}

/* A connection without a request tests whether the server runs. */
static void
answer(int fd, load_fn *fn)
{
	const struct timeval stall = { .tv_sec = STALL };
	char line[LOAD_LINE], said[LOAD_LINE];

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof(stall));
	if (!hear_line(fd, line))
		return;
	fn(line, said);
	send(fd, said, strlen(said), MSG_NOSIGNAL);
}

void
load_server_run(const char *tool, in_port_t port, load_fn *fn)
{
	const struct sockaddr_in sin = { .sin_family = AF_INET,
	    .sin_port = htons(port) };
	const int on = 1;
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;

	if (listener == -1)
		die(tool, "socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (const struct sockaddr *)&sin, sizeof(sin)) != 0 ||
	    listen(listener, BACKLOG) != 0)
		die(tool, "listen");
	printf("%s: listening on port %u\n", tool, port);
	fflush(stdout);
	for (;;) {
		fd = accept(listener, NULL, NULL);
		if (fd != -1) {
			answer(fd, fn);
			close(fd);
		} else if (errno != ECONNABORTED && errno != EINTR)
			die(tool, "accept");
	}
}

int
load_request(const char *tool, const struct sockaddr *server,
    socklen_t server_len, const char *line)
{
	int fd = socket(server->sa_family, SOCK_STREAM, 0);
	char said[LOAD_LINE];
	size_t len = 0;
	bool complains;
	ssize_t n;

	if (fd == -1 || connect(fd, server, server_len) != 0)
		die(tool, "connect");
	if (send(fd, line, strlen(line), MSG_NOSIGNAL) == -1)
		die(tool, "send");
	while (len < sizeof(said) - 1 &&
	    (n = recv(fd, said + len, sizeof(said) - 1 - len, 0)) > 0)
		len += (size_t)n;
	close(fd);
	said[len] = '\0';
	if (len == 0) {
		fprintf(stderr, "%s: the server closed the connection\n", tool);
		return (1);
	}
	complains = strncmp(said, tool, strlen(tool)) == 0;
	fputs(said, complains ? stderr : stdout);
	return (complains);
}
