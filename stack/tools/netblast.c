/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netblast: sends UDP datagrams to a port, as fast as one CPU can or at a
 * rate, of the smallest size by default.  They are numbered, so that
 * netreceive can count losses.
 *
 * 	netblast [-f | -l] [-c PORT] [-n FLOWS] [-t SECONDS] [-s BYTES]
 * 	    [-r RATE] ADDRESS PORT
 *
 * With -c it gets the number received from the netreceive -c at that TCP port,
 * so that one command reports both ends.  With -f it searches the highest rate
 * without loss (NDR) and with at most 0.5 % loss (PDR), in trials of -t
 * seconds.
 *
 * With -l it finds NDR, then offers 25, 50, 75 and 90 % of it for -t seconds
 * each.  It reports the round-trip times of probes, which netreceive sends
 * back (tools/probes.h).  RFC 2544 section 26.2 specifies the latency at the
 * highest rate without loss, where the smallest disturbance fills queues.
 *
 * Probes are datagrams of the load and are sent when any other would be,
 * independent of responses.  They belong to the first flow, and each is sent by
 * its own call.  The max number of datagrams due at once is reported, too: a
 * delayed sender sends them as a burst, and their waiting time is not the
 * network's.
 *
 * Several flows (source ports) are used in turn (RFC 2544 section 12).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "tools/argument.h"
#include "tools/blast.h"
#include "tools/clock.h"
#include "tools/probes.h"
#include "tools/ratesearch.h"

#define	BURST		64	/* datagrams of one call */
#define	FLOWS_MAX	1024
#define	RATE_MAX	1e9	/* datagrams/s */
#define	SECONDS_MAX	86400
#define	SECONDS_TIMED	600 /* of a load with probes, whose times are stored */
#define	SETTLE		0.1 /* seconds; time for packets in flight to arrive */

/* The accepted losses, the highest first, and their names. */
static const double losses[] = { 0.005, 0 };
static const char *const names[] = { "pdr", "ndr" };

/* Offered loads, percent of NDR. */
static const unsigned shares[] = { 25, 50, 75, 90 };

/* The load to send. */
struct load {
	int		 sockets[FLOWS_MAX];
	int		 flows;
	const char	*address;
	const char	*control;	/* port of netreceive, or NULL */
	size_t		 bytes;
	double		 seconds, rate;	/* 0: as fast as possible */
	long		 nap;		/* ns to sleep if no datagram is due */
	uint32_t	 id;
	struct probes	*probes;	/* or NULL */
	double		 behind;	/* max datagrams due at once */
};

/* A burst, with a numbered header for each datagram. */
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
	fputs("netblast: netreceive closed the connection\n", stderr);
	exit(1);
}

