/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of CPUs.
 */
#include "machine/posix/cpulist.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Parses "3" or "0-2"; false: neither. */
static bool
parse_range(const char *item, int *first, int *last)
{
	int used = 0;

	if (sscanf(item, "%d-%d%n", first, last, &used) != 2) {
		used = 0;
		if (sscanf(item, "%d%n", first, &used) != 1)
			return (false);
		*last = *first;
	}
	return (item[used] == '\0' && *first >= 0 && *last >= *first &&
	    *last < CPU_SETSIZE);
}

/* Adds a range to the CPUs found; returns an errno value. */
static int
add_range(const char *item, int found[], unsigned *n)
{
	int first, last;

	if (!parse_range(item, &first, &last))
		return (EINVAL);
	for (int i = first; i <= last; i++) {
		if (*n == CPU_SETSIZE)
			return (EINVAL);
		found[(*n)++] = i;
	}
	return (0);
}

int
cpulist_parse(const char *list, int found[], unsigned *n)
{
	char copy[256], *save = NULL;
	int error = 0;

	*n = 0;
	if (strlen(list) >= sizeof(copy))
		return (EINVAL);
	strcpy(copy, list);
	for (char *item = strtok_r(copy, ",", &save); item != NULL && error == 0;
	    item = strtok_r(NULL, ",", &save))
		error = add_range(item, found, n);
	return (error == 0 && *n == 0 ? EINVAL : error);
}
