/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A snapshot of all counters of a booted stack, read through its control
 * socket: counters by their sysctl names, those of netisr as
 * "netisr.WORKSTREAM.PROTOCOL.COLUMN", and the CPU time of threads in
 * microseconds as "thread.NUMBER.NAME".
 */
#ifndef TOOLS_COUNTERS_H
#define TOOLS_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct counter {
	char		 name[96];
	uint64_t	 value;
};

struct counters {
	double		 date;		/* time of the snapshot, by now() */
	struct counter	*list;
	size_t		 n, size;
};

/* False, after a message, if the stack did not answer. */
bool	 counters_ask(struct counters *, const char *path);
void	 counters_free(struct counters *);
/* The value of a counter, or otherwise if there is none of this name. */
uint64_t counters_value(const struct counters *, const char *name,
	    uint64_t otherwise);

#endif /* TOOLS_COUNTERS_H */
