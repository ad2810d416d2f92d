/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Longest-prefix match: a tree bitmap (W.  Eatherton, G.  Varghese, Z.
 * Dittia, "Tree Bitmap: Hardware/Software IP Lookups with Incremental
 * Updates", ACM CCR 34(2), 2004).  Each level uses six bits of the key, and
 * population counts give indices, as in poptrie (H.  Asai, Y.  Ohara, SIGCOMM
 * 2015).
 *
 * A node at depth d has two bitmaps and one array with a pointer for each bit
 * set in them.  rn_inner has the prefixes of d to d + 5 bits in heap order:
 * bit 0 is the node's own prefix, bits 1 and 2 those that are one bit longer,
 * and so on.  The longest match is therefore the highest set bit among the
 * key's six ancestors.
 *
 * rn_outer has a bit for each value of the next six bits of longer keys.  Its
 * pointer leads to a node or, marked with LEAF, to the only entry below, of
 * any prefix length.  This avoids chains of nodes for single routes.  The
 * shape of the tree depends only on its entries; a node other than the root
 * has at least two pointers, or one to another node.
 *
 * Bitmaps never change.  A change makes a new node, stores it over the old one
 * in its parent's array, and retires the old one.  Readers see only that
 * store; they follow pointers with acquire order.
 */
#include "net/rtable.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "kern/epoch.h"
#include "kern/lock.h"

#define	STRIDE	6
#define	LEAF	((uintptr_t)1)

/* [I] immutable, [a] atomic */
struct rtnode {
	uint64_t	 rn_inner;	/* [I] */
	uint64_t	 rn_outer;	/* [I] */
	atomic_uptr	 rn_slot[];	/* [a] pointers of rn_outer first */
};

/* [t] rt_lock for writing, [a] atomic */
struct rtable {
	struct mtx	 rt_lock;	/* serializes writers */
	unsigned	 rt_bits;	/* [I] */
	atomic_uptr	 rt_root;	/* [a] struct rtnode, never NULL */
	struct rtable_size rt_size GUARDED_BY(rt_lock);	/* [t] */
};

/* A bitmap of a node, and a prefix's bit in it. */
struct place {
	bool		 inner;
	unsigned	 bit;
};

struct rtkey
rtkey_inet(struct in_addr a)
{
	return ((struct rtkey){ { (uint64_t)ntohl(a.s_addr) << 32, 0 } });
}

struct rtkey
rtkey_inet6(const struct in6_addr *a)
{
	struct rtkey k;

	memcpy(&k, a, sizeof(k));
	k.w[0] = be64toh(k.w[0]);
	k.w[1] = be64toh(k.w[1]);
	return (k);
}

struct rtprefix
rtprefix_make(struct rtkey k, unsigned len)
{
	KASSERT(len <= 128, ("rtprefix_make: /%u", len));
	if (len == 0)
		k.w[0] = 0;
	else if (len < 64)
		k.w[0] &= UINT64_MAX << (64 - len);
	if (len <= 64)
		k.w[1] = 0;
	else if (len < 128)
		k.w[1] &= UINT64_MAX << (128 - len);
	return ((struct rtprefix){ .rp_key = k, .rp_len = (uint8_t)len });
}

/* Six bits of the key from bit d on. */
static inline unsigned
key_bits(const struct rtkey *k, unsigned d)
{
	uint64_t w = d < 64 ? k->w[0] << d : k->w[1] << (d - 64);

	if (d > 64 - STRIDE && d < 64)
		w |= k->w[1] >> (64 - d);
	return ((unsigned)(w >> (64 - STRIDE)));
}

static inline bool
prefix_covers(const struct rtprefix *p, const struct rtkey *k)
{
	uint64_t d0 = p->rp_key.w[0] ^ k->w[0], d1 = p->rp_key.w[1] ^ k->w[1];

	if (p->rp_len == 0)
		return (true);
	if (p->rp_len <= 64)
		return (d0 >> (64 - p->rp_len) == 0);
	return (d0 == 0 && d1 >> (128 - p->rp_len) == 0);
}

static bool
prefix_equal(const struct rtprefix *a, const struct rtprefix *b)
{
	return (a->rp_len == b->rp_len && prefix_covers(a, &b->rp_key));
}

/* The place of a prefix of at least d bits in a node at depth d. */
static struct place
place_of(const struct rtprefix *p, unsigned d)
{
	unsigned rel = p->rp_len - d, bits = key_bits(&p->rp_key, d);

	KASSERT(p->rp_len >= d, ("place_of: /%u at depth %u", p->rp_len, d));
	if (rel >= STRIDE)
		return ((struct place){ false, bits });
	return ((struct place){ true, (1U << rel) - 1 +
	    (bits >> (STRIDE - rel)) });
}

/* Bits of the six prefixes in a node that match the next bits of a key. */
static inline uint64_t
ancestors(unsigned bits)
{
	return (1ULL | 1ULL << (1 + (bits >> 5)) | 1ULL << (3 + (bits >> 4)) |
	    1ULL << (7 + (bits >> 3)) | 1ULL << (15 + (bits >> 2)) |
	    1ULL << (31 + (bits >> 1)));
}

static inline unsigned
count(uint64_t bitmap)
{
	return ((unsigned)__builtin_popcountll(bitmap));
}

static inline unsigned
slot_index(const struct rtnode *n, struct place pl)
{
	uint64_t below = (1ULL << pl.bit) - 1;

	return (pl.inner ? count(n->rn_outer) + count(n->rn_inner & below) :
	    count(n->rn_outer & below));
}

static inline bool
has(const struct rtnode *n, struct place pl)
{
	return (((pl.inner ? n->rn_inner : n->rn_outer) >> pl.bit & 1) != 0);
}

static inline bool
is_leaf(uintptr_t slot)
{
	return ((slot & LEAF) != 0);
}

static inline struct rtprefix *
leaf_of(uintptr_t slot)
{
	return ((struct rtprefix *)(slot & ~LEAF));
}

struct rtprefix *
rtable_lookup(struct rtable *rt, const struct rtkey *k)
{
	struct rtprefix *best = NULL;
	uintptr_t slot = atomic_load_acq_uptr(&rt->rt_root);
	unsigned d, bits;

	KASSERT(epoch_inside(), ("rtable_lookup: outside of an epoch"));
	for (d = 0; !is_leaf(slot); d += STRIDE) {
		struct rtnode *n = (struct rtnode *)slot;
		uint64_t match;

		bits = key_bits(k, d);
		match = n->rn_inner & ancestors(bits);
		if (match != 0)
			best = (struct rtprefix *)atomic_load_acq_uptr(
			    &n->rn_slot[slot_index(n, (struct place){ true,
			    63 - (unsigned)__builtin_clzll(match) })]);
		if ((n->rn_outer >> bits & 1) == 0)
			return (best);
		slot = atomic_load_acq_uptr(&n->rn_slot[slot_index(n,
		    (struct place){ false, bits })]);
	}
	return (prefix_covers(leaf_of(slot), k) ? leaf_of(slot) : best);
}

struct rtprefix *
rtable_exact(struct rtable *rt, const struct rtprefix *p)
{
	uintptr_t slot = atomic_load_acq_uptr(&rt->rt_root);

	KASSERT(epoch_inside(), ("rtable_exact: outside of an epoch"));
	for (unsigned d = 0; !is_leaf(slot); d += STRIDE) {
		struct rtnode *n = (struct rtnode *)slot;
		struct place pl = place_of(p, d);

		if (!has(n, pl))
			return (NULL);
		slot = atomic_load_acq_uptr(&n->rn_slot[slot_index(n, pl)]);
		if (pl.inner)
			return ((struct rtprefix *)slot);
	}
	return (prefix_equal(leaf_of(slot), p) ? leaf_of(slot) : NULL);
}

static struct rtnode *
node_alloc(struct rtable *rt, uint64_t inner, uint64_t outer)
    REQUIRES(rt->rt_lock)
{
	size_t bytes = sizeof(struct rtnode) +
	    (count(inner) + count(outer)) * sizeof(atomic_uptr);
	struct rtnode *n = kmalloc(bytes);

	n->rn_inner = inner;
	n->rn_outer = outer;
	rt->rt_size.nodes++;
	rt->rt_size.bytes += bytes;
	return (n);
}

static void
node_retire(struct rtable *rt, struct rtnode *n) REQUIRES(rt->rt_lock)
{
	rt->rt_size.nodes--;
	rt->rt_size.bytes -= sizeof(*n) +
	    (count(n->rn_inner) + count(n->rn_outer)) * sizeof(atomic_uptr);
	epoch_call(kfree, n);
}

/* A copy of n with the bit of pl inverted; a new slot is 0. */
static struct rtnode *
node_flip(struct rtable *rt, const struct rtnode *n, struct place pl)
    REQUIRES(rt->rt_lock)
{
	uint64_t bit = 1ULL << pl.bit;
	struct rtnode *copy = node_alloc(rt,
	    n->rn_inner ^ (pl.inner ? bit : 0),
	    n->rn_outer ^ (pl.inner ? 0 : bit));
	unsigned at = slot_index(n, pl), gone = has(n, pl) ? 1 : 0;
	unsigned total = count(n->rn_inner) + count(n->rn_outer);

	for (unsigned i = 0; i < at; i++)
		atomic_store_uptr(&copy->rn_slot[i],
		    atomic_load_uptr((atomic_uptr *)&n->rn_slot[i]));
	for (unsigned i = at + gone; i < total; i++)
		atomic_store_uptr(&copy->rn_slot[i + 1 - 2 * gone],
		    atomic_load_uptr((atomic_uptr *)&n->rn_slot[i]));
	return (copy);
}

static uintptr_t
entry_slot(struct rtprefix *e, struct place pl)
{
	return ((uintptr_t)e | (pl.inner ? 0 : LEAF));
}

/* A node at depth d that contains only e. */
static struct rtnode *
node_of_one(struct rtable *rt, struct rtprefix *e, unsigned d)
    REQUIRES(rt->rt_lock)
{
	struct place pl = place_of(e, d);
	struct rtnode *n = node_alloc(rt, pl.inner ? 1ULL << pl.bit : 0,
	    pl.inner ? 0 : 1ULL << pl.bit);

	atomic_store_uptr(&n->rn_slot[0], entry_slot(e, pl));
	return (n);
}

static struct rtprefix *
slot_insert(struct rtable *rt, atomic_uptr *slot, unsigned d,
    struct rtprefix *e) REQUIRES(rt->rt_lock)
{
	struct rtnode *n = (struct rtnode *)atomic_load_uptr(slot), *copy;
	struct place pl = place_of(e, d);
	struct rtprefix *other;
	atomic_uptr *next;

	if (!has(n, pl)) {
		copy = node_flip(rt, n, pl);
		atomic_store_uptr(&copy->rn_slot[slot_index(copy, pl)],
		    entry_slot(e, pl));
		atomic_store_rel_uptr(slot, (uintptr_t)copy);
		node_retire(rt, n);
		return (NULL);
	}
	next = &n->rn_slot[slot_index(n, pl)];
	if (pl.inner || is_leaf(atomic_load_uptr(next))) {
		other = leaf_of(atomic_load_uptr(next));
		if (prefix_equal(other, e))
			return (other);
		/*
		 * Two entries below one slot: the leaf moves down into a node.
		 */
		atomic_store_rel_uptr(next,
		    (uintptr_t)node_of_one(rt, other, d + STRIDE));
	}
	return (slot_insert(rt, next, d + STRIDE, e));
}

struct rtprefix *
rtable_insert(struct rtable *rt, struct rtprefix *e)
{
	struct rtprefix *other;

	KASSERT(e->rp_len <= rt->rt_bits, ("rtable_insert: /%u of %u bits",
	    e->rp_len, rt->rt_bits));
	KASSERT(((uintptr_t)e & LEAF) == 0, ("rtable_insert: odd address"));
	mtx_lock(&rt->rt_lock);
	other = slot_insert(rt, &rt->rt_root, 0, e);
	if (other == NULL)
		rt->rt_size.entries++;
	mtx_unlock(&rt->rt_lock);
	return (other);
}

/* The parent's pointer to a node: a single entry replaces its node. */
static uintptr_t
node_shrunk(struct rtnode *n)
{
	uintptr_t only = atomic_load_uptr(&n->rn_slot[0]);

	if (count(n->rn_inner) + count(n->rn_outer) > 1 ||
	    (n->rn_outer != 0 && !is_leaf(only)))
		return ((uintptr_t)n);
	return (only | LEAF);
}

/* Replaces old at depth d by n, or by n's single entry. */
static void
node_replace(struct rtable *rt, atomic_uptr *slot, struct rtnode *old,
    struct rtnode *n, unsigned d) REQUIRES(rt->rt_lock)
{
	uintptr_t now = d > 0 ? node_shrunk(n) : (uintptr_t)n;

	if (now != (uintptr_t)old) {
		atomic_store_rel_uptr(slot, now);
		node_retire(rt, old);
	}
	if (now != (uintptr_t)n && n != old)
		node_retire(rt, n);
}

/*
 * Below a node other than the root there are at least two entries, so that
 * none becomes empty.
 */
static struct rtprefix *
slot_remove(struct rtable *rt, atomic_uptr *slot, unsigned d,
    const struct rtprefix *p) REQUIRES(rt->rt_lock)
{
	struct rtnode *n = (struct rtnode *)atomic_load_uptr(slot);
	struct place pl = place_of(p, d);
	struct rtprefix *e;
	atomic_uptr *next;

	if (!has(n, pl))
		return (NULL);
	next = &n->rn_slot[slot_index(n, pl)];
	if (pl.inner || is_leaf(atomic_load_uptr(next))) {
		e = leaf_of(atomic_load_uptr(next));
		if (prefix_equal(e, p))
			node_replace(rt, slot, n, node_flip(rt, n, pl), d);
		else
			e = NULL;
	} else {
		e = slot_remove(rt, next, d + STRIDE, p);
		if (e != NULL)
			node_replace(rt, slot, n, n, d);
	}
	return (e);
}

struct rtprefix *
rtable_remove(struct rtable *rt, const struct rtprefix *p)
{
	struct rtprefix *e;

	mtx_lock(&rt->rt_lock);
	e = slot_remove(rt, &rt->rt_root, 0, p);
	if (e != NULL)
		rt->rt_size.entries--;
	mtx_unlock(&rt->rt_lock);
	return (e);
}

struct walk {
	void		(*fn)(struct rtprefix *, void *);
	void		*arg;
};

/* Visits the prefixes at and below one place of a node, in heap order. */
static void
walk_place(struct rtnode *n, unsigned bit, const struct walk *w)
{
	const unsigned inners = (1U << STRIDE) - 1;
	struct place pl = { bit < inners, bit < inners ? bit : bit - inners };
	uintptr_t slot;

	if (has(n, pl)) {
		slot = atomic_load_acq_uptr(&n->rn_slot[slot_index(n, pl)]);
		if (pl.inner || is_leaf(slot))
			w->fn(leaf_of(slot), w->arg);
		else
			walk_place((struct rtnode *)slot, 0, w);
	}
	if (pl.inner) {
		walk_place(n, 2 * bit + 1, w);
		walk_place(n, 2 * bit + 2, w);
	}
}

void
rtable_walk(struct rtable *rt, void (*fn)(struct rtprefix *, void *),
    void *arg)
{
	mtx_lock(&rt->rt_lock);
	walk_place((struct rtnode *)atomic_load_uptr(&rt->rt_root), 0,
	    &(struct walk){ fn, arg });
	mtx_unlock(&rt->rt_lock);
}

void
rtable_size(struct rtable *rt, struct rtable_size *size)
{
	mtx_lock(&rt->rt_lock);
	*size = rt->rt_size;
	mtx_unlock(&rt->rt_lock);
}

struct rtable *
rtable_create(unsigned bits)
{
	struct rtable *rt = kmalloc(sizeof(*rt));

	KASSERT(bits <= 128, ("rtable_create: keys of %u bits", bits));
	mtx_init(&rt->rt_lock, LC_RTABLE);
	rt->rt_bits = bits;
	mtx_lock(&rt->rt_lock);
	atomic_store_uptr(&rt->rt_root, (uintptr_t)node_alloc(rt, 0, 0));
	mtx_unlock(&rt->rt_lock);
	return (rt);
}

void
rtable_destroy(struct rtable *rt)
{
	struct rtnode *root = (struct rtnode *)atomic_load_uptr(&rt->rt_root);

	KASSERT((root->rn_inner | root->rn_outer) == 0,
	    ("rtable_destroy: not empty"));
	mtx_destroy(&rt->rt_lock);
	kfree(root);
	kfree(rt);
}
