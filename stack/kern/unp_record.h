/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of UNIX-domain sockets.
 *
 * A record in so_rcv is a chain of mbufs: the first holds struct unp_record,
 * the others the bytes.  Records are linked by m_nextpkt.
 */
#ifndef KERN_UNP_RECORD_H
#define KERN_UNP_RECORD_H

#include "kern/unpcb.h"

struct unp_record {
	struct socket	*rec_from;	/* datagrams: charged, referenced */
	/* datagrams: sender, charged and referenced */
	struct sockname	 rec_name;
	struct unp_control rec_control;
	uint32_t	 rec_len;	/* datagrams: its name, or sn_len 0 */
	/* part of the sender's charge that remains */
	uint32_t	 rec_charge;
};
#define	mtorec(m)	mtod(m, struct unp_record *)

/* Whether readers see a byte stream without record boundaries. */
static inline bool
unp_isstream(const struct socket *so)
{
	return (so->so_type == SOCK_STREAM);
}

/*
 * Makes a record of data that was charged to from, which is referenced unless
 * NULL.
 */
struct mbuf *unp_record_make(struct socket *from, const struct unp_control *,
	    struct mbuf *data, uint32_t len, uint32_t charge);
/* Frees a record that is in no buffer. */
void	 unp_record_free(struct mbuf *);

/* Append to, and remove the first record of, a locked socket's buffer. */
void	 unp_record_append(struct socket *, struct mbuf *);
struct mbuf *unp_record_remove(struct socket *);
/*
 * The record that holds byte off of a stream's buffer, or NULL; *in is the
 * offset in it.
 */
struct mbuf *unp_record_at(struct socket *so, size_t off, uint32_t *in)
    REQUIRES(so->so_lock);

/* The result of reading from one record: data and sender. */
struct unp_taken {
	struct mbuf	*data;
	struct unp_control control;
	struct socket	*from;		/* referenced, or NULL */
	uint32_t	 charge;
};
/* Copies n bytes of a record from off without removing them. */
void	 unp_record_peek(struct mbuf *, uint32_t off, uint32_t n,
	    struct unp_taken *);
/*
 * Removes n bytes of the first record, and the record if whole; socket locked.
 */
void	 unp_record_take(struct socket *so, uint32_t n, bool whole,
	    struct unp_taken *) REQUIRES(so->so_lock);

#endif /* KERN_UNP_RECORD_H */
