/* SPDX-License-Identifier: BSD-2-Clause */
/* Longest-prefix match, compared with a linear search of a list. */
#include "boot/boot.h"
#include "tests/check.h"

#include "kern/epoch.h"
#include "kern/kern_private.h"
#include "machine/splitmix.h"
#include "net/rtable.h"
#include "tests/net.h"

#define	ENTRIES	400

struct entry {
	struct rtprefix	 prefix;
	bool		 in;		/* the table, of a property test */
	atomic_u32	 freed;		/* of a test with readers */
};

static uint64_t random_state;

static uint64_t
random64(void)
{
	return (splitmix(random_state += SPLITMIX_STEP));
}

static unsigned
below(unsigned n)
{
	return ((unsigned)(random64() % n));
}

/* Keys that share bits with each other, so that prefixes nest. */
static struct rtkey
random_key(unsigned bits)
{
	struct rtkey k = { { 0x123456789abcdef0ULL, 0x0fedcba987654321ULL } };
	unsigned from = below(bits);

	/*
	 * One of a few values; from some position on random bits, or one
	 * changed bit.
	 */
	k.w[0] ^= (uint64_t)below(3) << 62;
	if (from < 64)
		k.w[0] ^= random64() >> from & (below(2) ? UINT64_MAX :
		    1ULL << 63 >> from);
	k.w[1] ^= from <= 64 ? random64() : random64() >> (from - 64);
	if (bits <= 64)
		k.w[1] = 0;
	if (bits < 64)
		k.w[0] &= UINT64_MAX << (64 - bits);
	return (k);
}

static bool
covers(const struct rtprefix *p, struct rtkey k)
{
	struct rtprefix cut = rtprefix_make(k, p->rp_len);

	return (memcmp(&cut.rp_key, &p->rp_key, sizeof(k)) == 0);
}

static bool
same(const struct rtprefix *a, const struct rtprefix *b)
{
	return (a->rp_len == b->rp_len && covers(a, b->rp_key));
}

static struct entry *
naive_lookup(struct entry *all, struct rtkey k)
{
	struct entry *best = NULL;

	for (unsigned i = 0; i < ENTRIES; i++)
		if (all[i].in && covers(&all[i].prefix, k) && (best == NULL ||
		    all[i].prefix.rp_len > best->prefix.rp_len))
			best = &all[i];
	return (best);
}

static struct entry *
naive_exact(struct entry *all, const struct rtprefix *p)
{
	for (unsigned i = 0; i < ENTRIES; i++)
		if (all[i].in && same(&all[i].prefix, p))
			return (&all[i]);
	return (NULL);
}

/* Compares with the list: lookups of some keys, one prefix, and the order. */
static void
compare_lookups(struct rtable *rt, struct entry *all, unsigned bits)
{
	epoch_enter();
	for (unsigned i = 0; i < 20; i++) {
		struct rtkey k = i % 2 == 0 ? random_key(bits) :
		    all[below(ENTRIES)].prefix.rp_key;
		struct rtprefix p = rtprefix_make(k, below(bits + 1));

		CHECK((void *)rtable_lookup(rt, &k) == naive_lookup(all, k));
		CHECK((void *)rtable_exact(rt, &p) == naive_exact(all, &p));
	}
	epoch_exit();
}

struct order {
	const struct rtprefix *last;
	unsigned	 seen;
};

static void
in_order(struct rtprefix *p, void *arg)
{
	struct order *o = arg;
	const struct rtprefix *q = o->last;

	CHECK(((struct entry *)(void *)p)->in);
	if (q != NULL)
		CHECK(q->rp_key.w[0] < p->rp_key.w[0] ||
		    (q->rp_key.w[0] == p->rp_key.w[0] &&
		    (q->rp_key.w[1] < p->rp_key.w[1] ||
		    (q->rp_key.w[1] == p->rp_key.w[1] &&
		    q->rp_len < p->rp_len))));
	o->last = p;
	o->seen++;
}

static void
change_one(struct rtable *rt, struct entry *all, unsigned bits)
{
	struct entry *e = &all[below(ENTRIES)];

	if (e->in) {
		CHECK((void *)rtable_remove(rt, &e->prefix) == e);
		CHECK(rtable_remove(rt, &e->prefix) == NULL);
		e->in = false;
		return;
	}
	e->prefix = rtprefix_make(random_key(bits), below(bits + 1));
	CHECK((void *)rtable_insert(rt, &e->prefix) ==
	    naive_exact(all, &e->prefix));
	e->in = naive_exact(all, &e->prefix) == NULL;
}

