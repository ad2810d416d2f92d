/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stack's part of an epoll set: shared by its sockets (epoll_set.c) and
 * its calls (epoll.c).
 */
#ifndef API_EPOLL_H
#define API_EPOLL_H

#include "api/api.h"

/*
 * Locks used to protect the members below:
 *	[I] immutable after creation
 *	[a] atomic
 *	[e] epoll_filelock
 *	[s] es_lock
 */
struct epitem {
	struct sowatch	 ei_watch;
	atomic_u32	 ei_refs; /* [a] the set, and collecting threads */
	struct epset	*ei_set;	/* [I] */
	struct file	*ei_file;	/* [I] identity; lists this item */
	struct socket	*ei_so;		/* [I] referenced */
	int		 ei_fd;		/* [I] */
	struct epoll_event ei_event;	/* [s] events 0: one-shot has fired */
	unsigned	 ei_modified;	/* [s] version of ei_event */
	bool		 ei_exclusive;	/* [I] EPOLLEXCLUSIVE */
	bool		 ei_queued;	/* [s] on es_ready */
	bool		 ei_dead;	/* [s] removed */
	TAILQ_ENTRY(epitem) ei_ready;	/* [s] */
	LIST_ENTRY(epitem) ei_setlink;	/* [e] */
	LIST_ENTRY(epitem) ei_filelink;	/* [e] */
};

struct epset {
	struct mtx	 es_lock;
	int		 es_eventfd;	/* [I] registered in the kernel's set */
	LIST_HEAD(, epitem) es_items;	/* [e] */
	TAILQ_HEAD(, epitem) es_ready;	/* [s] */
	atomic_u32	 es_nready;	/* [a] length; written with [s] */
	unsigned	 es_sleepers;	/* [s] threads asleep in the kernel */
	bool		 es_signalled;	/* [s] eventfd is readable */
	bool		 es_exposed;	/* [s] the kernel polls the set */
	/* In the list of exposed sets, under epoll_filelock. */
	LIST_ENTRY(epset) es_link;
	atomic_u32	 es_nests;	/* [a] another set is in this one */
	atomic_u32	 es_sockets;	/* [a] items; written with [e] */
	atomic_u32	 es_kernel;	/* [a] has kernel descriptors */
	atomic_u32	 es_turn;	/* [a] alternates if one event fits */
};

/* epoll_ctl(2) for a socket of the stack: errno value. */
int	 epset_ctl(struct epset *, int op, struct file *, int fd,
	    const struct epoll_event *);
/* Whether some of its sockets may be ready; takes no lock. */
static inline bool
epset_may_be_ready(struct epset *es)
{
	return (atomic_load_u32(&es->es_nready) != 0);
}

/* Collects up to max events of the stack's sockets; returns how many. */
int	 epset_collect(struct epset *, struct epoll_event *, int max);
/* Makes the eventfd readable if a thread waits on it and an event is ready. */
void	 epset_kick(struct epset *es) REQUIRES(es->es_lock);

#endif /* API_EPOLL_H */
