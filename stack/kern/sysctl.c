/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysctl: the registry of names, and setting and printing of values.
 *
 * Subsystems register at boot, interfaces later.  Lookups are rare (control
 * socket, boot), so one sorted array under one lock is enough.
 */
#include "kern/sysctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/counter.h"
#include "kern/kern_private.h"
#include "kern/lock.h"

#define	OIDS_MAX	2048
#define	PREFIXES_MAX	16
#define	VALUE_MAX	512

bool booted;

static struct rwlock sysctl_lock;
/* [y] sorted by name */
static const struct sysctl_oid *oids[OIDS_MAX] GUARDED_BY(sysctl_lock);
static unsigned noids GUARDED_BY(sysctl_lock);		/* [y] */

/* Registered before loader.conf is read. */
static struct {
	const char	*prefix;
	int		(*set)(const char *, const char *, char *, size_t);
} prefixes[PREFIXES_MAX];
static unsigned nprefixes;

/* Index of name, or where to insert it. */
static unsigned
oid_search(const char *name, bool *found) REQUIRES_SHARED(sysctl_lock)
{
	unsigned lo = 0, hi = noids;

	*found = false;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		int cmp = strcmp(oids[mid]->oid_name, name);

		if (cmp == 0) {
			*found = true;
			return (mid);
		}
		if (cmp < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (lo);
}

static const struct sysctl_oid *
oid_find(const char *name)
{
	const struct sysctl_oid *oid;
	bool found;
	unsigned i;

	rw_rlock(&sysctl_lock);
	i = oid_search(name, &found);
	oid = found ? oids[i] : NULL;
	rw_runlock(&sysctl_lock);
	return (oid);
}

void
sysctl_register(const struct sysctl_oid *table, size_t n)
{
	rw_wlock(&sysctl_lock);
	for (size_t k = 0; k < n; k++) {
		bool found;
		unsigned i = oid_search(table[k].oid_name, &found);

		KASSERT(table[k].oid_type != CTL_BOOL ||
		    (table[k].oid_flags & CTL_RUN) == 0,
		    ("sysctl_register: %s changed while it was read",
		    table[k].oid_name));
		if (found || noids == OIDS_MAX)
			panic("sysctl_register: %s: %s", table[k].oid_name,
			    found ? "registered twice" : "no space");
		memmove(&oids[i + 1], &oids[i], (noids - i) * sizeof(oids[0]));
		oids[i] = &table[k];
		noids++;
	}
	rw_wunlock(&sysctl_lock);
}

void
sysctl_add(const struct sysctl_oid *template, const char *fmt, ...)
{
	struct { struct sysctl_oid oid; char name[SYSCTL_NAME_LEN]; } *o;
	va_list ap;
	int len;

	o = kmalloc(sizeof(*o));
	o->oid = *template;
	o->oid.oid_name = o->name;
	va_start(ap, fmt);
	len = vsnprintf(o->name, sizeof(o->name), fmt, ap);
	va_end(ap);
	KASSERT(len > 0 && len < SYSCTL_NAME_LEN, ("sysctl_add: %s", o->name));
	(void)len;
	sysctl_register(&o->oid, 1);
}

void
sysctl_register_prefix(const char *prefix,
    int (*set)(const char *, const char *, char *, size_t))
{
	KASSERT(!booted, ("sysctl_register_prefix: %s after boot", prefix));
	if (nprefixes == PREFIXES_MAX)
		panic("sysctl_register_prefix: no room for %s", prefix);
	prefixes[nprefixes].prefix = prefix;
	prefixes[nprefixes++].set = set;
}

static int
set_bool(const struct sysctl_oid *oid, const char *value, char *why, size_t len)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
		snprintf(why, len, "'%s' is neither 0 nor 1", value);
		return (EINVAL);
	}
	*(bool *)oid->oid_ptr = value[0] == '1';
	return (0);
}

static int
set_u32(const struct sysctl_oid *oid, const char *value, char *why, size_t len)
{
	uint64_t max = oid->oid_max != 0 ? oid->oid_max : UINT32_MAX;
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(value, &end, 0);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 ||
	    v < oid->oid_min || v > max) {
		snprintf(why, len, "'%s' is not a number from %llu to %llu",
		    value, (unsigned long long)oid->oid_min,
		    (unsigned long long)max);
		return (EINVAL);
	}
	atomic_store_u32(oid->oid_ptr, (uint32_t)v);
	return (0);
}

static int
set_string(const struct sysctl_oid *oid, const char *value, char *why,
    size_t len)
{
	if (strlen(value) >= oid->oid_max) {
		snprintf(why, len, "longer than %llu bytes",
		    (unsigned long long)oid->oid_max - 1);
		return (EINVAL);
	}
	strcpy(oid->oid_ptr, value);
	return (0);
}

