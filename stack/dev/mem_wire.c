/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The far end of an interface in memory: a sink or a mirror.  Swapping the
 * addresses of a packet does not change its checksums.  A mirror therefore
 * recomputes nothing, and the stack itself detects its wrong checksums.
 */
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <string.h>

#include "dev/mem.h"
#include "kern/ast.h"
#include "kern/thread.h"
#include "kern/worker.h"
#include "net/if_lro.h"
#include "net/if_txbatch.h"
#include "net/rx_burst.h"

#define	QUEUE_MAX	4096	/* max frames; more are dropped */
#define	SENDER_MAX	16	/* max frames that a sender delivers itself */
#define	THREAD_MAX	1024	/* ... and the wire's thread at a time */

/* A neighbour solicitation with its sender's link address. */
struct solicitation {
	struct ether_header eh;
	struct ip6_hdr	 ip6;
	struct nd_neighbor_solicit ns;
	struct nd_opt_hdr opt;
	uint8_t		 lladdr[6];
} __attribute__((packed));

/* Bits of mw_state: a thread delivers frames; the queue may have frames. */
#define	WIRE_IDLE	0U
#define	WIRE_PASSING	1U
#define	WIRE_QUEUED	2U

/*
 * Locks used to protect struct mem_wire members:
 *	[I] immutable once attached
 *	[a] atomic
 *	[q] mw_lock
 *	[p] the sender that delivers frames
 *
 * One atomic operation takes an idle wire, and one leaves a wire with an empty
 * queue.  Other changes of mw_state hold mw_lock.
 */
struct mem_wire {
	struct mtx	 mw_lock;
	atomic_u32	 mw_state;	/* [a] */
	/* [q] frames on the way back */
	struct mbufq	 mw_queue GUARDED_BY(mw_lock);
	/* [q] the thread was woken to deliver */
	bool		 mw_called GUARDED_BY(mw_lock);
	struct ast	 mw_ast;	/* [p] */
	struct mbufq	 mw_mine;	/* [p] delivered before the queue */
	bool		 mw_mirror;	/* [I] */
	struct ifnet	*mw_ifp;	/* [I] */
	unsigned	 mw_index;	/* [I] queue index of the interface */
	struct worker	 mw_worker;
} __attribute__((aligned(64)));	/* used by one CPU: no shared cache lines */

/*
 * Makes the received form of a sent frame: private headers, followed by the
 * sender's shared storage, which is not written while shared.
 */
static struct mbuf *
turn_frame(struct mbuf *m, uint32_t headers)
{
	struct pkthdr *ph;

	m = m_pullup(m, headers);
	KASSERT(m != NULL, ("turn_frame: less than %u bytes", headers));
	ph = &m->m_pkthdr;
	if ((ph->csum_flags & CSUM_TSO) == 0)
		ph->tso_segsz = 0;
	ph->csum_flags = ph->csum_flags & CSUM_TX ? CSUM_PARTIAL : 0;
	ph->flowid = 0;
	m->m_flags = 0;
	return (m);
}

__cold static void
reflect_arp(struct mbuf *m)
{
	struct ether_header *eh = mtod(m, struct ether_header *);
	struct ether_arp *ea = (struct ether_arp *)(void *)(eh + 1);
	uint8_t target[4];

	memcpy(target, ea->arp_tpa, 4);
	memcpy(ea->arp_tha, ea->arp_sha, 6);
	memcpy(ea->arp_tpa, ea->arp_spa, 4);
	memcpy(ea->arp_sha, MEM_FAR_LLADDR, 6);
	memcpy(ea->arp_spa, target, 4);
	ea->arp_op = htons(ARPOP_REPLY);
	memcpy(eh->ether_dhost, ea->arp_tha, 6);
	memcpy(eh->ether_shost, ea->arp_sha, 6);
}

/* Answers at once, because the sender holds no lock. */
bool
mem_answer_arp(struct ifnet *ifp, struct mbuf *m, unsigned queue)
{
	if (mtod(m, const struct ether_header *)->ether_type !=
	    htons(ETHERTYPE_ARP))
		return (false);
	m = turn_frame(m, ETHER_HDR_LEN + sizeof(struct ether_arp));
	reflect_arp(m);
	if_input(ifp, m, queue);
	return (true);
}

static void
reflect_ip(struct mbuf *m)
{
	struct ether_header *eh = mtod(m, struct ether_header *);
	struct ip *ip = (struct ip *)(void *)(eh + 1);
	struct in_addr src = ip->ip_src;

	ip->ip_src = ip->ip_dst;
	ip->ip_dst = src;
	memcpy(eh->ether_dhost, eh->ether_shost, 6);
	memcpy(eh->ether_shost, MEM_FAR_LLADDR, 6);
}

