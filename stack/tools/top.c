/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stackctl top: shows the activity of a booted stack periodically, as top(1)
 * does for a host.
 *
 *	top [-b] [-n TIMES] [-d SECONDS]
 *
 * With -b the screen is not cleared, for files and scripts.  The first line
 * has all receive threads together: their idle CPU time, the packets received,
 * and the CPU time and cache misses of a packet.  Spinning for machine.spin_us
 * before parking counts as busy.
 */
#include "tools/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "tools/counters.h"
#include "tools/ctl_client.h"
#include "tools/perf.h"

#define	RECEIVERS_MAX	64

/* CPU counters of the receive threads. */
struct misses {
	int		 fds[RECEIVERS_MAX];
	unsigned	 n;
	bool		 kernel;	/* includes misses in the kernel */
	int		 error;		/* errno, if they are unavailable */
	uint64_t	 before;
};

/* The difference of two snapshots. */
struct change {
	const struct counters *was, *is;
	double		 seconds;
};

static bool
is_thread(const char *name)
{
	return (strncmp(name, "thread.", strlen("thread.")) == 0);
}

static const char *
thread_name(const char *name)
{
	return (strchr(name + strlen("thread."), '.') + 1);
}

static bool
is_receiver(const char *name)
{
	return (is_thread(name) &&
	    strncmp(thread_name(name), "intr: ", strlen("intr: ")) == 0);
}

/* "if.tap0.stats.ipackets", but not of the loopback interface. */
static bool
is_received(const char *name)
{
	const char *stats = strstr(name, ".stats.ipackets");

	return (stats != NULL && strncmp(name, "if.", 3) == 0 &&
	    strncmp(name, "if.lo0.", 7) != 0);
}

/* Change of a counter, in a second. */
static double
rate(const struct change *ch, const struct counter *c)
{
	return ((double)(int64_t)(c->value - counters_value(ch->was, c->name,
	    0)) / ch->seconds);
}

static double
rate_of_all(const struct change *ch, bool (*which)(const char *), unsigned *n)
{
	double sum = 0;

	*n = 0;
	for (size_t i = 0; i < ch->is->n; i++)
		if (which(ch->is->list[i].name)) {
			sum += rate(ch, &ch->is->list[i]);
			++*n;
		}
	return (sum);
}

static void
misses_open(struct misses *mi, const struct counters *c)
{
	*mi = (struct misses){ .kernel = true, .error = ESRCH };
	for (size_t i = 0; i < c->n && mi->n < RECEIVERS_MAX; i++) {
		bool kernel;
		int fd;

		if (!is_receiver(c->list[i].name))
			continue;
		fd = perf_open(atoi(c->list[i].name + strlen("thread.")),
		    &kernel);
		if (fd < 0) {
			mi->error = errno;
			continue;
		}
		mi->kernel = mi->kernel && kernel;
		mi->fds[mi->n++] = fd;
	}
}

static uint64_t
misses_since(struct misses *mi)
{
	uint64_t now = 0, since;

	for (unsigned i = 0; i < mi->n; i++)
		now += perf_read(mi->fds[i]);
	since = now - mi->before;
	mi->before = now;
	return (since);
}

static void
show_misses(FILE *out, struct misses *mi, double packets)
{
	double misses = (double)misses_since(mi);

	if (mi->n == 0)
		fprintf(out, "cache misses: not available (%s)\n",
		    strerror(mi->error));
	else if (packets > 0)
		fprintf(out, "cache misses: %.2f a packet%s\n",
		    misses / packets, mi->kernel ? "" : ", the host's not "
		    "counted");
	else
		fprintf(out, "cache misses: no packets\n");
}

static void
show_receivers(FILE *out, const struct change *ch, struct misses *mi)
{
	unsigned threads, interfaces;
	double busy = rate_of_all(ch, is_receiver, &threads) / 1e6;
	double packets = rate_of_all(ch, is_received, &interfaces);

	if (threads > 0)
		fprintf(out, "receive threads: %u, %.1f %% idle\n", threads,
		    100 * (1 - busy / threads));
	fprintf(out, "received: %.2f kpps\n", packets / 1000);
	if (packets > 0)
		fprintf(out, "CPU time: %.1f ns a packet\n",
		    busy * 1e9 / packets);
	show_misses(out, mi, packets * ch->seconds);
}

