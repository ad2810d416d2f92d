/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interface of the mbuf allocator for threads and the boot.
 */
#ifndef KERN_MBUF_PRIVATE_H
#define KERN_MBUF_PRIVATE_H

#include "kern/mbuf.h"

struct mbuf_cache;

void	 mbuf_init(void);
/* Returns a thread's free buffers to the allocator; NULL is allowed. */
void	 mbuf_cache_free(struct mbuf_cache *);

#endif /* KERN_MBUF_PRIVATE_H */
