/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared definitions of tcpload: a thread for each connection (tcpload.c), all
 * in one thread with an event loop (tcpload_events.c), or both ends in one
 * thread (tcpload_alone.c).
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

/* The first message of a client. */
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

/* Requests and responses of all connections, in one thread, without end. */
_Noreturn void serve_events(int listener);
void	*ask_events(void *);	/* thread function */

/* Threads that connect to themselves. */
void	 start_alone(int listener);

#endif /* TOOLS_TCPLOAD_H */
