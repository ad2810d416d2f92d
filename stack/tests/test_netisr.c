/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dispatch: who runs the handler, in which order, what is dropped.  With the
 * generation that $NETISR_GENERATION names, and $NETISR_THREADS workers.
 */
#include "tests/check.h"

#include <errno.h>

#include "kern/ast.h"
#include "kern/kern_private.h"
#include "kern/mbuf_private.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/if_var.h"
#include "net/netisr_private.h"
#include "tests/threads.h"

#define	FLOWS		(NTHREADS + 1)

static struct mtx lock;
static struct ifnet ifn = { .if_xname = "test0", .if_index = 1 };
static struct thread *ran_in;
static uint32_t last[FLOWS], handled;
static bool blocked, entered, in_order, had_giant;
static unsigned nworkers = 1;

/*
 * A packet's length is its number in its flow; the handler blocks while
 * requested.
 */
static void
handler(struct mbuf *m)
{
	const uint32_t flow = m->m_pkthdr.flowid % FLOWS;

	mtx_lock(&lock);
	ran_in = curthread;
	had_giant = giant_owned();
	entered = true;
	wakeup(&entered);
	while (blocked)
		msleep(&blocked, &lock, 0, "test", NSEC_FOREVER);
	in_order &= m->m_pkthdr.len > last[flow];
	last[flow] = m->m_pkthdr.len;
	handled++;
	wakeup(&handled);
	mtx_unlock(&lock);
	m_freem(m);
}

static struct mbuf *
packet(uint32_t flow, uint32_t number)
{
	struct mbuf *m = m_get();

	m->m_pkthdr.len = number;
	m->m_pkthdr.flowid = flow;
	m->m_pkthdr.rcvif = &ifn;
	return (m);
}

static int
send_packet(uint32_t number)
{
	return (netisr_dispatch(NETISR_IP, packet(0, number)));
}

static void
await_handled(uint32_t n)
{
	mtx_lock(&lock);
	while (handled < n)
		msleep(&handled, &lock, 0, "test", NSEC_FOREVER);
	mtx_unlock(&lock);
}

static void
set(const char *name, const char *value)
{
	char why[256] = "";

	booted = true;	/* as at run time */
	CHECK_EQ(sysctl_set(name, value, why, sizeof(why)), 0);
}

static void
start_over(const char *dispatch)
{
	set("net.isr.dispatch", dispatch);
	memset(last, 0, sizeof(last));
	handled = 0;
	in_order = true;
	blocked = entered = false;
	ran_in = NULL;
}

TEST(direct_runs_in_the_callers_thread)
{
	start_over("direct");
	CHECK_EQ(send_packet(1), 0);
	CHECK_EQ(handled, 1);
	CHECK(ran_in == curthread);
}

TEST(deferred_runs_in_the_worker_in_order)
{
	start_over("deferred");
	for (uint32_t i = 1; i <= 200; i++)
		CHECK_EQ(send_packet(i), 0);
	await_handled(200);
	CHECK(ran_in != curthread);
	CHECK(in_order);
}

static bool
is_of(const char *generation)
{
	char value[32];

	CHECK_EQ(sysctl_get("net.isr.generation", value, sizeof(value)), 0);
	return (strcmp(value, generation) == 0);
}

static void
queue_some(uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		CHECK_EQ(netisr_queue(NETISR_IP, packet(0, i)), 0);
}

TEST(queue_runs_in_the_worker)
{
	start_over("direct");
	queue_some(1, 51);
	await_handled(50);
	CHECK(ran_in != curthread);
	CHECK(in_order);
}

TEST(a_program_handles_what_its_call_queued_before_it_returns)
{
	start_over("direct");
	if (is_of("2005"))
		return;
	/* The worker may not be asleep yet. */
	for (uint32_t i = 1; ran_in != curthread; i += 50) {
		ast_enter();
		queue_some(i, i + 50);
		ast_leave();
		await_handled(i + 49);
	}
	CHECK(in_order);
}

TEST(what_a_program_queued_is_deferred_if_the_dispatch_is)
{
	start_over("deferred");
	ast_enter();
	queue_some(1, 51);
	ast_leave();
	await_handled(50);
	CHECK(ran_in != curthread);
	CHECK(in_order);
}

static void
queue_third(void *arg)
{
	(void)arg;
	queue_some(3, 4);
	await_handled(3);
}

TEST(other_threads_do_not_wait_for_a_program_that_is_in_a_call)
{
	struct thread *td;

	start_over("direct");
	ast_enter();
	queue_some(1, 3);
	CHECK_EQ(kthread_create("test", MACH_CPU_ANY, queue_third, NULL, &td),
	    0);
	kthread_join(td);
	CHECK(ran_in != curthread);
	ast_leave();
	CHECK(in_order);
}

