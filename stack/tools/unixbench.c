/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unixbench: measures what the locks of UNIX-domain sockets and of descriptors
 * cost a server and its clients; the same program on the stack and on the
 * host.
 *
 *	unixbench [-w mysql|simple] [-n CLIENTS] [-t SECONDS]
 *	unixbench -s -p PORT
 *	unixbench -c ADDR -p PORT [-w mysql|simple] [-n CLIENTS] [-t SECONDS]
 *
 * With -s it runs on request of a unixbench -c, any number of times, one after
 * the other.  A request is a line over TCP, "mysql 8 2"; the response is what
 * would be printed.
 *
 * CLIENTS threads each send requests, over their own connection, to a server
 * thread in the same process.  A transaction of workload "simple" is a message
 * in each direction.  A transaction of "mysql" is a query of one packet and a
 * response of eight (columns and their end, a row, the end) in one write.  The
 * reader of a packet receives its header and then its body; before each write
 * the descriptor's flags are read and set.  There are therefore nine receives,
 * two fcntl() and twelve descriptor lookups for each send, as in Kennaway's
 * profiles of MySQL of May 2006 (nine, two and about eleven).
 *
 * Prints the number of transactions in each of SECONDS after a warm-up, and
 * the CPU seconds that the process used.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
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
#include <sysexits.h>
#include <unistd.h>

#include "tools/argument.h"
#include "tools/load_server.h"
#include "tools/clock.h"

#define	WARM_UP		0.3		/* seconds */
#define	CLIENTS_MAX	1024
#define	BODY_MAX	64
#define	PACKETS_MAX	8
#define	SECONDS_MAX	3600

/* The body's length, and a number that is not used. */
#define	HEADER		4

/* A message: the body lengths of its packets, 0 at the end. */
struct message {
	uint8_t		 body[PACKETS_MAX + 1];
};

static const struct workload {
	const char	*name;
	struct message	 query, answer;
	/* separate reads of header and body, and fcntl() */
	bool		 packets;
} workloads[] = {
	{ "mysql", { { 48 } }, { { 1, 40, 40, 40, 40, 5, 60, 5 } }, true },
	{ "simple", { { 64 } }, { { 64 } }, false },
};

/* A run. */
struct job {
	const struct workload *workload;
	int		 clients;
	double		 seconds;
};

static const struct workload *load;	/* while clients run */
static atomic_ullong done;		/* transactions */
static atomic_bool over;		/* clients must end */

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
	    "[-t SECONDS]\n"
	    "       unixbench -s -p PORT\n"
	    "       unixbench -c ADDR -p PORT [-w mysql|simple] [-n CLIENTS] "
	    "[-t SECONDS]\n");
	exit(EX_USAGE);
}

/* One write for all packets; false: the other end has closed. */
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

	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		if (!say(fd, &load->query) || !hear(fd, &load->answer))
			die("transaction");
		atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
	}
	close(fd);
	return (NULL);
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

static pthread_t
start_thread(void *(*fn)(void *), int fd)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, fn, (void *)(intptr_t)fd);
	if (errno != 0)
		die("thread");
	return (thread);
}

/* A name that no other process uses, and without a file. */
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

/* Starts two threads for each client. */
static void
start_all(int clients, pthread_t *threads)
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
		threads[2 * i] = start_thread(serve_one, peer);
		threads[2 * i + 1] = start_thread(client, fd);
	}
	close(listener);
}

static double
cpu_seconds(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return ((double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
	    (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6);
}

/* Stores the result in a text of LOAD_LINE bytes. */
static void
measure(const struct job *job, char *said)
{
	pthread_t threads[2 * CLIENTS_MAX];
	unsigned long long before, count;
	double start, took, cpu;

	load = job->workload;
	atomic_store(&over, false);
	start_all(job->clients, threads);
	pause_for(WARM_UP);
	before = atomic_load(&done);
	start = now();
	cpu = cpu_seconds();
	pause_for(job->seconds);
	count = atomic_load(&done) - before;
	took = now() - start;
	cpu = cpu_seconds() - cpu;
	atomic_store(&over, true);
	for (int i = 0; i < 2 * job->clients; i++)
		pthread_join(threads[i], NULL);
	snprintf(said, LOAD_LINE, "%.0f transactions/s\n%.2f CPU seconds\n",
	    (double)count / took, cpu);
}

static const struct workload *
workload_named(const char *name)
{
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++)
		if (strcmp(workloads[i].name, name) == 0)
			return (&workloads[i]);
	return (NULL);
}

/* A number from min to max; 0 for anything else. */
static double
number(const char *text, double min, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= min && value <= max))
		return (0);
	return (value);
}

/* Parses a job; false: a word that usage() does not list. */
static bool
job_read(struct job *job, const char *workload, const char *clients,
    const char *seconds)
{
	job->workload = workload_named(workload);
	job->clients = (int)number(clients, 1, CLIENTS_MAX);
	job->seconds = number(seconds, 0.01, SECONDS_MAX);
	return (job->workload != NULL && job->clients != 0 &&
	    job->seconds != 0);
}

static void
run_request(const char *line, char *said)
{
	char words[3][LOAD_LINE];
	struct job job;

	if (sscanf(line, "%127s %127s %127s", words[0], words[1],
	    words[2]) == 3 && job_read(&job, words[0], words[1], words[2]))
		measure(&job, said);
	else
		snprintf(said, LOAD_LINE, "unixbench: unknown load; an "
		    "example is \"mysql 8 2\"\n");
}

int
main(int argc, char **argv)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	const char *workload = "mysql", *clients = "8", *seconds = "2";
	const char *server = NULL;
	char line[LOAD_LINE];
	bool serving = false;
	struct job job;
	int opt;

	while ((opt = getopt(argc, argv, "c:n:p:st:w:")) != -1)
		if (opt == 'w')
			workload = optarg;
		else if (opt == 'n')
			clients = optarg;
		else if (opt == 't')
			seconds = optarg;
		else if (opt == 'c')
			server = optarg;
		else if (opt == 'p')
			sin.sin_port = htons((in_port_t)argument_whole("-p",
			    optarg, 1, UINT16_MAX));
		else if (opt == 's')
			serving = true;
		else
			usage();
	if (optind != argc || (serving && server != NULL) ||
	    (serving || server != NULL) != (sin.sin_port != 0) ||
	    !job_read(&job, workload, clients, seconds) || (server != NULL &&
	    inet_pton(AF_INET, server, &sin.sin_addr) != 1))
		usage();
	if (serving)
		load_server_run("unixbench", ntohs(sin.sin_port), run_request);
	snprintf(line, sizeof(line), "%s %s %s\n", workload, clients, seconds);
	if (server != NULL)
		return (load_request("unixbench", (struct sockaddr *)&sin,
		    sizeof(sin), line));
	measure(&job, line);
	fputs(line, stdout);
	return (0);
}
