/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.inet.tcp.input: selection of a locking strategy, lock operations shared
 * by strategies, and their counters.
 */
#include "netinet/tcp_lock.h"

#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/rx_burst.h"

/* Generated from the list in meson.build. */
#define	ADDRESS(strategy, name)	&tcp_lock_##strategy,
#define	NAME(strategy, name)	name,
static const struct tcp_lockops *const strategies[] = { TCP_LOCKS(ADDRESS) };
static const char *const names[] = { TCP_LOCKS(NAME) NULL };

struct tcp_lockops tcp_lockops;
struct tcp_lockstat tcp_lockstat COUNTERS;

static atomic_u32 chosen;		/* [I] after boot: index into both */

static const struct sysctl_oid lock_oids[] = {
	{ .oid_name = "net.inet.tcp.input", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &chosen, .oid_names = names,
	  .oid_descr = "locking strategy of TCP input: " TCP_LOCK_NAMES },
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

static void
mutex_lock(struct socket *so, const struct lock_site *site)
    ACQUIRES(so->so_lock)
{
	mtx_lock_at(&so->so_lock, site);
}

const struct so_lockops tcp_lock_mutex = {
	.sl_enter = tcp_lock_enter, .sl_leave = tcp_lock_leave,
	.sl_sleep = tcp_lock_sleep, .sl_lock = mutex_lock,
	.sl_unlock = tcp_lock_leave, .sl_owned = tcp_lock_owned,
};

static bool
outer_held(void)
{
	return (net_is_exclusive() || curthread->td_giant > 0);
}

static void
outer_lock(struct socket *so, const struct lock_site *site)
{
	(void)so, (void)site;
	KASSERT(outer_held(), ("%s has neither Giant nor the net lock",
	    curthread->td_name));
}

static void
outer_unlock(struct socket *so)
{
	(void)so;
}

static bool
outer_owned(struct socket *so)
{
	(void)so;
	return (outer_held());
}

const struct so_lockops tcp_lock_outer = {
	.sl_enter = tcp_lock_enter, .sl_leave = tcp_lock_leave,
	.sl_sleep = tcp_lock_sleep, .sl_lock = outer_lock,
	.sl_unlock = outer_unlock, .sl_owned = outer_owned,
};

void
tcp_lock_init(void)
{
	sysctl_register(lock_oids, nitems(lock_oids));
}

int
tcp_lock_start(void)
{
	const struct tcp_lockops *tlo = strategies[atomic_load_u32(&chosen)];

	tcp_lockops = *tlo;
	if (tlo->tlo_giant)
		net_needs_giant("net.inet.tcp.input");
	netlock_mode = tlo->tlo_net;
	rx_burst_last = tlo->tlo_rx_burst_end;
	rx_bursts = tlo->tlo_net != NETLOCK_NONE || tlo->tlo_rx_burst_end != NULL;
	so_lockops = tlo->tlo_lockops;
	if (tlo->tlo_defer != NULL)
		in_handoff_set(IPPROTO_TCP, HANDOFF_BATCH, tlo->tlo_defer);
	if (tlo->tlo_init != NULL)
		tlo->tlo_init();
	return (0);
}
