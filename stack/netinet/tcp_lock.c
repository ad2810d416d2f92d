/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ladder of net.inet.tcp.input: which strategy it is, and what all of
 * them count.
 */
#include "netinet/tcp_lock.h"

#include <errno.h>
#include <stdio.h>

#include "kern/ctl.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "net/burst.h"
#include "net/netisr.h"

static const struct tcp_strategy tcp_strategy_socket = { .ts_name = "socket" };

static const struct tcp_strategy *const ladder[] = {
	&tcp_strategy_socket,
	&tcp_strategy_giant,
	&tcp_strategy_pcbinfo,
	&tcp_strategy_exclusive,
	&tcp_strategy_exclusive_socket,
	&tcp_strategy_shared_socket,
	&tcp_strategy_shared_socket_batch,
	&tcp_strategy_backlog,
};
static const char *const names[] = { "socket", "giant", "pcbinfo",
    "exclusive", "exclusive-socket", "shared-socket", "shared-socket-batch",
    "backlog", NULL };

struct tcp_strategy tcp_strategy;
struct tcp_lockstat tcp_lockstat COUNTERS;

static atomic_u32 chosen;		/* [I] after boot: index of both */

enum { TABLE_GLOBAL, TABLE_GROUPS, TABLE_BUCKET, TABLE_THREAD };
static const char *const table_names[] = { "global", "groups-lock", "bucket",
    "groups-thread", NULL };
static atomic_u32 table = TABLE_GROUPS;	/* [I] after boot: of these */
static atomic_u32 ngroups = 128;	/* [I] after boot */

static const struct sysctl_oid lock_oids[] = {
	{ .oid_name = "net.inet.tcp.input", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &chosen, .oid_names = names,
	  .oid_descr = "what input of TCP locks: socket, giant, pcbinfo, "
	  "exclusive, exclusive-socket, shared-socket, shared-socket-batch, "
	  "backlog" },
	{ .oid_name = "net.inet.tcp.pcbtable", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &table, .oid_names = table_names,
	  .oid_descr = "what a connection is looked up under: one lock "
	  "(global), one of pcbgroups (groups-lock), its bucket's (bucket), "
	  "none, since a worker alone does it (groups-thread)" },
	{ .oid_name = "net.inet.tcp.pcbgroups", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN, .oid_ptr = &ngroups, .oid_min = 1,
	  .oid_max = INPCB_BUCKETS,
	  .oid_descr = "groups of connections with pcbtable=groups-lock" },
#define	STAT_OID(name, descr)						\
	{ .oid_name = "net.inet.tcp.lock." #name, .oid_type = CTL_U64,	\
	  .oid_ptr = &tcp_lockstat.name, .oid_descr = descr },
	TCP_LOCK_STATS(STAT_OID)
};

void
tcp_lock_enter(struct socket *so)
{
	mtx_lock(&so->so_lock);
}

void
tcp_lock_leave(struct socket *so)
{
	mtx_unlock(&so->so_lock);
}

int
tcp_lock_sleep(struct socket *so, const void *chan, const char *wmesg,
    nsec_t timeout)
{
	return (msleep(chan, &so->so_lock, PCATCH, wmesg, timeout));
}

bool
tcp_lock_owned(struct socket *so)
{
	return (mtx_owned(&so->so_lock));
}

/* Those that only add the net lock to what "socket" does. */
static void
mutex_lock(struct socket *so, const struct lock_site *site) NO_LOCK_ANALYSIS
{
	mtx_lock_at(&so->so_lock, site);
}

static const struct so_lockops mutex_ops = {
	.sl_enter = tcp_lock_enter, .sl_leave = tcp_lock_leave,
	.sl_sleep = tcp_lock_sleep, .sl_lock = mutex_lock,
	.sl_unlock = tcp_lock_leave, .sl_owned = tcp_lock_owned,
};

const struct tcp_strategy tcp_strategy_exclusive_socket = {
	.ts_name = "exclusive-socket", .ts_net = NETLOCK_EXCLUSIVE,
};

const struct tcp_strategy tcp_strategy_shared_socket = {
	.ts_name = "shared-socket", .ts_net = NETLOCK_SHARED,
};

void
tcp_lock_init(void)
{
	_Static_assert(nitems(names) == nitems(ladder) + 1,
	    "a name for each strategy");
	sysctl_register(lock_oids, nitems(lock_oids));
}

int
tcp_lock_start(void)
{
	const struct tcp_strategy *ts = ladder[atomic_load_u32(&chosen)];

	tcp_strategy = *ts;
	if (ts->ts_giant)
		net_needs_giant("net.inet.tcp.input");
	netlock_mode = ts->ts_net;
	burst_last = ts->ts_last;
	net_bursts = ts->ts_net != NETLOCK_NONE || ts->ts_last != NULL;
	if (ts->ts_lockops != NULL)
		so_lockops = ts->ts_lockops;
	else if (net_bursts)
		so_lockops = &mutex_ops;
	if (ts->ts_init != NULL)
		ts->ts_init();
	return (0);
}

/* How many groups there are, where that is no choice. */
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

	switch (atomic_load_u32(&table)) {
	case TABLE_BUCKET:
		force_groups(INPCB_BUCKETS, "each bucket is a group");
		in_pcbtable_divide(&tcp_table, INPCB_BUCKETS);
		break;
	case TABLE_GROUPS:
		in_pcbtable_divide(&tcp_table, atomic_load_u32(&ngroups));
		break;
	case TABLE_THREAD:
		why = pcbtable_thread.po_start(&tcp_table, tcp_input_here);
		if (why != NULL) {
			console("net.inet.tcp.pcbtable: %s", why);
			return (EINVAL);
		}
		force_groups(netisr_workers(), "each worker has a group");
		break;
	}
	return (0);
}
