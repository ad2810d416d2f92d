/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A search for the highest rate without loss (RFC 2544 section 26.1), and for
 * higher rates with a limited loss.  It bisects the offered load with short
 * trials, following draft-ietf-bmwg-mlrsearch.  The first trial offers the
 * max, the second the rate received in the first.  Each trial counts for every
 * goal.  If a lower rate had too much loss, results of higher rates are
 * ignored.
 */
#ifndef TOOLS_RATESEARCH_H
#define TOOLS_RATESEARCH_H

#define	RATESEARCH_WIDTH	0.02	/* max relative width of the result */
#define	RATESEARCH_TRIALS	20	/* max number of trials */
#define	RATESEARCH_LEAST	0.01 /* min rate tried, relative to the max */

/* The offered rate, in datagrams/s, and the fraction lost. */
struct trial {
	double	 rate, loss;
};

/* The highest rate that passes, or 0; the lowest that fails, or INFINITY. */
struct bounds {
	double	 low, high;
};

/* Offers a rate; 0 means the max. */
typedef struct trial	try_fn(void *arg, double rate);

/*
 * Finds the bounds for n losses, in descending order.  They are wider than
 * RATESEARCH_WIDTH if the trials were not enough, or no rate passes.
 */
void	ratesearch(try_fn *fn, void *arg, const double *losses,
	    struct bounds *found, unsigned n);

#endif /* TOOLS_RATESEARCH_H */
