/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tunables of the netisr, with their old names, and "netstat -Q".
 */
#include "net/netisr_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/counter.h"
#include "kern/ctl.h"
#include "kern/kern_private.h"
#include "kern/sysctl.h"

static const char *const dispatch_names[] = {
	"default", "direct", "hybrid", "deferred", NULL
};
static const char *const policy_names[] = {
	[NETISR_POLICY_SOURCE] = "source", [NETISR_POLICY_FLOW] = "flow",
	[NETISR_POLICY_CPU] = "cpu", NULL
};
static const char *const generation_names[] = { "2005", "2009", NULL };
static const struct isr_generation *const generations[] = { &isr_2005,
    &isr_2009 };

static atomic_u32 generation = 1; /* [I] index of the generation */
atomic_u32 isr_dispatch = DISPATCH_DIRECT;
atomic_u32 isr_maxthreads = 1;
bool isr_bindthreads;
bool isr_feedback = true;
static atomic_u32 isr_defaultqlimit = 256;
static atomic_u32 isr_maxqlimit = 10240;

const struct isr_generation *
isr_chosen(void)
{
	return (generations[atomic_load_u32(&generation)]);
}

const char *
isr_refusal(void)
{
	const struct isr_generation *ig = isr_chosen();

	return (ig->ig_refuses != NULL ? ig->ig_refuses() : NULL);
}

enum isr_dispatch
isr_way(enum netisr_proto proto)
{
	uint32_t way = atomic_load_u32(&isr_protos[proto].dispatch);

	return ((enum isr_dispatch)(way != DISPATCH_DEFAULT ? way :
	    atomic_load_u32(&isr_dispatch)));
}

unsigned
isr_qlimit(enum netisr_proto proto)
{
	unsigned limit = atomic_load_u32(&isr_protos[proto].qlimit);
	unsigned max = atomic_load_u32(&isr_maxqlimit);

	if (limit == 0)
		limit = atomic_load_u32(&isr_defaultqlimit);
	return (limit < max ? limit : max);
}

/* While running, a value that the generation does not support is refused. */
static int
set_checked(atomic_u32 *word, uint32_t value, char *why, size_t len)
{
	uint32_t before = atomic_swap_u32(word, value);
	const char *refusal = booted ? isr_refusal() : NULL;

	if (refusal == NULL)
		return (0);
	atomic_store_u32(word, before);
	snprintf(why, len, "%s", refusal);
	return (EINVAL);
}

/* Accepts policy names, and 0 and 1 of net.isr.direct. */
static int
proc_dispatch(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	atomic_u32 *way = oid->oid_ptr;

	if (value == NULL) {
		snprintf(buf, len, "%s", dispatch_names[atomic_load_u32(way)]);
		return (0);
	}
	if (strcmp(value, "1") == 0)
		value = dispatch_names[DISPATCH_DIRECT];
	else if (strcmp(value, "0") == 0)
		value = dispatch_names[DISPATCH_DEFERRED];
	for (uint32_t i = 0; dispatch_names[i] != NULL; i++)
		if (strcmp(value, dispatch_names[i]) == 0 &&
		    (i != DISPATCH_DEFAULT || way != &isr_dispatch))
			return (set_checked(way, i, buf, len));
	snprintf(buf, len, "'%s' is none of%s direct hybrid deferred", value,
	    way != &isr_dispatch ? " default" : "");
	return (EINVAL);
}

/* net.isr.direct (2005): 1 is direct, 0 is deferred. */
static int
proc_direct(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	(void)oid;
	if (value == NULL) {
		snprintf(buf, len, "%d",
		    atomic_load_u32(&isr_dispatch) == DISPATCH_DIRECT);
		return (0);
	}
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
		snprintf(buf, len, "'%s' is neither 0 nor 1", value);
		return (EINVAL);
	}
	atomic_store_u32(&isr_dispatch, value[0] == '1' ? DISPATCH_DIRECT :
	    DISPATCH_DEFERRED);
	return (0);
}

