/* SPDX-License-Identifier: BSD-2-Clause */
/* Command-line arguments; see argument.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "tools/argument.h"

_Noreturn void
argument_refuse(const char *what, const char *word)
{
	fprintf(stderr, "%s: %s '%s'; see %s --help\n",
	    program_invocation_short_name, what, word,
	    program_invocation_short_name);
	exit(EX_USAGE);
}

double
argument_number(const char *option, const char *word, double min, double max)
{
	char *end;
	double value = strtod(word, &end);

	if (end != word && *end == '\0' && value >= min && value <= max)
		return (value);
	fprintf(stderr, "%s: %s: '%s' is not in %.10g to %.10g\n",
	    program_invocation_short_name, option, word, min, max);
	exit(EX_USAGE);
}

uint64_t
argument_whole(const char *option, const char *word, uint64_t min,
    uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(word, &end, 10);
	if (*word >= '0' && *word <= '9' && *end == '\0' && errno == 0 &&
	    value >= min && value <= max)
		return (value);
	fprintf(stderr, "%s: %s: '%s' is not an integer from %llu to %llu\n",
	    program_invocation_short_name, option, word,
	    (unsigned long long)min, (unsigned long long)max);
	exit(EX_USAGE);
}
