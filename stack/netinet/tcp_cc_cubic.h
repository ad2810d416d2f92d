/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUBIC's variables, in the words of RFC 9438 section 4.1.2, for
 * tcp_cc_cubic.c and its test.
 */
#ifndef NETINET_TCP_CC_CUBIC_H
#define NETINET_TCP_CC_CUBIC_H

#include "kern/systm.h"

struct cubic {
	uint32_t	 w_max;		/* plateau of the curve */
	uint32_t	 cwnd_prior;	/* window before the last reduction */
	uint32_t	 w_est;		/* what Reno would have */
	uint32_t	 w_est_acked;	/* bytes towards its next segment */
	uint32_t	 k;		/* ms from the epoch to the plateau */
	bool		 epoch;		/* congestion avoidance has begun */
	bool		 timeout;	/* next epoch starts at its plateau */
	nsec_t		 t;		/* since then, window in full use */
	nsec_t		 last;		/* when t was brought up to date */
};
/* Equation 1 at t ns, and K in ms (equation 2), for segments of mss bytes. */
uint32_t cubic_window(const struct cubic *, uint32_t mss, nsec_t t);
uint32_t cubic_k(uint32_t w_max, uint32_t cwnd_epoch, uint32_t mss);

#endif /* NETINET_TCP_CC_CUBIC_H */
