/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simsearch: runs a scene under many schedules on the simulated machine, until
 * one goes wrong, and prints the command that does the same again.
 *
 * The stack boots once; each schedule is a child of that process, which may
 * fail as it likes.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "boot/boot.h"
#include "kern/sysctl.h"
#include "kern/systm.h"
#include "machine/sim/sim.h"
#include "tests/search/scenes.h"
#include "tools/argument.h"

#define	EX_FOUND	1
#define	SETTINGS_LEN	1024
#define	FIRST_POINTS	1000	/* points of a scene that has not run yet */
#define	LIMIT		3000000	/* points; scenes have thousands */
#define	HANGS		(900 * NSEC_PER_SEC)	/* later than any timer */

static const struct scene *const lists[] = { fd_scenes, kern_scenes,
    unix_scenes, inet_scenes };

/* The command line. */
static struct {
	const struct scene *scene;
	struct sim_search search;
	unsigned	 schedules, cpus;
	/* runs in this process, for a debugger */
	bool		 here;
	char		 settings[SETTINGS_LEN];
} asked = { .search = { .order = SIM_RANDOM, .seed = 1, .depth = 3,
    .points = FIRST_POINTS, .limit = LIMIT, .hangs = HANGS },
    .schedules = 100, .cpus = 4 };

/* What came out. */
static struct {
	unsigned	 schedules;
	uint64_t	 points;	/* of all */
	bool		 found;
} result;

static void
usage(FILE *out)
{
	fprintf(out, "usage: simsearch --scene NAME [--search random|pct] "
	    "[--schedules N] [--seed N]\n"
	    "                 [--depth N] [--points N] [--blocks] [--cpus N] "
	    "[--here]\n"
	    "                 [--set name=value ...] [--planted NAME]\n"
	    "--schedules how many are tried, with seeds from --seed on: 100\n"
	    "--depth     of pct: one more than it changes priorities: 3\n"
	    "--points    how many the first schedule is expected to have; "
	    "later ones as\n"
	    "            many as the one before\n"
	    "--blocks    each basic block is a point, too\n"
	    "--here      runs one schedule in this process, for a debugger\n"
	    "--set       a tunable, as in loader.conf\n"
	    "--planted   a race, in a build with -Dplanted=true "
	    "(kern/planted.h)\n"
	    "scenes:\n");
	for (unsigned i = 0; i < nitems(lists); i++)
		for (const struct scene *s = lists[i]; s->name != NULL; s++)
			fprintf(out, "  %-12s %s\n", s->name, s->what);
}

static const struct scene *
find_scene(const char *name)
{
	for (unsigned i = 0; i < nitems(lists); i++)
		for (const struct scene *s = lists[i]; s->name != NULL; s++)
			if (strcmp(s->name, name) == 0)
				return (s);
	argument_refuse("no scene", name);
}

static enum sim_order
find_order(const char *name)
{
	if (strcmp(name, "random") == 0)
		return (SIM_RANDOM);
	if (strcmp(name, "pct") == 0)
		return (SIM_PCT);
	argument_refuse("no search", name);
}

static void
add_setting(const char *name, const char *value)
{
	size_t len = strlen(asked.settings);
	int n;

	n = snprintf(asked.settings + len, sizeof(asked.settings) - len,
	    " %s%s", name, value);
	if (n < 0 || (size_t)n >= sizeof(asked.settings) - len)
		argument_refuse("too many tunables, from", value);
}

