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

#define	LIBRARY	"libstack.so"	/* how the names of its files start */
#define	PRELOAD	"LD_PRELOAD="

static char *preload;	/* [I] after boot: PRELOAD and the stack's entries */

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

/* The entries of a list of libraries (ld.so(8)), of a given length. */
static bool
is_stack(const char *entry, size_t len)
{
	const char *file = memrchr(entry, '/', len);
	const size_t dir = file != NULL ? (size_t)(file + 1 - entry) : 0;

	return (len - dir >= sizeof(LIBRARY) - 1 &&
	    memcmp(entry + dir, LIBRARY, sizeof(LIBRARY) - 1) == 0);
}

/* Appends those entries that are the stack's, or those that are not. */
static void
append(char *to, const char *list, bool stack)
{
	size_t len;

	for (list += strspn(list, ": "); *list != '\0';
	    list += strspn(list, ": ")) {
		len = strcspn(list, ": ");
		if (is_stack(list, len) == stack) {
			strcat(to, to[sizeof(PRELOAD) - 1] != '\0' ? ":" : "");
			strncat(to, list, len);
		}
		list += len;
	}
}

/* Allocated: the variable with the entries of one kind; NULL: it has none. */
static char *
only(const char *list, bool stack)
{
	char *text = calloc(1, sizeof(PRELOAD) + strlen(list));

	if (text == NULL)
		panic("libstack: no memory for the environment");
	strcpy(text, PRELOAD);
	append(text, list, stack);
	if (text[sizeof(PRELOAD) - 1] != '\0')
		return (text);
	free(text);
	return (NULL);
}

void
environ_clear(void)
{
	const char *libraries = environ_find(environ, "LD_PRELOAD");
	char *others = NULL;
	size_t kept = 0;

	if (libraries != NULL) {
		preload = only(libraries, true);
		others = only(libraries, false);
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

/* One block: the elements, and LD_PRELOAD.  exec() may not call malloc(). */
char **
environ_with(char *const env[], const char *variable, bool strict)
{
	const char *others = environ_find(env, "LD_PRELOAD");
	const size_t room = preload == NULL ? 0 : strlen(preload) + 1 +
	    (others != NULL ? strlen(others) + 1 : 0);
	size_t n = 0, kept = 0;
	char **all;

	while (env[n] != NULL)
		n++;
	n += 4;
	api_enter();	/* no handler may interrupt the allocator */
	all = kmalloc(n * sizeof(*all) + room);
	api_leave(0);
	if (preload != NULL) {
		all[kept++] = strcpy((char *)&all[n], PRELOAD);
		if (others != NULL)
			append(all[0], others, false);
		append(all[0], preload + sizeof(PRELOAD) - 1, true);
	}
	for (; *env != NULL; env++)
		if (!is_ours(*env) && (preload == NULL ||
		    !is_variable(*env, "LD_PRELOAD")))
			all[kept++] = *env;
	all[kept++] = (char *)(uintptr_t)variable;
	if (strict)
		all[kept++] = (char *)(uintptr_t)"STACK_STRICT=1";
	return (all);
}

void
environ_free(char **all)
{
	api_enter();
	kfree(all);
	api_leave(0);
}
