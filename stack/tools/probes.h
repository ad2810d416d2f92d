/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round trips of probes: datagrams of netblast that netreceive sends back.
 *
 * A round trip (RFC 2681) begins right before the call that sends only the
 * probe.  It ends when this host has received the answer from the link, by the
 * datagram's timestamp.  It therefore includes the cost of sending, but not
 * the time for which an answer waits to be read.
 */
#ifndef TOOLS_PROBES_H
#define TOOLS_PROBES_H

#include <stddef.h>
#include <stdint.h>

#define	PROBES_RATE	2000	/* max probes/s: p99 of 1 s has 20 above it */
#define	PROBES_SHARE	16	/* at most one datagram in so many */
#define	PROBES_LOST	1e6	/* microseconds; later answers count as lost */

/* Probes of one load: every n-th datagram. */
struct probes {
	uint32_t	 id;		/* ID of the run in its datagrams */
	unsigned	 every;
	size_t		 room, sent, back;
	int64_t		*dates;		/* send times, ns, by probe */
	double		*trips;		/* microseconds; PROBES_LOST: not back */
};

/* Enables receive timestamps of a socket; -1 with errno on failure. */
int	probes_timestamps(int s);
/* Prepares probes for a load of this rate and time; -1: ENOMEM. */
int	probes_init(struct probes *p, uint32_t id, double rate, double seconds);
void	probes_free(struct probes *p);
/*
 * The number of datagrams from this number to the next probe; 0: it is a
 * probe.
 */
unsigned	probes_until(const struct probes *p, unsigned long long number);
/*
 * The clock of timestamps, in ns, because seconds in a double are too coarse.
 */
int64_t	probes_now(void);
/* Records that the next probe was sent, starting at this time. */
void	probes_note(struct probes *p, int64_t date);
/* Receives all queued answers of a socket, without waiting. */
void	probes_receive(struct probes *p, int s);
/*
 * The percentile of the round trips in microseconds, of at least one probe:
 * the smallest value at which the distribution reaches this percentage (RFC
 * 2330 section 11.3).  A lost probe counts as PROBES_LOST, so that lower
 * percentiles are correct; RFC 2681 section 4.1 uses infinity, which would
 * make every mean infinite.  Sorts the round trips: no probe may be sent or
 * received afterwards.
 */
double	probes_percentile(struct probes *p, unsigned percent);

#endif /* TOOLS_PROBES_H */
