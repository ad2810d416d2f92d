/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocation of mbufs and their storage.
 *
 * Each thread caches some free buffers of each size.  Buffers move between
 * threads: the receive thread allocates what an application's thread frees.  A
 * full cache therefore gives half of its buffers, as one batch, to a list that
 * threads share, a depot, and an empty cache takes a batch (Bonwick, Adams,
 * "Magazines and vmem", 2001).  A thread caches few large buffers, because they
 * leave the CPU's caches before the thread reuses them.
 *
 * Each CPU has a depot, unless kern.mbuf.depots sets their number.  A thread
 * uses that of its CPU first.  If it is empty, or full, the thread
 * uses the next one.  A depot's count shows without its lock that it is empty.
 *
 * kern.mbuf.recycle selects the free buffer that is used next.  With lifo it
 * is the one freed last, which is still in the CPU's caches.  With fifo it is
 * the one freed first, while half of depot_max others of its size are free.
 * Then no buffer is in a cache, as in a driver's ring of many buffers (the
 * "perfect non-locality for mbufs" that Bruce Evans suspected in 2008).
 */
#include <stdio.h>
#include <sys/queue.h>

#include "kern/ctl.h"
#include "kern/lock.h"
#include "kern/mbuf_private.h"
#include "kern/planted.h"
#include "kern/sysctl.h"
#include "kern/thread.h"

/* The sizes: mbufs, and three sizes of storage. */
enum zone { Z_MBUF, Z_CLUSTER, Z_JUMBO, Z_MAX, Z_COUNT };

static const struct {
	size_t		 size, align;	/* as for mach_alloc() */
	unsigned	 cache_max;	/* max cached by a thread */
	unsigned	 depot_max;	/* for all depots; see room_of() */
} zones[Z_COUNT] = {
	[Z_MBUF] = { sizeof(struct mbuf), _Alignof(struct mbuf), 256, 8192 },
	[Z_CLUSTER] = { sizeof(struct mext) + MCLBYTES, 0, 128, 4096 },
	[Z_JUMBO] = { sizeof(struct mext) + MJUMBYTES, 0, 32, 512 },
	[Z_MAX] = { sizeof(struct mext) + MMAXBYTES, 0, 4, 128 },
};

/* A free item; items are linked through their first words. */
struct item {
	struct item	*next;
	/* of the first item of a batch in a depot */
	struct item	*next_batch;
	unsigned	 count;		/* items of the batch */
};

/* Free items of a thread, last in, first out. */
struct pile {
	struct item	*top;
	unsigned	 count;
};

/* The pile that is allocated from, and with fifo another for freed items. */
enum pile_use { PILE_NEXT, PILE_FREED, PILES };

static struct mtx caches_lock;

/*
 * Locks used to protect struct mbuf_cache members:
 *	[o] owner thread
 *	[a] atomic, written only by the owner
 *	[c] caches_lock
 */
struct mbuf_cache {
	struct pile	 mc_piles[Z_COUNT][PILES]; /* [o] */
	atomic_u64	 mc_allocs[Z_COUNT];	/* [a] */
	atomic_u64	 mc_frees[Z_COUNT];	/* [a] */
	LIST_ENTRY(mbuf_cache) mc_link GUARDED_BY(caches_lock);	/* [c] */
};

/*
 * Free items that threads share.  Locks used to protect members:
 *	[d] d_lock
 *	[a] atomic, written under d_lock
 */
struct depot {
	_Alignas(64) struct mtx d_lock;
	struct item	*d_first GUARDED_BY(d_lock);	/* [d] used next */
	/* [d] undefined if empty */
	struct item	*d_last GUARDED_BY(d_lock);
	atomic_u32	 d_count;			/* [a] items */
};

#define	DEPOTS_MAX	64
static struct depot depots[Z_COUNT][DEPOTS_MAX];
static atomic_u32 depots_wanted;	/* [I] after boot; 0: one for each CPU */

static void
depot_push(struct depot *d, struct item *batch) REQUIRES(d->d_lock)
{
	batch->next_batch = d->d_first;
	if (d->d_first == NULL)
		d->d_last = batch;
	d->d_first = batch;
}

static void
depot_append(struct depot *d, struct item *batch) REQUIRES(d->d_lock)
{
	batch->next_batch = NULL;
	if (d->d_first == NULL)
		d->d_first = batch;
	else
		d->d_last->next_batch = batch;
	d->d_last = batch;
}

