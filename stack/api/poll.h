/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of the stack that a thread polls, each with a watcher.
 */
#ifndef API_POLL_H
#define API_POLL_H

#include "api/api.h"

struct pollent {
	struct sowatch	 pe_watch;
	struct file	*pe_file;	/* referenced */
	struct pollfd	*pe_fd;		/* events; gets revents */
	struct waiter	*pe_waiter;
};

void	 pollent_init(struct pollent *, struct file *, struct pollfd *,
	    struct waiter *);
/* Both return how many of n are ready. */
int	 pollents_scan(struct pollent *, unsigned n);
int	 pollents_watch(struct pollent *, unsigned n);
void	 pollents_unwatch(struct pollent *, unsigned n);

#endif /* API_POLL_H */
