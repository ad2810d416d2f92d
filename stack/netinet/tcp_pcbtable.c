/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.inet.tcp.pcbtable: how TCP's connection table is divided.
 */
#include <errno.h>
#include <stdio.h>

#include "kern/sysctl.h"
#include "net/netisr.h"
#include "netinet/tcp_lock.h"

enum { TABLE_GLOBAL, TABLE_GROUPS, TABLE_BUCKET, TABLE_THREAD };
static const char *const table_names[] = { "global", "groups-lock", "bucket",
    "groups-thread", NULL };
static atomic_u32 table = TABLE_GROUPS;	/* [I] after boot */
static atomic_u32 ngroups = 128;	/* [I] after boot */
enum { LISTENERS_LOCK, LISTENERS_EPOCH };
static const char *const listeners_names[] = { "lock", "epoch", NULL };
static atomic_u32 listeners = LISTENERS_EPOCH;	/* [I] after boot */

static const struct sysctl_oid table_oids[] = {
	{ .oid_name = "net.inet.tcp.listeners", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &listeners,
	  .oid_names = listeners_names,
	  .oid_descr = "what a lookup of a listener takes: the table's lock, "
	  "nothing (epoch)" },
	{ .oid_name = "net.inet.tcp.pcbtable", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &table, .oid_names = table_names,
	  .oid_descr = "lock of a connection lookup: one (global), one of "
	  "pcbgroups (groups-lock), its bucket's (bucket), none, in one "
	  "worker for each group (groups-thread)" },
	{ .oid_name = "net.inet.tcp.pcbgroups", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN, .oid_ptr = &ngroups, .oid_min = 1,
	  .oid_max = INPCB_BUCKETS,
	  .oid_descr = "groups of connections with pcbtable=groups-lock" },
};

void
tcp_table_init(void)
{
	sysctl_register(table_oids, nitems(table_oids));
}

/* Overrides the number of groups where the table determines it. */
static void
force_groups(unsigned n, const char *why)
{
	const unsigned wanted = atomic_load_u32(&ngroups);
	char asked[12], now[12];

	if (n == wanted)
		return;
	atomic_store_u32(&ngroups, n);
	snprintf(asked, sizeof(asked), "%u", wanted);
	snprintf(now, sizeof(now), "%u", n);
	sysctl_forced("net.inet.tcp.pcbgroups", asked, now, "%s", why);
}

int
tcp_table_start(void)
{
	const char *why;

	if (atomic_load_u32(&listeners) == LISTENERS_EPOCH)
		tcp_table.it_lookup = PCBLOOKUP_BOUND;
	switch (atomic_load_u32(&table)) {
	case TABLE_BUCKET:
		force_groups(INPCB_BUCKETS, "each bucket is a group");
		in_pcbtable_divide(&tcp_table, INPCB_BUCKETS);
		break;
	case TABLE_GROUPS:
		in_pcbtable_divide(&tcp_table, atomic_load_u32(&ngroups));
		break;
	case TABLE_THREAD:
		why = pcbtable_thread.po_start(&tcp_table);
		if (why != NULL) {
			console("net.inet.tcp.pcbtable: %s", why);
			return (EINVAL);
		}
		force_groups(netisr_workers(), "each worker has a group");
		break;
	}
	return (0);
}
