/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "giant" and "exclusive": whoever touches a connection has a lock over the
 * whole stack, Giant or the net lock, and input takes none for a socket.
 * Socket calls still take the mutex, which nobody else has then, since that
 * is what they sleep with.
 */
#include "kern/thread.h"
#include "netinet/tcp_lock.h"

static bool
is_alone(void)
{
	return (net_alone() || curthread->td_giant > 0);
}

static void
nothing_lock(struct socket *so, const struct lock_site *site)
{
	(void)so, (void)site;
	KASSERT(is_alone(), ("%s has neither Giant nor the net lock",
	    curthread->td_name));
}

static void
nothing_unlock(struct socket *so)
{
	(void)so;
}

static bool
nothing_owned(struct socket *so)
{
	(void)so;
	return (is_alone());
}

static const struct so_lockops nothing = {
	.sl_enter = tcp_lock_enter, .sl_leave = tcp_lock_leave,
	.sl_sleep = tcp_lock_sleep, .sl_lock = nothing_lock,
	.sl_unlock = nothing_unlock, .sl_owned = nothing_owned,
};

const struct tcp_strategy tcp_strategy_giant = {
	.ts_name = "giant", .ts_giant = true, .ts_lockops = &nothing,
};

const struct tcp_strategy tcp_strategy_exclusive = {
	.ts_name = "exclusive", .ts_net = NETLOCK_EXCLUSIVE,
	.ts_lockops = &nothing,
};
