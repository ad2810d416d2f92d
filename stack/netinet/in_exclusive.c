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

/* [q] alone.lock */
struct alone_packet {
	STAILQ_ENTRY(alone_packet) ap_link;	/* [q] */
	pr_input_t	*ap_input;
	struct mbuf	*ap_m;
	unsigned	 ap_hlen;
};
STAILQ_HEAD(alone_list, alone_packet);

static worker_fn alone_work;

static struct {
	struct mtx	 lock;
	struct alone_list packets;	/* [q] */
	unsigned	 len;		/* [q] */
	struct worker	 worker;
} alone = {
	.worker = { .w_lock = &alone.lock, .w_fn = alone_work,
	    .w_wmesg = "alone" },
};

bool in_exclusive_some;
static bool is_alone[256];		/* [I] after boot */
static char names[64];			/* [I] after boot */
static atomic_u64 queued, drops;	/* [a] */
static atomic_u64 longest;		/* [a] written under alone.lock */

static const struct sysctl_oid alone_oids[] = {
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
	return (is_alone[proto]);
}

bool
in_exclusive_handover(pr_input_t *input, uint8_t proto, struct mbuf *m,
    unsigned hlen)
{
	struct alone_packet *ap;

	if (!is_alone[proto] || net_is_exclusive())
		return (false);
	ap = kmalloc(sizeof(*ap));
	*ap = (struct alone_packet){ .ap_input = input, .ap_m = m,
	    .ap_hlen = hlen };
	mtx_lock(&alone.lock);
	if (alone.len < QUEUE_MAX) {
		STAILQ_INSERT_TAIL(&alone.packets, ap, ap_link);
		ap = NULL;
		atomic_count_u64(&queued, 1);
		if (++alone.len > atomic_load_u64(&longest))
			atomic_store_u64(&longest, alone.len);
		worker_wake(&alone.worker);
	}
	mtx_unlock(&alone.lock);
	if (ap != NULL) {
		atomic_count_u64(&drops, 1);
		m_freem(m);
		kfree(ap);
	}
	return (true);
}

/*
 * Handles all packets under one hold of the lock; readers run between two
 * calls.
 */
static void
run_alone(struct alone_list *packets)
{
	struct alone_packet *ap;

	giant_enter();
	net_enter_exclusive();
	rx_burst_begin();
	while ((ap = STAILQ_FIRST(packets)) != NULL) {
		STAILQ_REMOVE_HEAD(packets, ap_link);
		ap->ap_input(ap->ap_m, ap->ap_hlen);
		kfree(ap);
	}
	rx_burst_end();
	net_exit();
	giant_exit();
}

static nsec_t
alone_work(void *arg) REQUIRES(alone.lock)
{
	struct alone_list packets = STAILQ_HEAD_INITIALIZER(packets);

	(void)arg;
	if (alone.len == 0)
		return (NSEC_FOREVER);
	STAILQ_CONCAT(&packets, &alone.packets);
	alone.len = 0;
	mtx_unlock(&alone.lock);
	run_alone(&packets);
	mtx_lock(&alone.lock);
	return (0);
}

void
in_exclusive_init(void)
{
	sysctl_register(alone_oids, nitems(alone_oids));
	mtx_init(&alone.lock, LC_NETISR);
	STAILQ_INIT(&alone.packets);
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
			is_alone[protos[i].proto] = true;
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
	return (worker_start(&alone.worker, "swi: alone", MACH_CPU_ANY));
}

void
in_exclusive_stop(void)
{
	worker_stop(&alone.worker);
}