static _Noreturn void
usage(void)
{
	fprintf(stderr, "usage: netblast [-f | -l] [-c PORT] [-n FLOWS] [-t "
	    "SECONDS] [-s BYTES] [-r RATE] ADDRESS PORT\n1 to %d flows, 0 to "
	    "%d bytes, RATE in datagrams/s, 0: as fast as possible; -f, -l: "
	    "with -c and without -r\n", FLOWS_MAX,
	    BLAST_BYTES);
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
 * Sends up to n datagrams starting at a number; returns how many.  Errors from
 * ICMP and full queues count as loss, not as failures.
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

/*
 * How many datagrams of a burst are due after so many seconds; waits if none
 * is.
 */
static unsigned
due(struct load *l, double seconds, unsigned long long sent)
{
	double missing = seconds * l->rate - (double)sent;

	l->behind = fmax(l->behind, missing);
	if (l->rate == 0 || missing >= BURST)
		return (BURST);
	if (missing >= 1)
		return ((unsigned)missing);
	nanosleep(&(struct timespec){ .tv_nsec = l->nap }, NULL);
	return (0);
}

/* Connects to netreceive, which counts from now on. */
static int
counting(const struct load *l)
{
	int control = connect_to(l->address, l->control, SOCK_STREAM);
	char ready;

	if (recv(control, &ready, 1, 0) != 1)
		gone();
	return (control);
}

/* The number that netreceive has received since the connection. */
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

/* Sends a probe; returns the number sent. */
static unsigned
probe_send(struct burst *b, const struct load *l, unsigned long long number)
{
	int64_t date;
	unsigned sent;

	b->heads[0].kind = htons(BLAST_PROBE);
	date = probes_now();
	sent = burst_send(b, l->sockets[0], number, 1);
	b->heads[0].kind = htons(BLAST_PLAIN);
	if (sent > 0)
		probes_note(l->probes, date);
	return (sent);
}

/* Sends up to n datagrams of a load with probes; returns how many. */
static unsigned
timed_send(struct burst *b, const struct load *l, int s,
    unsigned long long number, unsigned n)
{
	unsigned plain = probes_until(l->probes, number), sent;

	sent = plain == 0 ? probe_send(b, l, number) :
	    burst_send(b, s, number, n < plain ? n : plain);
	probes_receive(l->probes, l->sockets[0]);
	return (sent);
}

/* Sends for the given time; returns how many datagrams, and the time taken. */
static unsigned long long
blast(struct load *l, double *seconds)
{
	static struct burst b;
	double start = now();
	unsigned long long sent = 0;
	int i = 0;

	burst_make(&b, l);
	l->behind = 0;
	while ((*seconds = now() - start) < l->seconds) {
		unsigned n = due(l, *seconds, sent);

		if (n == 0)
			continue;
		sent += l->probes != NULL ?
		    timed_send(&b, l, l->sockets[i], sent, n) :
		    burst_send(&b, l->sockets[i], sent, n);
		i = (i + 1) % l->flows;
	}
	return (sent);
}

static void
once(struct load *l)
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

/* Offers the load's rate; returns the rate sent and the loss. */
static struct trial
offer(struct load *l, unsigned long long *sent, unsigned long long *lost)
{
	int control = counting(l);
	double seconds;

	*sent = blast(l, &seconds);
	if (*sent == 0) {
		fputs("netblast: no datagram could be sent\n", stderr);
		exit(1);
	}
	pause_for(SETTLE);
	*lost = counted(control);
	/* duplicates, or late datagrams of another trial */
	*lost = *lost < *sent ? *sent - *lost : 0;
	return ((struct trial){ (double)*sent / seconds,
	    (double)*lost / (double)*sent });
}

static struct trial
try(void *arg, double rate)
{
	struct load *l = arg;
	unsigned long long sent, lost;
	struct trial t;

	l->rate = rate;
	t = offer(l, &sent, &lost);
	printf("trial: %.0f datagrams/s lost: %llu of %llu, %.3f %%\n", t.rate,
	    lost, sent, 100 * t.loss);
	fflush(stdout);
	return (t);
}

/* The highest rates with at most losses[from] and less. */
static struct bounds
find(struct load *l, unsigned from)
{
	struct bounds found[2];

	ratesearch(try, l, losses + from, found + from, 2 - from);
	for (unsigned i = from; i < 2; i++)
		if (found[i].low == 0) {
			fprintf(stderr, "netblast: more than %g %% was lost at "
			    "every rate, even at %.0f datagrams/s\n",
			    100 * losses[i], found[i].high);
			exit(1);
		} else if (isinf(found[i].high))
			printf("%s: %.0f datagrams/s, all that is sent\n",
			    names[i], found[i].low);
		else
			printf("%s: %.0f datagrams/s, too much is lost at "
			    "%.0f\n", names[i], found[i].low, found[i].high);
	return (found[1]);
}

static void
await_probes(struct probes *p, int s)
{
	double end = now() + PROBES_LOST / 1e6;

	probes_receive(p, s);
	while (p->back < p->sent && now() < end) {
		pause_for(0.01);
		probes_receive(p, s);
	}
}

/* Offers a share of a rate, and prints the round-trip times of its probes. */
static void
time_probes(struct load *l, unsigned percent, double most)
{
	unsigned long long sent, lost;
	struct probes p;
	struct trial t;

	l->rate = most * percent / 100;
	/* A new ID rejects late answers of the load before. */
	if (probes_init(&p, ++l->id, l->rate, l->seconds) != 0)
		die("probes");
	l->probes = &p;
	t = offer(l, &sent, &lost);
	await_probes(&p, l->sockets[0]);
	if (p.back == 0) {
		fprintf(stderr, "netblast: none of %zu probes came back at "
		    "%.0f datagrams/s\n", p.sent, t.rate);
		exit(1);
	}
	printf("load: %u %% rate: %.0f datagrams/s lost: %llu of %llu "
	    "behind: %.0f probes: %zu of %zu ", percent, t.rate, lost, sent,
	    floor(l->behind), p.back, p.sent);
	printf("p50: %.1f p90: %.1f p99: %.1f max: %.1f us\n",
	    probes_percentile(&p, 50), probes_percentile(&p, 90),
	    probes_percentile(&p, 99), probes_percentile(&p, 100));
	fflush(stdout);
	probes_free(&p);
	l->probes = NULL;
}

/*
 * Datagrams due together wait for each other.  The sender therefore sleeps as
 * briefly as possible, also during the search for the load offered later.
 */
static void
find_and_time(struct load *l)
{
	double most;

	if (probes_timestamps(l->sockets[0]) != 0)
		die("timestamps");
	prctl(PR_SET_TIMERSLACK, 1);
	l->nap = 1;
	most = find(l, 1).low;
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		time_probes(l, shares[i], most);
}

int
main(int argc, char **argv)
{
	static struct load l = { .flows = 1, .nap = 50000 };
	const char *seconds = "2", *bytes = "18";
	bool finding = false, timing = false;
	int opt;

	while ((opt = getopt(argc, argv, "flc:n:t:s:r:")) != -1)
		if (opt == 'f')
			finding = true;
		else if (opt == 'l')
			timing = true;
		else if (opt == 'c')
			l.control = optarg;
		else if (opt == 'n')
			l.flows = (int)argument_whole("-n", optarg, 1,
			    FLOWS_MAX);
		else if (opt == 't')
			seconds = optarg;
		else if (opt == 's')
			bytes = optarg;
		else if (opt == 'r')
			l.rate = argument_number("-r", optarg, 0, RATE_MAX);
		else
			usage();
	if (argc - optind != 2 || (finding && timing) ||
	    ((finding || timing) && (l.control == NULL || l.rate > 0)))
		usage();
	l.seconds = argument_number("-t", seconds, 0.01,
	    timing ? SECONDS_TIMED : SECONDS_MAX);
	/* A probe contains a header. */
	l.bytes = argument_whole("-s", bytes,
	    timing ? sizeof(struct blast) : 0, BLAST_BYTES);
	if (getrandom(&l.id, sizeof(l.id), 0) != sizeof(l.id))
		die("getrandom");
	for (int i = 0; i < l.flows; i++)
		l.sockets[i] = connect_to(argv[optind], argv[optind + 1],
		    SOCK_DGRAM);
	l.address = argv[optind];
	if (finding)
		find(&l, 0);
	else if (timing)
		find_and_time(&l);
	else
		once(&l);
	return (0);
}
