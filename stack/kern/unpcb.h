/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UNIX-domain sockets (unix(7)): shared definitions.
 *
 * A message goes directly into the receiver's so_rcv as one record, even on a
 * stream, together with its descriptors and credentials.  Its length is
 * charged to the sender's so_snd, which holds no data, until the receiver has
 * read it.  This gives back pressure, and makes SO_SNDBUF a limit.
 */
#ifndef KERN_UNPCB_H
#define KERN_UNPCB_H

#include "kern/counter.h"
#include "kern/socketvar.h"

struct unp_rights;
extern struct mtx unp_rights_lock, unp_name_lock;
/* What a strategy locks of a pcb, see struct unp_lockops. */
extern struct lock_role unp_linkage;

/*
 * Locks used to protect struct unpcb members:
 *	[I] immutable
 *	[a] atomic
 *	[u] written under what the strategy's ulo_link() locks for this pcb;
 *	    read under what any function of the strategy locks for it
 *	[n] the lock of the table of names
 *	[r] unp_rights_lock
 *	[s] the socket's lock
 */
struct unpcb {
	struct socket	*unp_socket;	/* [I] referenced */
	atomic_u32	 unp_refs; /* [a] the socket's, and calls in progress */
	struct mtx	 unp_mtx; /* used by strategies that lock each pcb */
	/* [u] peer, or NULL */
	struct unpcb	*unp_conn GUARDED_BY(unp_linkage);
	/* [u] datagram sockets connected to this one */
	LIST_HEAD(, unpcb) unp_senders GUARDED_BY(unp_linkage);
	/* [u] in the unp_conn's unp_senders */
	LIST_ENTRY(unpcb) unp_sender GUARDED_BY(unp_linkage);
	/* [u] cannot be connected or sent to any more; so_pcb is NULL */
	bool		 unp_closed GUARDED_BY(unp_linkage);
	/* [u] datagrams: the peer was closed; the next send reports it */
	bool		 unp_lost GUARDED_BY(unp_linkage);
	/* [s] credentials of the peer or listener */
	struct ucred	 unp_cred GUARDED_BY(unp_socket->so_lock);
	/* [s] bind or connect is looking up a path */
	bool		 unp_busy GUARDED_BY(unp_socket->so_lock);
	/* [n] sn_len 0: none */
	struct sockname	 unp_name GUARDED_BY(unp_name_lock);
	/* [n] file of a path name */
	struct mach_node unp_node GUARDED_BY(unp_name_lock);
	LIST_ENTRY(unpcb) unp_hash GUARDED_BY(unp_name_lock);	/* [n] */
	LIST_ENTRY(unpcb) unp_all GUARDED_BY(unp_rights_lock);	/* [r] */
	/* [r] descriptors in so_rcv */
	TAILQ_HEAD(, unp_rights) unp_passed GUARDED_BY(unp_rights_lock);
	/* [r] its listener, before accept() */
	struct unpcb	*unp_head GUARDED_BY(unp_rights_lock);
	/* [r] references from messages in flight */
	unsigned	 unp_inflight GUARDED_BY(unp_rights_lock);
	/* [r] valid while unp_inflight > 0 */
	void		*unp_file GUARDED_BY(unp_rights_lock);
	/* [r] marked by the collector */
	bool		 unp_reached GUARDED_BY(unp_rights_lock);
};

#define	sotounpcb(so)	((struct unpcb *)(so)->so_pcb)

/* Returns the pcb, referenced; the socket is locked.  NULL: detached. */
struct unpcb *unp_hold(struct socket *so) REQUIRES(so->so_lock);
void	 unp_ref(struct unpcb *);
void	 unp_rele(struct unpcb *);
/*
 * Bind and connect access the file system without a lock; meanwhile unp_busy
 * excludes other calls.  EINVAL: detached.  EALREADY: another bind or connect
 * is in progress.
 */
int	 unp_hold_busy(struct socket *so, struct unpcb **unpp)
	    REQUIRES(so->so_lock);
void	 unp_rele_busy(struct unpcb *unp) REQUIRES(unp->unp_socket->so_lock);

