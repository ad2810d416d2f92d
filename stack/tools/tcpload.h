/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the ends of connections of tcpload share: with a thread for each
 * (tcpload.c), all in one thread with an event loop (tcpload_events.c), and
 * both in one thread (tcpload_alone.c).
 */
#ifndef TOOLS_TCPLOAD_H
#define TOOLS_TCPLOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define	CONNECTIONS_MAX	1024
#define	THREADS_MAX	64
#define	SIZE_MAX_RR	65536
#define	SIZE_MAX_EVENTS	4096

enum mode { IN, OUT, RR, CRR, NMODES };

/* What a client says first. */
struct hello {
	uint32_t	 mode, size;
};

struct options {
	enum mode	 mode;
	int		 connections, threads;
	double		 seconds;
	uint32_t	 size;
	bool		 events;
	struct sockaddr_storage sa;
	socklen_t	 salen;
};

extern struct options options;

_Noreturn void die(const char *what);
bool	 read_all(int fd, void *, size_t);
bool	 write_all(int fd, const void *, size_t);
void	 no_delay(int fd);
int	 say_hello(void);
bool	 say_hello_to(int fd);
void	 reset(int fd);
void	 count(unsigned long long);
pthread_t start_thread(void *(*)(void *), void *);

/* Requests and responses of all connections, in one thread, for ever. */
_Noreturn void serve_events(int listener);
void	*ask_events(void *);	/* the start of a thread */

/* Threads that connect with themselves. */
void	 start_alone(int listener);

#endif /* TOOLS_TCPLOAD_H */
