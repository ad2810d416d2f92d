/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the mbuf allocator tells threads and the boot.
 */
#ifndef KERN_MBUF_PRIVATE_H
#define KERN_MBUF_PRIVATE_H

#include "kern/mbuf.h"

struct mbuf_cache;

void	 mbuf_init(void);
/* Gives a thread's free buffers back; NULL is fine. */
void	 mbuf_cache_free(struct mbuf_cache *);

#endif /* KERN_MBUF_PRIVATE_H */