static int
proc_policy(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	atomic_u32 *policy = oid->oid_ptr;

	if (value == NULL) {
		snprintf(buf, len, "%s",
		    policy_names[atomic_load_u32(policy)]);
		return (0);
	}
	for (uint32_t i = 0; policy_names[i] != NULL; i++)
		if (strcmp(value, policy_names[i]) == 0)
			return (set_checked(policy, i, buf, len));
	snprintf(buf, len, "'%s' is none of source flow cpu", value);
	return (EINVAL);
}

static int
proc_maxthreads(const struct sysctl_oid *oid, const char *value, char *buf,
    size_t len)
{
	int n, used;

	(void)oid;
	if (value == NULL) {
		snprintf(buf, len, "%d", (int)atomic_load_u32(&isr_maxthreads));
		return (0);
	}
	if (sscanf(value, "%d%n", &n, &used) != 1 || value[used] != '\0' ||
	    n < -1 || n == 0 || n > NETISR_WORKERS_MAX) {
		snprintf(buf, len, "'%s' is neither -1 (one for each CPU) nor a "
		    "number from 1 to %d", value,
		    NETISR_WORKERS_MAX);
		return (EINVAL);
	}
	atomic_store_u32(&isr_maxthreads, (uint32_t)n);
	return (0);
}

#define	PROTO_OIDS(p, name)						\
	{ .oid_name = "net.isr.proto." name ".dispatch",		\
	    .oid_type = CTL_PROC, .oid_flags = CTL_TUN | CTL_RUN,	\
	    .oid_ptr = &isr_protos[p].dispatch,				\
	    .oid_names = dispatch_names, .oid_proc = proc_dispatch,	\
	    .oid_descr = "dispatch of this protocol; default: as "	\
	    "net.isr.dispatch" },					\
	{ .oid_name = "net.isr.proto." name ".mpsafe",			\
	    .oid_type = CTL_BOOL, .oid_flags = CTL_TUN,			\
	    .oid_ptr = &isr_protos[p].mpsafe,				\
	    .oid_descr = "0: always queued, and run under Giant" },	\
	{ .oid_name = "net.isr.proto." name ".policy",			\
	    .oid_type = CTL_PROC, .oid_flags = CTL_TUN | CTL_RUN,	\
	    .oid_ptr = &isr_protos[p].policy,				\
	    .oid_names = policy_names, .oid_proc = proc_policy,		\
	    .oid_descr = "selection of a packet's worker: source, flow, cpu" }, \
	{ .oid_name = "net.isr.proto." name ".qlimit",			\
	    .oid_type = CTL_U32, .oid_flags = CTL_TUN | CTL_RUN,	\
	    .oid_ptr = &isr_protos[p].qlimit, .oid_max = 1000000,	\
	    .oid_descr = "max packets in a queue; 0: net.isr.defaultqlimit" } \

