/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of return addresses, by addr2line(1).
 */
#include "tools/explain_calls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define	FRAME_LEN	160
#define	NFRAMES		8	/* of one address: inlined calls */

/* An address, and the calls that it is part of, innermost first. */
struct address {
	uintptr_t	 pc;
	char		 frames[NFRAMES][FRAME_LEN];
	unsigned	 nframes;
};

static struct {
	struct address	*all;
	size_t		 count, room;
} addresses;

/*
 * Files of locks, counters, memory and the machine, by the last two parts of
 * their paths: what they wait for is caused by their callers.
 */
static const char *const tools[] = { "sim/", "machine/", "kern/lock",
    "kern/netlock", "kern/giant", "kern/counter", "kern/systm", "kern/subr",
    "??" };

static struct address *
find(uintptr_t pc)
{
	for (size_t i = 0; i < addresses.count; i++)
		if (addresses.all[i].pc == pc)
			return (&addresses.all[i]);
	return (NULL);
}

void
explain_calls_add(void *const calls[], int n)
{
	for (int i = 0; i < n; i++) {
		const uintptr_t pc = (uintptr_t)calls[i];

		if (find(pc) != NULL)
			continue;
		if (addresses.count == addresses.room) {
			addresses.room = addresses.room * 2 + 64;
			addresses.all = reallocarray(addresses.all,
			    addresses.room, sizeof(*addresses.all));
			if (addresses.all == NULL)
				abort();
		}
		addresses.all[addresses.count++] = (struct address){ .pc = pc };
	}
}

/* The last two parts of a path: kern/lock.c. */
static const char *
last_parts(const char *path)
{
	const char *at = path + strlen(path);
	unsigned slashes = 0;

	while (at > path && (at[-1] != '/' || ++slashes < 2))
		at--;
	return (at);
}

static void
add_frame(struct address *a, const char *function, const char *where)
{
	if (a->nframes < NFRAMES)
		snprintf(a->frames[a->nframes++], FRAME_LEN, "%.60s %s",
		    function, last_parts(where));
}

/* Reads the output: an address, then a function and a line for each call. */
static void
read_names(FILE *in)
{
	char line[4096], function[64] = "";
	struct address *a = NULL;
	size_t next = 0;

	while (fgets(line, sizeof(line), in) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0x", 2) == 0 && next < addresses.count) {
			a = &addresses.all[next++];
			function[0] = '\0';
		} else if (function[0] == '\0') {
			snprintf(function, sizeof(function), "%.60s", line);
		} else if (a != NULL) {
			line[strcspn(line, " ")] = '\0'; /* (discriminator) */
			add_frame(a, function, line);
			function[0] = '\0';
		}
	}
}

void
explain_calls_resolve(void)
{
	FILE *f = tmpfile(), *names;
	char command[128];

	if (f == NULL) {
		fprintf(stderr, "simstack: --explain: no temporary file: %s\n",
		    strerror(errno));
		exit(1);
	}
	/* a return address may lie after the line of its call */
	for (size_t i = 0; i < addresses.count; i++)
		fprintf(f, "0x%zx\n", (size_t)addresses.all[i].pc - 1);
	fflush(f);
	snprintf(command, sizeof(command), "addr2line -a -f -i -e "
	    "/proc/%d/exe </proc/%d/fd/%d", (int)getpid(), (int)getpid(),
	    fileno(f));
	names = popen(command, "re");
	if (names != NULL)
		read_names(names);
	if (names == NULL || pclose(names) != 0)
		fprintf(stderr, "simstack: --explain: addr2line(1) is needed "
		    "to name lines; install binutils\n");
	fclose(f);
}

/*
 * Whether a frame is part of a lock or of the machine, whose own code may be
 * built without line numbers: addr2line(1) then prints "lines.c:?".
 */
static bool
is_tool(const char *frame)
{
	const char *file = strchr(frame, ' ');

	if (frame[strlen(frame) - 1] == '?')
		return (true);
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (strncmp(file + 1, tools[i], strlen(tools[i])) == 0)
			return (true);
	return (false);
}

void
explain_calls_name(void *const calls[], int n, unsigned max, char *buf,
    size_t len)
{
	unsigned found = 0;
	size_t used = 0;

	snprintf(buf, len, "?");
	for (int i = 0; i < n; i++) {
		const struct address *a = find((uintptr_t)calls[i]);

		for (unsigned k = 0; a != NULL && k < a->nframes &&
		    found < max && used < len; k++) {
			if (found == 0 && is_tool(a->frames[k]))
				continue;
			used += (size_t)snprintf(buf + used, len - used,
			    "%s%s", found++ > 0 ? " < " : "", a->frames[k]);
		}
	}
}
