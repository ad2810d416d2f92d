/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcpconnect: measures TCP connections a second.
 *
 *	tcpconnect -s [-a ADDR] -p PORT
 *	tcpconnect -c ADDR -p PORT -t SECONDS [-n PARALLEL]
 *
 * The server accepts and closes, without end.  The client connects, reads
 * until the server's end of file, and closes, as fast as it can.
 *
 * The side that closes first stays in TIME_WAIT for a minute or more (RFC 9293
 * section 3.6).  A client has about 28000 ephemeral ports to one server: at
 * 10000 connections a second they would be exhausted within three seconds.  So
 * the server closes first.  Its TIME_WAIT states would then accumulate on the
 * same port pairs, and the client's next round would depend on the server's
 * test for newer SYNs.  So the client resets the connection after the server's
 * FIN (SO_LINGER of zero).  That ends it on both sides at once, and every
 * round is like the first.
 *
 * The client also records how long its connections took, from before socket()
 * to after close().  The buckets are sixteenths of a doubling: the relative
 * error is 4.4 percent for any time, and the counts are a histogram on a
 * logarithmic axis.
 */
#include <sys/socket.h>
#include <sys/time.h>

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "tools/argument.h"
#include "tools/clock.h"

#define	BACKLOG		1024
#define	PARALLEL_MAX	256
#define	STALL		5	/* seconds; max time of a connection */
#define	STEPS		16	/* buckets for each doubling */
#define	TIMES		(35 * STEPS)	/* all times below 2^35 ns */

struct client {
	pthread_t	 thread;
	const struct sockaddr_storage *server;
	double		 end;		/* end time */
	uint64_t	 connections;
	uint64_t	 took[TIMES];	/* connections by bucket */
	const char	*failed;	/* call that failed, or NULL */
	int		 error;
};

static void
usage(const char *problem)
{
	if (problem != NULL)
		fprintf(stderr, "tcpconnect: %s\n", problem);
	fprintf(problem != NULL ? stderr : stdout,
	    "usage: tcpconnect -s [-a ADDR] -p PORT\n"
	    "       tcpconnect -c ADDR -p PORT -t SECONDS [-n PARALLEL]\n");
	exit(problem != NULL ? EX_USAGE : 0);
}

static void
fail(const char *what, int error)
{
	if (error == EAGAIN || error == EINPROGRESS)
		fprintf(stderr, "tcpconnect: %s: no data for %d seconds\n",
		    what, STALL);
	else
		fprintf(stderr, "tcpconnect: %s: %s\n", what, strerror(error));
	exit(1);
}

static socklen_t
length(const struct sockaddr_storage *addr)
{
	return (addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
	    sizeof(struct sockaddr_in));
}

static void
serve(const struct sockaddr_storage *addr, unsigned port)
{
	const int on = 1;
	int s, c;

	if ((s = socket(addr->ss_family, SOCK_STREAM, 0)) == -1)
		fail("socket", errno);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s, (const struct sockaddr *)addr, length(addr)) == -1)
		fail("bind", errno);
	if (listen(s, BACKLOG) == -1)
		fail("listen", errno);
	printf("tcpconnect: listening on port %u\n", port);
	fflush(stdout);
	for (;;) {
		if ((c = accept(s, NULL, NULL)) != -1)
			close(c);
		/*
		 * A connection that its client has already reset is no error.
		 */
		else if (errno != ECONNABORTED && errno != EINTR)
			fail("accept", errno);
	}
}

/*
 * Makes one connection; returns NULL, or the name of the failed call, with
 * errno.
 */
static const char *
connect_once(const struct sockaddr_storage *server)
{
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	const struct timeval stall = { .tv_sec = STALL };
	const char *failed = NULL;
	int s, error = 0;
	char c;

	if ((s = socket(server->ss_family, SOCK_STREAM, 0)) == -1)
		return ("socket");
	setsockopt(s, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof(stall));
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof(stall));
	if (connect(s, (const struct sockaddr *)server, length(server)) == -1)
		failed = "connect";
	else if (read(s, &c, 1) != 0)
		failed = "read";
	if (failed != NULL)
		error = errno;
	close(s);
	errno = error;
	return (failed);
}