/*
 * Answers a solicitation with an advertisement from the far end (RFC 4861
 * section 7.2.4), except for duplicate detection (RFC 4862 section 5.4).
 */
static bool
answer_solicitation(struct mbuf *m)
{
	struct solicitation *sol = mtod(m, struct solicitation *);

	if (m->m_pkthdr.len < sizeof(*sol) ||
	    sol->ip6.ip6_nxt != IPPROTO_ICMPV6 ||
	    sol->ns.nd_ns_type != ND_NEIGHBOR_SOLICIT ||
	    sol->opt.nd_opt_type != ND_OPT_SOURCE_LINKADDR)
		return (false);
	sol->ns.nd_ns_type = ND_NEIGHBOR_ADVERT;
	sol->ns.nd_ns_reserved = ND_NA_FLAG_SOLICITED | ND_NA_FLAG_OVERRIDE;
	sol->opt.nd_opt_type = ND_OPT_TARGET_LINKADDR;
	memcpy(sol->lladdr, MEM_FAR_LLADDR, 6);
	sol->ip6.ip6_dst = sol->ip6.ip6_src;
	sol->ip6.ip6_src = sol->ns.nd_ns_target;
	/* The computed checksum was the solicitation's. */
	m->m_pkthdr.csum_flags = CSUM_VALID;
	return (true);
}

/* False: the far end drops it. */
static bool
reflect_ip6(struct mbuf *m)
{
	struct ether_header *eh = mtod(m, struct ether_header *);
	struct ip6_hdr *ip6 = (struct ip6_hdr *)(void *)(eh + 1);
	struct in6_addr src = ip6->ip6_src;

	if (!answer_solicitation(m)) {
		if (IN6_IS_ADDR_MULTICAST(&ip6->ip6_dst))
			return (false);
		ip6->ip6_src = ip6->ip6_dst;
		ip6->ip6_dst = src;
	}
	memcpy(eh->ether_dhost, eh->ether_shost, 6);
	memcpy(eh->ether_shost, MEM_FAR_LLADDR, 6);
	return (true);
}

static void
call_thread(struct mem_wire *mw) REQUIRES(mw->mw_lock)
{
	if (mw->mw_called)
		return;
	mw->mw_called = true;
	worker_wake(&mw->mw_worker);
}

static void
pass_frames(struct ifnet *ifp, struct mbufq *frames, unsigned queue)
{
	struct mbuf *m;

	while ((m = mbufq_dequeue(frames)) != NULL)
		if_input(ifp, m, queue);
}

/*
 * Receives a burst like a device (dev/hostif.c): the net lock first, then the
 * frames.
 */
NOINLINE static void
pass_burst(struct ifnet *ifp, struct mbufq *frames, unsigned queue)
{
	struct tx_batch batch;

	tx_batch_begin(&batch);
	rx_burst_begin();
	if_lro_begin();
	pass_frames(ifp, frames, queue);
	if_lro_end();
	rx_burst_end();
	tx_batch_end(&batch);
}

__hot void
mem_pass(struct ifnet *ifp, struct mbufq *frames, unsigned queue)
{
	if (frames->mq_len > 1) {
		pass_burst(ifp, frames, queue);
		return;
	}
	rx_burst_begin();
	pass_frames(ifp, frames, queue);
	rx_burst_end();
}

/* Delivers frames until there are none, or about the given number. */
static void
pass_queue(struct mem_wire *mw, unsigned most) REQUIRES(mw->mw_lock)
{
	struct mbufq back;

	KASSERT((atomic_load_u32(&mw->mw_state) & WIRE_PASSING) != 0,
	    ("pass_queue: another thread delivers"));
	for (unsigned n = 0; mw->mw_queue.mq_len > 0 && n < most; ) {
		mbufq_take(&back, &mw->mw_queue);
		n += back.mq_len;
		mtx_unlock(&mw->mw_lock);
		mem_pass(mw->mw_ifp, &back, mw->mw_index);
		mtx_lock(&mw->mw_lock);
	}
	if (mw->mw_queue.mq_len > 0)
		call_thread(mw);
	atomic_store_rel_u32(&mw->mw_state, mw->mw_queue.mq_len > 0 ?
	    WIRE_QUEUED : WIRE_IDLE);
}

__hot static void
sender_passes(struct ast *a)
{
	struct mem_wire *mw = container_of(a, struct mem_wire, mw_ast);
	uint32_t state = WIRE_PASSING;

	mem_pass(mw->mw_ifp, &mw->mw_mine, mw->mw_index);
	if (atomic_cmpset_u32(&mw->mw_state, &state, WIRE_IDLE))
		return;
	mtx_lock(&mw->mw_lock);
	pass_queue(mw, SENDER_MAX);
	mtx_unlock(&mw->mw_lock);
}

