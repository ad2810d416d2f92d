/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of prefixes with longest-match lookup, for keys of up to 128 bits.
 * Lookups take no lock and may run while the table changes.  A lookup and
 * every use of its result are in one read section of kern/epoch.h.
 *
 * One change is atomic to readers.  Of two changes a reader may see only the
 * second, because it may have passed the place of the first before.  To
 * replace one route by another, add before deleting.
 */
#ifndef NET_RTABLE_H
#define NET_RTABLE_H

#include <netinet/in.h>

#include "kern/systm.h"

/* Bits from the most significant bit of w[0]; bits after the key are 0. */
struct rtkey {
	uint64_t	 w[2];
};

/* First member of an entry.  [I] immutable while it is in a table */
struct rtprefix {
	struct rtkey	 rp_key;	/* [I] zero after rp_len bits */
	uint8_t		 rp_len;	/* [I] */
};

struct rtable;

struct rtkey rtkey_inet(struct in_addr);
struct rtkey rtkey_inet6(const struct in6_addr *);
/* truncates the key to len */
struct rtprefix rtprefix_make(struct rtkey, unsigned len);

struct rtable *rtable_create(unsigned bits);	/* bits in a key: 32, 128 */
/* must be empty and without readers */
void	 rtable_destroy(struct rtable *);

/*
 * Inserts e, which the table references until its removal.  If an entry has
 * this prefix already, returns that entry and changes nothing; else NULL.
 */
struct rtprefix *rtable_insert(struct rtable *, struct rtprefix *e);
/*
 * Removes the entry with this prefix and returns it, or NULL.  The caller
 * frees it with epoch_call().
 */
struct rtprefix *rtable_remove(struct rtable *, const struct rtprefix *);

/* Called in a read section (epoch_enter). */
struct rtprefix *rtable_lookup(struct rtable *, const struct rtkey *);
struct rtprefix *rtable_exact(struct rtable *, const struct rtprefix *);
/*
 * Visits all entries by key, then by length, with the table locked against
 * changes.
 */
void	 rtable_walk(struct rtable *, void (*fn)(struct rtprefix *, void *),
	    void *arg);

struct rtable_size {
	size_t		 entries, nodes, bytes;	/* memory of the nodes */
};
void	 rtable_size(struct rtable *, struct rtable_size *);

#endif /* NET_RTABLE_H */
