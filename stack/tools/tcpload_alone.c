/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcpload alone: each thread has both ends of its connections, turn by turn,
 * on its own CPU.
 */
#include "tools/tcpload.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

/* Both ends of a connection. */
struct pair {
	int		 client, server;
};

/* Makes round trips, one after the other. */
static void *
both_ends(void *arg)
{
	const struct pair *pairs = arg;
	char *buf = calloc(1, SIZE_MAX_RR);
	bool ok = buf != NULL;

	for (int i = 0; ok; i = (i + 1) % options.connections) {
		const struct pair *p = &pairs[i];

		ok = write_all(p->client, buf, options.size) &&
		    read_all(p->server, buf, options.size) &&
		    write_all(p->server, buf, options.size) &&
		    read_all(p->client, buf, options.size);
		count(ok);
	}
	die("transfer");
}

/*
 * Makes the connections of a thread.  The starting thread does this, because
 * concurrent accepts would mix up the ends.
 */
static struct pair *
make_pairs(int listener)
{
	struct pair *pairs = calloc((size_t)options.connections,
	    sizeof(*pairs));
	struct hello h;

	if (pairs == NULL)
		die("memory");
	for (int i = 0; i < options.connections; i++) {
		pairs[i].client = say_hello();
		pairs[i].server = accept(listener, NULL, NULL);
		if (pairs[i].server < 0 ||
		    !read_all(pairs[i].server, &h, sizeof(h)))
			die("accept");
		no_delay(pairs[i].server);
	}
	return (pairs);
}

/* Pins a thread to the n-th permitted CPU, round robin. */
static void
pin(pthread_t thread, unsigned n)
{
	cpu_set_t ours, its;
	size_t cpu = 0;

	if (sched_getaffinity(0, sizeof(ours), &ours) != 0)
		die("sched_getaffinity");
	while (!CPU_ISSET(cpu, &ours) || n-- > 0)
		cpu = (cpu + 1) % CPU_SETSIZE;
	CPU_ZERO(&its);
	CPU_SET(cpu, &its);
	errno = pthread_setaffinity_np(thread, sizeof(its), &its);
	if (errno != 0)
		die("pthread_setaffinity_np");
}

void
start_alone(int listener)
{
	struct pair *pairs[THREADS_MAX];

	for (int i = 0; i < options.threads; i++)
		pairs[i] = make_pairs(listener);
	for (int i = 0; i < options.threads; i++)
		pin(start_thread(both_ends, pairs[i]), (unsigned)i);
}