/* kern.mbuf.recycle */
enum { RECYCLE_LIFO, RECYCLE_FIFO };

static const struct recycling {
	enum pile_use	 freed;		/* pile for freed items */
	void		(*give)(struct depot *, struct item *);
	unsigned	 keep;		/* halves of a cache kept by a full pile */
	unsigned	 idle;		/* halves of depot_max kept free */
	unsigned	 depots;	/* max number of depots */
} recyclings[] = {
	[RECYCLE_LIFO] = { PILE_NEXT, depot_push, 1, 0, DEPOTS_MAX },
	[RECYCLE_FIFO] = { PILE_FREED, depot_append, 0, 1, 1 },
};
static atomic_u32 recycling = RECYCLE_LIFO;	/* [I] after boot */
atomic_u32 net_prefetch;

static LIST_HEAD(, mbuf_cache) caches GUARDED_BY(caches_lock);	/* [c] */
/* Counts of ended threads. */
/* [c] */
static uint64_t allocs_gone[Z_COUNT] GUARDED_BY(caches_lock), frees_gone[Z_COUNT]
    GUARDED_BY(caches_lock);

/*
 * Sums the counts of all threads; those of running threads may be off by a
 * few.
 */
static void
count_zone(enum zone z, uint64_t *allocs, uint64_t *frees)
{
	struct mbuf_cache *mc;

	mtx_lock(&caches_lock);
	*allocs = allocs_gone[z];
	*frees = frees_gone[z];
	LIST_FOREACH(mc, &caches, mc_link) {
		*frees += atomic_load_u64(&mc->mc_frees[z]);
		*allocs += atomic_load_u64(&mc->mc_allocs[z]);
	}
	mtx_unlock(&caches_lock);
}

static int
show_outstanding(const struct sysctl_oid *oid, const char *newval, char *buf,
    size_t len)
{
	enum zone z = (enum zone)oid->oid_max;

	uint64_t allocs, frees;

	(void)newval;
	count_zone(z, &allocs, &frees);
	snprintf(buf, len, "%lld", (long long)(allocs - frees));
	return (0);
}

static int
show_allocs(const struct sysctl_oid *oid, const char *newval, char *buf,
    size_t len)
{
	uint64_t allocs, frees;

	(void)newval;
	count_zone((enum zone)oid->oid_max, &allocs, &frees);
	snprintf(buf, len, "%llu", (unsigned long long)allocs);
	return (0);
}

#define	ZONE_OIDS(name, zone, what)					\
	{ .oid_name = "mbuf." name "outstanding", .oid_type = CTL_PROC,	\
	    .oid_proc = show_outstanding, .oid_max = zone,		\
	    .oid_descr = what " in use" },				\
	{ .oid_name = "mbuf." name "allocs", .oid_type = CTL_PROC,	\
	    .oid_proc = show_allocs, .oid_max = zone,			\
	    .oid_descr = what " allocated since boot" }

static const struct sysctl_oid mbuf_oids[] = {
	ZONE_OIDS("", Z_MBUF, "mbufs"),
	ZONE_OIDS("cluster.", Z_CLUSTER, "2 KB clusters"),
	ZONE_OIDS("jumbo.", Z_JUMBO, "16 KB clusters"),
	ZONE_OIDS("max.", Z_MAX, "64 KB clusters"),
};

static const char *const recycling_names[] = { "lifo", "fifo", NULL };

static const struct sysctl_oid tunable_oids[] = {
	{ .oid_name = "kern.mbuf.recycle", .oid_type = CTL_ENUM,
	    .oid_flags = CTL_TUN, .oid_ptr = &recycling,
	    .oid_names = recycling_names,
	    .oid_descr = "reuse of free buffers: lifo (freed last), fifo "
	    "(freed first; keeps thousands free)" },
	{ .oid_name = "kern.mbuf.depots", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN, .oid_ptr = &depots_wanted,
	    .oid_max = DEPOTS_MAX,
	    .oid_descr = "lists of free buffers that threads share, each with "
	    "its lock; 0: one for each CPU" },
	{ .oid_name = "net.prefetch", .oid_type = CTL_U32,
	    .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &net_prefetch,
	    .oid_max = 1,
	    .oid_descr = "1: prefetch the headers of a burst's next packet" },
};

static void
mbuf_show(struct ctl_out *co)
{
	char value[32];

	for (size_t i = 0; i < nitems(mbuf_oids); i++) {
		sysctl_get(mbuf_oids[i].oid_name, value, sizeof(value));
		ctl_printf(co, "%s %s\n", value, mbuf_oids[i].oid_descr);
	}
}

