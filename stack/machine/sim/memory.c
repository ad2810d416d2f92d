/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of the simulated machine: at the same addresses in every run,
 * whatever the host's kernel and C library do, since sleep queues are hashed
 * and locks are ordered by address.
 *
 * A heap with a list of free blocks for each size, four sizes to a power of
 * two; and stacks, each above a page that nobody may touch.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "machine/sim/sim_private.h"

#define	HEAP_START	((char *)(uintptr_t)0x1000000000)	/* 64 GB */
#define	HEAP_SIZE	((size_t)4 << 30)	/* the sandbox of a run has 8 */
#define	STACKS_START	(HEAP_START + ((size_t)16 << 30))
#define	STACK_SLOT	((size_t)256 << 10)
#define	STACK_GUARD	((size_t)64 << 10)	/* a page of any host */
#define	STACKS_MAX	4096

#define	UNIT		16	/* least block, and its alignment */
#define	NCLASSES	128

/* In front of what was allocated. */
struct block {
	uint32_t	 class;
	uint32_t	 offset;	/* of this from the block's start */
	struct block	*next;		/* free ones of its class */
};
_Static_assert(sizeof(struct block) == UNIT, "blocks are aligned");

/* What was freed in a search and is not given out again for a while. */
#define	QUARANTINE	1024
#define	POISON		0xdf		/* reads as no pointer and no number */

struct freed {
	char		*start;
	uint32_t	 class;
};

static struct {
	bool		 mapped;
	size_t		 top;		/* first byte never given out */
	struct block	*free[NCLASSES];
	bool		 stacks[STACKS_MAX];	/* taken */
	struct freed	*quarantine;	/* of a search, or NULL */
	unsigned	 turn;		/* who leaves it next */
} memory;

static void
map(char *start, size_t size, int prot)
{
	void *p = mmap(start, size, prot, MAP_PRIVATE | MAP_ANONYMOUS |
	    MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == start)
		return;
	fprintf(stderr, "sim: %zu MB of address space at %p, where the "
	    "simulated machine has its memory: %s\n", size >> 20,
	    (void *)start, p == MAP_FAILED ? strerror(errno) : "taken");
	exit(1);
}

/* What class_of() gives for blocks of so many bytes. */
static size_t
size_of(uint32_t class)
{
	const uint32_t shift = class > 8 ? (class - 5) / 4 : 0;

	return (((size_t)UNIT << shift) * (class - 4 * shift));
}

/* Whatever an earlier machine had there is gone: all bytes are zero. */
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

/* The least class whose blocks have so many bytes, and how many those are. */
static uint32_t
class_of(size_t *size)
{
	size_t step = UNIT, steps;
	uint32_t class = 0;

	while (*size > 8 * step) {
		step *= 2;
		class += 4;
	}
	steps = (*size + step - 1) / step;	/* 5 to 8, but for the least */
	*size = steps * step;
	return (class + (uint32_t)steps);
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
	uint32_t class = class_of(&room);
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
	return (p);
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
	size_t size = f->start != NULL ? size_of(f->class) : 0;

	for (size_t i = 0; i < size; i++)
		if ((unsigned char)f->start[i] != POISON) {
			fprintf(stderr, "sim: byte %zu of %zu at %p was "
			    "written to after they were freed\n", i, size,
			    (void *)f->start);
			abort();
		}
}

/* Whoever looks at it finds nonsense, and whoever writes there is noticed. */
static void
detain(char *start, uint32_t class)
{
	struct freed *f = &memory.quarantine[memory.turn];

	check_freed(f);
	if (f->start != NULL)
		block_free(f->start, f->class);
	*f = (struct freed){ start, class };
	memset(start, POISON, size_of(class));
	memory.turn = (memory.turn + 1) % QUARANTINE;
}

void
sim_memory_check(void)
{
	for (unsigned i = 0; i < QUARANTINE && memory.quarantine != NULL; i++)
		check_freed(&memory.quarantine[i]);
}

/* From now on what is freed is watched. */
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
		fprintf(stderr, "sim: memory at %p is freed twice, or never "
		    "was allocated\n", p);
		abort();
	}
	start = (char *)b - b->offset;
	if (memory.quarantine != NULL)
		detain(start, class);
	else
		block_free(start, class);
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
	*size = STACK_SLOT - STACK_GUARD;
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
