/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP's send map, compared with a model that has one byte for each byte in
 * flight.
 */
#include "boot/boot.h"
#include "tests/check.h"

#include "machine/virtual/virtual.h"
#include "netinet/tcp_var.h"
#include "tests/net.h"

enum { MODEL_FLIGHT, MODEL_SACKED, MODEL_LOST };

static void
check_model(struct tcpcb *tp, const uint8_t *model, uint32_t una,
    uint32_t max)
{
	uint32_t sacked = 0, lost = 0, at = una, records = 0;
	const struct tcp_sent *r;

	TAILQ_FOREACH(r, &tp->t_sent, link) {
		CHECK_EQ(r->seq, at);
		CHECK(SEQ_LT(r->seq, r->end));
		for (; at != r->end; at++)
			CHECK_EQ(model[at], r->state);
		records++;
	}
	CHECK_EQ(at, max);
	for (at = una; at != max; at++) {
		sacked += model[at] == MODEL_SACKED;
		lost += model[at] == MODEL_LOST;
	}
	CHECK_EQ(tp->t_sackedbytes, sacked);
	CHECK_EQ(tp->t_lostbytes, lost);
	CHECK_EQ(tp->t_nsent, records);
}

TEST(send_map_agrees_with_a_model)
{
	static uint8_t model[200000];
	struct tcpcb *tp = calloc(1, sizeof(*tp));
	struct tcp_acked a = { .now = 0 };
	uint32_t una = 0, max = 0, x = 12345, from, to;

	tp->t_maxseg = 10;
	tcp_sent_init(tp);
	while (max < sizeof(model) - 400) {
		x = x * 1664525 + 1013904223;
		a.now++;
		if (x >> 30 == 0 && max - una < 2000) {
			to = max + 1 + (x >> 8) % 300;
			tcp_sent_add(tp, max, to, a.now);
			max = tp->snd_max = to;
		} else if (x >> 30 == 1 && max != una) {
			from = una + (x >> 4) % (max - una);
			to = from + 1 + (x >> 14) % (max - from);
			tp->t_maxseg = 1;	/* all splits allowed */
			tcp_sent_sack(tp, from, to, &a);
			memset(model + from, MODEL_SACKED, to - from);
		} else if (x >> 30 == 2) {
			from = (x >> 8) % 500;
			tcp_sent_lose(tp, from);
			for (to = una; to != max && to < una + from; to++)
				if (model[to] == MODEL_FLIGHT)
					model[to] = MODEL_LOST;
		} else if ((x >> 8) % 2 == 0 && !TAILQ_EMPTY(&tp->t_lost)) {
			from = TAILQ_FIRST(&tp->t_lost)->seq;
			to = TAILQ_FIRST(&tp->t_lost)->end;
			to = from + 1 + (x >> 9) % (to - from);
			tcp_sent_add(tp, from, to, a.now);
			memset(model + from, MODEL_FLIGHT, to - from);
		} else if (max != una) {
			una += (x >> 9) % (max - una + 1) / 3;
			tcp_sent_ack(tp, una, &a);
			tp->snd_una = una;
		}
		check_model(tp, model, una, max);
	}
	tcp_sent_flush(tp);
	CHECK_EQ(tp->t_nsent, 0);
	free(tp);
}

int
main(int argc, char **argv)
{
	mach_virtual_enter(true);
	CHECK_EQ(stack_boot(NULL), 0);
	return (check_main(argc, argv));
}
