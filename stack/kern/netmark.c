/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks of the net lock's readers.
 *
 * A reader sets its mark and then looks for a writer; a writer announces itself
 * and then reads the marks.  Each has a fence in between, so at least one of
 * them sees the other.  A reader that leaves clears its mark and looks for a
 * writer that may be parked, in the same way.
 */
#include "kern/netmark.h"

#include "kern/lock_private.h"
#include "kern/planted.h"

/* As large as two cache lines, because CPUs fetch them in pairs. */
#define	MARK_SIZE	128

/*
 * Locks used to protect members:
 *	[I] immutable
 *	[a] atomic, written by the mark's thread
 */
struct netmark {
	atomic_u32	 nm_inside;	/* [a] */
	struct netmark	*nm_next;	/* [I] */
} __attribute__((aligned(MARK_SIZE)));

static atomic_uptr marks;	/* [a] all marks; only grows */

/* The writer: read by each reader, and rarely written. */
static struct {
	atomic_u32	 stopped;	/* [a] 1: there is a writer */
	atomic_u32	 left;		/* [a] readers that left since */
} writer __attribute__((aligned(MARK_SIZE)));

/* A mark stays with its struct thread, which is never freed. */
__cold static struct netmark *
mark_attach(struct thread *td)
{
	struct netmark *nm = kmalloc_aligned(sizeof(*nm), MARK_SIZE);
	uintptr_t head = atomic_load_acq_uptr(&marks);

	do
		nm->nm_next = (void *)head;
	while (!atomic_cmpset_uptr(&marks, &head, (uintptr_t)nm));
	td->td_netmark = nm;
	return (nm);
}

/* Between the two sides of the comparison above. */
static bool
is_stopped(void)
{
	atomic_fence();
	return (__predict_false(atomic_load_acq_u32(&writer.stopped) != 0));
}

void
netmark_exit(struct thread *td)
{
	atomic_store_rel_u32(&td->td_netmark->nm_inside, 0);
	if (is_stopped()) {
		atomic_fetchadd_u32(&writer.left, 1);
		mach_unpark(&writer.left, 1);
	}
}

bool
netmark_enter(struct thread *td)
{
	struct netmark *nm = td->td_netmark;

	if (__predict_false(nm == NULL))
		nm = mark_attach(td);
	if (PLANTED(NETMARK_LATE) && !is_stopped()) {
		atomic_store_u32(&nm->nm_inside, 1);
		return (true);
	}
	atomic_store_u32(&nm->nm_inside, 1);
	if (!is_stopped())
		return (true);
	netmark_exit(td);
	return (false);
}

static bool
is_inside(struct netmark *nm)
{
	return (atomic_load_acq_u32(&nm->nm_inside) != 0);
}

/* Waits until a reader has left; *turns of spinning remain. */
static void
wait_for(struct netmark *nm, unsigned *turns)
{
	for (;;) {
		const uint32_t left = atomic_load_acq_u32(&writer.left);

		if (!is_inside(nm))
			return;
		if (*turns > 0) {
			--*turns;
			mach_cpu_relax();
		} else
			lock_park(&writer.left, left);
	}
}

/* Spins and shows its wait like rw_wait(). */
bool
netmark_stop(const struct rwlock *l)
{
	unsigned turns = giant_owned() ? 0 : lock_spin_limit();
	struct netmark *nm;
	bool waited = false;

	atomic_store_u32(&writer.stopped, 1);
	atomic_fence();
	for (nm = (void *)atomic_load_acq_uptr(&marks); nm != NULL;
	    nm = nm->nm_next) {
		if (!is_inside(nm))
			continue;
		if (!waited)
			lock_waits(l, LC_NET, LOCK_SITE);
		waited = true;
		wait_for(nm, &turns);
	}
	if (waited)
		lock_waited();
	return (waited);
}

void
netmark_start(void)
{
	atomic_store_rel_u32(&writer.stopped, 0);
}
