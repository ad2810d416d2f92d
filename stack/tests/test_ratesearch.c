/* SPDX-License-Identifier: BSD-2-Clause */
/* The rate search on simulated networks with given loss. */
#include "tests/check.h"

#include <math.h>
#include <stdbool.h>

#include "tools/ratesearch.h"

static const double losses[] = { 0.005, 0 };

/* The max rates of a network and of a sender. */
struct net {
	double	 carries, sends;
	double	 always;	/* fraction lost at every rate */
	double	 shaky;		/* rate above which a little is lost; 0: none */
	unsigned trials;
};

static struct trial
offer(void *arg, double rate)
{
	struct net *net = arg;
	struct trial t = { rate > 0 ? fmin(rate, net->sends) : net->sends, 0 };

	net->trials++;
	if (t.rate > net->carries)
		t.loss = 1 - net->carries / t.rate;
	if (net->shaky > 0 && t.rate > net->shaky)
		t.loss = fmax(t.loss, 0.003);
	t.loss = fmax(t.loss, net->always);
	return (t);
}

static void
search(struct net *net, struct bounds found[2])
{
	ratesearch(offer, net, losses, found, 2);
	CHECK(net->trials <= RATESEARCH_TRIALS);
}

static bool
within(struct bounds b, double rate)
{
	return (b.low <= rate && rate <= b.high &&
	    b.high - b.low <= RATESEARCH_WIDTH * b.high);
}

TEST(what_a_network_carries_is_found)
{
	for (double sends = 101e3; sends < 9e6; sends *= 3) {
		struct net net = { .carries = 100e3, .sends = sends };
		struct bounds found[2];

		search(&net, found);
		CHECK(within(found[0], 100e3 / 0.995));
		CHECK(within(found[1], 100e3));
	}
}

TEST(a_loss_that_is_allowed_is_not_found)
{
	struct net net = { .carries = 100e3, .sends = 400e3, .shaky = 40e3 };
	struct bounds found[2];

	search(&net, found);
	CHECK(within(found[0], 100e3 / 0.995));
	CHECK(within(found[1], 40e3));
}

TEST(a_sender_too_slow_to_lose_is_the_bound)
{
	struct net net = { .carries = 100e3, .sends = 50e3 };
	struct bounds found[2];

	search(&net, found);
	CHECK_EQ(net.trials, 1);
	for (int i = 0; i < 2; i++) {
		CHECK(found[i].low == 50e3);
		CHECK(isinf(found[i].high));
	}
}

TEST(a_network_that_always_loses_ends_the_search)
{
	for (double always = 0.01; always <= 1; always += 0.99) {
		struct net net = { .carries = INFINITY, .sends = 1e6,
		    .always = always };
		struct bounds found[2];

		search(&net, found);
		CHECK(net.trials < RATESEARCH_TRIALS);
		CHECK(found[0].low == 0 && found[1].low == 0);
		CHECK(found[0].high > 1e3 && found[0].high < 1e4);
	}
}

/* Carries 150 000, but loses a little at rates between 80 000 and 120 000. */
static struct trial
stumble(void *arg, double rate)
{
	struct trial t = { rate > 0 ? rate : 200e3, 0 };

	(void)arg;
	if (t.rate > 150e3)
		t.loss = 0.5;
	else if (t.rate > 80e3 && t.rate < 120e3)
		t.loss = 0.003;
	return (t);
}

TEST(no_rate_is_believed_above_one_that_lost)
{
	struct bounds found[2];

	ratesearch(stumble, NULL, losses, found, 2);
	CHECK(within(found[0], 150e3));
	CHECK(within(found[1], 80e3));
}

int
main(int argc, char **argv)
{
	return (check_main(argc, argv));
}
