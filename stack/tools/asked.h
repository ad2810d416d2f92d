/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tool that makes its own load, inside a booted stack, whenever another
 * host asks for it: what asks is a line of TCP, and what is answered is what
 * the tool would have printed.
 */
#ifndef TOOLS_ASKED_H
#define TOOLS_ASKED_H

#include <netinet/in.h>
#include <sys/socket.h>

#define	ASKED_LINE	128	/* bytes of what asks, and of what is answered */

/* Does what a line asks for; a complaint begins with the tool's name. */
typedef void asked_fn(const char *line, char *said);

/* Listens at a TCP port of IPv4; one after the other, for ever. */
_Noreturn void	asked_serve(const char *tool, in_port_t port, asked_fn *fn);

/* Asks for something, and prints the answer; exit status. */
int	asked_ask(const char *tool, const struct sockaddr *server,
	    socklen_t len, const char *line);

#endif /* TOOLS_ASKED_H */
