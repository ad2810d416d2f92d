/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tunables that were overridden during boot: the table of configured values
 * and the reasons.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kern/kern_private.h"
#include "kern/sysctl.h"

#define	FORCED_MAX	256
#define	WHY_LEN		128

static struct {
	char		 name[SYSCTL_NAME_LEN];
	char		 asked[32];
	char		 why[WHY_LEN];
} forced[FORCED_MAX];		/* [I] after boot */
static unsigned nforced;	/* [I] after boot */

/* Index of a name, or where to insert it. */
static unsigned
forced_search(const char *name)
{
	unsigned i = 0;

	while (i < nforced && strcmp(forced[i].name, name) != 0)
		i++;
	return (i);
}

void
sysctl_forced(const char *name, const char *asked, const char *now,
    const char *fmt, ...)
{
	const unsigned i = forced_search(name);
	char why[WHY_LEN];
	size_t len;
	va_list ap;

	if (i == FORCED_MAX)
		panic("sysctl_forced: no room for %s", name);
	if (i == nforced) {
		snprintf(forced[i].name, sizeof(forced[i].name), "%s", name);
		snprintf(forced[i].asked, sizeof(forced[i].asked), "%s",
		    asked);
		nforced++;
	}
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	len = strlen(forced[i].why);
	snprintf(forced[i].why + len, sizeof(forced[i].why) - len, "%s%s",
	    len > 0 ? ", " : "", why);
	console("%s is %s, not %s: %s", name, now, forced[i].asked, why);
}

const char *
sysctl_asked(const char *name, const char **why)
{
	const unsigned i = forced_search(name);

	if (i == nforced)
		return (NULL);
	*why = forced[i].why;
	return (forced[i].asked);
}