/* Shared by the files of the domain; see struct protosw. */
int	 unp_attach(struct socket *so) REQUIRES(so->so_lock);
void	 unp_abort(struct socket *so) REQUIRES(so->so_lock);
int	 unp_usr_connect(struct socket *so, const struct sockname *, int flags)
	    REQUIRES(so->so_lock);
int	 unp_connect2(struct socket *a, struct socket *);
/*
 * Permanently disconnects a socket from all others: so_pcb is NULL, and it
 * cannot be connected or sent to.  A stream's peer gets error unless it is 0.
 */
void	 unp_disconnect(struct unpcb *, int error);
void	 unp_credentials(struct ucred *);	/* the program's */

/*
 * A locking strategy, selected at boot by unix.locking.  All functions are
 * called without any socket lock and with referenced pcbs.  What they lock is
 * unlocked by the second function of the pair.
 */
typedef struct unpcb *unp_pick(struct unpcb *);
struct unp_lockops {
	const char	*ulo_name;
	void		(*ulo_init)(void);	/* at boot, or NULL */
	/* Calls that move data hold Giant throughout. */
	bool		 ulo_giant;
	/* The strategy uses the sockets' own locks. */
	bool		 ulo_sockets;
	/*
	 * Locks the links of a and of b (which may be NULL or a) for writing.
	 */
	void		(*ulo_link)(struct unpcb *a, struct unpcb *b)
			    ACQUIRES(unp_linkage);
	/*
	 * Like ulo_link(), for a and the pcb returned by the pick, or NULL.
	 * The pick may be called repeatedly, each time with a locked.
	 */
	struct unpcb	*(*ulo_link_with)(struct unpcb *a, unp_pick *)
			    ACQUIRES(unp_linkage);
	void		(*ulo_linked)(struct unpcb *a, struct unpcb *b)
			    RELEASES(unp_linkage);
	/*
	 * Before sending: returns the peer, which stays connected until
	 * ulo_sent(); or NULL.
	 */
	struct unpcb	*(*ulo_send)(struct unpcb *) ACQUIRES(unp_linkage);
	void		(*ulo_sent)(struct unpcb *, struct unpcb *peer)
			    RELEASES(unp_linkage);
	/* Like ulo_send(), after data was read. */
	struct unpcb	*(*ulo_rcvd)(struct unpcb *) ACQUIRES(unp_linkage);
	void		(*ulo_rcvd_done)(struct unpcb *, struct unpcb *peer)
			    RELEASES(unp_linkage);
	/*
	 * Optional, for streams, with the socket locked: true if its peer is
	 * locked, too, until ulo_tried().  False: ulo_send() or ulo_rcvd() may
	 * find a peer.
	 */
	bool		 (*ulo_try)(struct unpcb *, struct unpcb **peer)
			    TRY_ACQUIRES(true, unp_linkage);
	void		 (*ulo_tried)(struct unpcb *peer)
			    RELEASES(unp_linkage);
};
extern const struct unp_lockops *unp_lockops;	/* [I] after boot */
/* The strategies, one file each; NULL at the end. */
extern const struct unp_lockops unp_giant, unp_single, unp_global, unp_rwlock,
    unp_pair, unp_sopair;
extern const struct unp_lockops *const unp_strategies[];
void	 unp_lock_init(void);
int	 unp_lock_start(void);			/* errno value */

/*
 * Lock and unlock a socket between a strategy's function and its counterpart.
 */
#define	unp_solock(so)	unp_solock_at((so), LOCK_SITE)
static inline void
unp_solock_at(struct socket *so, const struct lock_site *site)
    ACQUIRES(so->so_lock)
{
	if (unp_lockops->ulo_sockets)
		so_assert_locked(so);
	else
		mtx_lock_at(&so->so_lock, site);
}
/* Not analysed: a strategy that locked the socket keeps its lock. */
static inline void
unp_sounlock(struct socket *so) RELEASES(so->so_lock) NO_LOCK_ANALYSIS
{
	if (!unp_lockops->ulo_sockets)
		sounlock_input(so);
}

