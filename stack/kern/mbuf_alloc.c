/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocation of mbufs and their storage.
 *
 * Each thread keeps a few free ones of each size, for itself alone.  Buffers
 * travel: the receive thread allocates what an application's thread frees.
 * So a full cache hands half of itself to a global list, and an empty one
 * takes as much back: one lock operation for CACHE_MAX / 2 buffers.
 */
#include <stdio.h>
#include <sys/queue.h>

#include "kern/ctl.h"
#include "kern/lock.h"
#include "kern/mbuf_private.h"
#include "kern/sysctl.h"
#include "kern/thread.h"

/* The sizes: mbufs themselves and three sorts of storage. */
enum zone { Z_MBUF, Z_CLUSTER, Z_JUMBO, Z_MAX, Z_COUNT };

static const struct {
	size_t		 size;
	unsigned	 cache_max;	/* kept by one thread */
	unsigned	 depot_max;	/* kept by all */
} zones[Z_COUNT] = {
	[Z_MBUF] = { sizeof(struct mbuf), 256, 8192 },
	[Z_CLUSTER] = { sizeof(struct mext) + MCLBYTES, 128, 4096 },
	[Z_JUMBO] = { sizeof(struct mext) + MJUMBYTES, 32, 512 },
	[Z_MAX] = { sizeof(struct mext) + MMAXBYTES, 16, 128 },
};

/* A free item; items are linked through their first word. */
struct item {
	struct item	*next;
};

/*
 * Locks used to protect struct mbuf_cache members:
 *	[o] owner thread
 *	[a] atomic, written to by the owner alone
 *	[d] depot_lock
 */
struct mbuf_cache {
	struct item	*mc_free[Z_COUNT];	/* [o] */
	unsigned	 mc_count[Z_COUNT];	/* [o] */
	atomic_u64	 mc_allocs[Z_COUNT];	/* [a] */
	atomic_u64	 mc_frees[Z_COUNT];	/* [a] */
	LIST_ENTRY(mbuf_cache) mc_link;		/* [d] */
};

static struct mtx depot_lock;
static struct {
	struct item	*free;			/* [d] depot_lock */
	unsigned	 count;			/* [d] */
} depot[Z_COUNT];

static LIST_HEAD(, mbuf_cache) caches;		/* [d] */
/* Of threads that have gone. */
static uint64_t allocs_gone[Z_COUNT], frees_gone[Z_COUNT];	/* [d] */

/* All threads' counts; those at work meanwhile may be off by a few. */
static void
count_zone(enum zone z, uint64_t *allocs, uint64_t *frees)
{
	struct mbuf_cache *mc;

	mtx_lock(&depot_lock);
	*allocs = allocs_gone[z];
	*frees = frees_gone[z];
	LIST_FOREACH(mc, &caches, mc_link) {
		*frees += atomic_load_u64(&mc->mc_frees[z]);
		*allocs += atomic_load_u64(&mc->mc_allocs[z]);
	}
	mtx_unlock(&depot_lock);
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

static void
mbuf_show(struct ctl_out *co)
{
	char value[32];

	for (size_t i = 0; i < nitems(mbuf_oids); i++) {
		sysctl_get(mbuf_oids[i].oid_name, value, sizeof(value));
		ctl_printf(co, "%s %s\n", value, mbuf_oids[i].oid_descr);
	}
}

static struct mbuf_cache *
cache_self(void)
{
	struct thread *td = curthread;

	if (__builtin_expect(td->td_mcache == NULL, 0)) {
		td->td_mcache = kmalloc(sizeof(*td->td_mcache));
		mtx_lock(&depot_lock);
		LIST_INSERT_HEAD(&caches, td->td_mcache, mc_link);
		mtx_unlock(&depot_lock);
	}
	return (td->td_mcache);
}

/* One more, by the only thread that writes to this word. */
static void
count_own(atomic_u64 *word)
{
	atomic_store_u64(word, atomic_load_u64(word) + 1);
}

/* Half a cache from the depot, as far as it has. */
COLD static void
cache_refill(struct mbuf_cache *mc, enum zone z)
{
	struct item *it;

	mtx_lock(&depot_lock);
	while (mc->mc_count[z] < zones[z].cache_max / 2 &&
	    (it = depot[z].free) != NULL) {
		depot[z].free = it->next;
		depot[z].count--;
		it->next = mc->mc_free[z];
		mc->mc_free[z] = it;
		mc->mc_count[z]++;
	}
	mtx_unlock(&depot_lock);
}

/* All but keep items to the depot, and what it will not have to the host. */
COLD static void
cache_drain(struct mbuf_cache *mc, enum zone z, unsigned keep)
{
	struct item *it, *surplus = NULL;

	mtx_lock(&depot_lock);
	while (mc->mc_count[z] > keep) {
		it = mc->mc_free[z];
		mc->mc_free[z] = it->next;
		mc->mc_count[z]--;
		if (depot[z].count < zones[z].depot_max) {
			it->next = depot[z].free;
			depot[z].free = it;
			depot[z].count++;
		} else {
			it->next = surplus;
			surplus = it;
		}
	}
	mtx_unlock(&depot_lock);
	while ((it = surplus) != NULL) {
		surplus = it->next;
		kfree(it);
	}
}

void
mbuf_cache_free(struct mbuf_cache *mc)
{
	if (mc == NULL)
		return;
	for (enum zone z = 0; z < Z_COUNT; z++)
		cache_drain(mc, z, 0);
	mtx_lock(&depot_lock);
	LIST_REMOVE(mc, mc_link);
	for (enum zone z = 0; z < Z_COUNT; z++) {
		allocs_gone[z] += atomic_load_u64(&mc->mc_allocs[z]);
		frees_gone[z] += atomic_load_u64(&mc->mc_frees[z]);
	}
	mtx_unlock(&depot_lock);
	kfree(mc);
}

static void *
zone_alloc(enum zone z)
{
	struct mbuf_cache *mc = cache_self();
	struct item *it;

	count_own(&mc->mc_allocs[z]);
	if (mc->mc_free[z] == NULL)
		cache_refill(mc, z);
	it = mc->mc_free[z];
	if (it == NULL)
		return (kmalloc(zones[z].size));
	mc->mc_free[z] = it->next;
	mc->mc_count[z]--;
	return (it);
}

static void
zone_free(enum zone z, void *p)
{
	struct mbuf_cache *mc = cache_self();
	struct item *it = p;

	count_own(&mc->mc_frees[z]);
	it->next = mc->mc_free[z];
	mc->mc_free[z] = it;
	if (++mc->mc_count[z] > zones[z].cache_max)
		cache_drain(mc, z, zones[z].cache_max / 2);
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

struct mbuf *
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

struct mbuf *
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

struct mbuf *
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

void
m_freem(struct mbuf *m)
{
	while (m != NULL)
		m = m_free(m);
}

void
mbuf_init(void)
{
	mtx_init(&depot_lock, LC_MBUF);
	sysctl_register(mbuf_oids, nitems(mbuf_oids));
	ctl_view_register("netstat -m", mbuf_show);
}