/*
 * If no thread delivers frames or was woken to, the sender does, when it holds
 * no locks, if it is a program's thread and the frames are few.
 */
static bool
sender_takes(struct mem_wire *mw, struct mbufq *back)
{
	uint32_t state = WIRE_IDLE;

	if (back->mq_len > SENDER_MAX || !ast_entered() ||
	    !atomic_cmpset_u32(&mw->mw_state, &state, WIRE_PASSING))
		return (false);
	mbufq_take(&mw->mw_mine, back);
	return (ast_take(&mw->mw_ast));
}

/* Queues frames for the delivering thread, or for the wire's thread. */
static void
enqueue(struct mem_wire *mw, struct mbufq *back) REQUIRES(mw->mw_lock)
{
	if (mw->mw_queue.mq_len < QUEUE_MAX)
		mbufq_concat(&mw->mw_queue, back);
	/* A thread that leaves the wire from now on checks the queue first. */
	atomic_set_u32(&mw->mw_state, WIRE_QUEUED);
	if ((atomic_load_acq_u32(&mw->mw_state) & WIRE_PASSING) == 0)
		call_thread(mw);
}

NOINLINE static struct mbuf *
turn_ip6(struct mbuf *m)
{
	uint32_t len = m->m_pkthdr.len;

	m = turn_frame(m, len < sizeof(struct solicitation) ? len :
	    (uint32_t)sizeof(struct solicitation));
	if (reflect_ip6(m))
		return (m);
	m_freem(m);
	return (NULL);
}

/* The returned frame, or NULL if there is none or it was delivered already. */
static struct mbuf *
turn(struct mem_wire *mw, struct mbuf *m)
{
	uint16_t type = ntohs(mtod(m, const struct ether_header *)->ether_type);

	if (mem_answer_arp(mw->mw_ifp, m, mw->mw_index))
		return (NULL);
	if (mw->mw_mirror && type == ETHERTYPE_IP) {
		m = turn_frame(m, ETHER_HDR_LEN + sizeof(struct ip));
		reflect_ip(m);
		return (m);
	}
	if (mw->mw_mirror && type == ETHERTYPE_IPV6)
		return (turn_ip6(m));
	m_freem(m);
	return (NULL);
}

__hot void
mem_wire_output(void *arg, struct mbuf *m)
{
	struct mem_wire *mw = arg;
	struct mbuf *next;
	struct mbufq back;

	mbufq_init(&back);
	do {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		m = turn(mw, m);
		if (m != NULL)
			mbufq_enqueue(&back, m);
	} while ((m = next) != NULL);
	if (back.mq_len == 0 || sender_takes(mw, &back))
		return;
	mtx_lock(&mw->mw_lock);
	enqueue(mw, &back);
	mtx_unlock(&mw->mw_lock);
	mbufq_drain(&back);
}

static nsec_t
wire_work(void *arg)
{
	struct mem_wire *mw = arg;

	mtx_assert_owned(&mw->mw_lock);
	if (!mw->mw_called)
		return (NSEC_FOREVER);
	mw->mw_called = false;
	/* the delivering thread sees frames that were queued since */
	if (atomic_load_acq_u32(&mw->mw_state) == WIRE_QUEUED) {
		atomic_set_u32(&mw->mw_state, WIRE_PASSING);
		pass_queue(mw, THREAD_MAX);
	}
	return (0);
}

struct mem_wire *
mem_wire_create(bool mirror)
{
	struct mem_wire *mw = kmalloc_aligned(sizeof(*mw),
	    _Alignof(struct mem_wire));

	mtx_init(&mw->mw_lock, LC_DEVQ);
	mtx_private(&mw->mw_lock);
	mbufq_init(&mw->mw_queue);
	mw->mw_mirror = mirror;
	mw->mw_ast.ast_fn = sender_passes;
	mw->mw_worker = (struct worker){ .w_lock = &mw->mw_lock,
	    .w_fn = wire_work, .w_arg = mw, .w_wmesg = "wire" };
	return (mw);
}

void
mem_wire_attach(struct mem_wire *mw, struct ifnet *ifp, unsigned queue)
{
	mw->mw_ifp = ifp;
	mw->mw_index = queue;
}

int
mem_wire_start(struct mem_wire *mw)
{
	if (!mw->mw_mirror)
		return (0);
	return (worker_start(&mw->mw_worker, "intr: wire", MACH_CPU_ANY));
}

void
mem_wire_stop(struct mem_wire *mw)
{
	worker_stop(&mw->mw_worker);
	mtx_lock(&mw->mw_lock);
	mbufq_drain(&mw->mw_queue);
	mtx_unlock(&mw->mw_lock);
}