static void
parse_option(int option, const char *value)
{
	switch (option) {
	case 'w':
		asked.scene = find_scene(value);
		break;
	case 'o':
		asked.search.order = find_order(value);
		break;
	case 'n':
		asked.schedules = (unsigned)argument_whole("--schedules",
		    value, 1, UINT32_MAX);
		break;
	case 's':
		asked.search.seed = argument_whole("--seed", value, 0,
		    INT64_MAX);
		break;
	case 'd':
		asked.search.depth = (unsigned)argument_whole("--depth",
		    value, 1, SIM_DEPTH_MAX);
		break;
	case 'p':
		asked.search.points = argument_whole("--points", value, 1,
		    LIMIT);
		break;
	case 'c':
		asked.cpus = (unsigned)argument_whole("--cpus", value, 1,
		    SIM_CPUS_MAX);
		break;
	case 'b':
		asked.search.blocks = true;
		break;
	case 'g':
		asked.here = true;
		break;
	case 'v':
		if (strchr(value, '=') == NULL || strchr(value, ' ') != NULL)
			argument_refuse("not name=value:", value);
		add_setting("", value);
		break;
	case 'r':
		add_setting("debug.planted=", value);
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
	static const struct option options[] = {
		{ "scene", required_argument, NULL, 'w' },
		{ "search", required_argument, NULL, 'o' },
		{ "schedules", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "depth", required_argument, NULL, 'd' },
		{ "points", required_argument, NULL, 'p' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "blocks", no_argument, NULL, 'b' },
		{ "here", no_argument, NULL, 'g' },
		{ "set", required_argument, NULL, 'v' },
		{ "planted", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		parse_option(option, optarg);
	if (optind < argc)
		argument_refuse("unexpected argument", argv[optind]);
	if (asked.scene == NULL)
		argument_refuse("no scene", "");
}

static int
set(char *setting)
{
	char why[256] = "", *value = strchr(setting, '=');
	int error;

	*value++ = '\0';
	error = sysctl_set(setting, value, why, sizeof(why));
	if (error != 0)
		fprintf(stderr, "simsearch: %s=%s: %s\n", setting, value,
		    why[0] != '\0' ? why : strerror(error));
	return (error);
}

/* Settings like name=value: the scene's, then those of the command line. */
static int
configure(const char *settings)
{
	char copy[2 * SETTINGS_LEN], *save = NULL, *word;
	int error = 0;

	snprintf(copy, sizeof(copy), "boot_mute=1 machine.spin_us=0 %s %s",
	    asked.scene->settings, settings);
	for (word = strtok_r(copy, " ", &save); word != NULL && error == 0;
	    word = strtok_r(NULL, " ", &save))
		error = set(word);
	return (error);
}

static void
print_settings(void)
{
	char copy[SETTINGS_LEN], *save = NULL, *word;

	snprintf(copy, sizeof(copy), "%s", asked.settings);
	for (word = strtok_r(copy, " ", &save); word != NULL;
	    word = strtok_r(NULL, " ", &save))
		printf(" --set %s", word);
}

/* The command line that repeats this schedule. */
static void
print_command(const struct sim_search *s)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	printf("%s --scene %s --search %s --schedules 1 --seed %llu "
	    "--points %llu", self, asked.scene->name,
	    s->order == SIM_PCT ? "pct" : "random",
	    (unsigned long long)s->seed, (unsigned long long)s->points);
	if (s->order == SIM_PCT)
		printf(" --depth %u", s->depth);
	if (s->blocks)
		printf(" --blocks");
	if (asked.cpus != 4)
		printf(" --cpus %u", asked.cpus);
	print_settings();
}

/* One schedule, to its end; returns how many points it had. */
static uint64_t
run_here(const struct sim_search *s)
{
	sim_search(s);
	asked.scene->run();
	sim_memory_check();
	return (sim_search_points());
}

static _Noreturn void
run_in_child(const struct sim_search *s, int out, FILE *said)
{
	const struct rlimit none = { 0, 0 };
	uint64_t points;

	setrlimit(RLIMIT_CORE, &none);
	dup2(fileno(said), STDERR_FILENO);
	points = run_here(s);
	_exit(write(out, &points, sizeof(points)) == sizeof(points) ? 0 : 1);
}

static void
report(const struct sim_search *s, int status, FILE *said)
{
	char line[512];

	printf("%s: schedule %u goes wrong", asked.scene->name,
	    result.schedules);
	if (WIFSIGNALED(status))
		printf(" (%s)", strsignal(WTERMSIG(status)));
	printf("\n");
	rewind(said);
	while (fgets(line, sizeof(line), said) != NULL)
		printf("    %s", line);
	printf("again: ");
	print_command(s);
	printf("\nwith a debugger: gdb --args ");
	print_command(s);
	printf(" --here\n");
}

/* Returns true if the scene succeeded, and its number of points. */
static bool
run_schedule(const struct sim_search *s, uint64_t *points)
{
	FILE *said = tmpfile();
	int ends[2], status = 0;
	ssize_t n;
	pid_t child;

	fflush(stdout);
	if (said == NULL || pipe(ends) != 0 || (child = fork()) < 0) {
		perror("simsearch");
		exit(EX_USAGE);
	}
	if (child == 0)
		run_in_child(s, ends[1], said);
	close(ends[1]);
	n = read(ends[0], points, sizeof(*points));
	close(ends[0]);
	waitpid(child, &status, 0);
	result.schedules++;
	if (status != 0 || n != sizeof(*points)) {
		report(s, status, said);
		result.found = true;
	}
	fclose(said);
	return (!result.found);
}

/* On the machine. */
static void
search(void *arg)
{
	struct sim_search s = asked.search;
	uint64_t points;

	(void)arg;
	if (stack_boot_config(configure, asked.settings) != 0)
		exit(EX_USAGE);	/* the reason has been printed */
	if (asked.scene->prepare != NULL)
		asked.scene->prepare();
	if (asked.here) {
		(void)run_here(&s);
		return;
	}
	while (result.schedules < asked.schedules &&
	    run_schedule(&s, &points)) {
		result.points += points;
		s.points = points;
		s.seed++;
	}
}

int
main(int argc, char **argv)
{
	struct sim_config config = { .machine = sim_preset_find("generic"),
	    .seed = 1 };
	struct sim_report report_of_all;

	parse_options(argc, argv);
	config.ncpus = asked.cpus;
	if (sim_run(&config, search, NULL, &report_of_all) != 0) {
		fprintf(stderr, "simsearch: no memory for the machine\n");
		return (EX_USAGE);
	}
	if (result.found)
		return (EX_FOUND);
	if (!asked.here)
		printf("%s: nothing found in %u schedules, of %llu points on "
		    "average\n", asked.scene->name, result.schedules,
		    (unsigned long long)(result.points / result.schedules));
	return (0);
}