static const struct sysctl_oid netisr_oids[] = {
	{ .oid_name = "net.isr.generation", .oid_type = CTL_ENUM,
	    .oid_flags = CTL_TUN, .oid_ptr = &generation,
	    .oid_names = generation_names,
	    .oid_descr = "2005: one thread for all protocols; 2009: "
	    "workstreams" },
	{ .oid_name = "net.isr.dispatch", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &isr_dispatch,
	    .oid_names = dispatch_names + DISPATCH_DIRECT,
	    .oid_proc = proc_dispatch,
	    .oid_descr = "dispatch of protocol input: direct, hybrid, "
	    "deferred" },
	{ .oid_name = "net.isr.direct", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_max = 1,
	    .oid_proc = proc_direct,
	    .oid_descr = "1: direct, 0: deferred (the name of 2005)" },
	{ .oid_name = "net.isr.enable", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_max = 1,
	    .oid_proc = proc_direct,
	    .oid_descr = "1: direct, 0: deferred (the name of 5.x)" },
	{ .oid_name = "net.isr.maxthreads", .oid_type = CTL_PROC,
	    .oid_flags = CTL_TUN, .oid_proc = proc_maxthreads,
	    .oid_descr = "worker threads; -1: one for each CPU" },
	{ .oid_name = "net.isr.bindthreads", .oid_type = CTL_BOOL,
	    .oid_flags = CTL_TUN, .oid_ptr = &isr_bindthreads,
	    .oid_descr = "bind each worker thread to its CPU" },
	{ .oid_name = "net.isr.feedback", .oid_type = CTL_BOOL,
	    .oid_flags = CTL_TUN, .oid_ptr = &isr_feedback,
	    .oid_descr = "a receive thread waits while a queue that it fills "
	    "is half full" },
	{ .oid_name = "net.isr.defaultqlimit", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &isr_defaultqlimit,
	    .oid_min = 1, .oid_max = 1000000,
	    .oid_descr = "default of a protocol's max packets in a queue" },
	{ .oid_name = "net.isr.maxqlimit", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &isr_maxqlimit,
	    .oid_min = 1, .oid_max = 1000000,
	    .oid_descr = "upper bound of queue limits" },
	PROTO_OIDS(NETISR_ETHER, "ether"),
	PROTO_OIDS(NETISR_IP, "ip"),
	PROTO_OIDS(NETISR_ARP, "arp"),
	PROTO_OIDS(NETISR_IPV6, "ip6"),
};

void
isr_show_count(struct ctl_out *co, unsigned stream, enum netisr_proto proto,
    struct isr_count *ic, unsigned len)
{
	const uint64_t direct =
	    counter_read(&isr_direct.id_count[stream][proto]);
	const uint64_t hybrid = atomic_load_u64(&ic->hybrid);
	const uint64_t worked = atomic_load_u64(&ic->worked);

	if (isr_protos[proto].np.nh_handler == NULL)
		return;
	ctl_printf(co, "%-4u %-6s %6u %6u %12llu %12llu %12llu %12llu %10llu "
	    "%6u\n", stream, isr_protos[proto].np.nh_name, isr_qlimit(proto),
	    atomic_load_u32(&ic->watermark), (unsigned long long)direct,
	    (unsigned long long)hybrid,
	    (unsigned long long)atomic_load_u64(&ic->queued),
	    (unsigned long long)(direct + hybrid + worked),
	    (unsigned long long)atomic_load_u64(&ic->qdrops), len);
}

static void
show_choices(struct ctl_out *co, enum netisr_proto p)
{
	const struct isr_proto *ps = &isr_protos[p];

	if (ps->np.nh_handler == NULL)
		return;
	ctl_printf(co, "%-6s %-8s %-8s %s\n", ps->np.nh_name,
	    policy_names[atomic_load_u32(&isr_protos[p].policy)],
	    dispatch_names[ps->mpsafe ? isr_way(p) : DISPATCH_DEFERRED],
	    ps->mpsafe ? "-" : "needed");
}

static void
netisr_show(struct ctl_out *co)
{
	ctl_printf(co, "%-4s %-6s %6s %6s %12s %12s %12s %12s %10s %6s\n",
	    "WS", "Proto", "QLimit", "WMark", "Direct", "Hybrid", "Queued",
	    "Handled", "QDrops", "Len");
	isr_chosen()->ig_show(co);
	ctl_printf(co, "\n%-6s %-8s %-8s %s\n", "Proto", "Policy", "Dispatch",
	    "Giant");
	for (enum netisr_proto p = 0; p < NETISR_NPROTO; p++)
		show_choices(co, p);
}

void
isr_sysctl_init(void)
{
	sysctl_register(netisr_oids, nitems(netisr_oids));
	ctl_view_register("netstat -Q", netisr_show);
}
