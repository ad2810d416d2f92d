/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tool that generates load inside a booted stack on request of another host.
 * A request is a line over TCP; the response is what the tool would print.
 */
#ifndef TOOLS_LOAD_SERVER_H
#define TOOLS_LOAD_SERVER_H

#include <netinet/in.h>
#include <sys/socket.h>

#define	LOAD_LINE	128	/* max bytes of a request and of a response */

/* Runs a request; an error message begins with the tool's name. */
typedef void load_fn(const char *line, char *said);

/* Serves requests at an IPv4 TCP port, one after the other, without end. */
_Noreturn void	load_server_run(const char *tool, in_port_t port, load_fn *fn);

/* Sends a request and prints the response; returns an exit status. */
int	load_request(const char *tool, const struct sockaddr *server,
	    socklen_t len, const char *line);

#endif /* TOOLS_LOAD_SERVER_H */
