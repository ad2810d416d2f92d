/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loader.conf: lines of the form name="value" with # comments, as in
 * loader.conf(5).
 */
#include <errno.h>
#include <string.h>

#include "kern/kern_private.h"
#include "kern/sysctl.h"

#define	FILE_MAX_LEN	65536

static char *
skip_spaces(char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return (s);
}

/* Whether only white space or a comment follows. */
static bool
is_end(char *s)
{
	s = skip_spaces(s);
	return (*s == '\0' || *s == '#');
}

/*
 * Splits a line in place.  Returns NULL or an error message; *name is NULL for
 * a blank line.
 */
static const char *
split_line(char *line, char **name, char **value)
{
	char *end;

	*name = NULL;
	if (is_end(line))
		return (NULL);
	line = skip_spaces(line);
	end = line + strcspn(line, "= \t\"#");
	if (end == line)
		return ("expected a name");
	*value = skip_spaces(end);
	if (**value != '=')
		return ("expected '=' after the name");
	*value = skip_spaces(*value + 1);
	if (**value != '"')
		return ("the value must be in double quotes");
	*end = '\0';
	*name = line;
	end = strchr(++*value, '"');
	if (end == NULL)
		return ("the closing double quote is missing");
	*end = '\0';
	return (is_end(end + 1) ? NULL : "unexpected text after the value");
}

static int
set_line(const char *file, unsigned number, char *line)
{
	char why[256] = "", *name, *value = NULL;
	const char *bad;
	int error;

	bad = split_line(line, &name, &value);
	if (bad != NULL) {
		console("%s:%u: %s; a line is name=\"value\"", file, number,
		    bad);
		return (EINVAL);
	}
	if (name == NULL)
		return (0);
	error = sysctl_set(name, value, why, sizeof(why));
	if (error != 0)
		console("%s:%u: %s", file, number, why);
	return (error);
}

int
loader_parse(const char *file, char *text)
{
	char *line = text, *next;
	int error = 0;

	for (unsigned number = 1; line != NULL && error == 0; number++) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		line[strcspn(line, "\r")] = '\0';
		error = set_line(file, number, line);
		line = next;
	}
	return (error);
}

int
loader_read(const char *path)
{
	static char text[FILE_MAX_LEN + 1];
	ssize_t n;

	n = mach_readfile(path, text, sizeof(text));
	if (n < 0) {
		console("%s: %s", path, strerror((int)-n));
		return ((int)-n);
	}
	if (n > FILE_MAX_LEN || memchr(text, '\0', (size_t)n) != NULL) {
		console("%s: %s", path, n > FILE_MAX_LEN ?
		    "longer than 64 KB" : "is not a text file");
		return (EINVAL);
	}
	text[n] = '\0';
	return (loader_parse(path, text));
}
