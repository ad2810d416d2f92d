/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A search for the highest rate that a network carries, as RFC 2544 section
 * 26.1 asks for it, and for higher ones at which it loses little.  By
 * bisection over the offered load with short trials, after
 * draft-ietf-bmwg-mlrsearch: the first trial offers all that can be sent, the
 * second what came of that; each trial counts for every goal; where a lower
 * rate lost too much, no higher one is believed.
 */
#ifndef TOOLS_RATESEARCH_H
#define TOOLS_RATESEARCH_H

#define	RATESEARCH_WIDTH	0.02	/* of what is left unknown, relative */
#define	RATESEARCH_TRIALS	20	/* at most */
#define	RATESEARCH_LEAST	0.01	/* of all that can be sent, is tried */

/* What was offered, in datagrams/s, and the share of it that was lost. */
struct trial {
	double	 rate, loss;
};

/* The highest rate that will do, or 0; the lowest that will not or INFINITY. */
struct bounds {
	double	 low, high;
};

/* Offers a rate, or all that can be sent for 0. */
typedef struct trial	try_fn(void *arg, double rate);

/*
 * Finds the bounds of n losses, the greatest first.  They are wider than
 * RATESEARCH_WIDTH if the trials did not suffice, or nothing will do.
 */
void	ratesearch(try_fn *fn, void *arg, const double *losses,
	    struct bounds *found, unsigned n);

#endif /* TOOLS_RATESEARCH_H */
