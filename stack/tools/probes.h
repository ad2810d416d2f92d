/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round trips of probes: datagrams of netblast that netreceive sends back.
 *
 * A round trip (RFC 2681) begins right before the call that sends the probe,
 * and nothing else, and ends when this host has taken the answer from the
 * link, by the timestamp that it gives each datagram then.  So the cost of
 * sending is in it, and how long an answer waits to be read is not.
 */
#ifndef TOOLS_PROBES_H
#define TOOLS_PROBES_H

#include <stddef.h>
#include <stdint.h>

#define	PROBES_RATE	2000	/* probes/s at most: p99 has 20 above it in 1 s */
#define	PROBES_SHARE	16	/* no more than one datagram in so many */
#define	PROBES_LOST	1e6	/* microseconds; who is not back then is lost */

/* Probes of one load: every so manyth datagram. */
struct probes {
	uint32_t	 id;		/* of the run, as its datagrams have it */
	unsigned	 every;
	size_t		 room, sent, back;
	int64_t		*dates;		/* nanoseconds, by probe, of its sending */
	double		*trips;		/* microseconds; PROBES_LOST: not back */
};

/* A socket tells when its datagrams came; -1 with errno if it cannot. */
int	probes_timestamps(int s);
/* Probes of a load of so many datagrams/s for so many seconds; ENOMEM: -1. */
int	probes_init(struct probes *p, uint32_t id, double rate, double seconds);
void	probes_free(struct probes *p);
/* How many datagrams from this number on are no probes; 0: it is one itself. */
unsigned	probes_until(const struct probes *p, unsigned long long number);
/* The clock that timestamps go by, in ns: seconds in a double are coarse. */
int64_t	probes_now(void);
/* The next one was sent, beginning at a date. */
void	probes_note(struct probes *p, int64_t date);
/* Takes all answers that have come to a socket, without waiting for any. */
void	probes_receive(struct probes *p, int s);
/*
 * The round trip in microseconds that so many percent of the probes, of which
 * there are some, did not exceed: the least one at which their distribution
 * reaches that share (RFC 2330 section 11.3).  One that is lost took as long
 * as was waited for it, so that percentiles are right as long as they stay
 * below; RFC 2681 section 4.1 has infinity there, which no mean survives.
 * Sorts the round trips: no probe may be sent, or come back, after it.
 */
double	probes_percentile(struct probes *p, unsigned percent);

#endif /* TOOLS_PROBES_H */
