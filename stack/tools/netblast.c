/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netblast: UDP datagrams to a port, as fast as one CPU sends them or at a
 * rate, as small as they come unless told otherwise.  They are numbered, so
 * that netreceive can say how many were lost.
 *
 *	netblast [-f] [-c PORT] [-n FLOWS] [-t SECONDS] [-s BYTES] [-r RATE]
 *	    ADDRESS PORT
 *
 * With -c it asks the netreceive -c at that TCP port how many came, so that
 * one command says what both ends saw.  With -f it finds the highest rate
 * that nothing of is lost (NDR), and the highest of which half a percent is
 * (PDR), by trials of -t seconds.
 * Several flows (source ports) in turn, as RFC 2544 section 12 asks for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "tools/argument.h"
#include "tools/blast.h"
#include "tools/clock.h"
#include "tools/ratesearch.h"

#define	BURST		64	/* datagrams of one call */
#define	FLOWS_MAX	1024
#define	RATE_MAX	1e9	/* datagrams/s */
#define	SECONDS_MAX	86400
#define	SETTLE		0.1	/* seconds; what is under way arrives */

/* What to send, and how often. */
struct load {
	int		 sockets[FLOWS_MAX];
	int		 flows;
	const char	*address;
	const char	*control;	/* port of netreceive, or NULL */
	size_t		 bytes;
	double		 seconds, rate;	/* 0: as fast as it goes */
	uint32_t	 id;
};

/* A burst to be, with a numbered head for each datagram. */
struct burst {
	struct blast	 heads[BURST];
	struct iovec	 iov[BURST][2];
	struct mmsghdr	 msgs[BURST];
};

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "netblast: %s: %s\n", what, strerror(errno));
	exit(1);
}

static _Noreturn void
gone(void)
{
	fputs("netblast: netreceive has gone\n", stderr);
	exit(1);
}

static _Noreturn void
usage(void)
{
	fprintf(stderr, "usage: netblast [-f] [-c PORT] [-n FLOWS] "
	    "[-t SECONDS] [-s BYTES] [-r RATE] ADDRESS PORT\n"
	    "1 to %d flows, 0 to %d bytes, RATE in datagrams/s, 0: as fast as "
	    "it goes; -f: with -c and without -r\n", FLOWS_MAX, BLAST_BYTES);
	exit(EX_USAGE);
}

