/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue of packets whose protocol needs the net lock exclusively.
 */
#include "netinet/in_exclusive.h"

#include <errno.h>
#include <string.h>

#include "kern/counter.h"
#include "kern/netlock.h"
#include "kern/sysctl.h"
#include "kern/worker.h"
#include "net/rx_burst.h"
#include "netinet/in_handoff.h"

#define	QUEUE_MAX	1024	/* max packets; more are dropped */

static worker_fn exclusive_work;

static struct {
	struct mtx	 lock;
	struct mbufq	 packets GUARDED_BY(lock);	/* [q] lock */
	struct worker	 worker;
} queue = {
	.worker = { .w_lock = &queue.lock, .w_fn = exclusive_work,
	    .w_wmesg = "exclusive" },
};

static char names[64];			/* [I] after boot */
static atomic_u64 queued COUNTERS, drops COUNTERS;
static atomic_u64 longest;		/* [a] written under queue.lock */

static const struct sysctl_oid exclusive_oids[] = {
	{ .oid_name = "net.inet.ip.alone", .oid_type = CTL_STRING,
	  .oid_flags = CTL_TUN, .oid_ptr = names, .oid_max = sizeof(names),
	  .oid_descr = "protocols whose input needs the net lock "
	  "exclusively: tcp, udp, icmp, igmp, icmp6" },
	{ .oid_name = "net.inet.ip.stats.alonequeued", .oid_type = CTL_U64,
	  .oid_ptr = &queued,
	  .oid_descr = "packets queued to the exclusive thread" },
	{ .oid_name = "net.inet.ip.stats.alonedrops", .oid_type = CTL_U64,
	  .oid_ptr = &drops, .oid_descr = "... that found its queue full" },
	{ .oid_name = "net.inet.ip.stats.alonelongest", .oid_type = CTL_U64,
	  .oid_ptr = &longest, .oid_descr = "max queue length" },
};

static bool
exclusive_take(struct mbuf *m, unsigned hlen)
{
	bool full;

	(void)hlen;
	if (net_is_exclusive())
		return (false);
	mtx_lock(&queue.lock);
	full = queue.packets.mq_len == QUEUE_MAX;
	if (!full) {
		mbufq_enqueue(&queue.packets, m);
		if (queue.packets.mq_len > atomic_load_u64(&longest))
			atomic_store_u64(&longest, queue.packets.mq_len);
		worker_wake(&queue.worker);
	}
	mtx_unlock(&queue.lock);
	if (full) {
		counter_add(&drops, 1);
		m_freem(m);
	} else
		counter_add(&queued, 1);
	return (true);
}

/*
 * Handles all packets under one hold of the lock; readers run between two
 * calls.
 */
static void
run_exclusive(struct mbufq *packets)
{
	struct mbuf *m;

	giant_enter();
	net_enter_exclusive();
	rx_burst_begin();
	while ((m = mbufq_dequeue(packets)) != NULL)
		in_handoff_resume(HANDOFF_EXCLUSIVE, m);
	rx_burst_end();
	net_exit();
	giant_exit();
}

static nsec_t
exclusive_work(void *arg) REQUIRES(queue.lock)
{
	struct mbufq packets;

	(void)arg;
	if (queue.packets.mq_len == 0)
		return (NSEC_FOREVER);
	mbufq_init(&packets);
	mbufq_concat(&packets, &queue.packets);
	mtx_unlock(&queue.lock);
	run_exclusive(&packets);
	mtx_lock(&queue.lock);
	return (0);
}

void
in_exclusive_init(void)
{
	sysctl_register(exclusive_oids, nitems(exclusive_oids));
	mtx_init(&queue.lock, LC_NETISR);
	mtx_private(&queue.lock);
	mbufq_init(&queue.packets);
}

static bool
set_proto(const char *name)
{
	static const struct {
		const char	*name;
		uint8_t		 proto;
	} protos[] = {
		{ "tcp", IPPROTO_TCP }, { "udp", IPPROTO_UDP },
		{ "icmp", IPPROTO_ICMP }, { "igmp", IPPROTO_IGMP },
		{ "icmp6", IPPROTO_ICMPV6 },
	};

	for (size_t i = 0; i < nitems(protos); i++)
		if (strcmp(name, protos[i].name) == 0) {
			in_handoff_set(protos[i].proto, HANDOFF_EXCLUSIVE,
			    exclusive_take);
			return (true);
		}
	return (false);
}

int
in_exclusive_start(void)
{
	char copy[sizeof(names)], *save = NULL, *word;
	bool any = false;

	memcpy(copy, names, sizeof(copy));
	for (word = strtok_r(copy, ", ", &save); word != NULL;
	    word = strtok_r(NULL, ", ", &save)) {
		if (!set_proto(word)) {
			console("net.inet.ip.alone: '%s' is none of tcp udp "
			    "icmp igmp icmp6", word);
			return (EINVAL);
		}
		any = true;
	}
	if (!any)
		return (0);
	if (netlock_mode != NETLOCK_SHARED) {
		console("net.inet.ip.alone: the net lock is not shared; set "
		    "net.inet.tcp.input to shared-socket or "
		    "shared-socket-batch");
		return (EINVAL);
	}
	return (worker_start(&queue.worker, "swi: alone", MACH_CPU_ANY));
}

void
in_exclusive_stop(void)
{
	worker_stop(&queue.worker);
}
