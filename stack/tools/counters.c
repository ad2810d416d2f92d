/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A snapshot of all counters of a booted stack.
 */
#include "tools/counters.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/clock.h"
#include "tools/ctl_client.h"

#define	COLUMNS_MAX	16

static void __attribute__((format(printf, 3, 4)))
add(struct counters *c, uint64_t value, const char *fmt, ...)
{
	struct counter *to;
	va_list ap;

	if (c->n == c->size) {
		c->size = 2 * c->size + 64;
		c->list = realloc(c->list, c->size * sizeof(c->list[0]));
		if (c->list == NULL)
			abort();
	}
	to = &c->list[c->n++];
	to->value = value;
	va_start(ap, fmt);
	vsnprintf(to->name, sizeof(to->name), fmt, ap);
	va_end(ap);
}

/* Reads "if.tap0.stats.ipackets: 7"; tunables are skipped. */
static void
read_sysctl(struct counters *c, char *line)
{
	char *colon = strchr(line, ':'), *end;
	uint64_t value;

	if (colon == NULL || colon[1] != ' ')
		return;
	*colon = '\0';
	value = strtoull(colon + 2, &end, 10);
	if (end != colon + 2 && *end == '\0' &&
	    (strstr(line, ".stats.") != NULL || strncmp(line, "mbuf.", 5) == 0))
		add(c, value, "%s", line);
}

/* A row of netstat -Q: a workstream, a protocol, and columns of numbers. */
static void
read_netisr(struct counters *c, char *line)
{
	static char columns[COLUMNS_MAX][16];
	char *words[COLUMNS_MAX], *save = NULL, *word;
	unsigned n = 0;

	for (word = strtok_r(line, " ", &save); word != NULL &&
	    n < COLUMNS_MAX; word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	if (n > 0 && strcmp(words[0], "WS") == 0)
		for (unsigned i = 0; i < COLUMNS_MAX; i++)
			snprintf(columns[i], sizeof(columns[i]), "%s",
			    i < n ? words[i] : "");
	else
		for (unsigned i = 2; i < n && columns[i][0] != '\0'; i++)
			if (strcmp(columns[i], "QLimit") != 0 &&
			    strcmp(columns[i], "WMark") != 0)
				add(c, strtoull(words[i], NULL, 10),
				    "netisr.%s.%s.%s", words[0], words[1],
				    columns[i]);
}

/* A row of ps: number, CPU time, state, wait channel, name. */
static void
read_thread(struct counters *c, char *line)
{
	const size_t names = 51;	/* their column */
	unsigned long long cpu;
	unsigned id;

	if (strlen(line) > names && sscanf(line, "%u %llu", &id, &cpu) == 2)
		add(c, cpu, "thread.%u.%s", id, line + names);
}

static bool
ask(struct counters *c, const char *path, const char *request,
    void (*reader)(struct counters *, char *))
{
	char *text = NULL, *save = NULL, *line;
	size_t len;
	FILE *in, *out;
	int status;

	in = ctl_ask("stackctl", path, request);
	if (in == NULL)
		return (false);
	out = open_memstream(&text, &len);
	if (out == NULL)
		abort();
	status = ctl_answer("stackctl", in, out);
	fclose(out);
	for (line = strtok_r(text, "\n", &save); line != NULL;
	    line = strtok_r(NULL, "\n", &save))
		reader(c, line);
	free(text);
	return (status == 0);
}

bool
counters_ask(struct counters *c, const char *path)
{
	*c = (struct counters){ .date = now() };
	if (ask(c, path, "ps\n", read_thread) &&
	    ask(c, path, "sysctl -a\n", read_sysctl) &&
	    ask(c, path, "netstat -Q\n", read_netisr))
		return (true);
	counters_free(c);
	return (false);
}

void
counters_free(struct counters *c)
{
	free(c->list);
	*c = (struct counters){ 0 };
}

uint64_t
counters_value(const struct counters *c, const char *name, uint64_t otherwise)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->list[i].name, name) == 0)
			return (c->list[i].value);
	return (otherwise);
}
