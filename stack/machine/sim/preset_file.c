/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machine files: one line for each cost, "name picoseconds", and one with
 * "cpus" and their number, all on one socket, each its own core.  A '#' starts
 * a comment.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/sim/sim.h"

#define	COST_MAX	1000000000000ULL	/* a second */

static const struct {
	const char	*name;
	size_t		 offset;
} costs[] = {
#define	X(name, what)	{ #name, offsetof(struct sim_costs, name) },
	SIM_COSTS(X)
#undef X
};
#define	NCOSTS	(sizeof(costs) / sizeof(costs[0]))

/* The preset being read, and which costs had a line. */
struct reader {
	struct sim_preset *preset;
	bool		 seen[NCOSTS];
};

static bool
set(struct reader *r, const char *name, unsigned long long value)
{
	if (strcmp(name, "cpus") == 0) {
		r->preset->cores = (unsigned)value;
		return (value >= 1 && value <= SIM_CPUS_MAX);
	}
	for (size_t i = 0; i < NCOSTS; i++)
		if (strcmp(name, costs[i].name) == 0) {
			*(psec_t *)((char *)&r->preset->costs +
			    costs[i].offset) = value;
			r->seen[i] = true;
			return (value <= COST_MAX);
		}
	return (false);
}

static bool
read_line(struct reader *r, char *line)
{
	unsigned long long value;
	char name[16], rest;

	line[strcspn(line, "#\n")] = '\0';
	if (line[strspn(line, " \t")] == '\0')
		return (true);
	return (strchr(line, '-') == NULL &&
	    sscanf(line, " %15s %llu %c", name, &value, &rest) == 2 &&
	    set(r, name, value));
}

static bool
read_lines(struct reader *r, FILE *f, const char *path)
{
	char line[256];

	for (unsigned n = 1; fgets(line, sizeof(line), f) != NULL; n++)
		if (!read_line(r, line)) {
			fprintf(stderr, "%s:%u: neither a cost in picoseconds, "
			    "at most a second, nor cpus: '%s'\n", path, n,
			    line);
			return (false);
		}
	return (true);
}

static bool
is_complete(const struct reader *r, const char *path)
{
	for (size_t i = 0; i < NCOSTS; i++)
		if (!r->seen[i]) {
			fprintf(stderr, "%s: missing line: %s\n", path,
			    costs[i].name);
			return (false);
		}
	if (r->preset->cores == 0)
		fprintf(stderr, "%s: missing line: cpus\n", path);
	return (r->preset->cores != 0);
}

const struct sim_preset *
sim_preset_read(const char *path)
{
	static struct sim_preset preset;
	struct reader r = { .preset = &preset };
	FILE *f = fopen(path, "r");
	bool good;

	if (f == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return (NULL);
	}
	preset = (struct sim_preset){ .name = "host", .what = path,
	    .sockets = 1, .threads = 1 };
	good = read_lines(&r, f, path) && is_complete(&r, path);
	fclose(f);
	return (good ? &preset : NULL);
}