static void
compare_with_list(unsigned bits, uint64_t seed)
{
	static struct entry all[ENTRIES];
	struct rtable *rt = rtable_create(bits);
	struct rtable_size size;
	struct order o = { 0 };

	memset(all, 0, sizeof(all));
	random_state = seed;
	for (unsigned turn = 0; turn < 3000; turn++) {
		change_one(rt, all, bits);
		if (turn % 4 == 0)
			compare_lookups(rt, all, bits);
	}
	rtable_walk(rt, in_order, &o);
	rtable_size(rt, &size);
	CHECK_EQ(o.seen, size.entries);
	CHECK(bits < 24 || size.entries > ENTRIES / 4);
	for (unsigned i = 0; i < ENTRIES; i++)
		if (all[i].in)
			CHECK((void *)rtable_remove(rt, &all[i].prefix) ==
			    &all[i]);
	/* An empty table has only its root. */
	rtable_size(rt, &size);
	CHECK_EQ(size.entries, 0);
	CHECK_EQ(size.nodes, 1);
	rtable_destroy(rt);
	CHECK_EQ(epoch_reclaim(), 0);
}

TEST(finds_what_a_list_finds)
{
#ifdef __SANITIZE_THREAD__
	const uint64_t seeds = 1;	/* one thread: other builds have all */
#else
	const uint64_t seeds = 3;
#endif
	static const unsigned bits[] = { 1, 6, 7, 24, 32, 64, 66, 128 };

	for (unsigned i = 0; i < nitems(bits); i++)
		for (uint64_t seed = 1; seed <= seeds; seed++)
			compare_with_list(bits[i], seed);
}

TEST(keys_are_addresses)
{
	struct in_addr a = { htonl(0x0a000001) };
	struct in6_addr b = { { { 0x20, 1, 0xd, 0xb8, [15] = 9 } } };

	CHECK_EQ(rtkey_inet(a).w[0], 0x0a00000100000000LL);
	CHECK_EQ(rtkey_inet(a).w[1], 0);
	CHECK_EQ(rtkey_inet6(&b).w[0], 0x20010db800000000LL);
	CHECK_EQ(rtkey_inet6(&b).w[1], 9);
}

/*
 * Prefix lengths roughly as in the default-free zone: of 100 IPv4 routes 60
 * are /24, the rest /16 to /23; of IPv6 half are /48, the rest /29 to /47.
 */
static struct rtprefix
internet_prefix(bool six)
{
	struct rtkey k = { { random64(), 0 } };
	unsigned r = below(100);

	if (six) {
		k.w[0] = (k.w[0] & 0x003fffffffffffffULL) | 1ULL << 61;
		return (rtprefix_make(k, r < 50 ? 48 : 29 + below(19)));
	}
	/*
	 * Half of the prefixes are dense, as in the blocks of regional
	 * registries.
	 */
	if (r % 2 == 0)
		k.w[0] &= 0x7fffffffffffffffULL;
	return (rtprefix_make(k, r < 60 ? 24 : 16 + below(8)));
}

static void
fill_and_empty(bool six, size_t n)
{
	struct rtable *rt = rtable_create(six ? 128 : 32);
	struct entry *all = kmalloc(n * sizeof(*all)), *found;
	struct rtable_size size;

	random_state = 7;
	for (size_t i = 0; i < n;) {
		all[i].prefix = internet_prefix(six);
		if (rtable_insert(rt, &all[i].prefix) == NULL)
			i++;
	}
	rtable_size(rt, &size);
	CHECK_EQ(size.entries, n);
	printf("%zu routes of %u bits: %zu nodes, %.1f bytes a route\n", n,
	    six ? 128 : 32, size.nodes, (double)size.bytes / (double)n);
	CHECK(size.bytes < n * 64);
	epoch_enter();
	for (size_t i = 0; i < n; i++) {
		found = (void *)rtable_lookup(rt, &all[i].prefix.rp_key);
		CHECK(found != NULL &&
		    found->prefix.rp_len >= all[i].prefix.rp_len);
	}
	epoch_exit();
	for (size_t i = 0; i < n; i++)
		CHECK((void *)rtable_remove(rt, &all[i].prefix) == &all[i]);
	rtable_destroy(rt);
	CHECK_EQ(epoch_reclaim(), 0);
	kfree(all);
}

