/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of the simulated machine.  Addresses are the same in every run,
 * independent of the host's kernel and C library, because sleep queues are
 * hashed and locks are ordered by address.
 *
 * It consists of a heap with a free list for each size, four sizes to a power
 * of two, and of stacks, each above an inaccessible page.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "machine/sim/sim_private.h"
#include "machine/sizeclass.h"

#define	HEAP_START	((char *)(uintptr_t)0x1000000000)	/* 64 GB */
/* a run's sandbox has a limit of 8 GB */
#define	HEAP_SIZE	((size_t)4 << 30)
#define	STACKS_START	(HEAP_START + ((size_t)16 << 30))
#define	STACK_SLOT	((size_t)256 << 10)
#define	STACK_GUARD	((size_t)64 << 10) /* at least a page of any host */
#define	STACKS_MAX	4096

#define	UNIT		SIZECLASS_UNIT
#define	NCLASSES	128

/* The header before an allocation. */
struct block {
	uint32_t	 class;
	uint32_t	 offset;	/* offset from the block's start */
	struct block	*next;		/* free blocks of its class */
};
_Static_assert(sizeof(struct block) == UNIT, "blocks are aligned");

/* In a search, freed memory is quarantined before it is reused. */
#define	QUARANTINE	1024
#define	POISON		0xdf /* no valid pointer, no plausible number */

struct freed {
	char		*start;
	uint32_t	 class;
};

static struct {
	bool		 mapped;
	size_t		 top;		/* first byte never allocated */
	struct block	*free[NCLASSES];
	bool		 stacks[STACKS_MAX];	/* in use */
	struct freed	*quarantine;	/* in a search, else NULL */
	unsigned	 turn;		/* next block to leave the quarantine */
} memory;

static void
map(char *start, size_t size, int prot)
{
	void *p = mmap(start, size, prot, MAP_PRIVATE | MAP_ANONYMOUS |
	    MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == start)
		return;
	fprintf(stderr, "sim: cannot map %zu MB at %p for the simulated "
	    "memory: %s\n", size >> 20,
	    (void *)start, p == MAP_FAILED ? strerror(errno) : "taken");
	exit(1);
}

/* Discards the memory of an earlier machine: all bytes are zero. */
void
sim_memory_reset(void)
{
	if (!memory.mapped) {
		map(HEAP_START, HEAP_SIZE, PROT_READ | PROT_WRITE);
		map(STACKS_START, STACK_SLOT * STACKS_MAX, PROT_NONE);
	} else if (madvise(HEAP_START, memory.top, MADV_DONTNEED) != 0)
		abort();
	free(memory.quarantine);
	memset(&memory, 0, sizeof(memory));
	memory.mapped = true;
}

static void *
block_take(uint32_t class, size_t size)
{
	struct block *b = memory.free[class];
	char *fresh = HEAP_START + memory.top;

	if (b != NULL) {
		memory.free[class] = b->next;
		return (memset(b, 0, size));
	}
	if (size > HEAP_SIZE - memory.top)
		return (NULL);
	memory.top += size;
	return (fresh);
}

void *
mach_alloc(size_t size, size_t align)
{
	size_t room = size + sizeof(struct block) + (align > UNIT ? align : 0);
	uint32_t class = sizeclass_of(&room);
	char *start, *p;
	struct block *b;

	sim_charge(SIM_COST(alloc));
	start = class < NCLASSES ? block_take(class, room) : NULL;
	if (start == NULL)
		return (NULL);
	p = start + sizeof(struct block);
	if (align > UNIT)
		p += (align - (uintptr_t)p % align) % align;
	b = (struct block *)(void *)p - 1;
	b->class = class;
	b->offset = (uint32_t)((char *)b - start);
	sim_explain_allocated(p, size, sim_memory_offset(p), HEAP_SIZE);
	return (p);
}

size_t
sim_memory_offset(const volatile void *p)
{
	return ((uintptr_t)p - (uintptr_t)HEAP_START);
}

static void
block_free(char *start, uint32_t class)
{
	struct block *b = (struct block *)(void *)start;

	b->next = memory.free[class];
	memory.free[class] = b;
}

static void
check_freed(const struct freed *f)
{
	size_t size = f->start != NULL ? sizeclass_size(f->class) : 0;

	for (size_t i = 0; i < size; i++)
		if ((unsigned char)f->start[i] != POISON) {
			fprintf(stderr, "sim: byte %zu of %zu at %p was "
			    "written after free\n", i, size,
			    (void *)f->start);
			abort();
		}
}

/* Poisons freed memory: readers get invalid values, and writes are detected. */
static void
detain(char *start, uint32_t class)
{
	struct freed *f = &memory.quarantine[memory.turn];

	check_freed(f);
	if (f->start != NULL)
		block_free(f->start, f->class);
	*f = (struct freed){ start, class };
	memset(start, POISON, sizeclass_size(class));
	memory.turn = (memory.turn + 1) % QUARANTINE;
}

void
sim_memory_check(void)
{
	for (unsigned i = 0; i < QUARANTINE && memory.quarantine != NULL; i++)
		check_freed(&memory.quarantine[i]);
}

/* Starts to check freed memory. */
void
sim_memory_watch(void)
{
	if (memory.quarantine == NULL)
		memory.quarantine = calloc(QUARANTINE,
		    sizeof(*memory.quarantine));
	if (memory.quarantine == NULL)
		abort();
}

void
mach_free(void *p)
{
	struct block *b;
	uint32_t class;
	char *start;

	if (p == NULL)
		return;
	sim_charge(SIM_COST(alloc));
	b = (struct block *)p - 1;
	class = b->class;
	if (class >= NCLASSES) {
		fprintf(stderr, "sim: memory at %p is freed twice or was "
		    "never allocated\n", p);
		abort();
	}
	start = (char *)b - b->offset;
	if (memory.quarantine != NULL)
		detain(start, class);
	else
		block_free(start, class);
}

size_t
sim_stack_size(void)
{
	return (STACK_SLOT - STACK_GUARD);
}

void *
sim_stack_take(size_t *size)
{
	unsigned i = 0;
	char *slot;

	while (i < STACKS_MAX && memory.stacks[i])
		i++;
	if (i == STACKS_MAX)
		return (NULL);
	slot = STACKS_START + i * STACK_SLOT + STACK_GUARD;
	*size = sim_stack_size();
	if (mprotect(slot, *size, PROT_READ | PROT_WRITE) != 0)
		return (NULL);
	memory.stacks[i] = true;
	return (slot);
}

void
sim_stack_free(void *stack)
{
	size_t i = (size_t)((char *)stack - STACKS_START) / STACK_SLOT;

	memory.stacks[i] = false;
}
