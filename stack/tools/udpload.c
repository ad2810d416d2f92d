/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udpload: UDP datagrams to a port as fast as one CPU sends them, as small as
 * they come unless told otherwise.  What becomes of them is for others to
 * count.
 *
 *	udpload [-n FLOWS] [-t SECONDS] [-s BYTES] ADDRESS PORT
 *
 * Several flows (source ports) in turn, as RFC 2544 section 12 asks for.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/clock.h"

#define	EX_USAGE	64
#define	BURST		64	/* datagrams of one call */
#define	FLOWS_MAX	1024
#define	BYTES_MAX	1472

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "udpload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static _Noreturn void
usage(void)
{
	fprintf(stderr, "usage: udpload [-n FLOWS] [-t SECONDS] [-s BYTES] "
	    "ADDRESS PORT\n");
	exit(EX_USAGE);
}

static void
connect_all(int *sockets, int n, const struct addrinfo *ai)
{
	for (int i = 0; i < n; i++) {
		sockets[i] = socket(ai->ai_family, SOCK_DGRAM, 0);
		if (sockets[i] < 0 || connect(sockets[i], ai->ai_addr,
		    ai->ai_addrlen) != 0)
			die("connect");
	}
}

/* Refusals and full queues are the network's answer, not a failure. */
static unsigned long long
burst(int s, struct mmsghdr *msgs)
{
	int n = sendmmsg(s, msgs, BURST, 0);

	if (n < 0 && errno != ENOBUFS && errno != ECONNREFUSED &&
	    errno != EINTR && errno != EHOSTUNREACH)
		die("send");
	return (n > 0 ? (unsigned long long)n : 0);
}

static void
load(const int *sockets, int n, double seconds, size_t bytes)
{
	static char payload[BYTES_MAX];
	struct iovec iov = { payload, bytes };
	struct mmsghdr msgs[BURST];
	double start = now(), end = start + seconds, date;
	unsigned long long sent = 0;
	int i = 0;

	for (size_t k = 0; k < BURST; k++)
		msgs[k].msg_hdr = (struct msghdr){ .msg_iov = &iov,
		    .msg_iovlen = 1 };
	while ((date = now()) < end) {
		sent += burst(sockets[i], msgs);
		i = (i + 1) % n;
	}
	printf("%.0f datagrams/s\n", (double)sent / (date - start));
}

int
main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM,
	    .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *ai;
	int sockets[FLOWS_MAX], flows = 1, bytes = 18, opt;
	double seconds = 2;

	while ((opt = getopt(argc, argv, "n:t:s:")) != -1)
		if (opt == 'n')
			flows = atoi(optarg);
		else if (opt == 't')
			seconds = atof(optarg);
		else if (opt == 's')
			bytes = atoi(optarg);
		else
			usage();
	if (argc - optind != 2 || flows < 1 || flows > FLOWS_MAX ||
	    seconds <= 0 || bytes < 0 || bytes > BYTES_MAX)
		usage();
	if (getaddrinfo(argv[optind], argv[optind + 1], &hints, &ai) != 0) {
		fprintf(stderr, "udpload: '%s' port '%s' is not an address\n",
		    argv[optind], argv[optind + 1]);
		return (EX_USAGE);
	}
	connect_all(sockets, flows, ai);
	freeaddrinfo(ai);
	load(sockets, flows, seconds, (size_t)bytes);
	return (0);
}
