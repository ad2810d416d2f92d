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

#define	QUEUE_MAX	1024	/* max packets; more are dropped */

/* [q] queue.lock */
struct exclusive_packet {
	STAILQ_ENTRY(exclusive_packet) ep_link;	/* [q] */
	pr_input_t	*ep_input;
	struct mbuf	*ep_m;
	unsigned	 ep_hlen;
};
STAILQ_HEAD(exclusive_list, exclusive_packet);

static worker_fn exclusive_work;

static struct {
	struct mtx	 lock;
	struct exclusive_list packets;	/* [q] */
	unsigned	 len;		/* [q] */
	struct worker	 worker;
} queue = {
	.worker = { .w_lock = &queue.lock, .w_fn = exclusive_work,
	    .w_wmesg = "exclusive" },
};

bool in_exclusive_some;
static bool is_exclusive[256];		/* [I] after boot */
static char names[64];			/* [I] after boot */
static atomic_u64 queued, drops;	/* [a] */
static atomic_u64 longest;		/* [a] written under queue.lock */

static const struct sysctl_oid exclusive_oids[] = {
	{ .oid_name = "net.inet.ip.alone", .oid_type = CTL_STRING,
	  .oid_flags = CTL_TUN, .oid_ptr = names, .oid_max = sizeof(names),
	  .oid_descr = "protocols whose input needs the net lock "
	  "exclusively: tcp, udp, icmp, igmp, icmp6" },
	{ .oid_name = "net.inet.ip.stats.alonequeued", .oid_type = CTL_U64,
	  .oid_ptr = &queued,
	  .oid_descr = "packets handed to the thread that is alone" },
	{ .oid_name = "net.inet.ip.stats.alonedrops", .oid_type = CTL_U64,
	  .oid_ptr = &drops, .oid_descr = "... that found its queue full" },
	{ .oid_name = "net.inet.ip.stats.alonelongest", .oid_type = CTL_U64,
	  .oid_ptr = &longest, .oid_descr = "its longest queue" },
};

bool
in_exclusive_is(uint8_t proto)
{
	return (is_exclusive[proto]);
}

bool
in_exclusive_handover(pr_input_t *input, uint8_t proto, struct mbuf *m,
    unsigned hlen)
{
	struct exclusive_packet *ep;

	if (!is_exclusive[proto] || net_is_exclusive())
		return (false);
	ep = kmalloc(sizeof(*ep));
	*ep = (struct exclusive_packet){ .ep_input = input, .ep_m = m,
	    .ep_hlen = hlen };
	mtx_lock(&queue.lock);
	if (queue.len < QUEUE_MAX) {
		STAILQ_INSERT_TAIL(&queue.packets, ep, ep_link);
		ep = NULL;
		atomic_count_u64(&queued, 1);
		if (++queue.len > atomic_load_u64(&longest))
			atomic_store_u64(&longest, queue.len);
		worker_wake(&queue.worker);
	}
	mtx_unlock(&queue.lock);
	if (ep != NULL) {
		atomic_count_u64(&drops, 1);
		m_freem(m);
		kfree(ep);
	}
	return (true);
}

/*
 * Handles all packets under one hold of the lock; readers run between two
 * calls.
 */
static void
run_exclusive(struct exclusive_list *packets)
{
	struct exclusive_packet *ep;

	giant_enter();
	net_enter_exclusive();
	rx_burst_begin();
	while ((ep = STAILQ_FIRST(packets)) != NULL) {
		STAILQ_REMOVE_HEAD(packets, ep_link);
		ep->ep_input(ep->ep_m, ep->ep_hlen);
		kfree(ep);
	}
	rx_burst_end();
	net_exit();
	giant_exit();
}

static nsec_t
exclusive_work(void *arg) REQUIRES(queue.lock)
{
	struct exclusive_list packets = STAILQ_HEAD_INITIALIZER(packets);

	(void)arg;
	if (queue.len == 0)
		return (NSEC_FOREVER);
	STAILQ_CONCAT(&packets, &queue.packets);
	queue.len = 0;
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
	STAILQ_INIT(&queue.packets);
}

static bool
find_proto(const char *name)
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
			is_exclusive[protos[i].proto] = true;
			return (true);
		}
	return (false);
}

int
in_exclusive_start(void)
{
	char copy[sizeof(names)], *save = NULL, *word;

	memcpy(copy, names, sizeof(copy));
	for (word = strtok_r(copy, ", ", &save); word != NULL;
	    word = strtok_r(NULL, ", ", &save)) {
		if (!find_proto(word)) {
			console("net.inet.ip.alone: '%s' is none of tcp udp "
			    "icmp igmp icmp6", word);
			return (EINVAL);
		}
		in_exclusive_some = true;
	}
	if (!in_exclusive_some)
		return (0);
	if (netlock_mode != NETLOCK_SHARED) {
		console("net.inet.ip.alone: nobody shares the net lock; set "
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
