/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Giant: one recursive lock over the whole stack (Watson 2004).
 *
 * With debug.mpsafenet=0 every entry into the stack takes it; with 1 only
 * components that declare a need for it do.  It comes before every other lock.
 * It is dropped while its owner sleeps, at any depth of recursion.
 *
 * A component that is not MP-safe declares that by name.  During boot this
 * puts Giant over the whole stack.  Later only a warning is printed and
 * counted, because threads may already be inside without Giant.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/kern_private.h"
#include "kern/lock.h"
#include "kern/sysctl.h"
#include "kern/thread.h"

#define	NAMES_MAX	128
#define	COMPONENTS_MAX	16

bool mpsafenet = true;

static struct mtx giant;
static bool giant_settled;	/* [I] after boot: cannot change any more */
static char needs_giant[NAMES_MAX];	/* components that tunables name */
static char forced_by[NAMES_MAX];	/* [I] after boot */
static atomic_u64 mpsafenet_warnings;

/* Those that debug.needsgiant may name, in alphabetical order. */
static const char *components[COMPONENTS_MAX];	/* [I] after boot */
static unsigned ncomponents;			/* [I] after boot */

void
giant_component(const char *name)
{
	unsigned i = ncomponents++;

	KASSERT(i < COMPONENTS_MAX, ("giant_component: too many"));
	for (; i > 0 && strcmp(components[i - 1], name) > 0; i--)
		components[i] = components[i - 1];
	components[i] = name;
}

static const char *
find_component(const char *name)
{
	for (unsigned i = 0; i < ncomponents; i++)
		if (strcmp(components[i], name) == 0)
			return (components[i]);
	return (NULL);
}

void
net_needs_giant(const char *component)
{
	size_t len = strlen(forced_by);

	if (!mpsafenet && len == 0)
		return;		/* loader.conf has set it already */
	if (!giant_settled) {
		sysctl_forced("debug.mpsafenet", "1", "0", "%s needs Giant",
		    component);
		mpsafenet = false;
		snprintf(forced_by + len, sizeof(forced_by) - len, "%s%s",
		    len > 0 ? " " : "", component);
		return;
	}
	if (!mpsafenet)
		return;
	console("warning: %s needs Giant, and the stack runs without it",
	    component);
	if (atomic_fetchadd_u64(&mpsafenet_warnings, 1) == 0)
		console("set debug.mpsafenet=\"0\" in loader.conf; it cannot "
		    "change after the boot");
}

/* Calls fn, if not NULL, for each name of a list; false: unknown name. */
static bool
each_component(const char *list, void (*fn)(const char *))
{
	char copy[NAMES_MAX], *rest = NULL, *name;

	snprintf(copy, sizeof(copy), "%s", list);
	for (name = strtok_r(copy, " ", &rest); name != NULL;
	    name = strtok_r(NULL, " ", &rest)) {
		const char *component = find_component(name);

		if (component == NULL)
			return (false);
		if (fn != NULL)
			fn(component);
	}
	return (true);
}

static int
proc_needsgiant(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	size_t n;

	(void)oid;
	if (value == NULL) {
		snprintf(buf, len, "%s", needs_giant);
		return (0);
	}
	if (strlen(value) < sizeof(needs_giant) &&
	    each_component(value, NULL)) {
		strcpy(needs_giant, value);
		if (giant_settled)
			each_component(value, net_needs_giant);
		return (0);
	}
	n = (size_t)snprintf(buf, len, "'%s' is not a list of", value);
	for (unsigned i = 0; i < ncomponents && n < len; i++)
		n += (size_t)snprintf(buf + n, len - n, " %s", components[i]);
	return (EINVAL);
}

static const struct sysctl_oid giant_oids[] = {
	{ .oid_name = "debug.mpsafenet", .oid_type = CTL_BOOL,
	    .oid_flags = CTL_TUN, .oid_ptr = &mpsafenet,
	    .oid_descr = "0: Giant over the whole stack" },
	{ .oid_name = "debug.mpsafenet_forced_by", .oid_type = CTL_STRING,
	    .oid_ptr = forced_by, .oid_max = sizeof(forced_by),
	    .oid_descr = "components that set debug.mpsafenet to 0" },
	{ .oid_name = "debug.mpsafenet_warnings", .oid_type = CTL_U64,
	    .oid_ptr = &mpsafenet_warnings,
	    .oid_descr = "components that needed Giant after the boot" },
	{ .oid_name = "debug.needsgiant", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_proc = proc_needsgiant,
	    .oid_descr = "components to treat as not MP-safe; an error "
	    "lists all" },
};

void
giant_init(void)
{
	mtx_init(&giant, LC_GIANT);
	sysctl_register(giant_oids, nitems(giant_oids));
}

int
giant_start(void)
{
	each_component(needs_giant, net_needs_giant);
	giant_settled = true;
	return (0);
}

bool
giant_owned(void)
{
	return (curthread->td_giant > 0);
}

/*
 * Acquires the mutex for td_giant, which records that the thread holds it.
 * Not analysed, because it returns with the mutex held.
 */
static inline void
giant_take(const struct lock_site *site) NO_LOCK_ANALYSIS
{
	mtx_lock_at(&giant, site);
}

static inline void
giant_give(void)
{
	mtx_assert_owned(&giant);
	mtx_unlock(&giant);
}

NOINLINE void
giant_lock_at(const struct lock_site *site)
{
	struct thread *td = curthread;

	if (td->td_giant++ == 0)
		giant_take(site);
}

NOINLINE void
giant_unlock(void)
{
	struct thread *td = curthread;

	KASSERT(td->td_giant > 0, ("giant_unlock: %s does not hold it",
	    td->td_name));
	if (--td->td_giant == 0)
		giant_give();
}

void
giant_enter_at(const struct lock_site *site)
{
	if (!mpsafenet)
		giant_lock_at(site);
}

void
giant_exit(void)
{
	if (!mpsafenet)
		giant_unlock();
}

unsigned
giant_drop(void)
{
	struct thread *td = curthread;
	unsigned depth = td->td_giant;

	if (depth > 0) {
		td->td_giant = 0;
		giant_give();
	}
	return (depth);
}

void
giant_pickup(unsigned depth)
{
	if (depth > 0) {
		giant_take(LOCK_SITE);
		curthread->td_giant = depth;
	}
}
