/* SPDX-License-Identifier: BSD-2-Clause */
/* Which datagrams are probes, and what is said of their round trips. */
#include "tests/check.h"

#include <math.h>

#include "tools/probes.h"

/* Probes of which so many came back, the nth after n microseconds. */
static void
make(struct probes *p, size_t sent, size_t back)
{
	CHECK_EQ(probes_init(p, 1, 1e4, 1), 0);
	CHECK(sent <= p->room);
	/* Not in order. */
	for (size_t i = sent; i-- > 0; ) {
		probes_note(p, 0);
		if (i < back) {
			p->trips[p->sent - 1] = (double)(i + 1);
			p->back++;
		}
	}
}

TEST(a_percentile_is_a_round_trip_that_there_was)
{
	static const struct {
		size_t	 sent;
		unsigned percent;
		double	 trip;
	} wanted[] = { { 1, 50, 1 }, { 1, 99, 1 }, { 2, 50, 1 }, { 2, 51, 2 },
	    { 3, 50, 2 }, { 100, 50, 50 }, { 100, 90, 90 }, { 100, 99, 99 },
	    { 101, 99, 100 }, { 400, 99, 396 }, { 400, 100, 400 } };
	struct probes p;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		make(&p, wanted[i].sent, wanted[i].sent);
		CHECK(probes_percentile(&p, wanted[i].percent) ==
		    wanted[i].trip);
		probes_free(&p);
	}
}

TEST(what_does_not_come_back_takes_for_ever)
{
	struct probes p;

	make(&p, 100, 90);
	CHECK(probes_percentile(&p, 90) == 90);
	CHECK(isinf(probes_percentile(&p, 91)));
	CHECK(probes_longest(&p) == 90);
	probes_free(&p);
	make(&p, 5, 0);
	CHECK(isinf(probes_percentile(&p, 50)));
	CHECK(probes_longest(&p) == 0);
	probes_free(&p);
}

TEST(probes_are_few_and_far_between)
{
	for (double rate = 1; rate < 1e9; rate *= 7) {
		struct probes p;
		unsigned long long number = 0;
		unsigned plain;

		CHECK_EQ(probes_init(&p, 1, rate, 0.05), 0);
		CHECK(p.every >= PROBES_SHARE && rate / p.every <= PROBES_RATE);
		while (number <= p.room * p.every) {
			if ((plain = probes_until(&p, number)) == 0) {
				CHECK_EQ(number, p.sent * p.every);
				probes_note(&p, 0);
				plain = 1;
			}
			number += plain;
		}
		CHECK(p.sent == p.room);
		CHECK(probes_until(&p, number) > 0);
		probes_free(&p);
	}
}

int
main(int argc, char **argv)
{
	return (check_main(argc, argv));
}
