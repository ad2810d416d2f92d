/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simstack: runs the stack on the simulated machine, with any number of CPUs.
 * Its results are simulated, and equal in every run with one seed.  Each
 * number of CPUs runs in its own child, because a process can boot only one
 * stack.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "boot/boot.h"
#include "kern/systm.h"
#include "machine/posix/cpulist.h"
#include "machine/sim/sim.h"
#include "tools/argument.h"
#include "tools/explain.h"
#include "tools/simload.h"

#define	SETTINGS_MAX	64
#define	WARM_UP		(2 * NSEC_PER_MSEC)
#define	MS_MAX		100000
/* Lane mode: units of each stream, and the time until all have ended. */
#define	LANE_UNITS	1000
#define	LANE_TIME	(100 * NSEC_PER_MSEC)

/* The command line. */
static struct {
	const struct simload *load;
	const struct sim_preset *machine;
	int		 cpus[CPU_SETSIZE];
	unsigned	 ncpus;		/* numbers of CPUs */
	unsigned	 streams;	/* 0: one for each CPU */
	uint64_t	 seed;
	nsec_t		 duration;
	char		*settings[SETTINGS_MAX];	/* name=value */
	unsigned	 nsettings;
	const char	*log;		/* file, or NULL */
	bool		 json;
	bool		 lane;
	bool		 explain;
	uint64_t	 units; /* lane mode: units of each stream; else 0 */
} options = { .load = simloads, .machine = sim_presets, .cpus = { 1, 2, 4 },
    .ncpus = 3, .seed = 1, .duration = 10 * NSEC_PER_MSEC };

/* A result, sent by the child. */
struct result {
	unsigned	 streams;
	uint64_t	 units;		/* in the measured time */
	nsec_t		 time;
	uint64_t	 atomics, lines, locks; /* in the measured time */
	uint64_t	 blocks, instructions;
	uint64_t	 hash;		/* of the whole run */
	struct sim_explained lost;	/* valid in the child, with --explain */
	char		*explanation;	/* valid in the parent, or NULL */
};

static void
usage(FILE *out)
{
	fprintf(out, "usage: simstack [--workload NAME] [--cpus 1,2,4] "
	    "[--streams N] [--machine NAME]\n"
	    "                [--seed N] [--ms N] [--set name=value ...] "
	    "[--log FILE] [--json]\n"
	    "                [--explain]\n"
	    "       simstack --lane [--cpus 1] [--set name=value ...]\n"
	    "--lane     exactly what a unit of each workload costs, as JSON\n"
	    "--streams  how many there are of what the workload does: as many "
	    "as CPUs, at most %u\n"
	    "--seed     of what differs from run to run: 1\n"
	    "--ms       how long it is measured, in virtual time: 10\n"
	    "--machine  one of those below, or the path of a file with costs: "
	    "./host.machine\n"
	    "--set      a tunable, as in loader.conf\n"
	    "--log      writes all events, of one number of CPUs\n"
	    "--explain  which lines and locks the CPUs wait for, and where\n"
	    "workloads:\n", STREAMS_MAX);
	for (unsigned i = 0; i < nsimloads; i++)
		fprintf(out, "  %-10s %s\n", simloads[i].name,
		    simloads[i].what);
	fprintf(out, "machines:\n");
	for (unsigned i = 0; i < sim_npresets; i++)
		fprintf(out, "  %-10s %s\n", sim_presets[i].name,
		    sim_presets[i].what);
}

static const struct simload *
find_load(const char *name)
{
	for (unsigned i = 0; i < nsimloads; i++)
		if (strcmp(simloads[i].name, name) == 0)
			return (&simloads[i]);
	argument_refuse("no workload", name);
}

/* A preset by name, or a machine file by a path, which contains a slash. */
static const struct sim_preset *
find_machine(const char *name)
{
	const struct sim_preset *p = sim_preset_find(name);

	if (p == NULL && strchr(name, '/') == NULL)
		argument_refuse("no machine", name);
	if (p == NULL && (p = sim_preset_read(name)) == NULL)
		exit(EX_USAGE);
	return (p);
}

static void
parse_cpus(const char *list)
{
	if (cpulist_parse(list, options.cpus, &options.ncpus) != 0)
		argument_refuse("not numbers of CPUs like 1,2,4:", list);
}

