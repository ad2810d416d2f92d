/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "groups-thread": the connections of a table are divided into groups, one for
 * each netisr worker.  Only that worker looks connections up in its group,
 * without a lock (Willmann, Rixner, Cox, "An evaluation of network stack
 * parallelization strategies in modern operating systems", 2006: ConnP-T).
 *
 * A segment received by another thread is queued to the worker.  A thread that
 * adds or removes a connection (usually in a call or a timer) changes the
 * table under its lock (in_pcbtable.c) and queues a note for the worker.  The
 * worker applies all notes before each lookup; therefore a note queued before
 * a segment arrives applies to it.  All other threads look up in the table.
 *
 * Listeners are in no group: if no connection is found, the table is searched.
 */
#include <netinet/tcp.h>

#include "kern/counter.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "net/netisr.h"
#include "netinet/in_handoff.h"
#include "netinet/in_pcbtable.h"

/* source and destination port are the first 4 bytes */
#define	PORTS_LEN	4U

/* Size of a worker's cache of connections. */
#define	RECENT		64

struct pcb_note {
	struct pcb_note	*pn_next;	/* [n] queued before this one */
	struct pcb_member *pn_member;	/* [I] */
};

/*
 * A connection in its group.  Locks used to protect its members, and those of
 * a group:
 *	[I] immutable
 *	[n] the thread that makes the note; once queued, the worker
 *	[w] the group's worker only
 *	[a] atomic
 */
struct pcb_member {
	LIST_ENTRY(pcb_member) pm_link;	/* [w] in its bucket, or in pt_dead */
	struct in_conninfo pm_conn;	/* [I] */
	struct socket	*pm_so;		/* [I] referenced */
	unsigned	 pm_bucket;	/* [I] */
	struct pcb_note	 pm_came;	/* [n] */
	struct pcb_note	 pm_went;	/* [n] */
};
LIST_HEAD(pcb_members, pcb_member);

struct pcb_thread {
	atomic_uptr	 pt_notes;	/* [a] the latest note */
	/* [w] members whose sockets are still to be released */
	struct pcb_members pt_dead;
	/* [w] cache, by bucket; or NULL */
	struct pcb_member *pt_recent[RECENT];
} __attribute__((aligned(64)));

static struct inpcbtable *table;		/* [I] after boot */
static struct pcb_thread threads[NETISR_WORKERS_MAX];
static unsigned nthreads;			/* [I] after boot */
static struct pcb_members buckets[INPCB_BUCKETS]; /* [w] worker of its group */

static struct { atomic_u64 handed, notes; } threadstat COUNTERS;

static const struct sysctl_oid thread_oids[] = {
	{ .oid_name = "net.inet.ip.stats.pcbhanded", .oid_type = CTL_U64,
	  .oid_ptr = &threadstat.handed,
	  .oid_descr = "segments queued to the worker of their connection's "
	  "group" },
	{ .oid_name = "net.inet.ip.stats.pcbnotes", .oid_type = CTL_U64,
	  .oid_ptr = &threadstat.notes,
	  .oid_descr = "connections added or removed by threads other than "
	  "their group's worker" },
};

static unsigned
bucket_of(const struct in_conninfo *c)
{
	return ((unsigned)(in_connhash(table, c) % INPCB_BUCKETS));
}

/* Adjacent buckets are in one group, so that workers share few cache lines. */
static unsigned
worker_of(unsigned bucket)
{
	return (bucket * nthreads / INPCB_BUCKETS);
}

static void
member_enter(struct pcb_member *pm)
{
	LIST_INSERT_HEAD(&buckets[pm->pm_bucket], pm, pm_link);
}

/* The socket is released when the worker holds no locks. */
static void
member_bury(struct pcb_thread *pt, struct pcb_member *pm)
{
	struct pcb_member **recent = &pt->pt_recent[pm->pm_bucket % RECENT];

	if (*recent == pm)
		*recent = NULL;
	LIST_REMOVE(pm, pm_link);
	LIST_INSERT_HEAD(&pt->pt_dead, pm, pm_link);
}

/* Applies the notes, oldest first. */
static void
read_notes(struct pcb_thread *pt)
{
	struct pcb_note *left, *next, *first = NULL;

	if (__predict_true(atomic_load_uptr(&pt->pt_notes) == 0))
		return;
	left = (struct pcb_note *)atomic_swap_uptr(&pt->pt_notes, 0);
	for (; left != NULL; left = next) {
		next = left->pn_next;
		left->pn_next = first;
		first = left;
	}
	for (; first != NULL; first = next) {
		struct pcb_member *pm = first->pn_member;

		next = first->pn_next;
		if (first == &pm->pm_came)
			member_enter(pm);
		else
			member_bury(pt, pm);
	}
}

/*
 * The first note wakes the worker, because a removed member holds a reference
 * to its socket.
 */
static void
leave_note(struct pcb_note *pn, struct pcb_member *pm)
{
	const unsigned worker = worker_of(pm->pm_bucket);
	struct pcb_thread *pt = &threads[worker];
	uintptr_t latest = atomic_load_uptr(&pt->pt_notes);

	if (!netisr_is_worker(worker))
		counter_add(&threadstat.notes, 1);
	pn->pn_member = pm;
	do
		pn->pn_next = (struct pcb_note *)latest;
	while (!atomic_cmpset_uptr(&pt->pt_notes, &latest, (uintptr_t)pn));
	if (latest == 0)
		netisr_wake(worker, NETISR_TCP);
}

static void
thread_entered(struct inpcb *inp) REQUIRES(inp->inp_socket->so_lock)
    REQUIRES(pcbtable_role)
{
	struct pcb_member *pm = kmalloc(sizeof(*pm));

	pm->pm_conn = inp->inp_conn;
	pm->pm_bucket = bucket_of(&pm->pm_conn);
	pm->pm_so = inp->inp_socket;
	soref(pm->pm_so);
	inp->inp_member = pm;
	leave_note(&pm->pm_came, pm);
}

static void
thread_leaving(struct inpcb *inp) REQUIRES(pcbtable_role)
{
	leave_note(&inp->inp_member->pm_went, inp->inp_member);
	inp->inp_member = NULL;
}

static struct pcb_member *
member_find(struct pcb_thread *pt, unsigned bucket,
    const struct in_conninfo *c)
{
	struct pcb_member **recent = &pt->pt_recent[bucket % RECENT], *pm;

	if (*recent != NULL && in_connequal(&(*recent)->pm_conn, c))
		return (*recent);
	LIST_FOREACH(pm, &buckets[bucket], pm_link)
		if (in_connequal(&pm->pm_conn, c)) {
			*recent = pm;
			break;
		}
	return (pm);
}

static bool
thread_find(const struct in_conninfo *c, struct socket **sop)
{
	const unsigned bucket = bucket_of(c), worker = worker_of(bucket);
	struct pcb_member *pm;

	if (!netisr_is_worker(worker))
		return (false);
	read_notes(&threads[worker]);
	pm = member_find(&threads[worker], bucket, c);
	*sop = pm != NULL ? pm->pm_so : NULL;
	if (pm != NULL)
		soref(pm->pm_so);
	return (true);
}

/* A segment too short for its ports is counted by the current thread. */
static bool
thread_take(struct mbuf *m, unsigned hlen)
{
	const struct in_family *af = in_packetfamily(m);
	struct in_conninfo c;
	const uint16_t *ports;
	uint8_t buf[PORTS_LEN];
	unsigned worker;

	if (m->m_pkthdr.len < hlen + PORTS_LEN)
		return (false);
	af_endpoints(af, m, &c);
	ports = m_peek(m, hlen, PORTS_LEN, buf);
	c.fport = ports[0];
	c.lport = ports[1];
	worker = worker_of(bucket_of(&c));
	if (netisr_is_worker(worker))
		return (false);
	counter_add(&threadstat.handed, 1);
	(void)netisr_queue_to(worker, NETISR_TCP, m);
	return (true);
}

static void
handed_input(struct mbuf *m)
{
	in_handoff_resume(HANDOFF_WORKER, m);
}

/* Called when the worker holds no locks. */
static void
thread_drained(unsigned worker)
{
	struct pcb_thread *pt = &threads[worker];
	struct pcb_member *pm;

	read_notes(pt);
	while ((pm = LIST_FIRST(&pt->pt_dead)) != NULL) {
		LIST_REMOVE(pm, pm_link);
		sorele(pm->pm_so);
		kfree(pm);
	}
}

static const char *
thread_start(struct inpcbtable *it)
{
	const struct netisr_handler handler = { .nh_name = "tcp",
	    .nh_proto = NETISR_TCP, .nh_handler = handed_input,
	    .nh_drained = thread_drained, .nh_policy = NETISR_POLICY_FLOW,
	    .nh_mpsafe = netisr_is_mpsafe(NETISR_IP) &&
	    netisr_is_mpsafe(NETISR_IPV6) };

	nthreads = netisr_workers();
	if (nthreads == 0)
		return ("with groups-thread each worker has a group, and the "
		    "netisr of 2005 has no workers; set net.isr.generation to "
		    "2009, or use groups-lock");
	if (in_handoff_has(IPPROTO_TCP, HANDOFF_EXCLUSIVE))
		return ("with groups-thread each worker handles segments, "
		    "but net.inet.ip.alone requires one thread; remove tcp "
		    "from it, or use groups-lock");
	table = it;
	sysctl_register(thread_oids, nitems(thread_oids));
	netisr_register(&handler);
	in_handoff_set(IPPROTO_TCP, HANDOFF_WORKER, thread_take);
	it->it_ops = &pcbtable_thread;
	return (NULL);
}

const struct pcbtable_ops pcbtable_thread = {
	.po_start = thread_start, .po_entered = thread_entered,
	.po_leaving = thread_leaving, .po_find = thread_find,
};
