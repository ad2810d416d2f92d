/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/probes.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "tools/blast.h"

static int64_t
nanoseconds(struct timespec ts)
{
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

int64_t
probes_now(void)
{
	struct timespec ts;

	/* Timestamps of datagrams use this clock. */
	clock_gettime(CLOCK_REALTIME, &ts);
	return (nanoseconds(ts));
}

int
probes_timestamps(int s)
{
	const int on = 1;

	return (setsockopt(s, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)));
}

int
probes_init(struct probes *p, uint32_t id, double rate, double seconds)
{
	*p = (struct probes){ .id = id,
	    .every = (unsigned)fmax(PROBES_SHARE, ceil(rate / PROBES_RATE)) };
	/* The last burst may exceed the end. */
	p->room = 2 + (size_t)(rate * seconds / p->every);
	p->dates = calloc(p->room, sizeof(*p->dates));
	p->trips = calloc(p->room, sizeof(*p->trips));
	if (p->dates != NULL && p->trips != NULL)
		return (0);
	probes_free(p);
	return (-1);
}

void
probes_free(struct probes *p)
{
	free(p->dates);
	free(p->trips);
	*p = (struct probes){ .room = 0 };
}

unsigned
probes_until(const struct probes *p, unsigned long long number)
{
	const unsigned past = (unsigned)(number % p->every);

	if (p->sent == p->room)
		return (p->every);
	return (past == 0 ? 0 : p->every - past);
}

void
probes_note(struct probes *p, int64_t date)
{
	p->dates[p->sent] = date;
	p->trips[p->sent++] = PROBES_LOST;
}

/* Records an answer to a probe; of duplicates the first. */
static void
take(struct probes *p, const struct blast *head, int64_t date)
{
	unsigned long long number = (unsigned long long)ntohl(head->high) <<
	    32 | ntohl(head->low);
	size_t i = (size_t)(number / p->every);
	double trip;

	if (head->magic != htons(BLAST_MAGIC) || head->id != p->id ||
	    head->kind != htons(BLAST_ANSWER) || number % p->every != 0 ||
	    i >= p->sent || p->trips[i] < PROBES_LOST)
		return;
	trip = (double)(date - p->dates[i]) / 1e3;
	if (trip >= PROBES_LOST)
		return;
	p->trips[i] = trip;
	p->back++;
}

/* The receive time, from its socket. */
static int64_t
date_of(struct msghdr *msg)
{
	struct timespec ts;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL;
	    c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_SOCKET &&
		    c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			return (nanoseconds(ts));
		}
	return (probes_now());
}

void
probes_receive(struct probes *p, int s)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(
	    sizeof(struct timespec))];
	struct blast head;
	struct iovec iov = { &head, sizeof(head) };
	struct msghdr msg;

	while (p->back < p->sent) {
		msg = (struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1,
		    .msg_control = control,
		    .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(s, &msg, MSG_DONTWAIT);

		if (n < 0)
			return;
		if (n == sizeof(head))
			take(p, &head, date_of(&msg));
	}
}

static int
compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return ((x > y) - (x < y));
}

double
probes_percentile(struct probes *p, unsigned percent)
{
	/* In integers: 0.99 of a hundred must not round up to the hundredth. */
	size_t rank = (percent * p->sent + 99) / 100;

	qsort(p->trips, p->sent, sizeof(*p->trips), compare);
	return (p->trips[rank > 0 ? rank - 1 : 0]);
}