static const struct change *sorted_by;

static int
busier(const void *a, const void *b)
{
	const struct counter *const *x = a, *const *y = b;
	double difference = rate(sorted_by, *y) - rate(sorted_by, *x);

	return (difference > 0 ? 1 : difference < 0 ? -1 : 0);
}

static void
show_threads(FILE *out, const struct change *ch)
{
	const struct counter **threads = calloc(ch->is->n + 1,
	    sizeof(*threads));
	size_t n = 0;

	if (threads == NULL)
		abort();
	for (size_t i = 0; i < ch->is->n; i++)
		if (is_thread(ch->is->list[i].name))
			threads[n++] = &ch->is->list[i];
	sorted_by = ch;
	qsort(threads, n, sizeof(*threads), busier);
	fprintf(out, "\n%12s  %s\n", "CPU %", "thread");
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%12.1f  %s\n", rate(ch, threads[i]) / 1e4,
		    thread_name(threads[i]->name));
	free(threads);
}

/* Prints the counters that changed. */
static void
show_counters(FILE *out, const struct change *ch)
{
	fprintf(out, "\n%12s %16s  %s\n", "a second", "now", "counter");
	for (size_t i = 0; i < ch->is->n; i++) {
		const struct counter *c = &ch->is->list[i];

		if (!is_thread(c->name) && c->value !=
		    counters_value(ch->was, c->name, 0))
			fprintf(out, "%12.1f %16llu  %s\n", rate(ch, c),
			    (unsigned long long)c->value, c->name);
	}
}

/* Prints as much as fits the terminal. */
static void
refresh(const char *text)
{
	struct winsize ws;
	unsigned rows = 24;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 1)
		rows = ws.ws_row;
	printf("\033[H\033[2J");
	for (; rows > 1 && *text != '\0'; rows--) {
		size_t len = strcspn(text, "\n") + 1;

		fwrite(text, 1, len, stdout);
		text += len;
	}
}

static void
show(const struct change *ch, struct misses *mi, bool batch)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (out == NULL)
		abort();
	show_receivers(out, ch, mi);
	show_threads(out, ch);
	show_counters(out, ch);
	fclose(out);
	if (batch)
		printf("%s\n", text);
	else
		refresh(text);
	fflush(stdout);
	free(text);
}

static void
wait_for(double seconds)
{
	struct timespec ts = { (time_t)seconds,
	    (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&ts, NULL);
}

static int
watch(const char *path, bool batch, long times, double seconds)
{
	struct counters was, is;
	struct misses mi;

	if (!counters_ask(&was, path))
		return (EX_UNAVAILABLE);
	misses_open(&mi, &was);
	for (long i = 0; times == 0 || i < times; i++) {
		wait_for(seconds);
		if (!counters_ask(&is, path)) {
			counters_free(&was);
			return (EX_UNAVAILABLE);
		}
		show(&(struct change){ &was, &is, is.date - was.date }, &mi,
		    batch);
		counters_free(&was);
		was = is;
	}
	counters_free(&was);
	return (0);
}

int
top_main(const char *path, int argc, char **argv)
{
	double seconds = 1;
	bool batch = false;
	long times = 0;
	int opt;

	optind = 1;
	while ((opt = getopt(argc, argv, "bn:d:")) != -1)
		if (opt == 'b')
			batch = true;
		else if (opt == 'n')
			times = atol(optarg);
		else if (opt == 'd')
			seconds = atof(optarg);
		else
			break;
	if (opt != -1 || optind != argc || times < 0 || !(seconds >= 0.01 &&
	    seconds <= 3600)) {
		fprintf(stderr, "usage: stackctl -s SOCKET top [-b] [-n TIMES] "
		    "[-d SECONDS]\nTIMES 0: until interrupted; SECONDS from "
		    "0.01 to 3600\n");
		return (EX_USAGE);
	}
	return (watch(path, batch, times, seconds));
}
