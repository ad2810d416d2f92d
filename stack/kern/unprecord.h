/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of UNIX-domain sockets.
 *
 * A record in so_rcv is a chain of mbufs: the first holds struct unp_record,
 * the others the bytes.  Records are linked by m_nextpkt.
 */
#ifndef KERN_UNPRECORD_H
#define KERN_UNPRECORD_H

#include "kern/unpcb.h"

struct unp_record {
	struct socket	*rec_from;	/* datagrams: charged, referenced */
	struct sockname	 rec_name;	/* ... its name, or sn_len 0 */
	struct unp_control rec_control;
	uint32_t	 rec_len;	/* bytes left */
	uint32_t	 rec_charge;	/* left of what the sender was charged */
};
#define	mtorec(m)	mtod(m, struct unp_record *)

/* Whose records have no bounds for the reader. */
static inline bool
unp_isstream(const struct socket *so)
{
	return (so->so_type == SOCK_STREAM);
}

/* Of data that was charged to from, which is referenced unless it is NULL. */
struct mbuf *unp_record_make(struct socket *from, const struct unp_control *,
	    struct mbuf *data, uint32_t len, uint32_t charge);
/* Ends one that is in no buffer. */
void	 unp_record_free(struct mbuf *);

/* In the buffer of a locked socket: puts one at the end, takes the first. */
void	 unp_record_append(struct socket *, struct mbuf *);
struct mbuf *unp_record_remove(struct socket *);
/* The one that byte off of a stream's buffer is in, or NULL; *in its offset. */
struct mbuf *unp_record_at(struct socket *, size_t off, uint32_t *in);

/* One record's part of a read: what was taken, and from whom. */
struct unp_taken {
	struct mbuf	*data;
	struct unp_control control;
	struct socket	*from;		/* referenced, or NULL */
	uint32_t	 charge;
};
/* Looks at n bytes of a record, from off on, without taking them. */
void	 unp_record_peek(struct mbuf *, uint32_t off, uint32_t n,
	    struct unp_taken *);
/* Takes n bytes of the first record, which ends if whole; socket locked. */
void	 unp_record_take(struct socket *, uint32_t n, bool whole,
	    struct unp_taken *);

#endif /* KERN_UNPRECORD_H */
