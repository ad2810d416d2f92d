/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists that are read in epochs (kern/epoch.h), and changed with a lock.
 *
 * A removed element still points to the rest of its list, so a reader that
 * stands on it goes on.  For this reason an element is never entered again:
 * it is retired with epoch_call() after its removal.  All that readers use
 * is set before the element is inserted, or is atomic.
 */
#ifndef KERN_EPOCH_LIST_H
#define KERN_EPOCH_LIST_H

#include "kern/epoch.h"

/* The head of a list is an atomic_uptr, at first 0. */
struct epoch_link {
	atomic_uptr	 el_next;	/* [a] */
	atomic_uptr	*el_prev;	/* writers only: what points here */
};

static inline struct epoch_link *
epoch_list_first(atomic_uptr *head)
{
	return ((struct epoch_link *)atomic_load_acq_uptr(head));
}

#define	EPOCH_LIST_FOREACH(el, head)					\
	for ((el) = epoch_list_first(head); (el) != NULL;		\
	    (el) = epoch_list_first(&(el)->el_next))

/* The element is visible to readers from here on. */
static inline void
epoch_list_insert(atomic_uptr *head, struct epoch_link *el)
{
	struct epoch_link *next = epoch_list_first(head);

	atomic_store_rel_uptr(&el->el_next, (uintptr_t)next);
	el->el_prev = head;
	if (next != NULL)
		next->el_prev = &el->el_next;
	atomic_store_rel_uptr(head, (uintptr_t)el);
}

static inline void
epoch_list_remove(struct epoch_link *el)
{
	struct epoch_link *next = epoch_list_first(&el->el_next);

	if (next != NULL)
		next->el_prev = el->el_prev;
	atomic_store_rel_uptr(el->el_prev, (uintptr_t)next);
}

#endif /* KERN_EPOCH_LIST_H */