TEST(hybrid_never_overtakes_what_a_program_queued)
{
	if (is_of("2005"))
		return;
	start_over("hybrid");
	ast_enter();
	queue_some(1, 3);
	CHECK_EQ(send_packet(3), 0);
	ast_leave();
	await_handled(3);
	CHECK(in_order);
}

TEST(a_handler_that_is_not_mp_safe_is_deferred_and_has_giant)
{
	static const char *const ways[] = { "direct", "deferred" };

	for (size_t i = 0; i < nitems(ways); i++) {
		start_over(ways[i]);
		CHECK_EQ(netisr_dispatch(NETISR_IPV6, packet(0, 1)), 0);
		await_handled(1);
		CHECK(ran_in != curthread);
		CHECK(had_giant);
		/* the other protocol does not need Giant */
		CHECK_EQ(send_packet(2), 0);
		await_handled(2);
		CHECK(!had_giant);
	}
}

/* On the stack's first CPU. */
static void
send_hybrid(void *arg)
{
	(void)arg;
	start_over("hybrid");
	set("net.isr.proto.ip.policy", "flow");
	/* The worker may not be asleep yet. */
	for (uint32_t i = 1; ran_in != curthread; i++) {
		CHECK_EQ(netisr_dispatch(NETISR_IP, packet(nworkers, i)), 0);
		await_handled(i);
	}
	CHECK(in_order);
	/* A packet of another CPU's workstream is not handled here. */
	if (nworkers > 1) {
		start_over("hybrid");
		CHECK_EQ(netisr_dispatch(NETISR_IP, packet(1, 1)), 0);
		await_handled(1);
		CHECK(ran_in != curthread);
	}
	set("net.isr.proto.ip.policy", "source");
}

TEST(hybrid_runs_direct_when_idle_on_its_own_cpu)
{
	struct thread *td;

	if (is_of("2005"))
		return;
	CHECK_EQ(kthread_create("test", 0, send_hybrid, NULL, &td), 0);
	kthread_join(td);
}

TEST(hybrid_never_overtakes_what_is_queued)
{
	if (is_of("2005"))
		return;
	start_over("deferred");
	blocked = true;
	CHECK_EQ(send_packet(1), 0);
	mtx_lock(&lock);
	while (!entered)
		msleep(&entered, &lock, 0, "test", NSEC_FOREVER);
	mtx_unlock(&lock);
	set("net.isr.dispatch", "hybrid");
	for (uint32_t i = 2; i <= 20; i++)
		CHECK_EQ(send_packet(i), 0);
	CHECK_EQ(handled, 0);
	mtx_lock(&lock);
	blocked = false;
	wakeup(&blocked);
	mtx_unlock(&lock);
	await_handled(20);
	CHECK(in_order);
}

#define	PER_FLOW	2000

/* Each thread sends one flow, from any CPU; waits if a queue is full. */
static void
send_flow(void *arg)
{
	const uint32_t flow = 1 + (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 1; i <= PER_FLOW; i++) {
		CHECK_EQ(netisr_dispatch(NETISR_IP, packet(flow, i)), 0);
		if (i % 32 == 0) {
			mtx_lock(&lock);
			while (last[flow] < i)
				msleep(&handled, &lock, 0, "test",
				    NSEC_FOREVER);
			mtx_unlock(&lock);
		}
	}
}

TEST(each_flow_stays_in_order_whoever_else_sends)
{
	start_over(is_of("2005") ? "deferred" : "hybrid");
	run_threads(send_flow);
	await_handled(NTHREADS * PER_FLOW);
	CHECK(in_order);
}

#define	BURSTS		400

/* A receive thread fills the queues faster than they are handled. */
TEST(bursts_wait_for_room_and_lose_nothing)
{
	if (is_of("2005"))
		return;
	start_over("deferred");
	set("net.isr.defaultqlimit", "64");
	for (uint32_t i = 1; i <= BURSTS * 8; i += 8) {
		netisr_burst_begin();
		for (uint32_t k = 0; k < 8; k++)
			for (uint32_t flow = 1; flow < 4; flow++)
				CHECK_EQ(netisr_dispatch(NETISR_IP,
				    packet(flow, i + k)), 0);
		CHECK(i > 1 || !entered);
		netisr_burst_end();
	}
	await_handled(3 * 8 * BURSTS);
	CHECK(in_order);
	set("net.isr.defaultqlimit", "256");
}

