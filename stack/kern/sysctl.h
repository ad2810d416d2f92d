/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysctl: named values of a stack.  loader.conf may set tunables at boot; some
 * may also be set while running; counters are read-only.  Each subsystem
 * registers its table before loader.conf is read.
 */
#ifndef KERN_SYSCTL_H
#define KERN_SYSCTL_H

#include "kern/systm.h"

enum ctl_type {
	CTL_BOOL,	/* bool *, boot only: read without ordering */
	CTL_U32,	/* atomic_u32 *, range [min, max] */
	CTL_U64,	/* atomic_u64 *, a counter */
	CTL_STRING,	/* char[oid_max] */
	CTL_ENUM,	/* atomic_u32 *, index into oid_names */
	CTL_PROC	/* function */
};

#define	SYSCTL_NAME_LEN	64

#define	CTL_RD		0x0	/* read only: counter or fact */
#define	CTL_TUN		0x1	/* loader.conf may set it */
#define	CTL_RUN		0x2	/* may be set while running */
#define	CTL_PRESET	0x4	/* sets others; first of all in loader.conf */

struct sysctl_oid {
	const char	*oid_name;	/* "net.isr.dispatch" */
	enum ctl_type	 oid_type;
	unsigned	 oid_flags;
	void		*oid_ptr;
	/* Limits of the value; a CTL_PROC checks them itself. */
	uint64_t	 oid_min, oid_max;
	const char *const *oid_names;	/* CTL_ENUM, NULL at the end */
	const char	*oid_descr;	/* one line */
	/*
	 * CTL_PROC, or a hook after a set.  It is called with the new value as
	 * text (NULL: read) and prints the value into buf.  Returns an errno
	 * value; then buf holds the reason or is empty.
	 */
	int		(*oid_proc)(const struct sysctl_oid *, const char *newval,
			    char *buf, size_t len);
};

void	 sysctl_register(const struct sysctl_oid *table, size_t n);
/*
 * Adds a node with a name made at run time; it is never removed.  oid_name is
 * ignored.
 */
void	 sysctl_add(const struct sysctl_oid *, const char *fmt, ...)
	    PRINTFLIKE(2, 3);
/*
 * Registers names with a variable part, if.<name>.inet; set is called for each
 * match.
 */
void	 sysctl_register_prefix(const char *prefix,
	    int (*set)(const char *name, const char *value, char *err, size_t));
/* Errors: ENOENT, EINVAL (reason in err), EPERM (not settable now). */
int	 sysctl_set(const char *name, const char *value, char *err, size_t);
/* Whether it is a CTL_PRESET. */
bool	 sysctl_is_preset(const char *name);
/* Sets a CTL_ENUM whose names are kept elsewhere. */
int	 sysctl_set_enum(const struct sysctl_oid *, const char *value,
	    char *err, size_t);
int	 sysctl_get(const char *name, char *buf, size_t len);
/* Calls fn for each node, sorted by name. */
void	 sysctl_foreach(void (*fn)(const struct sysctl_oid *, const char *value,
	    void *arg), void *arg);

/*
 * During boot: another tunable or the machine overrides the configured value.
 * Prints the override with its reason and records it.  sysctl_asked() returns
 * the configured value and the reason, or NULL.
 */
void	 sysctl_forced(const char *name, const char *asked, const char *now,
	    const char *fmt, ...) PRINTFLIKE(4, 5);
const char *sysctl_asked(const char *name, const char **why);

#endif /* KERN_SYSCTL_H */
