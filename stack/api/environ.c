/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What bootstack, or exec() of another process, set in the environment: how the
 * library boots.  It is read and removed before main(), and set again for
 * programs that this one executes.
 *
 * The functions of the C library are not used: a shell has its own ones by the
 * same names, which do not work before its main().
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"

static char *preload;		/* [I] after boot: all libraries */

static bool
is_variable(const char *text, const char *name)
{
	const size_t len = strlen(name);

	return (strncmp(text, name, len) == 0 && text[len] == '=');
}

static bool
is_ours(const char *text)
{
	return (is_variable(text, "STACK_CLIENT") ||
	    is_variable(text, "STACK_CONF") ||
	    is_variable(text, "STACK_STRICT"));
}

const char *
environ_find(char *const env[], const char *name)
{
	for (; *env != NULL; env++)
		if (is_variable(*env, name))
			return (*env + strlen(name) + 1);
	return (NULL);
}

/* The libraries that the program preloads itself; NULL: none. */
static char *
other_libraries(const char *libraries)
{
	char *copy = strdup(libraries), *rest, *name, *kept;
	const size_t room = sizeof("LD_PRELOAD=") + strlen(libraries);

	kept = calloc(1, room);
	if (copy == NULL || kept == NULL)
		panic("libstack: no memory for the environment");
	for (name = strtok_r(copy, ": ", &rest); name != NULL;
	    name = strtok_r(NULL, ": ", &rest)) {
		if (strstr(name, "libstack") != NULL)
			continue;
		strcat(kept, *kept == '\0' ? "LD_PRELOAD=" : ":");
		strcat(kept, name);
	}
	free(copy);
	if (*kept == '\0') {
		free(kept);
		kept = NULL;
	}
	return (kept);
}

void
environ_clear(void)
{
	const char *libraries = environ_find(environ, "LD_PRELOAD");
	char *others = NULL;
	size_t kept = 0;

	if (libraries != NULL) {
		preload = strdup(libraries);
		others = other_libraries(libraries);
	}
	for (size_t i = 0; environ[i] != NULL; i++) {
		if (is_variable(environ[i], "LD_PRELOAD")) {
			if (others != NULL)
				environ[kept++] = others;
			others = NULL;
		} else if (!is_ours(environ[i]))
			environ[kept++] = environ[i];
	}
	environ[kept] = NULL;
}

/* Allocated: the library after those that the program preloads. */
static char *
all_libraries(const char *others)
{
	const bool more = others != NULL && *others != '\0' &&
	    strncmp(preload, others, strlen(others)) != 0;
	char *text;

	return (asprintf(&text, "LD_PRELOAD=%s%s%s", more ? others : "",
	    more ? ":" : "", preload) != -1 ? text : NULL);
}

char **
environ_with(char *const env[], const char *variable, bool strict)
{
	const char *others = environ_find(env, "LD_PRELOAD");
	size_t n = 0, kept = 1;
	char **all;

	while (env[n] != NULL)
		n++;
	all = calloc(n + 4, sizeof(*all));
	if (all == NULL)
		return (NULL);
	/* the first element is the one that environ_free() frees */
	if (preload == NULL)
		kept = 0;
	else if ((all[0] = all_libraries(others)) == NULL) {
		free(all);
		return (NULL);
	}
	for (size_t i = 0; i < n; i++)
		if (!is_ours(env[i]) && (preload == NULL ||
		    !is_variable(env[i], "LD_PRELOAD")))
			all[kept++] = env[i];
	all[kept++] = (char *)(uintptr_t)variable;
	if (strict)
		all[kept++] = (char *)(uintptr_t)"STACK_STRICT=1";
	return (all);
}

void
environ_free(char **all)
{
	if (all != NULL && preload != NULL)
		free(all[0]);
	free(all);
}
