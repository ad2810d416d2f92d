/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ratesearch.h"

#include <math.h>
#include <stdbool.h>

struct search {
	struct trial	 trials[RATESEARCH_TRIALS];
	unsigned	 n;
};

static struct bounds
bounds(const struct search *s, double loss)
{
	struct bounds b = { 0, HUGE_VAL };

	for (unsigned i = 0; i < s->n; i++)
		if (s->trials[i].loss > loss)
			b.high = fmin(b.high, s->trials[i].rate);
	for (unsigned i = 0; i < s->n; i++)
		if (s->trials[i].loss <= loss && s->trials[i].rate < b.high)
			b.low = fmax(b.low, s->trials[i].rate);
	return (b);
}

/* The bounds are close enough. */
static bool
done(const struct search *s, struct bounds b)
{
	if (b.low == 0)
		return (b.high < RATESEARCH_LEAST * s->trials[0].rate);
	return (b.high - b.low <= RATESEARCH_WIDTH * b.high || isinf(b.high));
}

/* The next rate to try; rates are compared by their ratio. */
static double
between(const struct search *s, struct bounds b)
{
	if (s->n == 1 && s->trials[0].loss < 1)
		return (s->trials[0].rate * (1 - s->trials[0].loss));
	return (b.low > 0 ? sqrt(b.low * b.high) : b.high / 2);
}

void
ratesearch(try_fn *fn, void *arg, const double *losses, struct bounds *found,
    unsigned n)
{
	struct search s = { .n = 0 };
	struct bounds b;

	s.trials[s.n++] = fn(arg, 0);
	for (unsigned i = 0; i < n; i++)
		while (!done(&s, b = bounds(&s, losses[i])) &&
		    s.n < RATESEARCH_TRIALS)
			s.trials[s.n++] = fn(arg, between(&s, b));
	/* Trials count for all goals. */
	for (unsigned i = 0; i < n; i++)
		found[i] = bounds(&s, losses[i]);
}
