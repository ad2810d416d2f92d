/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transmit thread of a driver: which thread calls the driver, and under
 * which lock.
 */
#include "boot/boot.h"
#include "tests/check.h"

#include <errno.h>

#include "dev/mem.h"
#include "tests/net.h"

#define	FRAMES	10

/* Calls of the driver since the last interface().  [a] atomic */
static struct {
	/* [a] frames sent by the test's thread */
	atomic_u32	 by_sender;
	atomic_u32	 under_giant;	/* [a] ... */
	atomic_u32	 frames;	/* [a] all frames; incremented last */
} seen;
static struct thread *sender;	/* [I] thread that runs the tests */

/* A driver; arg: it accepts lists. */
static void
look(void *arg, struct mbuf *m)
{
	unsigned n;

	CHECK(arg != NULL || m->m_nextpkt == NULL);
	n = m_freelist(m);
	if (curthread == sender)
		atomic_fetchadd_u32(&seen.by_sender, n);
	if (giant_owned())
		atomic_fetchadd_u32(&seen.under_giant, n);
	atomic_fetchadd_u32(&seen.frames, n);
}

static struct ifnet *
interface(const char *name, bool lists, unsigned flags)
{
	static bool yes = true;
	struct ifnet *ifp = mem_attach(name, NULL, lists ? IFCAP_BATCH : 0,
	    NULL, look, lists ? &yes : NULL);

	if_txq_create(ifp, flags);
	CHECK((ifp->if_caps & IFCAP_BATCH) != 0);
	atomic_store_u32(&seen.by_sender, 0);
	atomic_store_u32(&seen.under_giant, 0);
	atomic_store_u32(&seen.frames, 0);
	return (ifp);
}

static struct ifnet *
started(const char *name, bool lists, unsigned flags)
{
	struct ifnet *ifp = interface(name, lists, flags);

	CHECK_EQ(if_txq_start(ifp->if_txq), 0);
	return (ifp);
}

/* Sends one list; returns if_transmit's result. */
static int
transmit(struct ifnet *ifp, unsigned frames)
{
	struct mbuf *list = NULL, *m;

	while (frames-- > 0) {
		m = m_gethdr(0);
		m->m_len = m->m_pkthdr.len = 60;
		m->m_nextpkt = list;
		list = m;
	}
	return (ifp->if_transmit(ifp, list));
}

static bool
all_seen(void *arg)
{
	return (atomic_load_u32(&seen.frames) == *(unsigned *)arg);
}

static void
expect(unsigned frames, unsigned under_giant, unsigned by_sender)
{
	CHECK(t_until(all_seen, &frames));
	CHECK_EQ(atomic_load_u32(&seen.under_giant), under_giant);
	CHECK_EQ(atomic_load_u32(&seen.by_sender), by_sender);
}

TEST(deferred_frames_go_without_giant)
{
	struct ifnet *ifp = started("mem1", true, TXQ_ALWAYS);

	giant_lock();		/* the thread does not wait for it */
	CHECK_EQ(transmit(ifp, FRAMES), 0);
	expect(FRAMES, 0, 0);
	giant_unlock();
}

TEST(a_driver_that_needs_giant_is_called_under_it)
{
	struct ifnet *ifp = started("mem2", false, TXQ_GIANT);

	CHECK_EQ(transmit(ifp, FRAMES), 0);
	expect(FRAMES, FRAMES, 0);
	CHECK_EQ(t_sysctl("if.mem2.stats.ogiant"), 1);
	giant_lock();		/* at once, because this thread holds Giant */
	CHECK_EQ(transmit(ifp, FRAMES), 0);
	CHECK_EQ(atomic_load_u32(&seen.by_sender), FRAMES);
	giant_unlock();
	expect(2 * FRAMES, 2 * FRAMES, FRAMES);
	CHECK_EQ(t_sysctl("if.mem2.stats.ogiant"), 1);
}

TEST(deferred_frames_wait_for_giant_whoever_has_it)
{
	struct ifnet *ifp = started("mem3", true, TXQ_GIANT | TXQ_ALWAYS);

	giant_lock();
	CHECK_EQ(transmit(ifp, FRAMES), 0);
	t_sleep(20);
	CHECK_EQ(atomic_load_u32(&seen.frames), 0);
	giant_unlock();
	expect(FRAMES, FRAMES, 0);
}

/* Another thread holds Giant between the two calls. */
static struct thread *holder;
/* [a] 1: the thread holds Giant, 2: it must release it */
static atomic_u32 holding;

static bool
holding_is(void *arg)
{
	return (atomic_load_u32(&holding) == *(uint32_t *)arg);
}

static void
hold_giant(void *arg)
{
	giant_lock();
	atomic_store_u32(&holding, 1);
	CHECK(t_until(holding_is, arg));
	giant_unlock();
}

static void
giant_goes(void)
{
	static uint32_t has = 1, lets_go = 2;

	atomic_store_u32(&holding, 0);
	holder = t_thread(hold_giant, &lets_go);
	CHECK(t_until(holding_is, &has));
}

static void
giant_comes_back(void)
{
	atomic_store_u32(&holding, 2);
	t_join(holder);
}

/*
 * Giant comes before all locks: a thread that holds one must not wait for
 * Giant.
 */
TEST(senders_with_locks_do_not_wait_for_giant)
{
	struct ifnet *ifp = started("mem4", true, TXQ_GIANT);
	struct mtx lock = { 0 };

	mtx_init(&lock, LC_SOCKET);
	giant_goes();
	mtx_lock(&lock);
	CHECK_EQ(transmit(ifp, FRAMES), 0);
	mtx_unlock(&lock);
	CHECK_EQ(atomic_load_u32(&seen.frames), 0);
	giant_comes_back();
	expect(FRAMES, FRAMES, 0);
	mtx_destroy(&lock);
}

/* The thread takes the queue once, at any time, and waits for Giant. */
TEST(frames_without_room_are_counted)
{
	const unsigned sent = 3 * 4096;
	struct ifnet *ifp = started("mem5", true, TXQ_GIANT);
	unsigned lost, refused = 0;

	giant_goes();
	for (unsigned i = 0; i < sent / 1024; i++)
		refused += transmit(ifp, 1024) == ENOBUFS;
	lost = (unsigned)t_sysctl("if.mem5.stats.odrops");
	CHECK(lost >= 4096);
	CHECK(refused >= lost / 1024);
	giant_comes_back();
	expect(sent - lost, sent - lost, 0);
}

TEST(what_waits_is_sent_at_the_end)
{
	struct ifnet *ifp = interface("mem6", false, TXQ_GIANT);

	CHECK_EQ(transmit(ifp, FRAMES), 0);
	CHECK_EQ(atomic_load_u32(&seen.frames), 0);
	if_txq_stop(ifp->if_txq);
	expect(FRAMES, FRAMES, FRAMES);
}

int
main(int argc, char **argv)
{
	int status;

	t_boot();
	sender = curthread;
	status = check_main(argc, argv);
	CHECK_EQ(t_sysctl("mbuf.outstanding"), 0);
	stack_shutdown();
	return (status);
}
