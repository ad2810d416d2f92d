/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostload: runs a workload of simstack on this host, for comparison.  Prints
 * the units done in a second, on the CPUs that the process may use.
 *
 *	taskset -c 0,1 hostload forward 2 200 net.isr.dispatch=deferred
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "boot/boot.h"
#include "kern/systm.h"
#include "tools/argument.h"
#include "tools/simload.h"

#define	WARM_UP		(50 * NSEC_PER_MSEC)
#define	MS_MAX		100000

static struct {
	const struct simload *load;
	unsigned	 streams;
	nsec_t		 duration;
	char		**settings;	/* name=value, until NULL */
} options;

static _Noreturn void
usage(void)
{
	fprintf(stderr, "usage: hostload WORKLOAD STREAMS MILLISECONDS "
	    "[name=value ...]\n"
	    "STREAMS are 1 to %u, MILLISECONDS 1 to %u; workloads:\n",
	    STREAMS_MAX, MS_MAX);
	for (unsigned i = 0; i < nsimloads; i++)
		fprintf(stderr, "  %-10s %s\n", simloads[i].name,
		    simloads[i].what);
	exit(EX_USAGE);
}

static void
parse_arguments(int argc, char **argv)
{
	if (argc < 4)
		usage();
	for (unsigned i = 0; i < nsimloads; i++)
		if (strcmp(simloads[i].name, argv[1]) == 0)
			options.load = &simloads[i];
	if (options.load == NULL)
		usage();
	options.streams = (unsigned)argument_whole("STREAMS", argv[2], 1,
	    STREAMS_MAX);
	options.duration = argument_whole("MILLISECONDS", argv[3], 1, MS_MAX) *
	    NSEC_PER_MSEC;
	options.settings = argv + 4;
	for (char **s = options.settings; *s != NULL; s++)
		if (strchr(*s, '=') == NULL)
			usage();
}

/* Sets the workload's tunables, then those of the command line. */
static int
configure(const char *arg)
{
	int error = simload_set("boot_mute", "1");

	(void)arg;
	if (error == 0)
		error = options.load->configure(options.streams);
	for (char **s = options.settings; *s != NULL && error == 0; s++) {
		char *value = strchr(*s, '=');

		*value = '\0';
		error = simload_set(*s, value + 1);
	}
	return (error);
}

static void
sleep_for(nsec_t time)
{
	struct timespec ts = { (time_t)(time / NSEC_PER_SEC),
	    (long)(time % NSEC_PER_SEC) };

	while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
		;
}

int
main(int argc, char **argv)
{
	uint64_t units;
	nsec_t time;

	parse_arguments(argc, argv);
	if (stack_boot_config(configure, NULL) != 0)
		return (1);	/* the reason has been printed */
	if (options.load->start != NULL)
		options.load->start(options.streams);
	sleep_for(WARM_UP);
	units = options.load->count(options.streams);
	time = mach_uptime();
	sleep_for(options.duration);
	units = options.load->count(options.streams) - units;
	time = mach_uptime() - time;
	printf("%.3f %s/s\n", (double)units * 1e9 / (double)time,
	    options.load->unit);
	fflush(stdout);
	_exit(0);	/* threads still run, and need no cleanup */
}