__cold static void
cache_attach(struct thread *td)
{
	td->td_mcache = kmalloc(sizeof(*td->td_mcache));
	mtx_lock(&caches_lock);
	LIST_INSERT_HEAD(&caches, td->td_mcache, mc_link);
	mtx_unlock(&caches_lock);
}

static struct mbuf_cache *
cache_self(void)
{
	struct thread *td = curthread;

	if (td->td_mcache == NULL)
		cache_attach(td);
	return (td->td_mcache);
}

/* Increments a counter with one writer. */
static void
count_own(atomic_u64 *word)
{
	atomic_store_u64(word, atomic_load_u64(word) + 1);
}

static void
pile_put(struct pile *p, struct item *it)
{
	it->next = p->top;
	p->top = it;
	p->count++;
}

static struct item *
pile_take(struct pile *p)
{
	struct item *it = p->top;

	p->top = it->next;
	p->count--;
	return (it);
}

static unsigned
ndepots(const struct recycling *r)
{
	const unsigned wanted = atomic_load_u32(&depots_wanted),
	    n = wanted != 0 ? wanted : mach_ncpus();

	return (n < r->depots ? n : r->depots);
}

/*
 * Takes a batch if there are more than idle items, so up to a batch fewer stay;
 * NULL: there are not.
 */
static struct item *
depot_take(struct depot *d, unsigned idle)
{
	struct item *batch = NULL;

	if (atomic_load_u32(&d->d_count) <= idle)
		return (NULL);
	mtx_lock(&d->d_lock);
	if (atomic_load_u32(&d->d_count) > idle || PLANTED(DEPOT_RECHECK)) {
		batch = d->d_first;
		KASSERT(batch != NULL, ("depot_take: an empty depot has %u",
		    atomic_load_u32(&d->d_count)));
		d->d_first = batch->next_batch;
		atomic_store_u32(&d->d_count,
		    atomic_load_u32(&d->d_count) - batch->count);
	}
	mtx_unlock(&d->d_lock);
	return (batch);
}

/* False: so many items have no room. */
static bool
depot_give(struct depot *d, struct item *batch, unsigned room,
    void (*give)(struct depot *, struct item *))
{
	bool fits;

	if (atomic_load_u32(&d->d_count) + batch->count > room)
		return (false);
	mtx_lock(&d->d_lock);
	fits = atomic_load_u32(&d->d_count) + batch->count <= room;
	if (fits) {
		give(d, batch);
		atomic_store_u32(&d->d_count,
		    atomic_load_u32(&d->d_count) + batch->count);
	}
	mtx_unlock(&d->d_lock);
	return (fits);
}

/* Fills an empty pile with a batch, if a depot has one. */
__cold static void
cache_refill(struct pile *p, enum zone z)
{
	const struct recycling *r = &recyclings[atomic_load_u32(&recycling)];
	const unsigned n = ndepots(r), cpu = mach_curcpu(),
	    idle = r->idle * zones[z].depot_max / 2;
	struct item *batch = NULL;

	for (unsigned i = 0; i < n && batch == NULL; i++)
		batch = depot_take(&depots[z][(cpu + i) % n], idle);
	if (batch == NULL)
		return;
	p->top = batch;
	p->count = batch->count;
}

/* Removes the items above the lowest keep ones, as a batch. */
static struct item *
pile_split(struct pile *p, unsigned keep)
{
	struct item *batch = p->top, *last = batch;

	batch->count = p->count - keep;
	for (unsigned i = 1; i < batch->count; i++)
		last = last->next;
	p->top = last->next;
	p->count = keep;
	last->next = NULL;
	return (batch);
}

/*
 * Items that each of n depots has room for: its share of depot_max, but at
 * least a thread's cache and two more.  So n depots hold up to
 * n * (cache_max + 2) items if that is more.
 */
static unsigned
room_of(enum zone z, unsigned n)
{
	const unsigned least = zones[z].cache_max + 2,
	    share = zones[z].depot_max / n;

	return (share > least ? share : least);
}

/*
 * Gives all but keep items to a depot, and to the host if all depots are full.
 */
