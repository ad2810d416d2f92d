/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/socopies.h"

#include "kern/epoch.h"
#include "kern/planted.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/thread.h"

enum { LISTENERS_ONE, LISTENERS_CPU };
static const char *const listeners_names[] = { "one", "cpu", NULL };
static atomic_u32 listeners = LISTENERS_CPU;	/* [I] after boot */

static const struct sysctl_oid copies_oids[] = {
	{ .oid_name = "kern.ipc.listeners", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN, .oid_ptr = &listeners,
	  .oid_names = listeners_names,
	  .oid_descr = "queues and locks of a TCP listener: one, or one for "
	  "each CPU (cpu)" },
};

void
socopies_init(void)
{
	sysctl_register(copies_oids, nitems(copies_oids));
}

/*
 * A copy of a socket, with its options.  No other thread knows it yet, so its
 * mutex is enough with any strategy of TCP.
 */
static struct socket *
copy_make(struct socket *head, struct socopies *sc, unsigned n)
    REQUIRES(head->so_lock)
{
	struct socket *copy = sonewchild(head);

	mtx_lock_child(&copy->so_lock);
	copy->so_retired = true;
	copy->so_copy = n;
	atomic_store_rel_uptr(&copy->so_copies, (uintptr_t)sc);
	head->so_proto->pr_copy(head, copy);
	copy->so_state |= SS_LISTENING;
	mtx_unlock(&copy->so_lock);
	return (copy);
}

void
socopies_make(struct socket *head) REQUIRES(head->so_lock)
{
	const unsigned ncpus = mach_ncpus();
	struct socopies *sc;

	if (head->so_proto->pr_copy == NULL || ncpus == 1 ||
	    atomic_load_u32(&listeners) != LISTENERS_CPU)
		return;
	KASSERT(socopies_of(head) == NULL, ("socopies_make: twice"));
	sc = kmalloc_aligned(sizeof(*sc), _Alignof(struct socopies));
	sc->sc_head = head;
	sc->sc_count = ncpus < SOCOPIES_MAX ? ncpus : SOCOPIES_MAX;
	for (unsigned i = 0; i < sc->sc_count; i++)
		sc->sc_copy[i] = copy_make(head, sc, i);
	head->so_retired = true;
	atomic_store_rel_uptr(&head->so_copies, (uintptr_t)sc);
}

void
socopies_limit(struct socket *head, unsigned qlimit)
{
	struct socopies *sc = socopies_of(head);

	if (sc != NULL)
		atomic_store_u32(&sc->sc_qlimit, qlimit);
}

struct socopies *
socopies_detach(struct socket *head)
{
	struct socopies *sc = socopies_of(head);

	atomic_store_rel_uptr(&head->so_copies, 0);
	return (sc);
}

static void
copy_close(struct socket *copy)
{
	so_enter(copy);
	atomic_store_rel_uptr(&copy->so_copies, 0);
	sodrainqueues(copy);
	copy->so_state |= SS_NOFDREF;
	wakeup(&copy->so_rcv);
	if (copy->so_pcb != NULL)
		copy->so_proto->pr_detach(copy);
	so_leave(copy);
	sorele(copy);
}

void
socopies_close(struct socopies *sc)
{
	if (sc == NULL)
		return;
	for (unsigned i = 0; i < sc->sc_count; i++)
		copy_close(sc->sc_copy[i]);
	epoch_call(kfree, sc);
}

/* The n-th copy of a listener, referenced; NULL: it has fewer, or ends. */
static struct socket *
copy_ref(struct socket *head, unsigned n)
{
	struct socket *copy = NULL;
	struct socopies *sc;

	epoch_enter();
	sc = socopies_of(head);
	if (sc != NULL && n < sc->sc_count &&
	    soref_unless_dying(sc->sc_copy[n]))
		copy = sc->sc_copy[n];
	epoch_exit();
	return (copy);
}

void
socopies_foreach(struct socket *head,
    void (*fn)(struct socket *copy, void *arg), void *arg)
{
	struct socket *copy;

	for (unsigned n = 0; (copy = copy_ref(head, n)) != NULL; n++) {
		so_enter(copy);
		fn(copy, arg);
		so_leave(copy);
		sorele(copy);
	}
}

struct socket *
socopies_ref(struct socket *head)
{
	struct socket *so = NULL;
	struct socopies *sc;

	epoch_enter();
	sc = socopies_of(head);
	if (sc != NULL) {
		so = sc->sc_copy[mach_curcpu() % sc->sc_count];
		if (!soref_unless_dying(so))
			so = NULL;
	}
	if (so == NULL && soref_unless_dying(head))
		so = head;
	epoch_exit();
	return (so);
}

/* Connections that wait in all queues. */
static unsigned
total_queued(const struct socopies *sc)
{
	unsigned total = 0;

	epoch_enter();		/* some may have ended */
	for (unsigned i = 0; i < sc->sc_count; i++)
		total += atomic_load_u32(&sc->sc_copy[i]->so_qlen);
	epoch_exit();
	return (total);
}