/* Helpers for strategies. */
extern atomic_u64 unp_relocks, unp_tryfails;	/* COUNTERS */
/* A pick: returns unp_conn. */
struct unpcb *unp_peer(struct unpcb *) REQUIRES(unp_linkage);
/*
 * The mutex of a pcb, for strategies that lock each.  unp_linkage represents
 * what is held, because a thread may keep the mutex of either end of a link.
 */
#define	unp_mtx_lock(unp)	unp_mtx_lock_at((unp), LOCK_SITE)
void	 unp_mtx_lock_at(struct unpcb *, const struct lock_site *);
bool	 unp_mtx_trylock(struct unpcb *);
void	 unp_mtx_unlock(struct unpcb *);
/* The mutexes of a and of b (which may be NULL or a), by rising address. */
void	 unp_lock_two(struct unpcb *a, struct unpcb *b) ACQUIRES(unp_linkage);
void	 unp_unlock_two(struct unpcb *a, struct unpcb *b)
	    RELEASES(unp_linkage);
/*
 * An ulo_rcvd and its counterpart for strategies where a pcb's mutex protects
 * its unp_conn.
 */
struct unpcb *unp_lock_own(struct unpcb *unp) ACQUIRES(unp_linkage);
void	 unp_unlock_own(struct unpcb *unp, struct unpcb *peer)
	    RELEASES(unp_linkage);

/*
 * Names.  unp_bind() creates a path name's file; errors: EADDRINUSE, EINVAL
 * (already bound), or those of mknod(2).  unp_lookup() returns the socket with
 * a reference; errors: ECONNREFUSED (no socket has the name), EACCES, ENOENT.
 */
int	 unp_bind(struct unpcb *, const struct sockname *);
void	 unp_unbind(struct unpcb *);
int	 unp_lookup(const struct sockname *, struct socket **);
void	 unp_getname(struct unpcb *, struct sockname *);
void	 unp_name_init(void);

/* Ancillary data of a message. */
struct unp_control {
	struct unp_rights *uc_rights;	/* or NULL */
	struct ucred	 uc_cred;	/* pid 0: not attached */
	bool		 uc_came;	/* a message was received */
};

/*
 * Parses a message's ancillary data.  Errors: EINVAL, EPERM (credentials of
 * another process), EBADF, EMFILE, ETOOMANYREFS.
 */
int	 unp_internalize(const struct msghdr *, struct unp_control *);
/* Attaches this process's credentials, unless the message has others. */
void	 unp_identify(struct unp_control *);
/*
 * Stores ancillary data in the room that the reader provided, with the
 * sender's credentials if passcred (SO_PASSCRED).
 */
void	 unp_externalize(bool passcred, struct msghdr *, size_t room,
	    struct unp_control *, int flags);
/*
 * Descriptors.  unp_rights_pass() runs when their message enters the
 * receiver's buffer, unp_rights_take() when it leaves; both with the receiver
 * locked.  unp_rights_copy() makes a second set for MSG_PEEK.
 */
void	 unp_rights_pass(struct unpcb *to, struct unp_rights *);
void	 unp_rights_take(struct unp_rights *);
struct unp_rights *unp_rights_copy(struct unp_rights *);
void	 unp_rights_discard(struct unp_rights *);	/* NULL is allowed */
void	 unp_rights_attach(struct unpcb *);
void	 unp_rights_detach(struct unpcb *);
/* Records that a child waits at its listener, or (NULL) was accepted. */
void	 unp_rights_head(struct unpcb *, struct unpcb *head);
/* Closes sockets that are referenced only by messages in their own cycle. */
void	 unp_gc(void);
void	 unp_rights_init(void);

/* Data transfer; see struct protosw. */
int	 unp_sosend(struct socket *, const struct msghdr *, int flags,
	    size_t len, size_t *done);
int	 unp_soreceive(struct socket *, struct msghdr *, int flags,
	    size_t len, size_t *done);
uint32_t unp_avail(struct socket *);
void	 unp_flush(struct socket *);	/* empties so_rcv; socket unlocked */

void	 unp_init(void);		/* at boot */
void	 unp_netstat_init(void);

#endif /* KERN_UNPCB_H */
