/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault injector of an interface: drops, duplicates, reorders and corrupts
 * packets with given probabilities.  The generator is seeded, so that a test
 * can repeat the faults.
 *
 * A reordered packet is held back until two others have passed, or for
 * HOLD_MAX, so that the last packet of a conversation arrives.  A delay
 * postpones all packets by the same time, as a long link does.
 */
#include <string.h>
#include <sys/queue.h>

#include "kern/callout.h"
#include "kern/lock.h"
#include "net/if_driver.h"

#define	PPM		1000000
#define	HOLD_PACKETS	2
#define	LATE_MAX	16384	/* max delayed packets; more are dropped */
#define	HOLD_MAX	(5 * NSEC_PER_MSEC)

typedef void impair_fn(void *, struct mbuf *);

/*
 * Locks used to protect struct if_impair members:
 *	[I] immutable
 *	[i] im_lock
 */
struct if_impair {
	struct impair_config im_config;	/* [I] */
	struct mtx	 im_lock;
	uint64_t	 im_random GUARDED_BY(im_lock);	/* [i] */
	struct mbuf	*im_held GUARDED_BY(im_lock);	/* [i] */
	/* [i] packets passed since then */
	unsigned	 im_passed GUARDED_BY(im_lock);
	/* [i] function to call with it */
	impair_fn	*im_fn GUARDED_BY(im_lock);
	void		*im_arg GUARDED_BY(im_lock);	/* [i] */
	struct callout	 im_callout;
	/* Delayed packets, in order. */
	STAILQ_HEAD(, late) im_late GUARDED_BY(im_lock);	/* [i] */
	unsigned	 im_nlate GUARDED_BY(im_lock);	/* [i] */
	struct callout	 im_late_callout;
};

/* A delayed packet. [v] reached only through im_late */
struct late {
	STAILQ_ENTRY(late) la_link;	/* [v] */
	nsec_t		 la_when;	/* [v] */
	struct mbuf	*la_packet;	/* [v] */
	impair_fn	*la_fn;		/* [v] */
	void		*la_arg;	/* [v] */
};

struct if_impair *
if_impair_create(const struct impair_config *ic)
{
	struct if_impair *im;

	if (ic->loss + ic->dup + ic->reorder + ic->corrupt + ic->delay == 0)
		return (NULL);
	im = kmalloc(sizeof(*im));
	im->im_config = *ic;
	mtx_private(&im->im_lock);
	im->im_random = ic->seed * 2654435761ULL + 1;
	mtx_init(&im->im_lock, LC_IFNET);
	callout_init(&im->im_callout);
	STAILQ_INIT(&im->im_late);
	callout_init(&im->im_late_callout);
	return (im);
}

/* xorshift64* (Vigna 2016), whose state must not be zero. */
static uint32_t
impair_random(struct if_impair *im) REQUIRES(im->im_lock)
{
	uint64_t x = im->im_random;

	KASSERT(x != 0, ("impair_random: state is zero"));
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	im->im_random = x;
	return ((uint32_t)((x * 0x2545f4914f6cdd1dULL) >> 32));
}

static bool
impair_happens(struct if_impair *im, uint32_t ppm) REQUIRES(im->im_lock)
{
	return (ppm != 0 && impair_random(im) % PPM < ppm);
}

static struct mbuf *
packet_copy(const struct mbuf *m)
{
	struct mbuf *n = m_copym(m, 0, m->m_pkthdr.len);

	n->m_pkthdr = m->m_pkthdr;
	n->m_flags = m->m_flags;
	return (n);
}

/*
 * Flips one bit near the start of the packet, in unshared memory.  A packet
 * whose checksum is left to the device is not corrupted, because the device
 * would compute a valid checksum over the damage.
 */
static struct mbuf *
packet_corrupt(struct mbuf *m, uint32_t random)
{
	uint32_t len = m->m_pkthdr.len < 64 ? m->m_pkthdr.len : 64;

	if ((m->m_pkthdr.csum_flags & (CSUM_TX | CSUM_TSO)) != 0)
		return (m);
	m = m_pullup(m, len);
	if (m != NULL && len > 0)
		m->m_data[random % len] ^= (char)(1U << ((random >> 16) & 7));
	if (m != NULL) {
		/*
		 * The checksum must be verified now, and the packet not
		 * segmented.
		 */
		m->m_pkthdr.csum_flags &=
		    (uint16_t)~(CSUM_VALID | CSUM_PARTIAL);
		m->m_pkthdr.tso_segsz = 0;
	}
	return (m);
}

