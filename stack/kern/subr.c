/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Console, panic and memory.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kern/systm.h"

#define	LINE_MAX_LEN	512

/*
 * One write for each line, so that lines of several threads do not mix.  It
 * bypasses stdio, whose buffer belongs to the program.
 */
static void
console_line(const char *prefix, const char *fmt, va_list ap)
{
	char line[LINE_MAX_LEN];
	size_t len;
	int n;

	n = snprintf(line, sizeof(line), "%s", prefix);
	len = (size_t)n;
	n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);
	if (n > 0)
		len += (size_t)n;
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	mach_console(line, len);
}

void
console(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	console_line("stack: ", fmt, ap);
	va_end(ap);
}

void
panic(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	console_line("stack: panic: ", fmt, ap);
	va_end(ap);
	abort();
}

void *
kmalloc(size_t size)
{
	void *p = mach_alloc(size, 0);

	if (p == NULL)
		panic("kmalloc: no memory for %zu bytes", size);
	return (p);
}

void *
kmalloc_aligned(size_t size, size_t align)
{
	void *p = mach_alloc(size, align);

	if (p == NULL)
		panic("kmalloc_aligned: no memory for %zu bytes", size);
	return (p);
}

void
kfree(void *p)
{
	mach_free(p);
}

bool
pps_limited(struct pps_limit *p, uint32_t limit)
{
	uint64_t now = mach_uptime() / NSEC_PER_SEC;

	if (atomic_load_u64(&p->second) != now) {
		atomic_store_u64(&p->second, now);
		atomic_store_u32(&p->count, 0);
	}
	return (atomic_fetchadd_u32(&p->count, 1) >= limit);
}
