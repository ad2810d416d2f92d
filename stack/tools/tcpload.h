/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the servers of tcpload share: with a thread for each connection
 * (tcpload.c), and with an event loop (tcpload_events.c).
 */
#ifndef TOOLS_TCPLOAD_H
#define TOOLS_TCPLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define	CONNECTIONS_MAX	1024
#define	SIZE_MAX_RR	65536

enum mode { IN, OUT, RR, CRR, NMODES };

/* What a client says first. */
struct hello {
	uint32_t	 mode, size;
};

_Noreturn void die(const char *what);
bool	 read_all(int fd, void *, size_t);
bool	 write_all(int fd, const void *, size_t);
void	 no_delay(int fd);

/* Requests and responses of all connections, in one thread, for ever. */
_Noreturn void serve_events(int listener);

#endif /* TOOLS_TCPLOAD_H */
