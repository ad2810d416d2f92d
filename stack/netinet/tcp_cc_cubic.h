/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUBIC's variables, named as in RFC 9438 section 4.1.2, for tcp_cc_cubic.c
 * and its test.
 */
#ifndef NETINET_TCP_CC_CUBIC_H
#define NETINET_TCP_CC_CUBIC_H

#include "kern/systm.h"

struct cubic {
	uint32_t	 w_max;		/* plateau of the curve */
	uint32_t	 cwnd_prior;	/* window before the last reduction */
	uint32_t	 w_est;		/* window of the Reno estimate */
	uint32_t	 w_est_acked; /* bytes acked towards its next segment */
	uint32_t	 k;		/* ms from epoch start to plateau */
	bool		 epoch;		/* in congestion avoidance */
	bool		 timeout;	/* next epoch starts at its plateau */
	nsec_t		 t;		/* time since then with a full window */
	nsec_t		 last;		/* last update of t */
};
/* Equation 1 at t ns, and K in ms (equation 2), for segments of mss bytes. */
uint32_t cubic_window(const struct cubic *, uint32_t mss, nsec_t t);
uint32_t cubic_k(uint32_t w_max, uint32_t cwnd_epoch, uint32_t mss);

#endif /* NETINET_TCP_CC_CUBIC_H */