static void
add_setting(char *text)
{
	if (strchr(text, '=') == NULL)
		argument_refuse("not name=value:", text);
	if (options.nsettings == SETTINGS_MAX)
		argument_refuse("too many tunables, from", text);
	options.settings[options.nsettings++] = text;
}

static void
parse_option(int option, char *value)
{
	switch (option) {
	case 'w':
		options.load = find_load(value);
		break;
	case 'c':
		parse_cpus(value);
		break;
	case 'n':
		options.streams = (unsigned)argument_whole("--streams", value,
		    1, STREAMS_MAX);
		break;
	case 'm':
		options.machine = find_machine(value);
		break;
	case 's':
		options.seed = argument_whole("--seed", value, 0, UINT64_MAX);
		break;
	case 't':
		options.duration = NSEC_PER_MSEC * argument_whole("--ms", value,
		    1, MS_MAX);
		break;
	case 'v':
		add_setting(value);
		break;
	case 'l':
		options.log = value;
		break;
	case 'L':
		options.lane = true;
		parse_cpus("1");
		break;
	case 'e':
		options.explain = true;
		break;
	case 'j':
		options.json = true;
		break;
	case 'h':
		usage(stdout);
		exit(0);
	default:
		usage(stderr);
		exit(EX_USAGE);
	}
}

static void
parse_options(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "workload", required_argument, NULL, 'w' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "streams", required_argument, NULL, 'n' },
		{ "machine", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, 's' },
		{ "ms", required_argument, NULL, 't' },
		{ "set", required_argument, NULL, 'v' },
		{ "log", required_argument, NULL, 'l' },
		{ "json", no_argument, NULL, 'j' },
		{ "explain", no_argument, NULL, 'e' },
		{ "lane", no_argument, NULL, 'L' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", longopts, NULL)) != -1)
		parse_option(option, optarg);
	if (optind < argc)
		argument_refuse("unexpected argument", argv[optind]);
}

static void
check_request(void)
{
	for (unsigned i = 0; i < options.ncpus; i++)
		if (options.cpus[i] < 1 || options.cpus[i] > SIM_CPUS_MAX ||
		    (unsigned)options.cpus[i] > sim_preset_cpus(options.machine)) {
			fprintf(stderr, "simstack: --cpus: the machine %s "
			    "has 1 to %u CPUs, not %d\n", options.machine->name,
			    sim_preset_cpus(options.machine), options.cpus[i]);
			exit(EX_USAGE);
		}
	if (options.log != NULL && options.ncpus != 1) {
		fprintf(stderr, "simstack: --log needs a single run: --cpus "
		    "with one number\n");
		exit(EX_USAGE);
	}
}

/* Sets the workload's tunables, then those of the command line. */
static int
configure(const char *arg)
{
	const struct result *result = (const void *)arg;
	int error = simload_set("boot_mute", "1");

	simload_limit(options.units);
	if (error == 0)
		error = options.load->configure(result->streams);
	for (unsigned i = 0; i < options.nsettings && error == 0; i++) {
		char *name = options.settings[i], *value = strchr(name, '=');

		*value = '\0';
		error = simload_set(name, value + 1);
		*value = '=';
	}
	return (error);
}

static void
sleep_for(nsec_t time)
{
	atomic_u32 word = 0;
	nsec_t deadline = mach_uptime() + time;

	while (mach_uptime() < deadline)
		(void)mach_park(&word, 0, deadline);
}

static uint64_t
lines_of(const struct sim_report *r)
{
	return (r->events[SIM_MEMORY] + r->events[SIM_SIBLING] +
	    r->events[SIM_SOCKET] + r->events[SIM_REMOTE]);
}

/* Adds the time spent since the previous call. */
static void
add_up(struct result *result, const struct sim_report *before)
{
	struct sim_report after;

	sim_report(&after);
	result->atomics = after.atomics - before->atomics;
	result->blocks = after.blocks - before->blocks;
	result->instructions = after.instructions - before->instructions;
	result->locks = after.locks - before->locks;
	result->lines = lines_of(&after) - lines_of(before);
}

