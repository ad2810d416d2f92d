/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UNIX-domain sockets (unix(7)): what their files share.
 *
 * A message goes straight into the receiver's so_rcv, as a record of its own
 * even of a stream, with the descriptors and credentials that came with it.
 * Its length is charged to the sender's so_snd, which holds no data, until
 * the receiver has read it: that is the back pressure, and what SO_SNDBUF
 * limits.
 */
#ifndef KERN_UNPCB_H
#define KERN_UNPCB_H

#include "kern/socketvar.h"

struct unp_rights;

/*
 * Locks used to protect struct unpcb members:
 *	[I] immutable
 *	[a] atomic
 *	[u] whatever the strategy's ulo_link() takes; to be read, what any of
 *	    its functions takes
 *	[n] the lock of the table of names
 *	[r] unp_rights_lock
 *	[s] the socket's lock
 */
struct unpcb {
	struct socket	*unp_socket;	/* [I] valid while attached */
	atomic_u32	 unp_refs;	/* [a] the socket, calls in progress */
	struct unpcb	*unp_conn;	/* [u] peer, or NULL */
	LIST_HEAD(, unpcb) unp_senders;	/* [u] datagram sockets whose unp_conn
					   is this */
	LIST_ENTRY(unpcb) unp_sender;	/* [u] */
	bool		 unp_lost;	/* [u] datagrams: the peer was closed,
					   which the next send reports */
	struct ucred	 unp_cred;	/* [s] of the peer, or the listener */
	bool		 unp_busy;	/* [s] bind or connect looks up a path */
	struct sockname	 unp_name;	/* [n] sn_len 0: none */
	struct mach_node unp_node;	/* [n] of a path name */
	LIST_ENTRY(unpcb) unp_hash;	/* [n] */
	LIST_ENTRY(unpcb) unp_all;	/* [r] */
	TAILQ_HEAD(, unp_rights) unp_passed; /* [r] descriptors in so_rcv */
	struct unpcb	*unp_head;	/* [r] listener of one to be accepted */
	unsigned	 unp_inflight;	/* [r] messages' references to it */
	void		*unp_file;	/* [r] valid while unp_inflight > 0 */
	bool		 unp_reached;	/* [r] by the collector */
};

#define	sotounpcb(so)	((struct unpcb *)(so)->so_pcb)

struct unpcb *unp_hold(struct socket *);	/* so locked; NULL: detached */
void	 unp_rele(struct unpcb *);

/*
 * Who locks what: a strategy, chosen at boot by unix.locking.  All functions
 * are called without the lock of any socket and leave with what their second
 * half undoes.
 */
struct unp_lockops {
	const char	*ulo_name;
	/* The linkage of a, of its peer and of b (or NULL) may change. */
	void		(*ulo_link)(struct unpcb *a, struct unpcb *b);
	void		(*ulo_linked)(struct unpcb *a, struct unpcb *b);
	/* To send: the peer, connected until ulo_sent(); or NULL. */
	struct unpcb	*(*ulo_send)(struct unpcb *);
	void		(*ulo_sent)(struct unpcb *, struct unpcb *peer);
	/* The same after something was read. */
	struct unpcb	*(*ulo_rcvd)(struct unpcb *);
	void		(*ulo_rcvd_done)(struct unpcb *, struct unpcb *peer);
};
extern const struct unp_lockops *unp_lockops;	/* [I] after boot */
void	 unp_lock_init(void);
int	 unp_lock_start(void);			/* errno value */

/*
 * Names.  unp_bind() makes a path name's file; EADDRINUSE, EINVAL (bound
 * already) or what mknod(2) says.  unp_lookup() gives the socket with a
 * reference: ECONNREFUSED (nobody has it), EACCES, ENOENT.
 */
int	 unp_bind(struct unpcb *, const struct sockname *);
void	 unp_unbind(struct unpcb *);
int	 unp_lookup(const struct sockname *, struct socket **);
void	 unp_getname(struct unpcb *, struct sockname *);
void	 unp_name_init(void);

/* What a message brings along. */
struct unp_control {
	struct unp_rights *uc_rights;	/* or NULL */
	struct ucred	 uc_cred;
	bool		 uc_came;	/* some message was received */
};

/*
 * Parses a message's ancillary data; EINVAL, EPERM (somebody else's
 * credentials), EBADF, EMFILE, ETOOMANYREFS.
 */
int	 unp_internalize(const struct msghdr *, struct unp_control *);
/* Ancillary data for a reader who gave room for it. */
void	 unp_externalize(struct socket *, struct msghdr *, size_t room,
	    struct unp_control *, int flags);
/*
 * Descriptors.  unp_rights_pass() is called when their message is put into
 * the receiver's buffer, unp_rights_take() when it leaves; both with the
 * receiver locked.  unp_rights_copy() takes a second set, for MSG_PEEK.
 */
void	 unp_rights_pass(struct unpcb *to, struct unp_rights *);
void	 unp_rights_take(struct unp_rights *);
struct unp_rights *unp_rights_copy(struct unp_rights *);
void	 unp_rights_discard(struct unp_rights *);	/* NULL is fine */
void	 unp_rights_attach(struct unpcb *);
void	 unp_rights_detach(struct unpcb *);
/* A child waits at its listener, or (NULL) has been accepted. */
void	 unp_rights_head(struct unpcb *, struct unpcb *head);
/* Closes sockets that only their own messages refer to. */
void	 unp_gc(void);
void	 unp_rights_init(void);

/* Moving data; see struct protosw. */
int	 unp_sosend(struct socket *, const struct msghdr *, int flags,
	    size_t len, size_t *done);
int	 unp_soreceive(struct socket *, struct msghdr *, int flags,
	    size_t len, size_t *done);
uint32_t unp_avail(struct socket *);
void	 unp_flush(struct socket *);	/* so_rcv; socket unlocked */

void	 unp_init(void);		/* at boot */
void	 unp_netstat_init(void);

#endif /* KERN_UNPCB_H */
