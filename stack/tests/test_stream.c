/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP delivers the bytes that were sent, in order and once, whatever the
 * wire does to its segments.
 */
#include "tests/check.h"

#include "tests/net.h"

#define	MEGABYTE	(1024 * 1024)

static uint16_t next_port = 6000;

struct direction {
	struct socket	*so;
	uint64_t	 seed, len;
};

static void
sender(void *arg)
{
	struct direction *d = arg;

	t_stream_send(d->so, d->seed, d->len);
}

static void
receiver(void *arg)
{
	struct direction *d = arg;

	t_stream_recv(d->so, d->seed, d->len);
}

/* Streams in both directions at the same time over one connection. */
static void
exchange(const char *listen_ip, const char *call_ip, uint64_t len)
{
	uint16_t port = next_port++;
	struct socket *head = t_listen(listen_ip, port, 5);
	struct socket *a = t_connect(call_ip, port), *b = t_accept(head);
	struct direction there = { a, port, len };
	struct direction there_end = { b, port, len };
	struct direction back = { b, port + 1000000ULL, len / 2 };
	struct direction back_end = { a, port + 1000000ULL, len / 2 };
	struct thread *td[4] = {
		t_thread(sender, &there), t_thread(receiver, &there_end),
		t_thread(sender, &back), t_thread(receiver, &back_end),
	};

	for (size_t i = 0; i < nitems(td); i++)
		t_join(td[i]);
	soclose(a);
	soclose(b);
	soclose(head);
}

TEST(loopback)
{
	exchange("127.0.0.1", "127.0.0.1", 16 * MEGABYTE);
}

TEST(clean_wire_with_offload)
{
	exchange("10.9.0.1", "10.9.0.2", 16 * MEGABYTE);
}

TEST(clean_wire_without_offload)
{
	exchange("10.9.1.1", "10.9.1.2", 8 * MEGABYTE);
}

TEST(one_percent_lost)
{
	exchange("10.9.2.1", "10.9.2.2", 4 * MEGABYTE);
}

TEST(five_percent_lost)
{
	exchange("10.9.3.1", "10.9.3.2", MEGABYTE / 4);
}

TEST(reordered)
{
	exchange("10.9.4.1", "10.9.4.2", 4 * MEGABYTE);
}

TEST(duplicated)
{
	exchange("10.9.5.1", "10.9.5.2", 4 * MEGABYTE);
}

TEST(corrupted)
{
	exchange("10.9.6.1", "10.9.6.2", 2 * MEGABYTE);
}

TEST(everything_at_once)
{
	exchange("10.9.7.1", "10.9.7.2", MEGABYTE);
}

TEST(large_segments_lost)
{
	exchange("10.9.8.1", "10.9.8.2", 4 * MEGABYTE);
}

int
main(int argc, char **argv)
{
	const unsigned offload = IFCAP_TXCSUM | IFCAP_TSO4 | IFCAP_RXCSUM;
	const struct {
		const char *name, *prefix;
		unsigned caps;
		struct impair_config impair;
	} wires[] = {
		{ "mem0", "10.9.0.1/24", offload, { .seed = 1 } },
		{ "mem1", "10.9.1.1/24", 0, { .seed = 1 } },
		{ "mem2", "10.9.2.1/24", 0, { .loss = 10000, .seed = 2 } },
		{ "mem3", "10.9.3.1/24", 0, { .loss = 50000, .seed = 3 } },
		{ "mem4", "10.9.4.1/24", 0, { .reorder = 50000, .seed = 4 } },
		{ "mem5", "10.9.5.1/24", 0, { .dup = 50000, .seed = 5 } },
		{ "mem6", "10.9.6.1/24", 0, { .corrupt = 10000, .seed = 6 } },
		{ "mem7", "10.9.7.1/24", 0, { .loss = 10000, .dup = 10000,
		    .reorder = 20000, .corrupt = 5000, .seed = 7 } },
		{ "mem8", "10.9.8.1/24", offload, { .loss = 20000,
		    .seed = 8 } },
	};

	t_boot();
	for (size_t i = 0; i < nitems(wires); i++)
		t_mirror_attach(wires[i].name, wires[i].prefix,
		    wires[i].caps, &wires[i].impair);
	return (check_main(argc, argv));
}
