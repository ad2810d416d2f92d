/* SPDX-License-Identifier: BSD-2-Clause */
/* Dispatch policies: who runs the handler, in which order, what is dropped. */
#include "tests/check.h"

#include <errno.h>

#include "kern/kern_private.h"
#include "kern/mbuf_private.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/if_private.h"
#include "net/netisr.h"

static struct mtx lock;
static struct ifnet ifn = { .if_xname = "test0", .if_index = 1 };
static struct thread *ran_in;
static uint32_t last, handled;
static bool blocked, entered, in_order;

/* The number of a packet is its flow's id; blocks while told to. */
static void
handler(struct mbuf *m)
{
	mtx_lock(&lock);
	ran_in = curthread;
	entered = true;
	wakeup(&entered);
	while (blocked)
		msleep(&blocked, &lock, 0, "test", NSEC_FOREVER);
	in_order &= m->m_pkthdr.len > last;
	last = m->m_pkthdr.len;
	handled++;
	wakeup(&handled);
	mtx_unlock(&lock);
	m_freem(m);
}

static int
send_packet(uint32_t number)
{
	struct mbuf *m = m_get();

	m->m_pkthdr.len = number;
	m->m_pkthdr.rcvif = &ifn;
	return (netisr_dispatch(NETISR_IP, m));
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
	last = handled = 0;
	in_order = true;
	blocked = entered = false;
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

TEST(hybrid_runs_direct_when_idle)
{
	start_over("hybrid");
	/* The worker may be about to go to sleep still. */
	for (uint32_t i = 1; ran_in != curthread; i++) {
		CHECK_EQ(send_packet(i), 0);
		await_handled(i);
	}
	CHECK(in_order);
}

TEST(hybrid_never_overtakes_what_is_queued)
{
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

TEST(a_full_queue_drops_and_counts)
{
	uint32_t taken = 0;

	start_over("deferred");
	set("net.isr.proto.ip.qlimit", "8");
	blocked = true;
	for (uint32_t i = 1; i <= 100; i++)
		taken += send_packet(i) == 0;
	/* The limit, and as many again if the worker took a queue away. */
	CHECK(taken >= 8 && taken <= 17);
	mtx_lock(&lock);
	blocked = false;
	wakeup(&blocked);
	mtx_unlock(&lock);
	await_handled(taken);
	CHECK_EQ(handled, taken);
	CHECK(in_order);
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

int
main(int argc, char **argv)
{
	static const struct netisr_handler nh = { .nh_name = "ip",
	    .nh_proto = NETISR_IP, .nh_handler = handler, .nh_mpsafe = true };
	int status;

	sysctl_init();
	giant_init();
	synch_init();
	mbuf_init();
	mtx_init(&lock, LC_TEST);
	netisr_init();
	netisr_register(&nh);
	CHECK_EQ(netisr_start(), 0);
	status = check_main(argc, argv);
	netisr_stop();
	return (status);
}
