/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netreceive: counts the UDP datagrams received at a port, and those of
 * netblast that were lost.  It sends probes of netblast back with a different
 * kind, so that they are not answered again, and never sends more than it
 * receives.
 *
 *	netreceive [-a ADDRESS] [-c PORT] [-i SECONDS] [-t SECONDS] PORT
 *
 * Prints the counts of each interval (one second), and the totals at the end:
 * after -t seconds, counted from the first datagram, or when it is
 * interrupted.  A client of TCP port -c gets the number of datagrams received
 * since its connection, when it shuts down its end.
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
#include <sysexits.h>
#include <unistd.h>

#include "tools/argument.h"
#include "tools/blast.h"
#include "tools/clock.h"

#define	BURST		64	/* datagrams of one call */
#define	BYTES_MAX	65535
#define	SECONDS_MAX	86400

/*
 * Counts.  Numbers continue through the intervals, so that a late datagram is
 * not lost forever: an interval's loss may be negative.
 */
struct tally {
	unsigned long long datagrams, bytes, numbered;
	unsigned long long sent;	/* by all runs, from their numbers */
};

/* The run of netblast being received. */
struct run {
	uint32_t	 id;
	bool		 any;
	unsigned long long next;	/* highest number + 1 */
};

/* The sockets; -1: none. */
struct ports {
	int		 datagrams, listener;
	int		 asker;		/* the latest client; one at a time */
	unsigned long long since;	/* datagrams before its connection */
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
	fprintf(stderr, "usage: netreceive [-a ADDRESS] [-c PORT] "
	    "[-i SECONDS] [-t SECONDS] PORT\n"
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

/* Sends a probe back; if that fails, it is lost like any other datagram. */
static void
answer(int s, struct msghdr *msg, size_t len)
{
	struct blast head;
	void *data = msg->msg_iov->iov_base;

	if (len < sizeof(head))
		return;
	memcpy(&head, data, sizeof(head));
	if (head.magic != htons(BLAST_MAGIC) ||
	    head.kind != htons(BLAST_PROBE))
		return;
	head.kind = htons(BLAST_ANSWER);
	memcpy(data, &head, sizeof(head));
	sendto(s, data, len, MSG_DONTWAIT, msg->msg_name, msg->msg_namelen);
}

/*
 * Receives what is queued, at most a burst; returns how many.  None is no
 * error.
 */
static int
receive(int s, struct tally *t, struct run *r)
{
	static char data[BURST][BYTES_MAX];
	static struct sockaddr_storage from[BURST];
	static struct iovec iov[BURST];
	static struct mmsghdr msgs[BURST];
	int n;

	for (size_t i = 0; i < BURST; i++) {
		iov[i] = (struct iovec){ data[i], sizeof(data[i]) };
		msgs[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i],
		    .msg_iovlen = 1, .msg_name = &from[i],
		    .msg_namelen = sizeof(from[i]) };
	}
	n = recvmmsg(s, msgs, BURST, MSG_DONTWAIT, NULL);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		die("receive");
	for (int i = 0; i < n; i++) {
		answer(s, &msgs[i].msg_hdr, msgs[i].msg_len);
		count(t, r, data[i], msgs[i].msg_len);
	}
	return (n);
}

/* Prints the counts between two times. */
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

/* An empty line confirms that counting has begun. */
static void
asker_comes(struct ports *p, const struct tally *is)
{
	if (p->asker >= 0)
		close(p->asker);
	p->asker = accept(p->listener, NULL, NULL);
	p->since = is->datagrams;
	if (p->asker >= 0)
		send(p->asker, "\n", 1, MSG_NOSIGNAL);
}

/* Datagrams sent before the shutdown may still be queued. */
static void
asker_ends(struct ports *p, struct tally *is, struct run *r)
{
	char said[32];

	for (int i = 0; i < BURST && receive(p->datagrams, is, r) > 0; i++)
		continue;
	snprintf(said, sizeof(said), "%llu\n", is->datagrams - p->since);
	send(p->asker, said, strlen(said), MSG_NOSIGNAL);
	close(p->asker);
	p->asker = -1;
}

/* Counts datagrams, and serves clients, until a time. */
static void
wait_until(struct ports *p, double date, struct tally *is, struct run *r)
{
	struct pollfd ready[] = { { p->datagrams, POLLIN, 0 },
	    { p->listener, POLLIN, 0 }, { p->asker, POLLIN, 0 } };
	double left = date - now();

	if (left <= 0 || poll(ready, 3, 1 + (int)(left * 1e3)) < 0) {
		if (left > 0 && errno != EINTR)
			die("poll");
		memset(ready, 0, sizeof(ready));
	}
	receive(p->datagrams, is, r);
	if (ready[1].revents != 0)
		asker_comes(p, is);
	else if (ready[2].revents != 0)
		asker_ends(p, is, r);
}

static void
watch(struct ports *p, double interval, double seconds)
{
	struct tally none = { 0 }, was = { 0 }, is = { 0 };
	struct run r = { .any = false };
	double start = now(), last = start, date;
	bool begun = false;

	while (interrupted == 0) {
		wait_until(p, last + interval, &is, &r);
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
open_port(const char *address, const char *port, int type)
{
	struct addrinfo hints = { .ai_socktype = type,
	    .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE }, *ai;
	const bool stream = type == SOCK_STREAM;
	const int on = 1;
	int s;

	if (getaddrinfo(address, port, &hints, &ai) != 0) {
		fprintf(stderr, "netreceive: '%s' port '%s' is not an "
		    "address\n", address, port);
		exit(EX_USAGE);
	}
	s = socket(ai->ai_family, type | SOCK_NONBLOCK, 0);
	if (s < 0 || (stream && setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on,
	    sizeof(on)) != 0) || bind(s, ai->ai_addr, ai->ai_addrlen) != 0 ||
	    (stream && listen(s, 1) != 0))
		die(port);
	freeaddrinfo(ai);
	return (s);
}

int
main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = interrupt };
	const char *address = "0.0.0.0", *control = NULL;
	struct ports p = { .listener = -1, .asker = -1 };
	double interval = 1, seconds = 0;
	int opt;

	while ((opt = getopt(argc, argv, "a:c:i:t:")) != -1)
		if (opt == 'a')
			address = optarg;
		else if (opt == 'c')
			control = optarg;
		else if (opt == 'i')
			interval = argument_number("-i", optarg, 0.1,
			    SECONDS_MAX);
		else if (opt == 't')
			seconds = argument_number("-t", optarg, 0,
			    SECONDS_MAX);
		else
			usage();
	if (argc - optind != 1)
		usage();
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	p.datagrams = open_port(address, argv[optind], SOCK_DGRAM);
	if (control != NULL)
		p.listener = open_port(address, control, SOCK_STREAM);
	printf("ready\n");
	fflush(stdout);
	watch(&p, interval, seconds);
	return (0);
}