static void
burst_before_hybrid(void *arg)
{
	(void)arg;
	start_over("deferred");
	netisr_burst_begin();
	CHECK_EQ(send_packet(1), 0);
	set("net.isr.dispatch", "hybrid");
	CHECK_EQ(send_packet(2), 0);
	netisr_burst_end();
	await_handled(2);
	CHECK(in_order);
}

/*
 * A packet in a burst is not overtaken by one that is handled at once.  Only
 * the CPU of a stream does that, and the first stream's is CPU 0.
 */
TEST(bursts_and_hybrid_dispatch_keep_the_order)
{
	struct thread *td;

	if (is_of("2005"))
		return;
	CHECK_EQ(kthread_create("test", 0, burst_before_hybrid, NULL, &td), 0);
	kthread_join(td);
}

/* The worker that gets a packet of a flow from a queue of the interface. */
static unsigned
worker_of(uint32_t flow, unsigned queue)
{
	struct mbuf *m = packet(flow, 1);
	unsigned worker;

	start_over("deferred");
	m->m_flags |= queue << M_QUEUE_SHIFT;
	CHECK_EQ(netisr_dispatch(NETISR_IP, m), 0);
	await_handled(1);
	CHECK_EQ(sscanf(ran_in->td_name, "swi: netisr %u", &worker), 1);
	return (worker);
}

TEST(the_policy_chooses_the_worker)
{
	if (is_of("2005"))
		return;
	set("net.isr.proto.ip.policy", "flow");
	for (uint32_t flow = 1; flow < 20; flow++)
		CHECK_EQ(worker_of(flow, flow % 3), flow % nworkers);
	/* no flow information: by source */
	CHECK_EQ(worker_of(0, 2), (ifn.if_index + 2) % nworkers);
	set("net.isr.proto.ip.policy", "source");
	for (uint32_t flow = 0; flow < 10; flow++)
		for (unsigned queue = 0; queue < 4; queue++)
			CHECK_EQ(worker_of(flow, queue),
			    (ifn.if_index + queue) % nworkers);
	set("net.isr.proto.ip.policy", "cpu");
	for (uint32_t flow = 1; flow < 20; flow++)
		CHECK_EQ(worker_of(flow + 128, 0),
		    flow % mach_ncpus() % nworkers);
	CHECK_EQ(worker_of(0, 2), (ifn.if_index + 2) % nworkers);
	set("net.isr.proto.ip.policy", "source");
}

/* Flows that differ only in six adjacent bits, for each position of these. */
TEST(flows_reach_every_worker)
{
	for (unsigned shift = 0; shift <= 26; shift++) {
		for (unsigned workers = 2; workers <= 4; workers++) {
			unsigned reached = 0;

			for (uint32_t bits = 0; bits < 64; bits++)
				reached |= 1u << netisr_flow(0x0a630101u ^
				    bits << shift) % workers;
			CHECK_EQ(reached, (1u << workers) - 1);
		}
	}
	CHECK_EQ(netisr_flow(0), 1);
}

static uint64_t
get(const char *name)
{
	char value[32];

	CHECK_EQ(sysctl_get(name, value, sizeof(value)), 0);
	return (strtoull(value, NULL, 10));
}

TEST(generation_of_2005_counts_as_it_did)
{
	uint64_t count, directed, deferred, queued;

	if (!is_of("2005"))
		return;
	count = get("net.isr.count");
	directed = get("net.isr.directed");
	deferred = get("net.isr.deferred");
	queued = get("net.isr.queued");
	start_over("direct");
	CHECK_EQ(send_packet(1), 0);
	CHECK_EQ(netisr_queue(NETISR_IP, packet(0, 2)), 0);
	await_handled(2);
	set("net.isr.direct", "0");
	CHECK_EQ(send_packet(3), 0);
	CHECK_EQ(send_packet(4), 0);
	await_handled(4);
	CHECK_EQ(get("net.isr.count"), count + 3);
	CHECK_EQ(get("net.isr.directed"), directed + 1);
	CHECK_EQ(get("net.isr.deferred"), deferred + 2);
	CHECK_EQ(get("net.isr.queued"), queued + 1);
	/* the worker may still be in its previous turn */
	CHECK(get("net.isr.swi_count") > 0);
}