__cold static void
cache_drain(struct pile *p, enum zone z, unsigned keep)
{
	const struct recycling *r = &recyclings[atomic_load_u32(&recycling)];
	const unsigned n = ndepots(r), cpu = mach_curcpu(),
	    room = room_of(z, n);
	struct item *batch, *next;

	if (p->count <= keep)
		return;
	batch = pile_split(p, keep);
	for (unsigned i = 0; i < n; i++)
		if (depot_give(&depots[z][(cpu + i) % n], batch, room, r->give))
			return;
	for (; batch != NULL; batch = next) {
		next = batch->next;
		kfree(batch);
	}
}

void
mbuf_cache_free(struct mbuf_cache *mc)
{
	if (mc == NULL)
		return;
	for (enum zone z = 0; z < Z_COUNT; z++)
		for (enum pile_use use = 0; use < PILES; use++)
			cache_drain(&mc->mc_piles[z][use], z, 0);
	mtx_lock(&caches_lock);
	LIST_REMOVE(mc, mc_link);
	for (enum zone z = 0; z < Z_COUNT; z++) {
		allocs_gone[z] += atomic_load_u64(&mc->mc_allocs[z]);
		frees_gone[z] += atomic_load_u64(&mc->mc_frees[z]);
	}
	mtx_unlock(&caches_lock);
	kfree(mc);
}

static void *
zone_alloc(enum zone z)
{
	struct mbuf_cache *mc = cache_self();
	struct pile *p = &mc->mc_piles[z][PILE_NEXT];

	count_own(&mc->mc_allocs[z]);
	if (p->count == 0)
		cache_refill(p, z);
	return (p->count > 0 ? pile_take(p) :
	    kmalloc_aligned(zones[z].size, zones[z].align));
}

static void
zone_free(enum zone z, void *p)
{
	struct mbuf_cache *mc = cache_self();
	const struct recycling *r = &recyclings[atomic_load_u32(&recycling)];
	struct pile *freed = &mc->mc_piles[z][r->freed];

	count_own(&mc->mc_frees[z]);
	pile_put(freed, p);
	if (freed->count > (r->keep + 1) * zones[z].cache_max / 2)
		cache_drain(freed, z, r->keep * zones[z].cache_max / 2);
}

static enum zone
zone_of(uint32_t size)
{
	switch (size) {
	case MCLBYTES:
		return (Z_CLUSTER);
	case MJUMBYTES:
		return (Z_JUMBO);
	case MMAXBYTES:
		return (Z_MAX);
	default:
		panic("m_getcl: no clusters of %u bytes", size);
	}
}

__hot struct mbuf *
m_get(void)
{
	struct mbuf *m = zone_alloc(Z_MBUF);

	m->m_next = NULL;
	m->m_nextpkt = NULL;
	m->m_data = m->m_dat;
	m->m_len = 0;
	m->m_flags = 0;
	m->m_ext = NULL;
	m->m_pkthdr = (struct pkthdr){ 0 };
	return (m);
}

__hot struct mbuf *
m_gethdr(size_t room)
{
	struct mbuf *m = m_get();

	KASSERT(room < sizeof(m->m_dat), ("m_gethdr: room %zu", room));
	m->m_data += room;
	return (m);
}

struct mbuf *
m_getcl(uint32_t size)
{
	struct mext *ext = zone_alloc(zone_of(size));
	struct mbuf *m = m_get();

	ext->me_size = size;
	atomic_store_u32(&ext->me_refs, 1);
	m->m_ext = ext;
	m->m_data = ext->me_data;
	return (m);
}

__hot struct mbuf *
m_free(struct mbuf *m)
{
	struct mbuf *next = m->m_next;
	struct mext *ext = m->m_ext;

	if (ext != NULL) {
		KASSERT(atomic_load_u32(&ext->me_refs) > 0,
		    ("m_free: storage of %u bytes is free", ext->me_size));
		if (atomic_fetchadd_u32(&ext->me_refs, UINT32_MAX) == 1)
			zone_free(zone_of(ext->me_size), ext);
	}
	zone_free(Z_MBUF, m);
	return (next);
}

__hot void
m_freechain(struct mbuf *m)
{
	do {
		m = m_free(m);
	} while (m != NULL);
}

void
mbuf_init(void)
{
	mtx_init(&caches_lock, LC_MBUF);
	for (enum zone z = 0; z < Z_COUNT; z++)
		for (unsigned i = 0; i < DEPOTS_MAX; i++)
			mtx_init(&depots[z][i].d_lock, LC_MBUF);
	sysctl_register(mbuf_oids, nitems(mbuf_oids));
	sysctl_register(tunable_oids, nitems(tunable_oids));
	ctl_view_register("netstat -m", mbuf_show);
}
