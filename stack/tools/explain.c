/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The explanation of a simulated run: samples of lost time, added up by the
 * object that was waited for, and by the callers that waited.
 */
#include "tools/explain.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "kern/systm.h"
#include "machine/posix/symbols.h"
#include "tools/explain_calls.h"

#define	LINE_SIZE	64
#define	CAUSES_MAX	8	/* printed */
#define	CAUSES_ALL	512	/* counted */
#define	SITES_MAX	3
#define	SITES_ALL	64
#define	CALLERS		3
#define	LEAST		0.005	/* share of a cause that is printed */

#define	CAUSED		SIM_NO_WORK	/* the losses before it have a cause */

static const char *const loss_names[CAUSED] = { "transfer", "spin", "sleep" };

struct site {
	char		 calls[400];
	double		 share;
};

/* A lock or a line that CPUs waited for; shares of all CPUs' time. */
struct cause {
	char		 name[96];
	const char	*lock;		/* class, or NULL */
	double		 share, by[CAUSED];
	struct site	*sites;		/* SITES_ALL */
	unsigned	 nsites;
};

static struct cause causes[CAUSES_ALL];
static unsigned ncauses;

/* Named after the variable, or after the function that allocated it. */
static void
name_object(const volatile void *word, char *buf, size_t len)
{
	const struct sim_allocation *a = sim_explain_allocation(word);
	const char *thread = sim_explain_stack(word);
	char calls[400];

	if (a != NULL) {
		explain_calls_name(a->calls, a->ncalls, 1, calls,
		    sizeof(calls));
		calls[strcspn(calls, " ")] = '\0';
		snprintf(buf, len, "%.60s()+%zu", calls, (size_t)((uintptr_t)
		    word - (uintptr_t)a->start) / LINE_SIZE * LINE_SIZE);
	} else if (thread != NULL) {
		snprintf(buf, len, "stack of %s", thread);
	} else if (symbol_name("/proc/self/exe", STT_OBJECT, (uintptr_t)word,
	    buf, len)) {
		buf[strcspn(buf, "+")] = '\0';
	} else
		snprintf(buf, len, "%p", (const void *)(uintptr_t)word);
}

static struct cause *
find_cause(const volatile void *word)
{
	char name[sizeof(causes[0].name)];
	struct cause *c;

	name_object(word, name, sizeof(name));
	for (c = causes; c < causes + ncauses; c++)
		if (strcmp(c->name, name) == 0)
			return (c);
	if (ncauses == CAUSES_ALL)
		return (&causes[CAUSES_ALL - 1]);
	ncauses++;
	memcpy(c->name, name, sizeof(name));
	c->sites = calloc(SITES_ALL, sizeof(*c->sites));
	if (c->sites == NULL)
		abort();
	return (c);
}

static struct site *
find_site(struct cause *c, const char *calls)
{
	unsigned i;

	for (i = 0; i < c->nsites; i++)
		if (strcmp(c->sites[i].calls, calls) == 0)
			break;
	if (i == SITES_ALL)
		i--;
	else if (i == c->nsites)
		snprintf(c->sites[c->nsites++].calls,
		    sizeof(c->sites[0].calls), "%s", calls);
	return (&c->sites[i]);
}

static void
add_sample(const struct sim_sample *s, double share)
{
	struct cause *c = find_cause(s->word);
	char calls[sizeof(c->sites[0].calls)];

	if (s->lock != NULL)
		c->lock = s->lock;
	c->share += share;
	c->by[s->kind] += share;
	explain_calls_name(s->calls, s->ncalls, CALLERS, calls, sizeof(calls));
	find_site(c, calls)->share += share;
}

static int
by_share(const void *a, const void *b)
{
	const struct cause *x = a, *y = b;

	return (x->share < y->share) - (x->share > y->share);
}

static int
sites_by_share(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	return (x->share < y->share) - (x->share > y->share);
}

/*
 * A thread that sleeps until it gets a lock costs a CPU's time only if the CPU
 * has nothing else to run: what all of them slept is at most the idle time.
 */
static double
sleep_weight(const struct sim_explained *e)
{
	const psec_t idle = e->all - e->busy;

	return (e->lost[SIM_PARKED] <= idle ? 1 :
	    (double)idle / (double)e->lost[SIM_PARKED]);
}

