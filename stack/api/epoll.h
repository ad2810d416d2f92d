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
 *	[i] es_lock of the item's set
 */
extern struct lock_role epset_role;	/* es_lock of an item's set */

struct epitem {
	struct sowatch	 ei_watch;
	atomic_u32	 ei_refs; /* [a] the set, and collecting threads */
	struct epset	*ei_set;	/* [I] */
	struct file	*ei_file;	/* [I] identity; lists this item */
	struct socket	*ei_so;		/* [I] referenced */
	int		 ei_fd;		/* [I] */
	/* [i] events 0: one-shot has fired */
	struct epoll_event ei_event GUARDED_BY(epset_role);
	/* [i] version of ei_event */
	unsigned	 ei_modified GUARDED_BY(epset_role);
	bool		 ei_exclusive;	/* [I] EPOLLEXCLUSIVE */
	bool		 ei_queued GUARDED_BY(epset_role); /* [i] on es_ready */
	/* [i] removed */
	bool		 ei_dead GUARDED_BY(epset_role);
	TAILQ_ENTRY(epitem) ei_ready GUARDED_BY(epset_role);	/* [i] */
	LIST_ENTRY(epitem) ei_setlink GUARDED_BY(epoll_filelock); /* [e] */
	LIST_ENTRY(epitem) ei_filelink GUARDED_BY(epoll_filelock); /* [e] */
};

struct epset {
	struct mtx	 es_lock;
	int		 es_eventfd;	/* [I] registered in the kernel's set */
	LIST_HEAD(, epitem) es_items GUARDED_BY(epoll_filelock); /* [e] */
	TAILQ_HEAD(, epitem) es_ready GUARDED_BY(es_lock);	/* [s] */
	atomic_u32	 es_nready;	/* [a] length; written with [s] */
	/* [s] threads asleep in the kernel */
	unsigned	 es_sleepers GUARDED_BY(es_lock);
	/* [s] eventfd is readable */
	bool		 es_signalled GUARDED_BY(es_lock);
	atomic_u32	 es_exposed;	/* [a] the kernel polls the set;
					   written with [s] */
	/* [e] in the list of exposed sets */
	LIST_ENTRY(epset) es_link GUARDED_BY(epoll_filelock);
	atomic_u32	 es_nests;	/* [a] another set is in this one */
	atomic_u32	 es_sockets;	/* [a] items; written with [e] */
	atomic_u32	 es_kernel;	/* [a] has kernel descriptors */
	atomic_u32	 es_turn;	/* [a] alternates if one event fits */
};

/* The data of a set's eventfd in the kernel's set: no pointer. */
#define	EPSET_WAKE	0x9e3779b97f4a7c15ULL

/* epoll_ctl(2) for a socket of the stack: errno value. */
int	 epset_ctl(struct epset *, int op, struct file *, int fd,
	    const struct epoll_event *);
/* Whether some of its sockets may be ready; takes no lock. */
static inline bool
epset_may_be_ready(struct epset *es)
{
	return (atomic_load_u32(&es->es_nready) != 0);
}

/* Whether epoll_expose() has been called; takes no lock. */
static inline bool
epset_exposed(struct epset *es)
{
	return (atomic_load_u32(&es->es_exposed) != 0);
}

/* Collects up to max events of the stack's sockets; returns how many. */
int	 epset_collect(struct epset *, struct epoll_event *, int max);
/* Makes the eventfd readable if a thread waits on it and an event is ready. */
void	 epset_kick(struct epset *es) REQUIRES(es->es_lock);

#endif /* API_EPOLL_H */
