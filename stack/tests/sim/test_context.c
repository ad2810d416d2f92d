/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coroutines: each continues where it was suspended, with its own variables.
 */
#include "machine/sim/context.h"

#include <stdint.h>

#include "tests/check.h"

#define	NFLOWS	3
#define	TURNS	1000

static char stacks[NFLOWS][65536] __attribute__((aligned(16)));
static struct context host, flows[NFLOWS];
static unsigned current, finished;
static uint64_t sums[NFLOWS];

/* Switches from one to the next with values in all registers. */
static void
flow(void)
{
	const unsigned self = current;
	uint64_t a = self, b = 1, c = 2, d = 3, e = 5, f = 7;

	for (unsigned i = 0; i < TURNS; i++) {
		a += i;
		b = b * 3 + a;
		c ^= b;
		d += c;
		e = e * 5 + d;
		f ^= e;
		current = (self + 1) % NFLOWS;
		context_switch(&flows[self], &flows[current]);
	}
	sums[self] = f;
	finished++;
	current = (self + 1) % NFLOWS;
	context_switch(&flows[self],
	    finished < NFLOWS ? &flows[current] : &host);
}

/* The same without switches. */
static uint64_t
sum_of(unsigned self)
{
	uint64_t a = self, b = 1, c = 2, d = 3, e = 5, f = 7;

	for (unsigned i = 0; i < TURNS; i++) {
		a += i;
		b = b * 3 + a;
		c ^= b;
		d += c;
		e = e * 5 + d;
		f ^= e;
	}
	return (f);
}

TEST(flows_take_turns)
{
	for (unsigned i = 0; i < NFLOWS; i++)
		context_create(&flows[i], flow, stacks[i], sizeof(stacks[i]));
	context_switch(&host, &flows[0]);
	CHECK_EQ(finished, NFLOWS);
	for (unsigned i = 0; i < NFLOWS; i++)
		CHECK(sums[i] == sum_of(i));
}

/* The stack alignment that a compiler requires for 16-byte stores. */
static void
aligned(void)
{
	volatile double x __attribute__((aligned(16))) = 0.5;
	char text[64];

	CHECK_EQ((uintptr_t)&x % 16, 0);
	snprintf(text, sizeof(text), "%.2f", x);
	CHECK_STREQ(text, "0.50");
	context_switch(&flows[0], &host);
}

TEST(a_flow_may_call_anything)
{
	context_create(&flows[0], aligned, stacks[0], sizeof(stacks[0]));
	context_switch(&host, &flows[0]);
}

int
main(int argc, char **argv)
{
	return (check_main(argc, argv));
}
