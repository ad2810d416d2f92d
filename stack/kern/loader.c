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

/* A line that sets a value. */
struct setting {
	unsigned	 number;	/* of the line */
	const char	*name, *value;
};

static int
set(const char *file, const struct setting *s)
{
	char why[256] = "";
	const int error = sysctl_set(s->name, s->value, why, sizeof(why));

	if (error != 0)
		console("%s:%u: %s", file, s->number, why);
	return (error);
}

/* Sets the values in the order of the file, but presets before all others. */
static int
set_all(const char *file, const struct setting *all, unsigned n)
{
	int error = 0;

	for (unsigned i = 0; i < n && error == 0; i++)
		if (sysctl_is_preset(all[i].name))
			error = set(file, &all[i]);
	for (unsigned i = 0; i < n && error == 0; i++)
		if (!sysctl_is_preset(all[i].name))
			error = set(file, &all[i]);
	return (error);
}

/* Splits the text in place into *n settings. */
static int
split(const char *file, char *text, struct setting *all, unsigned *n)
{
	char *line = text, *next, *name, *value = NULL;
	const char *bad;

	*n = 0;
	for (unsigned number = 1; line != NULL; number++, line = next) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		line[strcspn(line, "\r")] = '\0';
		bad = split_line(line, &name, &value);
		if (bad != NULL) {
			console("%s:%u: %s; a line is name=\"value\"", file,
			    number, bad);
			return (EINVAL);
		}
		if (name != NULL)
			all[(*n)++] = (struct setting){ number, name, value };
	}
	return (0);
}

static unsigned
count_lines(const char *text)
{
	unsigned n = 1;

	for (; (text = strchr(text, '\n')) != NULL; text++)
		n++;
	return (n);
}

int
loader_parse(const char *file, char *text)
{
	struct setting *all = kmalloc(count_lines(text) * sizeof(*all));
	unsigned n;
	int error = split(file, text, all, &n);

	if (error == 0)
		error = set_all(file, all, n);
	kfree(all);
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