/* The bucket of a time in seconds; longer times go into the last. */
static unsigned
place_of(double seconds)
{
	double place = STEPS * log2(seconds * 1e9);

	return (place < 0 ? 0 : place < TIMES ? (unsigned)place : TIMES - 1);
}

/* The lower bound of a bucket in microseconds. */
static double
time_of(unsigned place)
{
	return (exp2((double)place / STEPS) / 1e3);
}

static void *
client_main(void *arg)
{
	struct client *c = arg;
	double before = now(), after;

	while (c->failed == NULL && before < c->end) {
		c->failed = connect_once(c->server);
		if (c->failed != NULL) {
			c->error = errno;
			break;
		}
		after = now();
		c->took[place_of(after - before)]++;
		c->connections++;
		before = after;
	}
	return (NULL);
}

/* Prints a line for each bucket that is not empty. */
static void
print_times(const struct client *clients, unsigned n)
{
	uint64_t count;

	for (unsigned place = 0; place < TIMES; place++) {
		count = 0;
		for (unsigned i = 0; i < n; i++)
			count += clients[i].took[place];
		if (count > 0)
			printf("took %.3f to %.3f us: %llu\n", time_of(place),
			    time_of(place + 1), (unsigned long long)count);
	}
	/* Before a stack in the same process prints its shutdown message. */
	fflush(stdout);
}

static void
measure(const struct sockaddr_storage *server, double seconds, unsigned n)
{
	static struct client clients[PARALLEL_MAX];
	const double start = now();
	uint64_t total = 0;
	double took;
	int error;

	for (unsigned i = 0; i < n; i++) {
		clients[i] = (struct client){
			.server = server, .end = start + seconds
		};
		error = pthread_create(&clients[i].thread, NULL, client_main,
		    &clients[i]);
		if (error != 0)
			fail("thread", error);
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(clients[i].thread, NULL);
		if (clients[i].failed != NULL)
			fail(clients[i].failed, clients[i].error);
		total += clients[i].connections;
	}
	took = now() - start;
	printf("connections: %llu seconds: %.3f rate: %.1f connections/s\n",
	    (unsigned long long)total, took, (double)total / took);
	print_times(clients, n);
}

/* Parses an address of either family. */
static void
resolve(const char *where, in_port_t port, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *sin = (struct sockaddr_in *)addr;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = strchr(where, ':') != NULL ? AF_INET6 : AF_INET;
	if (addr->ss_family == AF_INET6)
		sin6->sin6_port = htons(port);
	else
		sin->sin_port = htons(port);
	if (inet_pton(addr->ss_family, where, addr->ss_family == AF_INET6 ?
	    (void *)&sin6->sin6_addr : (void *)&sin->sin_addr) != 1)
		usage("ADDR must be an address like 10.77.1.2 or 2001:db8::2");
}

int
main(int argc, char **argv)
{
	struct sockaddr_storage addr;
	const char *where = "0.0.0.0";
	bool server = false, client = false;
	unsigned parallel = 1;
	in_port_t port = 0;
	double seconds = 0;
	int opt;

	while ((opt = getopt(argc, argv, "a:c:hn:p:st:")) != -1) {
		switch (opt) {
		case 's':
			server = true;
			break;
		case 'c':
			client = true;
			/* FALLTHROUGH */
		case 'a':
			where = optarg;
			break;
		case 'n':
			parallel = (unsigned)argument_whole("-n", optarg, 1,
			    PARALLEL_MAX);
			break;
		case 'p':
			port = (in_port_t)argument_whole("-p", optarg, 1,
			    UINT16_MAX);
			break;
		case 't':
			seconds = argument_number("-t", optarg, 0.01, 86400);
			break;
		case 'h':
			usage(NULL);
			break;
		default:
			usage("unknown option");
		}
	}
	if (optind < argc || server == client)
		usage("either -s or -c ADDR");
	if (port == 0 || (client && seconds == 0))
		usage(client ? "-c needs -p and -t" : "-s needs -p");
	resolve(where, port, &addr);
	if (server)
		serve(&addr, port);
	measure(&addr, seconds, parallel);
	return (0);
}