static int
connect_to(const char *address, const char *port, int type)
{
	const struct addrinfo hints = { .ai_socktype = type,
	    .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *ai;
	int s;

	if (getaddrinfo(address, port, &hints, &ai) != 0) {
		fprintf(stderr, "netblast: '%s' port '%s' is not an address\n",
		    address, port);
		exit(EX_USAGE);
	}
	s = socket(ai->ai_family, type, 0);
	if (s < 0 || connect(s, ai->ai_addr, ai->ai_addrlen) != 0)
		die("connect");
	freeaddrinfo(ai);
	return (s);
}

static void
burst_make(struct burst *b, const struct load *l)
{
	static char rest[BLAST_BYTES];
	size_t head = l->bytes < sizeof(b->heads[0]) ? 0 : sizeof(b->heads[0]);

	for (size_t i = 0; i < BURST; i++) {
		b->heads[i] = (struct blast){ .magic = htons(BLAST_MAGIC),
		    .id = l->id };
		b->iov[i][0] = (struct iovec){ &b->heads[i], head };
		b->iov[i][1] = (struct iovec){ rest, l->bytes - head };
		b->msgs[i].msg_hdr = (struct msghdr){ .msg_iov = b->iov[i],
		    .msg_iovlen = 2 };
	}
}

/*
 * Up to n datagrams from the given number on; how many went.  Refusals and
 * full queues are the network's answer, not a failure.
 */
static unsigned
burst_send(struct burst *b, int s, unsigned long long number, unsigned n)
{
	int sent;

	for (unsigned i = 0; i < n; i++) {
		b->heads[i].high = htonl((uint32_t)((number + i) >> 32));
		b->heads[i].low = htonl((uint32_t)(number + i));
	}
	sent = sendmmsg(s, b->msgs, n, 0);
	if (sent < 0 && errno != ENOBUFS && errno != ECONNREFUSED &&
	    errno != EINTR && errno != EHOSTUNREACH)
		die("send");
	return (sent > 0 ? (unsigned)sent : 0);
}

/* How many of a burst are due after so many seconds; waits if none is. */
static unsigned
due(const struct load *l, double seconds, unsigned long long sent)
{
	double missing = seconds * l->rate - (double)sent;

	if (l->rate == 0 || missing >= BURST)
		return (BURST);
	if (missing >= 1)
		return ((unsigned)missing);
	nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	return (0);
}

/* A connection to netreceive, which counts from now on. */
static int
counting(const struct load *l)
{
	int control = connect_to(l->address, l->control, SOCK_STREAM);
	char ready;

	if (recv(control, &ready, 1, 0) != 1)
		gone();
	return (control);
}

/* What netreceive has counted since it was connected to. */
static unsigned long long
counted(int control)
{
	char said[32];
	size_t len = 0;
	ssize_t n;
	unsigned long long received;

	shutdown(control, SHUT_WR);
	while (len < sizeof(said) - 1 &&
	    (n = recv(control, said + len, sizeof(said) - 1 - len, 0)) > 0)
		len += (size_t)n;
	said[len] = '\0';
	if (sscanf(said, "%llu\n", &received) != 1)
		gone();
	close(control);
	return (received);
}

/* Sends for the time that was asked for; how many, and how long it took. */
static unsigned long long
blast(const struct load *l, double *seconds)
{
	static struct burst b;
	double start = now();
	unsigned long long sent = 0;
	int i = 0;

	burst_make(&b, l);
	while ((*seconds = now() - start) < l->seconds) {
		unsigned n = due(l, *seconds, sent);

		if (n == 0)
			continue;
		sent += burst_send(&b, l->sockets[i], sent, n);
		i = (i + 1) % l->flows;
	}
	return (sent);
}

static void
once(const struct load *l)
{
	int control = l->control != NULL ? counting(l) : -1;
	unsigned long long sent, received;
	double seconds;

	sent = blast(l, &seconds);
	printf("sent: %llu seconds: %.3f rate: %.0f datagrams/s\n", sent,
	    seconds, (double)sent / seconds);
	if (control == -1)
		return;
	received = counted(control);
	printf("received: %llu seconds: %.3f rate: %.0f datagrams/s lost: "
	    "%lld\n", received, seconds, (double)received / seconds,
	    (long long)(sent - received));
}

static struct trial
try(void *arg, double rate)
{
	struct load *l = arg;
	int control = counting(l);
	unsigned long long sent, lost;
	struct trial t;
	double seconds;

	l->rate = rate;
	sent = blast(l, &seconds);
	if (sent == 0) {
		fputs("netblast: nothing could be sent\n", stderr);
		exit(1);
	}
	pause_for(SETTLE);
	lost = counted(control);
	lost = lost < sent ? sent - lost : 0;	/* some came twice, or late */
	t = (struct trial){ (double)sent / seconds,
	    (double)lost / (double)sent };
	printf("trial: %.0f datagrams/s lost: %llu of %llu, %.3f %%\n", t.rate,
	    lost, sent, 100 * t.loss);
	fflush(stdout);
	return (t);
}

/* Exit status. */
static int
find(struct load *l)
{
	static const double losses[] = { 0.005, 0 };
	static const char *const names[] = { "pdr", "ndr" };
	struct bounds found[2];

	ratesearch(try, l, losses, found, 2);
	for (int i = 0; i < 2; i++)
		if (found[i].low == 0) {
			fprintf(stderr, "netblast: more than %g %% was lost at "
			    "every rate, even at %.0f datagrams/s\n",
			    100 * losses[i], found[i].high);
			return (1);
		} else if (isinf(found[i].high))
			printf("%s: %.0f datagrams/s, all that is sent\n",
			    names[i], found[i].low);
		else
			printf("%s: %.0f datagrams/s, too much is lost at "
			    "%.0f\n", names[i], found[i].low, found[i].high);
	return (0);
}

int
main(int argc, char **argv)
{
	static struct load l = { .flows = 1, .bytes = 18, .seconds = 2 };
	bool finding = false;
	int opt;

	while ((opt = getopt(argc, argv, "fc:n:t:s:r:")) != -1)
		if (opt == 'f')
			finding = true;
		else if (opt == 'c')
			l.control = optarg;
		else if (opt == 'n')
			l.flows = (int)argument_whole("-n", optarg, 1,
			    FLOWS_MAX);
		else if (opt == 't')
			l.seconds = argument_number("-t", optarg, 0.01,
			    SECONDS_MAX);
		else if (opt == 's')
			l.bytes = argument_whole("-s", optarg, 0, BLAST_BYTES);
		else if (opt == 'r')
			l.rate = argument_number("-r", optarg, 0, RATE_MAX);
		else
			usage();
	if (argc - optind != 2 ||
	    (finding && (l.control == NULL || l.rate > 0)))
		usage();
	if (getrandom(&l.id, sizeof(l.id), 0) != sizeof(l.id))
		die("getrandom");
	for (int i = 0; i < l.flows; i++)
		l.sockets[i] = connect_to(argv[optind], argv[optind + 1],
		    SOCK_DGRAM);
	l.address = argv[optind];
	if (finding)
		return (find(&l));
	once(&l);
	return (0);
}
