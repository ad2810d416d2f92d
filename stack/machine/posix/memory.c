/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory from the host's pages, not from the C library's malloc(): a signal
 * handler that interrupted malloc() may call send() (POSIX 2.4.3), which
 * allocates.  Handlers never interrupt this allocator, because they are
 * deferred while their thread is in the stack (api/signal.c).
 *
 * Each size class has a free list and a spin lock.  Blocks come from chunks,
 * which are never returned to the host; blocks above BLOCK_MAX are mappings of
 * their own.  Builds with a sanitizer use the C library's malloc(), because a
 * sanitizer checks only that one.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "machine/machine.h"
#include "machine/sizeclass.h"

#if !defined(__has_feature)
#define	__has_feature(x)	0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||	\
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)

/*
 * A sanitizer does not release its own locks in a child of fork(): no thread of
 * the stack may be in its malloc() then.
 */
static pthread_mutex_t malloc_lock = PTHREAD_MUTEX_INITIALIZER;

void *
mach_alloc(size_t size, size_t align)
{
	void *p;

	pthread_mutex_lock(&malloc_lock);
	p = align == 0 ? malloc(size) : aligned_alloc(align, size);
	pthread_mutex_unlock(&malloc_lock);
	return (p != NULL ? memset(p, 0, size) : NULL);
}

void
mach_free(void *p)
{
	pthread_mutex_lock(&malloc_lock);
	free(p);
	pthread_mutex_unlock(&malloc_lock);
}

void
mach_alloc_fork(void)
{
	pthread_mutex_lock(&malloc_lock);
}

void
mach_alloc_fork_parent(void)
{
	pthread_mutex_unlock(&malloc_lock);
}

void
mach_alloc_forked(void)
{
	malloc_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

#else

#define	CHUNK		((size_t)1 << 20)
#define	BLOCK_MAX	(CHUNK / 4)
#define	NCLASSES	64
#define	SPIN_TURNS	128
#define	CLASS_MAPPED	UINT32_MAX

/* The header before an allocation. */
struct block {
	uint32_t	 class;
	uint32_t	 offset;	/* offset from the block's start */
	union {
		struct block	*next;	/* free blocks of its class */
		size_t		 mapped;	/* bytes, CLASS_MAPPED */
	};
};
_Static_assert(sizeof(struct block) == SIZECLASS_UNIT, "blocks are aligned");

static struct class {
	atomic_u32	 lock;
	struct block	*free;		/* lock */
} __attribute__((aligned(64))) classes[NCLASSES];

static atomic_u32 chunk_lock;
static char *chunk;			/* chunk_lock: unused part */
static size_t chunk_left;		/* chunk_lock: its length */

/* The holder may have lost its CPU: a long wait yields. */
static void
spin_lock(atomic_u32 *lock)
{
	uint32_t unlocked = 0;

	for (unsigned turn = 1; !atomic_cmpset_u32(lock, &unlocked, 1);
	    turn++) {
		unlocked = 0;
		if (turn % SPIN_TURNS == 0)
			sched_yield();
		mach_cpu_relax();
	}
}

static void
spin_unlock(atomic_u32 *lock)
{
	atomic_store_rel_u32(lock, 0);
}

static char *
map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return (p != MAP_FAILED ? p : NULL);
}

/* A block that was never used: its bytes are zero. */
static char *
chunk_cut(size_t size)
{
	char *start = NULL;

	spin_lock(&chunk_lock);
	if (chunk_left < size) {
		chunk = map(CHUNK);
		chunk_left = chunk != NULL ? CHUNK : 0;
	}
	if (chunk != NULL) {
		start = chunk;
		chunk += size;
		chunk_left -= size;
	}
	spin_unlock(&chunk_lock);
	return (start);
}

/* A zeroed block of a class; size is that of the class. */
static char *
block_take(uint32_t class, size_t size)
{
	struct class *c = &classes[class];
	struct block *b;

	spin_lock(&c->lock);
	b = c->free;
	if (b != NULL)
		c->free = b->next;
	spin_unlock(&c->lock);
	return (b != NULL ? memset(b, 0, size) : chunk_cut(size));
}

void *
mach_alloc(size_t size, size_t align)
{
	size_t room = size + sizeof(struct block) +
	    (align > SIZECLASS_UNIT ? align : 0);
	uint32_t class = CLASS_MAPPED;
	struct block *b;
	char *start, *p;

	if (room < size)
		return (NULL);
	if (room <= BLOCK_MAX) {
		class = sizeclass_of(&room);
		start = block_take(class, room);
	} else {
		start = map(room);
	}
	if (start == NULL)
		return (NULL);
	p = start + sizeof(struct block);
	if (align > SIZECLASS_UNIT)
		p += (align - (uintptr_t)p % align) % align;
	b = (struct block *)(void *)p - 1;
	b->class = class;
	b->offset = (uint32_t)((char *)b - start);
	b->mapped = room;
	return (p);
}

void
mach_free(void *p)
{
	struct block *b;
	struct class *c;
	char *start;

	if (p == NULL)
		return;
	b = (struct block *)p - 1;
	start = (char *)b - b->offset;
	if (b->class == CLASS_MAPPED) {
		munmap(start, b->mapped);
		return;
	}
	c = &classes[b->class];
	b = (struct block *)(void *)start;
	spin_lock(&c->lock);
	b->next = c->free;
	c->free = b;
	spin_unlock(&c->lock);
}

void
mach_alloc_fork(void)
{
}

void
mach_alloc_fork_parent(void)
{
}

/*
 * Each step of a holder leaves a usable list; a block that it had in its hands
 * is lost.  Half a cut could leave a chunk shorter than its length.
 */
void
mach_alloc_forked(void)
{
	for (unsigned i = 0; i < NCLASSES; i++)
		atomic_store_u32(&classes[i].lock, 0);
	if (atomic_load_u32(&chunk_lock) != 0)
		chunk_left = 0;
	atomic_store_u32(&chunk_lock, 0);
}

#endif
