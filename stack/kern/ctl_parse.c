/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parser of control requests, separate from the server for the fuzzer.
 */
#include "kern/ctl.h"

#include <ctype.h>
#include <string.h>

static char *
skip_spaces(char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return (s);
}

static void
trim(char *s)
{
	size_t len = strlen(s);

	while (len > 0 && isspace((unsigned char)s[len - 1]))
		s[--len] = '\0';
}

static bool
is_name(const char *s)
{
	if (*s == '\0')
		return (false);
	for (; *s != '\0'; s++)
		if (!isalnum((unsigned char)*s) && strchr("._-:", *s) == NULL)
			return (false);
	return (true);
}

static const char *
parse_sysctl(char *arg, struct ctl_request *cr)
{
	char *value;

	if (strcmp(arg, "-a") == 0) {
		cr->cr_verb = CTL_ALL;
		return (NULL);
	}
	if (strcmp(arg, "-d") == 0) {
		cr->cr_verb = CTL_DESCRIBE;
		return (NULL);
	}
	if (strcmp(arg, "-t") == 0) {
		cr->cr_verb = CTL_TYPES;
		return (NULL);
	}
	value = strchr(arg, '=');
	if (value != NULL) {
		*value++ = '\0';
		trim(arg);
		cr->cr_value = skip_spaces(value);
	}
	cr->cr_verb = value != NULL ? CTL_SET : CTL_GET;
	cr->cr_name = arg;
	return (is_name(arg) ? NULL : "sysctl: expected -a, -d, -t, name or "
	    "name=value");
}

const char *
ctl_parse(char *line, struct ctl_request *cr)
{
	static const char verb[] = "sysctl";

	*cr = (struct ctl_request){ .cr_verb = CTL_COMMAND };
	line = skip_spaces(line);
	trim(line);
	if (*line == '\0')
		return ("empty request");
	for (const char *s = line; *s != '\0'; s++)
		if (!isprint((unsigned char)*s))
			return ("request has unprintable characters");
	if (strncmp(line, verb, sizeof(verb) - 1) == 0 &&
	    (line[sizeof(verb) - 1] == ' ' || line[sizeof(verb) - 1] == '\0'))
		return (parse_sysctl(skip_spaces(line + sizeof(verb) - 1), cr));
	cr->cr_name = line;
	return (NULL);
}