/* On the machine: boots, and measures once all streams run. */
static void
measure(void *arg)
{
	struct result *result = arg;
	struct sim_report before, nothing = { .hash = 0 };

	if (stack_boot_config(configure, arg) != 0)
		_exit(1);	/* the reason has been printed */
	if (options.load->start != NULL)
		options.load->start(result->streams);
	if (options.lane) {
		sleep_for(LANE_TIME);
		add_up(result, &nothing);
		result->units = options.load->count(result->streams);
		return;
	}
	sleep_for(WARM_UP);
	result->units = options.load->count(result->streams);
	result->time = mach_uptime();
	sim_report(&before);
	sim_explain_begin(options.duration);
	sleep_for(options.duration);
	result->units = options.load->count(result->streams) - result->units;
	result->time = mach_uptime() - result->time;
	add_up(result, &before);
	sim_explain_end(&result->lost);
}

/* In a child: writes the result to a pipe. */
static _Noreturn void
simulate(unsigned ncpus, int out)
{
	struct sim_config config = { .machine = options.machine,
	    .ncpus = ncpus, .seed = options.seed, .explain = options.explain };
	struct result result = { .streams = options.streams };
	struct sim_report report;
	FILE *f;

	if (result.streams == 0)
		result.streams = ncpus < STREAMS_MAX ? ncpus : STREAMS_MAX;
	if (options.log != NULL && (config.log = fopen(options.log, "w")) == NULL) {
		fprintf(stderr, "simstack: %s: %s\n", options.log,
		    strerror(errno));
		_exit(1);
	}
	if (sim_run(&config, measure, &result, &report) != 0) {
		fprintf(stderr, "simstack: no memory for the machine\n");
		_exit(1);
	}
	result.hash = report.hash;
	if (config.log != NULL)
		fclose(config.log);
	f = fdopen(out, "w");
	if (f == NULL || fwrite(&result, sizeof(result), 1, f) != 1)
		_exit(1);
	if (options.explain)
		explain_print(f, &result.lost, options.json);
	_exit(fclose(f) == 0 ? 0 : 1);
}

/* The text that follows the result; NULL: none. */
static char *
read_explanation(FILE *in)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t n = getdelim(&text, &room, '\0', in);

	return (n > 0 ? text : NULL);
}

static struct result
run_child(unsigned ncpus)
{
	struct result result = { .streams = 0 };
	int ends[2], status = 0;
	bool complete;
	pid_t child;
	FILE *in;

	if (pipe(ends) != 0 || (child = fork()) < 0) {
		perror("simstack");
		exit(1);
	}
	if (child == 0)
		simulate(ncpus, ends[1]);
	close(ends[1]);
	in = fdopen(ends[0], "r");
	complete = in != NULL && fread(&result, sizeof(result), 1, in) == 1;
	result.explanation = complete ? read_explanation(in) : NULL;
	if (in != NULL)
		fclose(in);
	if (waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	    WEXITSTATUS(status) != 0)
		exit(1);	/* the reason has been printed */
	if (status != 0 || !complete) {
		fprintf(stderr, "simstack: the run with %u CPUs failed, see "
		    "above\n", ncpus);
		exit(1);
	}
	return (result);
}

static double
per(uint64_t what, uint64_t units)
{
	return (units == 0 ? 0 : (double)what / (double)units);
}

static double
rate(const struct result *r)
{
	return (per(r->units, r->time) * 1e9);
}

static void
print_row(unsigned ncpus, const struct result *r, double first)
{
	printf("%4u %7u %14.0f %8.2f %8.1f %7.2f %7.0f  %016llx\n", ncpus,
	    r->streams, rate(r), first == 0 ? 0 : rate(r) / first,
	    per(r->atomics, r->units), per(r->lines, r->units),
	    per(r->instructions, r->units), (unsigned long long)r->hash);
	if (r->explanation != NULL)
		printf("%s", r->explanation);
	fflush(stdout);
}

static void
print_head(void)
{
	printf("simulated: %s on %s, seed %llu; per %.*s: atomic operations, "
	    "lines fetched, instructions\n"
	    "cpus streams %12s/s  speedup  atomics   lines   instr  hash\n",
	    options.load->name, options.machine->name,
	    (unsigned long long)options.seed, (int)strlen(options.load->unit) - 1,
	    options.load->unit, options.load->unit);
}