int
sysctl_set_enum(const struct sysctl_oid *oid, const char *value, char *why,
    size_t len)
{
	size_t n;

	for (uint32_t i = 0; oid->oid_names[i] != NULL; i++)
		if (strcmp(oid->oid_names[i], value) == 0) {
			atomic_store_u32(oid->oid_ptr, i);
			return (0);
		}
	n = (size_t)snprintf(why, len, "'%s' is none of", value);
	for (uint32_t i = 0; oid->oid_names[i] != NULL && n < len; i++)
		n += (size_t)snprintf(why + n, len - n, " %s",
		    oid->oid_names[i]);
	return (EINVAL);
}

static int
oid_set(const struct sysctl_oid *oid, const char *value, char *why, size_t len)
{
	switch (oid->oid_type) {
	case CTL_BOOL:
		return (set_bool(oid, value, why, len));
	case CTL_U32:
		return (set_u32(oid, value, why, len));
	case CTL_STRING:
		return (set_string(oid, value, why, len));
	case CTL_ENUM:
		return (sysctl_set_enum(oid, value, why, len));
	case CTL_PROC:
		return (oid->oid_proc(oid, value, why, len));
	case CTL_U64:
		break;
	}
	return (EPERM);
}

static int
set_by_prefix(const char *name, const char *value, char *why, size_t len)
{
	for (unsigned i = 0; i < nprefixes; i++) {
		if (strncmp(name, prefixes[i].prefix,
		    strlen(prefixes[i].prefix)) != 0)
			continue;
		if (booted) {
			snprintf(why, len, "%s: can only be set at boot", name);
			return (EPERM);
		}
		return (prefixes[i].set(name, value, why, len));
	}
	snprintf(why, len, "unknown name '%s'; 'stackctl sysctl -d' lists them",
	    name);
	return (ENOENT);
}

int
sysctl_set(const char *name, const char *value, char *why, size_t len)
{
	const struct sysctl_oid *oid = oid_find(name);
	unsigned need = booted ? CTL_RUN : CTL_TUN;
	char reason[VALUE_MAX] = "";
	int error;

	if (oid == NULL)
		return (set_by_prefix(name, value, why, len));
	if ((oid->oid_flags & need) == 0) {
		snprintf(why, len, "%s: %s", name,
		    (oid->oid_flags & CTL_TUN) != 0 ?
		    "can only be set at boot" : "is read-only");
		return (EPERM);
	}
	error = oid_set(oid, value, reason, sizeof(reason));
	if (error != 0)
		snprintf(why, len, "%s: %s", name,
		    reason[0] != '\0' ? reason : strerror(error));
	return (error);
}

bool
sysctl_is_preset(const char *name)
{
	const struct sysctl_oid *oid = oid_find(name);

	return (oid != NULL && (oid->oid_flags & CTL_PRESET) != 0);
}

static void
oid_print(const struct sysctl_oid *oid, char *buf, size_t len)
{
	switch (oid->oid_type) {
	case CTL_BOOL:
		snprintf(buf, len, "%d", *(bool *)oid->oid_ptr);
		break;
	case CTL_U32:
		snprintf(buf, len, "%u", atomic_load_u32(oid->oid_ptr));
		break;
	case CTL_U64:
		snprintf(buf, len, "%llu",
		    (unsigned long long)counter_read(oid->oid_ptr));
		break;
	case CTL_STRING:
		snprintf(buf, len, "%s", (const char *)oid->oid_ptr);
		break;
	case CTL_ENUM:
		snprintf(buf, len, "%s",
		    oid->oid_names[atomic_load_u32(oid->oid_ptr)]);
		break;
	case CTL_PROC:
		buf[0] = '\0';
		oid->oid_proc(oid, NULL, buf, len);
		break;
	}
}

int
sysctl_get(const char *name, char *buf, size_t len)
{
	const struct sysctl_oid *oid = oid_find(name);

	if (oid == NULL)
		return (ENOENT);
	oid_print(oid, buf, len);
	return (0);
}

void
sysctl_foreach(void (*fn)(const struct sysctl_oid *, const char *, void *),
    void *arg)
{
	char value[VALUE_MAX];

	rw_rlock(&sysctl_lock);
	for (unsigned i = 0; i < noids; i++) {
		oid_print(oids[i], value, sizeof(value));
		fn(oids[i], value, arg);
	}
	rw_runlock(&sysctl_lock);
}

void
sysctl_init(void)
{
	rw_init(&sysctl_lock, LC_SYSCTL);
}
