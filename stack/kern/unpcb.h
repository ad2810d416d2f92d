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
 *	[u] what the strategy's ulo_link() takes of this pcb; to be read, what
 *	    any of its functions takes of it
 *	[n] the lock of the table of names
 *	[r] unp_rights_lock
 *	[s] the socket's lock
 */
struct unpcb {
	struct socket	*unp_socket;	/* [I] referenced */
	atomic_u32	 unp_refs;	/* [a] the socket, calls in progress */
	struct mtx	 unp_mtx;	/* of strategies that lock each pcb */
	struct unpcb	*unp_conn;	/* [u] peer, or NULL */
	LIST_HEAD(, unpcb) unp_senders;	/* [u] datagram sockets whose unp_conn
					   is this */
	LIST_ENTRY(unpcb) unp_sender;	/* [u] of unp_conn */
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
void	 unp_ref(struct unpcb *);
void	 unp_rele(struct unpcb *);

/* Between the files of the domain; see struct protosw. */
int	 unp_attach(struct socket *);
void	 unp_abort(struct socket *);
int	 unp_usr_connect(struct socket *, const struct sockname *, int flags);
int	 unp_connect2(struct socket *, struct socket *);
/*
 * Ends whatever connects a socket with others, for good: so_pcb is NULL then,
 * and nobody connects or sends to it any more.  Its stream's peer is told
 * error, if it is not 0.
 */
void	 unp_disconnect(struct unpcb *, int error);
void	 unp_credentials(struct ucred *);	/* the program's */

/*
 * Who locks what: a strategy, chosen at boot by unix.locking.  All functions
 * are called without the lock of any socket, with references to what they are
 * given, and leave with what their second half undoes.
 */
typedef struct unpcb *unp_pick(struct unpcb *);
struct unp_lockops {
	const char	*ulo_name;
	void		(*ulo_init)(void);	/* at boot, or NULL */
	/* Calls that move data are made under Giant from end to end. */
	bool		 ulo_giant;
	/* What it takes are the sockets' own locks. */
	bool		 ulo_sockets;
	/* The linkage of a and of b (perhaps NULL, or a) may change. */
	void		(*ulo_link)(struct unpcb *a, struct unpcb *b);
	/* The same for a and the one that is picked, maybe more than once, as
	   long as a is locked: that one, or NULL. */
	struct unpcb	*(*ulo_link_with)(struct unpcb *a, unp_pick *);
	void		(*ulo_linked)(struct unpcb *a, struct unpcb *b);
	/* To send: the peer, connected until ulo_sent(); or NULL. */
	struct unpcb	*(*ulo_send)(struct unpcb *);
	void		(*ulo_sent)(struct unpcb *, struct unpcb *peer);
	/* The same after something was read. */
	struct unpcb	*(*ulo_rcvd)(struct unpcb *);
	void		(*ulo_rcvd_done)(struct unpcb *, struct unpcb *peer);
};
extern const struct unp_lockops *unp_lockops;	/* [I] after boot */
/* Those there are, one file each, NULL at the end. */
extern const struct unp_lockops unp_giant, unp_single, unp_global, unp_rwlock,
    unp_pair, unp_sopair;
extern const struct unp_lockops *const unp_strategies[];
void	 unp_lock_init(void);
int	 unp_lock_start(void);			/* errno value */

/* Lock and unlock a socket between the halves of a strategy's functions. */
#define	unp_solock(so)	unp_solock_at((so), LOCK_SITE)
static inline void
unp_solock_at(struct socket *so, const struct lock_site *site)
    ACQUIRES(so->so_lock) NO_LOCK_ANALYSIS
{
	if (!unp_lockops->ulo_sockets)
		mtx_lock_at(&so->so_lock, site);
}
static inline void
unp_sounlock(struct socket *so) RELEASES(so->so_lock) NO_LOCK_ANALYSIS
{
	if (!unp_lockops->ulo_sockets)
		sounlock_input(so);
}

/* For strategies. */
extern atomic_u64 unp_relocks, unp_tryfails;	/* counters */
struct unpcb *unp_peer(struct unpcb *);		/* a pick: unp_conn */
/* The mutexes of a and of b (perhaps NULL, or a), by address. */
void	 unp_lock_two(struct unpcb *a, struct unpcb *b);
void	 unp_unlock_two(struct unpcb *a, struct unpcb *b);
/* An ulo_rcvd and its second half: a pcb's mutex keeps its unp_conn. */
struct unpcb *unp_lock_own(struct unpcb *);
void	 unp_unlock_own(struct unpcb *, struct unpcb *peer);

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
