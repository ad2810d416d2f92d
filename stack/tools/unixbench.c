/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unixbench: what the locks of UNIX-domain sockets and of descriptors cost a
 * server and its clients; the same program on the stack and on the host.
 *
 *	unixbench [-w mysql|simple] [-n CLIENTS] [-t SECONDS]
 *
 * CLIENTS threads each ask, over a connection of their own, a thread of the
 * server in the same process.  A transaction of workload "simple" is a
 * message there and one back.  One of "mysql" is a query of one packet and an
 * answer of eight (columns and their end, a row, the end), in one write; the
 * reader of a packet receives its header and then its body, and before each
 * write the descriptor's flags are looked at and set.  So there are nine
 * receives, two fcntl() and twelve look-ups of a descriptor for each send, as
 * in Kennaway's profiles of MySQL of May 2006 (nine, two and eleven or so).
 *
 * Prints how many transactions there were in each of SECONDS after a
 * warm-up, and the seconds of CPU that the process used meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/clock.h"

#define	EX_USAGE	64
#define	WARM_UP		0.3		/* seconds */
#define	CLIENTS_MAX	1024
#define	BODY_MAX	64
#define	PACKETS_MAX	8

/* Length of what follows, and a number that nobody looks at. */
#define	HEADER		4

/* A message: its packets' bodies, bytes each, 0 at the end. */
struct message {
	uint8_t		 body[PACKETS_MAX + 1];
};

static const struct workload {
	const char	*name;
	struct message	 query, answer;
	bool		 packets;	/* header and body, and fcntl() */
} workloads[] = {
	{ "mysql", { { 48 } }, { { 1, 40, 40, 40, 40, 5, 60, 5 } }, true },
	{ "simple", { { 64 } }, { { 64 } }, false },
};

static const struct workload *load = &workloads[0];
static atomic_ullong done;		/* transactions */

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "unixbench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static _Noreturn void
usage(void)
{
	fprintf(stderr, "usage: unixbench [-w mysql|simple] [-n CLIENTS] "
	    "[-t SECONDS]\n");
	exit(EX_USAGE);
}

/* One write for all packets; false: the other end has gone. */
static bool
say(int fd, const struct message *m)
{
	char buf[PACKETS_MAX * (HEADER + BODY_MAX)] = { 0 };
	size_t len = 0;

	for (const uint8_t *body = m->body; *body != 0; body++) {
		if (load->packets) {
			buf[len] = (char)*body;
			len += HEADER;
		}
		len += *body;
	}
	if (load->packets && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL)) == -1)
		die("fcntl");
	return (send(fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static bool
receive(int fd, char *buf, size_t len)
{
	return (recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len);
}

/* Two receives for each packet. */
static bool
hear(int fd, const struct message *m)
{
	char buf[BODY_MAX];

	for (const uint8_t *body = m->body; *body != 0; body++) {
		if (load->packets && (!receive(fd, buf, HEADER) ||
		    buf[0] != (char)*body))
			return (false);
		if (!receive(fd, buf, *body))
			return (false);
	}
	return (true);
}

static void *
client(void *arg)
{
	const int fd = (int)(intptr_t)arg;

	while (say(fd, &load->query) && hear(fd, &load->answer))
		atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
	die("transaction");
}

static void *
serve_one(void *arg)
{
	const int fd = (int)(intptr_t)arg;

	while (hear(fd, &load->query) && say(fd, &load->answer))
		continue;
	close(fd);
	return (NULL);
}

static void
start_thread(void *(*fn)(void *), int fd)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, fn, (void *)(intptr_t)fd);
	if (errno != 0)
		die("thread");
	pthread_detach(thread);
}

/* A name that no other process has, and no file. */
static socklen_t
server_name(struct sockaddr_un *sun)
{
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1, "unixbench.%d",
	    (int)getpid());
	return ((socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
	    strlen(sun->sun_path + 1)));
}

static void
connect_all(int clients)
{
	struct sockaddr_un sun;
	const socklen_t len = server_name(&sun);
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd, peer;

	if (listener == -1 ||
	    bind(listener, (struct sockaddr *)&sun, len) != 0 ||
	    listen(listener, CLIENTS_MAX) != 0)
		die("listen");
	for (int i = 0; i < clients; i++) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (fd == -1 || connect(fd, (struct sockaddr *)&sun, len) != 0)
			die("connect");
		peer = accept(listener, NULL, NULL);
		if (peer == -1)
			die("accept");
		start_thread(serve_one, peer);
		start_thread(client, fd);
	}
}

static double
cpu_seconds(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return ((double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
	    (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6);
}

static void
measure(double seconds)
{
	unsigned long long before, count;
	double start, cpu;

	pause_for(WARM_UP);
	before = atomic_load(&done);
	start = now();
	cpu = cpu_seconds();
	pause_for(seconds);
	count = atomic_load(&done) - before;
	cpu = cpu_seconds() - cpu;
	printf("%.0f transactions/s\n%.2f CPU seconds\n",
	    (double)count / (now() - start), cpu);
	fflush(stdout);
	_exit(0);
}

static const struct workload *
workload_named(const char *name)
{
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++)
		if (strcmp(workloads[i].name, name) == 0)
			return (&workloads[i]);
	usage();
}

int
main(int argc, char **argv)
{
	int clients = 8, opt;
	double seconds = 2;

	while ((opt = getopt(argc, argv, "w:n:t:")) != -1)
		if (opt == 'w')
			load = workload_named(optarg);
		else if (opt == 'n')
			clients = atoi(optarg);
		else if (opt == 't')
			seconds = atof(optarg);
		else
			usage();
	if (optind != argc || clients < 1 || clients > CLIENTS_MAX ||
	    !(seconds > 0))
		usage();
	connect_all(clients);
	measure(seconds);
}