TEST(holds_the_routes_of_the_internet)
{
#ifdef INVARIANTS
	const size_t scale = 20;	/* sanitizers are slow */
#else
	const size_t scale = 1;
#endif

	fill_and_empty(false, 900000 / scale);
	fill_and_empty(true, 200000 / scale);
}

static struct rtable *shared;
static atomic_u32 stop;
static atomic_u64 lookups;

static void
entry_free(void *arg)
{
	struct entry *e = arg;

	atomic_store_u32(&e->freed, 1);
	kfree(e);
}

static struct rtkey
few_keys(uint64_t r)
{
	return ((struct rtkey){ { (r & 0x30) << 58 | (r & 0xf) << 36, 0 } });
}

/* A lookup always finds a prefix that covers the key and is not freed. */
static void
reader(void *arg)
{
	uint64_t state = (uint64_t)(uintptr_t)arg;

	while (atomic_load_u32(&stop) == 0) {
		epoch_enter();
		for (unsigned i = 0; i < 16; i++) {
			struct rtkey k;
			struct entry *e;

			state = state * 6364136223846793005ULL + 1;
			k = few_keys(state >> 40);
			e = (void *)rtable_lookup(shared, &k);
			CHECK(e != NULL && covers(&e->prefix, k));
			CHECK_EQ(atomic_load_u32(&e->freed), 0);
		}
		epoch_exit();
		atomic_count_u64(&lookups, 16);
	}
}

/* Adds and deletes prefixes of the same few keys, but never the default. */
static void
change_shared(unsigned changes)
{
	for (unsigned i = 0; i < changes; i++) {
		struct rtprefix p = rtprefix_make(few_keys(random64()),
		    1 + below(32)), *old = rtable_remove(shared, &p);
		struct entry *e;

		if (old != NULL) {
			epoch_call(entry_free, old);
			continue;
		}
		e = kmalloc(sizeof(*e));
		e->prefix = p;
		CHECK(rtable_insert(shared, &e->prefix) == NULL);
	}
}

static void
collect(struct rtprefix *p, void *arg)
{
	struct entry ***end = arg;

	*(*end)++ = (struct entry *)(void *)p;
}

TEST(readers_need_no_lock)
{
	static struct entry root, *all[4096], **end = all;
	struct thread *readers[3];

	shared = rtable_create(32);
	random_state = 3;
	CHECK(rtable_insert(shared, &root.prefix) == NULL);
	for (unsigned i = 0; i < nitems(readers); i++)
		readers[i] = t_thread(reader, (void *)(uintptr_t)(i + 1));
	do
		change_shared(20000);
	while (atomic_load_u64(&lookups) < 100000);
	atomic_store_u32(&stop, 1);
	for (unsigned i = 0; i < nitems(readers); i++)
		t_join(readers[i]);
	rtable_walk(shared, collect, &end);
	while (end-- > all) {
		CHECK((void *)rtable_remove(shared, &(*end)->prefix) == *end);
		if (*end != &root)
			epoch_call(entry_free, *end);
	}
	rtable_destroy(shared);
	CHECK_EQ(epoch_reclaim(), 0);
}

static atomic_u32 calls;

static void
called(void *arg)
{
	(void)arg;
	atomic_fetchadd_u32(&calls, 1);
}

static atomic_u32 inside;

static void
visitor(void *arg)
{
	(void)arg;
	epoch_enter();
	epoch_enter();
	epoch_exit();
	CHECK(epoch_inside());
	atomic_store_rel_u32(&inside, 1);
	while (atomic_load_acq_u32(&inside) == 1)
		t_sleep(1);
	epoch_exit();
	CHECK(!epoch_inside());
}

TEST(what_a_visitor_may_see_is_kept)
{
	struct thread *td = t_thread(visitor, NULL);

	while (atomic_load_acq_u32(&inside) == 0)
		t_sleep(1);
	epoch_call(called, NULL);
	CHECK_EQ(epoch_reclaim(), 1);
	CHECK_EQ(atomic_load_u32(&calls), 0);
	atomic_store_rel_u32(&inside, 2);
	t_join(td);
	CHECK_EQ(epoch_reclaim(), 0);
	CHECK_EQ(atomic_load_u32(&calls), 1);
}

int
main(int argc, char **argv)
{
	int status;

	CHECK_EQ(stack_boot(NULL), 0);
	status = check_main(argc, argv);
	stack_shutdown();
	return (status);
}