static void
add_up(const struct sim_explained *e)
{
	const double each = (double)e->each / (double)e->all;

	for (size_t i = 0; i < e->nsamples; i++)
		explain_calls_add(e->samples[i].calls, e->samples[i].ncalls);
	for (size_t i = 0; i < e->nsamples; i++) {
		const struct sim_allocation *a =
		    sim_explain_allocation(e->samples[i].word);

		if (a != NULL)
			explain_calls_add(a->calls, a->ncalls);
	}
	explain_calls_resolve();
	for (size_t i = 0; i < e->nsamples; i++)
		add_sample(&e->samples[i], each *
		    (e->samples[i].kind == SIM_PARKED ? sleep_weight(e) : 1));
	qsort(causes, ncauses, sizeof(causes[0]), by_share);
	for (unsigned i = 0; i < ncauses; i++)
		qsort(causes[i].sites, causes[i].nsites,
		    sizeof(causes[i].sites[0]), sites_by_share);
}

/*
 * The rate without a cause, as a multiple, if each unit of work costs the
 * remaining time, and threads wait for each other in the same share of it.
 * What is then waited for instead makes it less.
 */
static double
gain_of(const struct cause *c, double idle)
{
	const double of = c->share / (1 - idle);

	return (1 / (1 - (of < 0.999 ? of : 0.999)));
}

static bool
is_printed(unsigned i)
{
	return (i < ncauses && i < CAUSES_MAX && causes[i].share >= LEAST);
}

static void
print_text(FILE *out, double code, double idle)
{
	fprintf(out, "     %4.1f %% of the CPUs' time is code, %.1f %% is "
	    "idle.  Lost to lines and locks:\n"
	    "      share transfer   spin  sleep\n", 100 * code, 100 * idle);
	for (unsigned i = 0; is_printed(i); i++) {
		const struct cause *c = &causes[i];

		fprintf(out, "     %4.1f %%   %4.1f %% %4.1f %% %4.1f %%  %s",
		    100 * c->share, 100 * c->by[SIM_TRANSFER],
		    100 * c->by[SIM_SPIN], 100 * c->by[SIM_PARKED], c->name);
		fprintf(out, c->lock != NULL ? " (lock %s)\n" : "\n", c->lock);
		for (unsigned k = 0; k < c->nsites && k < SITES_MAX; k++)
			fprintf(out, "%12.1f %%  %s\n",
			    100 * c->sites[k].share, c->sites[k].calls);
	}
	if (is_printed(0))
		fprintf(out, "     Without %s: about %.2f times the rate.\n",
		    causes[0].name, gain_of(&causes[0], idle));
}

static void
print_json_cause(FILE *out, const struct cause *c, double idle)
{
	fprintf(out, "{\"name\": \"%s\", \"lock\": ", c->name);
	fprintf(out, c->lock != NULL ? "\"%s\"" : "null", c->lock);
	fprintf(out, ", \"share\": %.4f", c->share);
	for (unsigned i = 0; i < CAUSED; i++)
		fprintf(out, ", \"%s\": %.4f", loss_names[i], c->by[i]);
	fprintf(out, ", \"gain\": %.3f, \"calls\": [", gain_of(c, idle));
	for (unsigned k = 0; k < c->nsites && k < SITES_MAX; k++)
		fprintf(out, "%s{\"share\": %.4f, \"calls\": \"%s\"}",
		    k > 0 ? ", " : "", c->sites[k].share, c->sites[k].calls);
	fprintf(out, "]}");
}

static void
print_json(FILE *out, double code, double idle)
{
	fprintf(out, "{\"code\": %.4f, \"idle\": %.4f, \"lost\": [", code,
	    idle);
	for (unsigned i = 0; is_printed(i); i++) {
		fprintf(out, i > 0 ? ",\n     " : "\n     ");
		print_json_cause(out, &causes[i], idle);
	}
	fprintf(out, "]}");
}

void
explain_print(FILE *out, const struct sim_explained *e, bool json)
{
	const double all = (double)e->all,
	    slept = (double)e->lost[SIM_PARKED] * sleep_weight(e),
	    spun = (double)e->lost[SIM_NO_WORK],
	    idle = (all - (double)e->busy - slept + spun) / all,
	    code = ((double)(e->busy - e->lost[SIM_TRANSFER] -
	    e->lost[SIM_SPIN]) - spun) / all;

	add_up(e);
	if (json)
		print_json(out, code, idle);
	else
		print_text(out, code, idle);
}
