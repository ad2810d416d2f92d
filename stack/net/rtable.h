/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of prefixes with longest-match look-up, for keys of up to 128
 * bits.  Look-ups take no lock and may run while the table changes; they
 * and every use of what they found lie in one visit of kern/epoch.h.
 *
 * One change is atomic to readers: they see the entry or not.  Of two
 * changes a reader may see the second alone, as it may have passed the
 * place of the first before; who wants to exchange two routes for each
 * other adds before deleting.
 */
#ifndef NET_RTABLE_H
#define NET_RTABLE_H

#include <netinet/in.h>

#include "kern/systm.h"

/* Bits from the most significant one of w[0]; those behind the key are 0. */
struct rtkey {
	uint64_t	 w[2];
};

/* First member of an entry.  [I] immutable while it is in a table */
struct rtprefix {
	struct rtkey	 rp_key;	/* [I] zero behind rp_len bits */
	uint8_t		 rp_len;	/* [I] */
};

struct rtable;

struct rtkey rtkey_inet(struct in_addr);
struct rtkey rtkey_inet6(const struct in6_addr *);
struct rtprefix rtprefix_make(struct rtkey, unsigned len);	/* cuts */

struct rtable *rtable_create(unsigned bits);	/* of a key: 32, 128 */
void	 rtable_destroy(struct rtable *);	/* empty, without readers */

/*
 * The table refers to e until it is removed.  Returns the entry that has
 * this prefix already, and changes nothing; or NULL.
 */
struct rtprefix *rtable_insert(struct rtable *, struct rtprefix *e);
/*
 * Takes out the entry with this prefix and returns it, or NULL; the caller
 * frees it with epoch_call().
 */
struct rtprefix *rtable_remove(struct rtable *, const struct rtprefix *);

/* In a visit (epoch_enter). */
struct rtprefix *rtable_lookup(struct rtable *, const struct rtkey *);
struct rtprefix *rtable_exact(struct rtable *, const struct rtprefix *);
/* All, by key and then by length, with the table locked against changes. */
void	 rtable_walk(struct rtable *, void (*fn)(struct rtprefix *, void *),
	    void *arg);

struct rtable_size {
	size_t		 entries, nodes, bytes;	/* bytes of the nodes alone */
};
void	 rtable_size(struct rtable *, struct rtable_size *);

#endif /* NET_RTABLE_H */
