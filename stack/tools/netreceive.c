/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netreceive: counts the UDP datagrams that come to a port, and those of
 * netblast that do not.
 *
 *	netreceive [-a ADDRESS] [-i SECONDS] [-t SECONDS] PORT
 *
 * Says what came in each interval (one second), and at the end in all: after
 * -t seconds, from the first datagram on, or when it is interrupted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/blast.h"
#include "tools/clock.h"

#define	EX_USAGE	64
#define	BURST		64	/* datagrams of one call */
#define	BYTES_MAX	65535

/*
 * What came.  Numbers go on through the intervals, so that a datagram which
 * is late is not lost for good: an interval's loss may be negative.
 */
struct tally {
	unsigned long long datagrams, bytes, numbered;
	unsigned long long sent;	/* by all runs, as their numbers say */
};

/* The run of netblast whose datagrams come now. */
struct run {
	uint32_t	 id;
	bool		 any;
	unsigned long long next;	/* number behind the highest */
};

static volatile sig_atomic_t interrupted;

static void
interrupt(int sig)
{
	interrupted = sig;
}

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "netreceive: %s: %s\n", what, strerror(errno));
	exit(1);
}

static _Noreturn void
usage(void)
{
	fprintf(stderr, "usage: netreceive [-a ADDRESS] [-i SECONDS] "
	    "[-t SECONDS] PORT\n"
	    "-i: of an interval, from 0.1; -t 0: until interrupted\n");
	exit(EX_USAGE);
}

static void
count(struct tally *t, struct run *r, const void *data, size_t len)
{
	struct blast head;
	unsigned long long number;

	t->datagrams++;
	t->bytes += len;
	if (len < sizeof(head))
		return;
	memcpy(&head, data, sizeof(head));
	if (head.magic != htons(BLAST_MAGIC))
		return;
	number = (unsigned long long)ntohl(head.high) << 32 | ntohl(head.low);
	if (!r->any || head.id != r->id)
		*r = (struct run){ .id = head.id, .any = true };
	t->numbered++;
	if (number >= r->next) {
		t->sent += number + 1 - r->next;
		r->next = number + 1;
	}
}

/* All that is there, a burst at most; none is no error. */
static void
receive(int s, struct tally *t, struct run *r)
{
	static char data[BURST][BYTES_MAX];
	static struct iovec iov[BURST];
	static struct mmsghdr msgs[BURST];
	int n;

	for (size_t i = 0; i < BURST; i++) {
		iov[i] = (struct iovec){ data[i], sizeof(data[i]) };
		msgs[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i],
		    .msg_iovlen = 1 };
	}
	n = recvmmsg(s, msgs, BURST, MSG_DONTWAIT, NULL);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		die("receive");
	for (int i = 0; i < n; i++)
		count(t, r, data[i], msgs[i].msg_len);
}

/* What came between two times. */
static void
report(const char *what, const struct tally *was, const struct tally *is,
    double seconds)
{
	unsigned long long datagrams = is->datagrams - was->datagrams;
	long long lost = (long long)(is->sent - was->sent) -
	    (long long)(is->numbered - was->numbered);

	printf("%s: %llu seconds: %.3f rate: %.0f datagrams/s %.0f bits/s "
	    "lost: %lld\n", what, datagrams, seconds,
	    (double)datagrams / seconds,
	    8 * (double)(is->bytes - was->bytes) / seconds, lost);
	fflush(stdout);
}

static void
wait_until(int s, double date)
{
	struct pollfd pfd = { .fd = s, .events = POLLIN };
	double left = date - now();

	if (left > 0 && poll(&pfd, 1, 1 + (int)(left * 1e3)) < 0 &&
	    errno != EINTR)
		die("poll");
}

static void
watch(int s, double interval, double seconds)
{
	struct tally none = { 0 }, was = { 0 }, is = { 0 };
	struct run r = { .any = false };
	double start = now(), last = start, date;
	bool begun = false;

	while (interrupted == 0) {
		wait_until(s, last + interval);
		receive(s, &is, &r);
		date = now();
		if (!begun)
			start = last = date;
		begun = is.datagrams > 0;
		if (date >= last + interval) {
			report("interval", &was, &is, date - last);
			was = is;
			last = date;
		}
		if (seconds > 0 && date >= start + seconds)
			break;
	}
	if (is.datagrams > 0)
		report("received", &none, &is, now() - start);
	else
		printf("received: 0\n");
}

static int
open_port(const char *address, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM,
	    .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE }, *ai;
	int s;

	if (getaddrinfo(address, port, &hints, &ai) != 0) {
		fprintf(stderr, "netreceive: '%s' port '%s' is not an "
		    "address\n", address, port);
		exit(EX_USAGE);
	}
	s = socket(ai->ai_family, SOCK_DGRAM, 0);
	if (s < 0 || bind(s, ai->ai_addr, ai->ai_addrlen) != 0)
		die(port);
	freeaddrinfo(ai);
	return (s);
}

int
main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = interrupt };
	const char *address = "0.0.0.0";
	double interval = 1, seconds = 0;
	int opt, s;

	while ((opt = getopt(argc, argv, "a:i:t:")) != -1)
		if (opt == 'a')
			address = optarg;
		else if (opt == 'i')
			interval = atof(optarg);
		else if (opt == 't')
			seconds = atof(optarg);
		else
			usage();
	if (argc - optind != 1 || !(interval >= 0.1) || !(seconds >= 0))
		usage();
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	s = open_port(address, argv[optind]);
	printf("ready\n");
	fflush(stdout);
	watch(s, interval, seconds);
	return (0);
}
