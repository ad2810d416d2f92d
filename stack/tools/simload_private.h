/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared definitions of the workloads.  A failure prints its reason and ends
 * the program.
 */
#ifndef TOOLS_SIMLOAD_PRIVATE_H
#define TOOLS_SIMLOAD_PRIVATE_H

#include "kern/socketvar.h"
#include "tools/simload.h"

#define	MESSAGE		64	/* bytes of a request, and of its answer */

/* Each stream has its own cache line, which matters on a real machine. */
struct simload_done {
	_Alignas(64) uint64_t units;
};
extern struct simload_done simload_done[STREAMS_MAX];
extern uint64_t	 simload_units;		/* of each stream */

/* Sets if.memN.WHAT; returns an errno value. */
int	 simload_interface(unsigned n, const char *what, const char *fmt, ...)
	    PRINTFLIKE(3, 4);
void	 simload_check(int error, const char *what);
/* Starts fn(n). */
void	 simload_thread(const char *name, void (*fn)(void *), unsigned n);
uint64_t simload_count(unsigned streams);
void	 simload_send(struct socket *, const void *, size_t);
size_t	 simload_receive(struct socket *, void *, size_t, int flags);
/* Sends requests and receives answers until the stream's units are done. */
void	 simload_ask(struct socket *, unsigned n);
/* Answers until the peer has closed. */
void	 simload_answer(struct socket *);

/* Workloads between sockets of the internet protocols (simload_inet.c). */
int	 simload_mirrors(unsigned streams);
void	 simload_tcp_start(unsigned streams);
void	 simload_rr_start(unsigned streams);
void	 simload_crr_start(unsigned streams);
void	 simload_udp_start(unsigned streams);
uint64_t simload_tcp_count(unsigned streams);

#endif /* TOOLS_SIMLOAD_PRIVATE_H */
