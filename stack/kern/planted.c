/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selection of the planted race.
 */
#include "kern/planted.h"

#include "kern/sysctl.h"

static const char *const names[] = {
#define	X(id, name)	name,
	PLANTED_LIST(X)
#undef X
	NULL
};

atomic_u32 planted;
atomic_u64 planted_count;

static const struct sysctl_oid planted_oids[] = {
	{ .oid_name = "debug.planted", .oid_type = CTL_ENUM,
	    .oid_flags = CTL_TUN, .oid_ptr = &planted, .oid_names = names,
	    .oid_descr = "planted race to find by a search" },
};

void
planted_init(void)
{
	sysctl_register(planted_oids, nitems(planted_oids));
}