/* Delivers due packets; re-arms for the next. */
static void
late_release(void *arg)
{
	STAILQ_HEAD(, late) due = STAILQ_HEAD_INITIALIZER(due);
	struct if_impair *im = arg;
	nsec_t now = mach_uptime();
	struct late *la;

	mtx_lock(&im->im_lock);
	while ((la = STAILQ_FIRST(&im->im_late)) != NULL &&
	    la->la_when <= now) {
		STAILQ_REMOVE_HEAD(&im->im_late, la_link);
		STAILQ_INSERT_TAIL(&due, la, la_link);
		im->im_nlate--;
	}
	if (la != NULL)
		callout_reset(&im->im_late_callout, la->la_when - now,
		    late_release, im);
	mtx_unlock(&im->im_lock);
	while ((la = STAILQ_FIRST(&due)) != NULL) {
		STAILQ_REMOVE_HEAD(&due, la_link);
		la->la_fn(la->la_arg, la->la_packet);
		kfree(la);
	}
}

static void
late_enqueue(struct if_impair *im, struct mbuf *m, impair_fn *fn, void *arg)
{
	nsec_t delay = im->im_config.delay * NSEC_PER_USEC;
	struct late *la = kmalloc(sizeof(*la));

	*la = (struct late){ .la_when = mach_uptime() + delay,
	    .la_packet = m, .la_fn = fn, .la_arg = arg };
	mtx_lock(&im->im_lock);
	if (im->im_nlate < LATE_MAX) {
		STAILQ_INSERT_TAIL(&im->im_late, la, la_link);
		if (im->im_nlate++ == 0)
			callout_reset(&im->im_late_callout, delay,
			    late_release, im);
		la = NULL;
	}
	mtx_unlock(&im->im_lock);
	if (la != NULL)
		m_freem(m);
	kfree(la);
}

/* Delivers a packet now or after the delay. */
static void
impair_deliver(struct if_impair *im, struct mbuf *m, impair_fn *fn, void *arg)
{
	if (im->im_config.delay != 0)
		late_enqueue(im, m, fn, arg);
	else
		fn(arg, m);
}

static void
impair_release(void *arg)
{
	struct if_impair *im = arg;
	struct mbuf *m;
	impair_fn *fn;
	void *to;

	mtx_lock(&im->im_lock);
	m = im->im_held;
	fn = im->im_fn;
	to = im->im_arg;
	im->im_held = NULL;
	mtx_unlock(&im->im_lock);
	if (m != NULL)
		impair_deliver(im, m, fn, to);
}

/* Applies the faults to m: returns up to three packets, in this order. */
static unsigned
impair_decide(struct if_impair *im, struct mbuf *m, struct mbuf *out[3],
    impair_fn *fn, void *arg) REQUIRES(im->im_lock)
{
	const struct impair_config *ic = &im->im_config;
	unsigned n = 0;

	KASSERT(m->m_nextpkt == NULL, ("impair_decide: packet is queued"));
	if (impair_happens(im, ic->loss)) {
		m_freem(m);
		m = NULL;
	}
	if (m != NULL && impair_happens(im, ic->corrupt))
		m = packet_corrupt(m, impair_random(im));
	if (m != NULL && im->im_held == NULL &&
	    impair_happens(im, ic->reorder)) {
		im->im_held = m;
		im->im_fn = fn;
		im->im_arg = arg;
		im->im_passed = 0;
		callout_reset(&im->im_callout, HOLD_MAX, impair_release, im);
		return (0);
	}
	if (m != NULL) {
		out[n++] = m;
		if (impair_happens(im, ic->dup))
			out[n++] = packet_copy(m);
	}
	if (im->im_held != NULL && im->im_fn == fn &&
	    ++im->im_passed >= HOLD_PACKETS) {
		out[n++] = im->im_held;
		im->im_held = NULL;
	}
	return (n);
}

void
if_impair_pass(struct if_impair *im, struct mbuf *m, impair_fn *fn, void *arg)
{
	struct mbuf *out[3];
	unsigned n;

	mtx_lock(&im->im_lock);
	n = impair_decide(im, m, out, fn, arg);
	mtx_unlock(&im->im_lock);
	for (unsigned i = 0; i < n; i++)
		impair_deliver(im, out[i], fn, arg);
}
