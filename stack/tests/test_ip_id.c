/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifications of IPv4 datagrams, which threads take in blocks. */
#include "tests/check.h"

#include "netinet/ip_private.h"
#include "tests/net.h"
#include "tests/threads.h"

/* Each thread notes how often it got each (RFC 6864 section 4.3). */
#define	IDS		12000
static uint8_t ids[NTHREADS][65536];

static void
take_ids(void *arg)
{
	for (unsigned i = 0; i < IDS; i++) {
		forget_uptime();
		ids[(uintptr_t)arg][ip_newid()]++;
	}
}

TEST(threads_get_different_identifications)
{
	unsigned total = 0;

	memset(ids, 0, sizeof(ids));
	run_threads(take_ids);
	for (unsigned id = 0; id < 65536; id++) {
		unsigned users = 0;

		for (unsigned i = 0; i < NTHREADS; i++)
			users += ids[i][id];
		CHECK(users <= 1);
		total += users;
	}
	CHECK_EQ(total, NTHREADS * IDS);
}

TEST(a_slow_sender_wastes_no_identifications)
{
	uint16_t first;

	t_sleep(2);
	forget_uptime();
	first = ip_newid();
	for (uint16_t i = 1; i < 100; i++) {
		t_sleep(2);
		forget_uptime();
		CHECK_EQ(ip_newid(), (uint16_t)(first + i));
	}
}

int
main(int argc, char **argv)
{
	t_boot();
	return (check_main(argc, argv));
}