bool
socopies_full(struct socket *copy)
{
	struct socopies *sc = socopies_of(copy);
	const unsigned limit = atomic_load_u32(&sc->sc_qlimit);

	if (atomic_load_u32(&copy->so_qlen) == 0 && limit >= 4 * sc->sc_count)
		return (false);
	return (total_queued(sc) >= limit);
}

/* The listener's lock keeps the copies. */
bool
socopies_ready(struct socket *head)
{
	const struct socopies *sc = socopies_of(head);

	return (sc != NULL && total_queued(sc) > 0);
}

/* Wakes a thread that sleeps in a copy; false if none does. */
static bool
wake_sleeper(struct socopies *sc, unsigned n)
{
	struct socket *copy = sc->sc_copy[n];
	bool woken;

	if (!soref_unless_dying(copy))
		return (false);
	solock(copy);
	woken = copy->so_rcv.sb_waiters > 0 && wakeup_one(&copy->so_rcv);
	if (!woken)
		atomic_clear_u64(&sc->sc_sleeping, UINT64_C(1) << n);
	sounlock(copy);
	sorele(copy);
	return (woken);
}

/* Wakes a thread in any copy, the next ones first. */
static void
wake_any(struct socopies *sc, unsigned n)
{
	uint64_t left;

	for (unsigned i = 0; i < sc->sc_count; i++) {
		const unsigned other = (n + i) % sc->sc_count;

		left = atomic_load_u64(&sc->sc_sleeping);
		if (left == 0)
			return;
		if ((left >> other & 1) != 0 && wake_sleeper(sc, other))
			return;
	}
}

/* Notifies watchers of the listener, as poll(2) has them. */
static void
wake_watchers(struct socket *head)
{
	if (atomic_load_u32(&head->so_nwatches) == 0 ||
	    !soref_unless_dying(head))
		return;
	solock(head);
	sorwakeup(head);
	sounlock(head);
	sorele(head);
}

void
socopies_wake(struct socopies *sc, struct socket *copy)
{
	const unsigned n = copy->so_copy;

	atomic_fence();
	if ((atomic_load_u64(&sc->sc_sleeping) >> n & 1) == 0 ||
	    !wake_sleeper(sc, n)) {
		atomic_set_u64(&sc->sc_ready, UINT64_C(1) << n);
		atomic_fence();
		wake_any(sc, n);
	}
	wake_watchers(sc->sc_head);
}

/*
 * Makes the copy's bit visible before the last test of the others.  Returns
 * the copies that may have connections.
 */
static uint64_t
others_ready(struct socopies *sc, unsigned n)
{
	const uint64_t bit = UINT64_C(1) << n;
	const uint64_t before = atomic_load_u64(&sc->sc_ready);

	if ((atomic_load_u64(&sc->sc_sleeping) & bit) == 0)
		atomic_set_u64(&sc->sc_sleeping, bit);
	atomic_fence();
	return (PLANTED(COPY_SLEEP) ? before :
	    atomic_load_u64(&sc->sc_ready));
}

/* Since when the first connection of a copy waits; UINT64_MAX: it has none. */
static uint64_t
waits_since(const struct socopies *sc, unsigned n)
{
	const uint64_t since = atomic_load_u64(&sc->sc_copy[n]->so_oldest);

	return (since != 0 ? since : UINT64_MAX);
}

/*
 * The copy whose first connection waits longest, of this one and SOCOPIES_LOOK
 * others that may have some.  The next call compares those after them.
 */
static unsigned
oldest_copy(struct socopies *sc, struct socket *copy) REQUIRES(copy->so_lock)
{
	uint64_t ready = atomic_load_u64(&sc->sc_ready);
	unsigned oldest = copy->so_copy;
	uint64_t since = waits_since(sc, oldest);

	ready &= ~(UINT64_C(1) << copy->so_copy);
	for (unsigned i = 0; i < SOCOPIES_LOOK && ready != 0; i++) {
		const uint64_t later = ready & (UINT64_MAX << copy->so_next);
		const unsigned n = (unsigned)__builtin_ctzll(later != 0 ?
		    later : ready);
		const uint64_t other = waits_since(sc, n);

		if (other < since) {
			oldest = n;
			since = other;
		}
		ready &= ~(UINT64_C(1) << n);
		copy->so_next = (n + 1) % SOCOPIES_MAX;
	}
	return (oldest);
}

static struct socket *
take_from(struct socopies *sc, unsigned n)
{
	return (soq_take(sc->sc_copy[n], &sc->sc_ready, UINT64_C(1) << n));
}

struct socket *
socopies_take(struct socket *copy)
{
	struct socopies *sc = socopies_of(copy);
	struct socket *so;
	uint64_t ready;

	epoch_enter();		/* another copy may have ended */
	so = take_from(sc, oldest_copy(sc, copy));
	while (so == NULL && (ready = others_ready(sc, copy->so_copy)) != 0)
		so = take_from(sc, (unsigned)__builtin_ctzll(ready));
	epoch_exit();
	return (so);
}