TEST(generation_of_2005_refuses_what_it_had_not)
{
	char why[256] = "";

	if (!is_of("2005"))
		return;
	CHECK(isr_refusal() == NULL);
	CHECK_EQ(sysctl_set("net.isr.dispatch", "hybrid", why, sizeof(why)),
	    EINVAL);
	CHECK(strstr(why, "net.isr.generation") != NULL);
	CHECK_EQ(sysctl_set("net.isr.proto.ip.dispatch", "hybrid", why,
	    sizeof(why)), EINVAL);
	CHECK_EQ(sysctl_set("net.isr.proto.ip.policy", "cpu", why,
	    sizeof(why)), EINVAL);
	CHECK(isr_refusal() == NULL);
	/* the same checks at boot, when all tunables have been read */
	booted = false;
	CHECK_EQ(sysctl_set("net.isr.maxthreads", "2", why, sizeof(why)), 0);
	CHECK(strstr(isr_refusal(), "has one thread") != NULL);
	CHECK_EQ(sysctl_set("net.isr.maxthreads", "1", why, sizeof(why)), 0);
	CHECK_EQ(sysctl_set("net.isr.dispatch", "hybrid", why, sizeof(why)),
	    0);
	CHECK(strstr(isr_refusal(), "only direct and deferred") != NULL);
	CHECK_EQ(sysctl_set("net.isr.dispatch", "direct", why, sizeof(why)),
	    0);
}

TEST(a_full_queue_drops_and_counts)
{
	uint32_t taken = 0;
	uint64_t drops = is_of("2005") ? get("net.isr.drop") : 0;

	start_over("deferred");
	set("net.isr.proto.ip.qlimit", "8");
	blocked = true;
	for (uint32_t i = 1; i <= 100; i++)
		taken += send_packet(i) == 0;
	/*
	 * The limit, or twice the limit if the worker has taken a full queue.
	 */
	CHECK(taken >= 8 && taken <= 17);
	mtx_lock(&lock);
	blocked = false;
	wakeup(&blocked);
	mtx_unlock(&lock);
	await_handled(taken);
	CHECK_EQ(handled, taken);
	CHECK(in_order);
	if (is_of("2005"))
		CHECK_EQ(get("net.isr.drop"), drops + 100 - taken);
	set("net.isr.proto.ip.qlimit", "0");
}

TEST(all_spellings_are_understood)
{
	char value[32], why[128];

	set("net.isr.dispatch", "0");
	CHECK_EQ(sysctl_get("net.isr.dispatch", value, sizeof(value)), 0);
	CHECK_STREQ(value, "deferred");
	set("net.isr.direct", "1");
	CHECK_EQ(sysctl_get("net.isr.dispatch", value, sizeof(value)), 0);
	CHECK_STREQ(value, "direct");
	set("net.isr.enable", "0");
	CHECK_EQ(sysctl_get("net.isr.dispatch", value, sizeof(value)), 0);
	CHECK_STREQ(value, "deferred");
	CHECK_EQ(sysctl_set("net.isr.dispatch", "sideways", why, sizeof(why)),
	    EINVAL);
	CHECK(strstr(why, "direct hybrid deferred") != NULL);
	CHECK_EQ(sysctl_set("net.isr.dispatch", "default", why, sizeof(why)),
	    EINVAL);
	CHECK_EQ(sysctl_set("net.isr.maxthreads", "2", why, sizeof(why)), EPERM);
}

TEST(a_protocol_overrides_the_policy)
{
	start_over("direct");
	set("net.isr.proto.ip.dispatch", "deferred");
	CHECK_EQ(send_packet(1), 0);
	await_handled(1);
	CHECK(ran_in != curthread);
	set("net.isr.proto.ip.dispatch", "default");
}

static void
configure(void)
{
	const char *generation = getenv("NETISR_GENERATION");
	const char *threads = getenv("NETISR_THREADS");
	char why[256] = "";

	if (generation != NULL)
		CHECK_EQ(sysctl_set("net.isr.generation", generation, why,
		    sizeof(why)), 0);
	if (threads != NULL) {
		CHECK_EQ(sysctl_set("net.isr.maxthreads", threads, why,
		    sizeof(why)), 0);
		nworkers = (unsigned)atoi(threads);
	}
}

int
main(int argc, char **argv)
{
	static const struct netisr_handler ip = { .nh_name = "ip",
	    .nh_proto = NETISR_IP, .nh_handler = handler, .nh_mpsafe = true };
	static const struct netisr_handler unsafe = { .nh_name = "ip6",
	    .nh_proto = NETISR_IPV6, .nh_handler = handler };
	int status;

	sysctl_init();
	giant_init();
	synch_init();
	mbuf_init();
	mtx_init(&lock, LC_TEST);
	netisr_init();
	netisr_register(&ip);
	netisr_register(&unsafe);
	configure();
	CHECK_EQ(netisr_start(), 0);
	status = check_main(argc, argv);
	netisr_stop();
	return (status);
}