static void
print_json_string(const char *s)
{
	putchar('"');
	for (; *s != '\0'; s++)
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < ' ')
			printf("\\u%04x", (unsigned)*s);
		else
			putchar(*s);
	putchar('"');
}

static void
print_json_head(void)
{
	printf("{\"simulated\": true, \"machine\": \"%s\", \"workload\": "
	    "\"%s\", \"seed\": %llu, \"unit\": \"%s/s\",\n \"set\": [",
	    options.machine->name, options.load->name,
	    (unsigned long long)options.seed, options.load->unit);
	for (unsigned i = 0; i < options.nsettings; i++) {
		printf("%s", i > 0 ? ", " : "");
		print_json_string(options.settings[i]);
	}
	printf("],\n \"runs\": [");
}

static void
print_json_run(unsigned ncpus, const struct result *r, bool first)
{
	printf("%s\n  {\"cpus\": %u, \"streams\": %u, \"rate\": %.3f, "
	    "\"atomics\": %.3f, \"lines\": %.3f, \"blocks\": %.3f, "
	    "\"instructions\": %.3f, \"hash\": \"%016llx\"",
	    first ? "" : ",", ncpus, r->streams,
	    rate(r), per(r->atomics, r->units), per(r->lines, r->units),
	    per(r->blocks, r->units), per(r->instructions, r->units),
	    (unsigned long long)r->hash);
	if (r->explanation != NULL)
		printf(",\n   \"explain\": %s", r->explanation);
	putchar('}');
}

/*
 * The cost of additional units; with several CPUs a longer run may by chance
 * cost less.
 */
static double
more(uint64_t half, uint64_t all, uint64_t units)
{
	return (((double)all - (double)half) / (double)units);
}

/*
 * The marginal cost of units: a run with twice as many, minus one with half of
 * them.  Both include boot, start and end.
 */
static void
print_lane_run(unsigned ncpus, bool first)
{
	struct result half, all;
	uint64_t n;

	options.units = LANE_UNITS;
	half = run_child(ncpus);
	options.units = 2 * LANE_UNITS;
	all = run_child(ncpus);
	n = all.units - half.units;
	if (n < (uint64_t)LANE_UNITS * all.streams) {
		fprintf(stderr, "simstack: the lane's %s did not end in time\n",
		    options.load->name);
		exit(1);
	}
	printf("%s\n  {\"workload\": \"%s\", \"unit\": \"%s\", \"cpus\": %u, "
	    "\"instructions\": %.3f, \"blocks\": %.3f, \"locks\": %.3f, "
	    "\"atomics\": %.3f, \"lines\": %.3f}",
	    first ? "" : ",", options.load->name, options.load->unit, ncpus,
	    more(half.instructions, all.instructions, n),
	    more(half.blocks, all.blocks, n),
	    more(half.locks, all.locks, n),
	    more(half.atomics, all.atomics, n), more(half.lines, all.lines, n));
	fflush(stdout);
}

static void
print_lane(void)
{
	printf("{\"simulated\": true, \"machine\": \"%s\", \"lane\": [",
	    options.machine->name);
	fflush(stdout);
	for (unsigned i = 0; i < nsimloads; i++) {
		options.load = &simloads[i];
		for (unsigned k = 0; k < options.ncpus; k++)
			print_lane_run((unsigned)options.cpus[k], i + k == 0);
	}
	printf("\n]}\n");
}

int
main(int argc, char **argv)
{
	double first = 0;

	parse_options(argc, argv);
	check_request();
	if (options.lane) {
		print_lane();
		return (0);
	}
	if (options.json)
		print_json_head();
	else
		print_head();
	fflush(stdout);		/* before fork() copies the buffer */
	for (unsigned i = 0; i < options.ncpus; i++) {
		unsigned ncpus = (unsigned)options.cpus[i];
		struct result r = run_child(ncpus);

		if (i == 0)
			first = rate(&r);
		if (options.json)
			print_json_run(ncpus, &r, i == 0);
		else
			print_row(ncpus, &r, first);
		fflush(stdout);
	}
	if (options.json)
		printf("\n]}\n");
	return (0);
}
