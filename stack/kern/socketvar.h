/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets: the functions behind the socket calls (api/), and the interface
 * that protocols implement.
 *
 * All so*() functions return 0 or an errno value.  Addresses, levels, option
 * names and MSG_ flags are Linux's, because programs run unmodified.
 * MSG_DONTWAIT in flags expresses O_NONBLOCK, which the api layer keeps with
 * the descriptor.
 */
#ifndef KERN_SOCKETVAR_H
#define KERN_SOCKETVAR_H

#include <netinet/in.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "kern/lock.h"
#include "kern/mbuf.h"
#include "kern/thread.h"

struct socket;

/* A socket address of any family, and its length. */
struct sockname {
	socklen_t	 sn_len;
	union {
		struct sockaddr		 sn_sa;
		struct sockaddr_in	 sn_sin;
		struct sockaddr_in6	 sn_sin6;
		struct sockaddr_un	 sn_un;
	};
};

/* Control messages (cmsg(3)) of a received datagram, one after another. */
#define	SOCONTROL_MAX	240
/* level of a message for the stack itself: an nsec_t of the wall clock */
#define	SOCONTROL_INTERNAL (-1)
struct socontrol {
	size_t		 sc_len;
	char		 sc_buf[SOCONTROL_MAX];
};

/*
 * A watcher of a socket's readiness (poll, select, epoll).  fn is called with
 * the socket locked when the readiness may have changed.  It must not block
 * and must not call into the socket.
 */
struct sowatch {
	LIST_ENTRY(sowatch) sw_link;		/* in so_watch, guarded */
	void		(*sw_fn)(struct sowatch *, int events);
};

/* A socket buffer.  The attribute of so_rcv, so_snd and so_errors guards it. */
struct sockbuf {
	/* stream: one chain of bytes; datagrams: m_nextpkt list */
	struct mbuf	*sb_head, *sb_tail;
	struct mbuf	*sb_sendm; /* position found by sbsendptr() */
	uint32_t	 sb_sendoff;		/* ... and its offset */
	uint32_t	 sb_cc;		/* bytes, and SB_DGRAM_OVERHEAD each */
	uint32_t	 sb_hiwat;		/* max bytes */
	uint32_t	 sb_lowat;		/* min bytes for a wakeup */
	nsec_t		 sb_timeo;		/* SO_RCVTIMEO, SO_SNDTIMEO,
						   NSEC_FOREVER: none */
	bool		 sb_fixed;		/* size set by the program */
	bool		 sb_busy;		/* sblock: one reader/writer */
	unsigned	 sb_waiters;		/* threads asleep for data
						   or space */
	unsigned	 sb_lockwaiters;	/* ... for sb_busy */
};

/* Charged for each datagram, so that the limit also bounds empty datagrams. */
#define	SB_DGRAM_OVERHEAD	256

/* Queue of its listener that a socket is in before accept(). */
enum so_queue { SQ_NONE, SQ_INCOMPLETE, SQ_COMPLETE };
TAILQ_HEAD(socketq, socket);

/* Out-of-band data: none, announced, received, read or skipped. */
enum so_oob { OOB_NONE, OOB_AWAITED, OOB_HERE, OOB_READ };

struct protosw;

struct solist;
extern struct lock_role solist_role;	/* sp_lock of its list */
extern struct lock_role so_queues;	/* the so_qlock of a listener */

/*
 * Locks used to protect struct socket members:
 *	[I] immutable after creation
 *	[s] so_lock
 *	[q] so_qlock of the listener (so_head of a child); taken after the
 *	    so_lock of either, so that a child can leave the queue without
 *	    its listener's lock
 *	[l] the lock of a list of all sockets
 *	[a] atomic
 *
 * References: one for the descriptor (before accept: for the accept queue),
 * one for the pcb, one for each pending callout, and one for each thread that
 * looked the socket up and uses it.
 */
#define	SO_KEPT	5

struct socket {
	struct mtx	 so_lock;
	atomic_u32	 so_refs;		/* [a] */
	const struct protosw *so_proto;		/* [I] */
	int		 so_type;		/* [I] */
	int		 so_protocol;		/* [I] */
	/* [s] NULL when detached */
	void		*so_pcb GUARDED_BY(so_lock);
	unsigned	 so_state GUARDED_BY(so_lock);	/* [s] SS_* */
	unsigned	 so_options GUARDED_BY(so_lock);	/* [s] SOO_* */
	int		 so_error GUARDED_BY(so_lock);	/* [s] */
	/* [s] max getuptime() used under so_lock */
	nsec_t		 so_time GUARDED_BY(so_lock);
	/* [s] NSEC_FOREVER: off */
	nsec_t		 so_linger GUARDED_BY(so_lock);
	/* [s] options without effect, see uipc_sockopt.c */
	int		 so_kept[SO_KEPT] GUARDED_BY(so_lock);
	/* Out-of-band data, see uipc_oob.c. */
	enum so_oob	 so_oob GUARDED_BY(so_lock);	/* [s] */
	/* [s] bytes of so_rcv before it */
	uint32_t	 so_oobmark GUARDED_BY(so_lock);
	/* [s] valid if OOB_HERE */
	char		 so_oobbyte GUARDED_BY(so_lock);
	/*
	 * [s] when the datagram arrived that was read last: 0: unknown,
	 * NSEC_FOREVER: none was read
	 */
	nsec_t		 so_stamp GUARDED_BY(so_lock);
	/* [s] SO_ATTACH_FILTER, or NULL */
	struct sofilter	*so_filter GUARDED_BY(so_lock);
	/* [s] signals to its owner (sigio.h), or NULL */
	struct sosigio	*so_sigio GUARDED_BY(so_lock);
	/* [s] */
	struct sockbuf	 so_rcv GUARDED_BY(so_lock), so_snd GUARDED_BY(so_lock);
	/* [s] errors of sent datagrams, for MSG_ERRQUEUE */
	struct sockbuf	 so_errors GUARDED_BY(so_lock);
	/* [s] MSG_ZEROCOPY: sends that were reported; first of the last report */
	uint32_t	 so_zerocopies GUARDED_BY(so_lock);
	uint32_t	 so_zerofirst GUARDED_BY(so_lock);
	LIST_HEAD(, sowatch) so_watch GUARDED_BY(so_lock);	/* [s] */
	atomic_u32	 so_nwatches;	/* [a] ... and their number */
	LIST_ENTRY(socket) so_all GUARDED_BY(solist_role);	/* [l] */
	struct solist	*so_list;		/* [I] or NULL: in none */
	bool so_retired GUARDED_BY(so_lock); /* [s] found in epochs */
	/* Members of a child, until it is accepted. */
	/* [s] its listener, referenced */
	struct socket	*so_head GUARDED_BY(so_lock);
	/* [q] */
	enum so_queue	 so_onqueue GUARDED_BY(so_queues);
	TAILQ_ENTRY(socket) so_link GUARDED_BY(so_queues);	/* [q] */
	nsec_t		 so_queued GUARDED_BY(so_queues);	/* [q] uptime */
	/* Members of a listener. */
	struct mtx	 so_qlock;
	/* [q] handshake unfinished */
	struct socketq	 so_incomp GUARDED_BY(so_qlock);
	struct socketq	 so_comp GUARDED_BY(so_qlock);	/* [q] to be accepted */
	atomic_u32	 so_qlen;		/* [a] written with so_qlock */
	/* [a] so_queued of the first in so_comp; 0: empty, or no copies */
	atomic_u64	 so_oldest;
	atomic_uptr	 so_copies; /* [a] see socopies.h; of a copy, too */
	unsigned	 so_copy;		/* [I] number of a copy */
	unsigned	 so_next GUARDED_BY(so_lock);	/* [s] copy to look at */
	unsigned	 so_qlimit GUARDED_BY(so_lock);	/* [s] */
} __attribute__((aligned(64)));	/* no cache line is shared by two sockets */

#define	SS_ISCONNECTED	0x001
#define	SS_ISCONNECTING	0x002
#define	SS_ISDISCONNECTING 0x004
#define	SS_CANTRCVMORE	0x008
#define	SS_CANTSENDMORE	0x010
#define	SS_NOFDREF	0x020
#define	SS_LISTENING	0x040
#define	SS_WAKEHEAD	0x080	/* just queued: wake the listener */
/* a connection was made, which only connect() to AF_UNSPEC forgets */
#define	SS_WASCONNECTED	0x100
#define	SS_NOSPACE	0x200	/* so_snd had no space when it was wanted */
#define	SS_DEFERRED	0x400	/* connected once the first data is sent */
/* the program does not know the result of its connect() */
#define	SS_UNREPORTED	0x800

#define	SOO_REUSEADDR	0x01
#define	SOO_KEEPALIVE	0x02
#define	SOO_BROADCAST	0x04
#define	SOO_REUSEPORT	0x08
#define	SOO_PASSCRED	0x10
#define	SOO_TIMESTAMP	0x20
#define	SOO_TIMESTAMPNS	0x40
#define	SOO_OOBINLINE	0x80
#define	SOO_INQ		0x100
#define	SOO_ZEROCOPY	0x200
#define	SOO_NO_CHECK	0x400	/* UDP over IPv4 without checksum */
#define	SOO_STAMP	0x800	/* SIOCGSTAMP was called */
#define	SOO_LOCK_FILTER	0x1000

/*
 * Operations are called and return with the socket locked, unless their
 * comment differs.
 */
struct protosw {
	const char	*pr_name;
	int		 pr_domain, pr_type, pr_protocol;
	/*
	 * Size of a socket with the protocol's state behind struct socket,
	 * which is zeroed and lives as long as the socket; 0: no such state.
	 */
	size_t		 pr_sosize;
	socklen_t	 pr_namelen;	/* length of an unbound socket's name */
	/* raw sockets: any protocol number but 0 */
	bool		 pr_anyproto;
	/* raw and ping sockets: only reads report errors */
	bool		 pr_sendanyway;
	bool		 pr_stream;	/* byte stream, not datagrams */
	/* sent data is delivered at once */
	bool		 pr_local;
	int		(*pr_attach)(struct socket *so) REQUIRES(so->so_lock);
	/*
	 * The last descriptor was closed.  The pcb may remain (TCP) and is
	 * freed when the protocol is done.
	 */
	void		(*pr_detach)(struct socket *so) REQUIRES(so->so_lock);
	/* Like pr_detach(), and resets the connection. */
	void		(*pr_abort)(struct socket *so) REQUIRES(so->so_lock);
	/* The protocol checks family and length of names. */
	int		(*pr_bind)(struct socket *so, const struct sockname *)
			    REQUIRES(so->so_lock);
	int		(*pr_listen)(struct socket *so) REQUIRES(so->so_lock);
	/* A copy of a listener begins (socopies.h); NULL: never. */
	void		(*pr_copy)(struct socket *head, struct socket *copy)
			    REQUIRES(head->so_lock, copy->so_lock);
	/* A NULL address dissolves the association or connection. */
	int		(*pr_connect)(struct socket *so,
			    const struct sockname *, int flags)
			    REQUIRES(so->so_lock);
	int		(*pr_shutdown)(struct socket *so) REQUIRES(so->so_lock);
	/* data was read from so_rcv */
	void		(*pr_rcvd)(struct socket *so) REQUIRES(so->so_lock);
	/*
	 * Bytes that may be appended to so_snd beyond its space, because fewer
	 * would delay transmission.  NULL: only the space counts.  fill: for
	 * a write that has not waited, which may complete what was begun.
	 */
	uint32_t	(*pr_sendroom)(const struct socket *so, bool fill)
			    REQUIRES(so->so_lock);
	/*
	 * Sends.  Streams: m is NULL, and data has been appended to so_snd;
	 * EINPROGRESS: the first data was sent (SS_DEFERRED), so_snd has it,
	 * and the connection is not made yet.  MSG_FASTOPEN: sends it even if
	 * there is none.  msg holds the control messages of a datagram.
	 */
	int		(*pr_send)(struct socket *so, struct mbuf *,
			    const struct sockname *to, const struct msghdr *msg,
			    int flags) REQUIRES(so->so_lock);
	/*
	 * Whether a datagram can go to a name, which is reported before an
	 * error of the socket.  NULL: only pr_send() knows.
	 */
	int		(*pr_sendname)(const struct socket *so,
			    const struct sockname *to) REQUIRES(so->so_lock);
	int		(*pr_setopt)(struct socket *so, int level, int name,
			    const void *, socklen_t) REQUIRES(so->so_lock);
	int		(*pr_getopt)(struct socket *so, int level, int name,
			    void *, socklen_t *) REQUIRES(so->so_lock);
	int		(*pr_sockaddr)(struct socket *so, struct sockname *)
			    REQUIRES(so->so_lock);
	int		(*pr_peeraddr)(struct socket *so, struct sockname *)
			    REQUIRES(so->so_lock);
	/*
	 * For protocols that keep messages in so_rcv (the UNIX domain); NULL
	 * in others.  The first two are called and return with the socket
	 * unlocked.
	 */
	int		(*pr_sosend)(struct socket *, const struct msghdr *,
			    int flags, size_t len, size_t *done);
	int		(*pr_soreceive)(struct socket *, struct msghdr *,
			    int flags, size_t len, size_t *done);
	uint32_t	(*pr_avail)(struct socket *);	/* FIONREAD */
	/* bytes of so_snd that were never sent; NULL: all of it */
	uint32_t	(*pr_notsent)(const struct socket *so)
			    REQUIRES(so->so_lock);
	/*
	 * After pr_shutdown(): the peer has not acknowledged all data and the
	 * end yet.  NULL: nothing to linger for.
	 */
	bool		(*pr_unacked)(const struct socket *so)
			    REQUIRES(so->so_lock);
	/* SHUT_RD */
	void		(*pr_shutrd)(struct socket *so) REQUIRES(so->so_lock);
	/*
	 * Adds control messages to a read from a stream with SOO_INQ, in a
	 * buffer of room bytes; socket locked.
	 */
	void		(*pr_readcontrol)(struct socket *so, struct msghdr *,
			    size_t room) REQUIRES(so->so_lock);
	/* Adds control messages to a datagram that is read. */
	void		(*pr_control)(const struct mbuf *, struct socontrol *);
	/* A child of head was accepted; head is locked. */
	void		(*pr_accepted)(struct socket *head, struct socket *)
			    REQUIRES(head->so_lock);
	int		(*pr_connect2)(struct socket *, struct socket *);
};
void	 protosw_register(const struct protosw *);

/* Socket calls. */
int	 socreate(int domain, int type, int protocol, struct socket **);
/* Two connected sockets; EOPNOTSUPP. */
int	 sosocketpair(int domain, int type, int protocol, struct socket *[2]);
int	 sobind(struct socket *, const struct sockaddr *, socklen_t);
int	 solisten(struct socket *, int backlog);
int	 soaccept(struct socket *head, int flags, struct sockaddr *,
	    socklen_t *, struct socket **);
int	 soconnect(struct socket *, const struct sockaddr *, socklen_t, int);
/* The result of a soconnect() that did not wait; EINPROGRESS: not yet. */
int	 soconnected(struct socket *);
int	 soconnectwait(struct socket *so) REQUIRES(so->so_lock);
/*
 * EINPROGRESS: a connection has begun, and the SYN has *done bytes.
 * soconnected() returns its result to a call that may wait.
 */
int	 sosend(struct socket *, const struct msghdr *, int, size_t *done);
int	 soreceive(struct socket *, struct msghdr *, int flags, size_t *done);
/* Streams: whether a read of len > 0 bytes would wait, if it may. */
bool	 soreceiveblocks(struct socket *, size_t len, int flags);
__cold int sosend_zerocopy(struct socket *, const struct msghdr *, int flags,
	    size_t *done);
__cold int sosend_fastopen(struct socket *, const struct msghdr *, int flags,
	    size_t *done);
int	 soshutdown(struct socket *, int how);
/*
 * Closes the descriptor: threads blocked in the socket return EBADF.  Drops
 * the descriptor's reference.
 */
int	 soclose(struct socket *so);
/* Of a new socket. */
void	 so_keepinit(struct socket *so) REQUIRES(so->so_lock);
int	 sosetopt(struct socket *, int level, int, const void *, socklen_t);
/*
 * SIOCGSTAMP of socket(7): the wall clock when the datagram arrived that was
 * read last.  Errors: ENOENT (none was read), ENOTTY (UNIX domain).
 */
int	 sogetstamp(struct socket *, struct timespec *);
int	 sogetopt(struct socket *, int level, int name, void *, socklen_t *);
nsec_t	 sotimeout(struct socket *, bool receive);	/* SO_*TIMEO */
int	 sogetsockname(struct socket *, struct sockaddr *, socklen_t *);
int	 sogetpeername(struct socket *, struct sockaddr *, socklen_t *);
int	 sopoll(struct socket *, int events);	/* returns the ready events */
bool	 solistens(struct socket *);
int	 soavail(struct socket *);		/* FIONREAD */
int	 soatmark(struct socket *);		/* SIOCATMARK: 0 or 1 */
int	 sounsent(struct socket *);		/* SIOCOUTQ */
int	 sonotsent(struct socket *);		/* SIOCOUTQNSD */
/*
 * Registers a watcher and returns which of events are ready, in one locked
 * step.
 */
int	 sowatch_add(struct socket *, struct sowatch *, int events);
void	 sowatch_remove(struct socket *, struct sowatch *);

/* References are held by a descriptor, the pcb, and input in progress. */
void	 soref(struct socket *);
bool	 soref_unless_dying(struct socket *); /* false: no reference is left */
void	 sorele(struct socket *so);

#include "kern/solock.h"

/*
 * For protocols.  The socket is locked; they assert this at run time, because
 * the checker cannot see that a pcb's socket is the locked one.
 *
 * sonewconn() creates the child of a locked listener, for which soacceptfull()
 * is false.  The child is locked and referenced by the queue of incomplete
 * handshakes and by the caller.  soisconnected() moves a child to
 * the accept queue; sounlock_input() then wakes the listener, whose lock comes
 * before the child's.  sounqueue() removes a child whose handshake failed from
 * its listener's queue and returns true if it was there.
 */
void	 sonewconn(struct socket *head, struct socket **sop)
	    REQUIRES(head->so_lock) ACQUIRES((*sop)->so_lock);
bool	 sounqueue(struct socket *so) REQUIRES(so->so_lock);
bool	 soacceptfull(struct socket *head);	/* no room for a child */
void	 sounlock_input(struct socket *so) RELEASES(so->so_lock);
void	 soisconnecting(struct socket *);
void	 soisconnected(struct socket *so) REQUIRES(so->so_lock);
void	 soisdisconnected(struct socket *);
void	 socantrcvmore(struct socket *);
void	 socantsendmore(struct socket *);
void	 sorwakeup(struct socket *so) REQUIRES(so->so_lock);
void	 sowwakeup(struct socket *so) REQUIRES(so->so_lock);
void	 soseterror(struct socket *, int error);
/* Returns the ready events (POLLIN ...). */
int	 soready(struct socket *so) REQUIRES(so->so_lock);

/*
 * Shared by the files of sockets.  sockname_get() copies a program's address;
 * EINVAL if it is invalid.  sockname_put() stores what fits, and the full
 * length.  sockname_none() is the name of an unbound or unconnected socket.
 */
int	 sockname_get(struct sockname *, const struct sockaddr *, socklen_t);
void	 sockname_put(const struct sockname *, struct sockaddr *, socklen_t *);
struct sockname sockname_none(const struct socket *);
/* Adds a socket to the list of all sockets, which sorele() removes. */
void	 so_enlist(struct socket *);
struct socket *sonewchild(struct socket *head) REQUIRES(head->so_lock);
/* Adds a watcher to so_watch, or removes it. */
void	 sowatch_link(struct socket *so, struct sowatch *)
	    REQUIRES(so->so_lock);
void	 sowatch_unlink(struct socket *so, struct sowatch *)
	    REQUIRES(so->so_lock);
/*
 * sosendwait() waits for space in so_snd and stores in *n how much of resid
 * fits.  The receive counterpart waits for the bytes that sowant() requires in
 * so_rcv.  Errors: EWOULDBLOCK, EINTR, EBADF, EPIPE, ENOTCONN, or the socket's
 * error.
 */
int	 sosendwait(struct socket *so, size_t resid, int flags,
	    nsec_t deadline, size_t *n) REQUIRES(so->so_lock);
int	 soreceivewait(struct socket *so, uint32_t want, bool partial,
	    int flags, nsec_t deadline) REQUIRES(so->so_lock);
uint32_t sowant(const struct sockbuf *, size_t resid, int flags);
/*
 * True if no wait brings more data: *error is the result, 0 with data or at the
 * end of the stream.
 */
bool	 soreceive_ended(struct socket *so, bool partial, int flags,
	    int *error) REQUIRES(so->so_lock);
/* The bytes that make a stream readable: SO_RCVLOWAT, or what always fits. */
uint32_t sbreadable(const struct sockbuf *);
/*
 * Control messages.  socontrol_add() appends one to a datagram's, which must
 * have room.  socontrol_put() stores one in a program's buffer of room bytes,
 * of which *used are taken; it truncates if necessary (MSG_CTRUNC).
 * socontrol_next() iterates over a program's messages: NULL at the end, *error
 * is EINVAL if one is out of bounds.  socontrol_deliver() copies a datagram's to
 * the program, as far as they fit, and returns the arrival time for SIOCGSTAMP,
 * 0 if there is none.
 */
void	 socontrol_add(struct socontrol *, int level, int type, const void *,
	    size_t len);
void	 socontrol_put(struct msghdr *, size_t room, size_t *used, int level,
	    int type, const void *, size_t len);
const struct cmsghdr *socontrol_next(const struct msghdr *,
	    const struct cmsghdr *, int *error);
nsec_t	 socontrol_deliver(struct msghdr *, struct socontrol *);
/*
 * Copy between a message, from byte skip on, and a chain.  soscatter() returns
 * the number of bytes.
 */
struct mbuf *somakechain(const struct msghdr *, size_t skip, size_t len);
size_t	 soscatter(const struct msghdr *, size_t skip, const struct mbuf *);
void	 sodrainqueues(struct socket *head)
	    REQUIRES(head->so_lock);

/*
 * Out-of-band data (uipc_oob.c), socket locked.  sooobmark(): the byte after
 * off bytes of so_rcv is out-of-band.  sooobtake() gets len bytes to be
 * appended to so_rcv and returns what remains after it removed the out-of-band
 * byte.  sooobbound() limits a read of n bytes to those before the mark.
 * sooobpassed() advances the mark by the bytes read.  sooobnext() is true at
 * the mark.
 */
__cold void	 sooobmark(struct socket *, uint32_t off);
__cold struct mbuf *sooobtake(struct socket *so, struct mbuf *, uint32_t len)
    REQUIRES(so->so_lock);
uint32_t sooobbound(const struct socket *so, uint32_t n) REQUIRES(so->so_lock);
void	 sooobpassed(struct socket *so, uint32_t n) REQUIRES(so->so_lock);
__cold bool	 sooobnext(const struct socket *so) REQUIRES(so->so_lock);
/* recv(MSG_OOB), socket not locked. */
bool	 sooobread(const struct socket *);	/* MSG_OOB has a meaning */
__cold int soreceiveoob(struct socket *, struct msghdr *, int flags,
	    size_t len, size_t *done);

/* Socket buffers; socket locked. */
void	 soreserve(struct socket *so, uint32_t snd, uint32_t rcv)
	    REQUIRES(so->so_lock);
void	 sbreserve_snd(struct sockbuf *, uint32_t);
void	 sbappendstream(struct sockbuf *, struct mbuf *);
/*
 * Appends a datagram with its sender and control messages.  False: no room,
 * and m was freed.
 */
bool	 sbappendaddr(struct sockbuf *, const struct sockname *,
	    const struct socontrol *, struct mbuf *);
/*
 * Appends a segment to the last datagram (UDP_GRO).  The last datagram must
 * have segments (tso_segsz), the same sender and the same control messages.
 * False: these differ or there is no room; m is unchanged.
 */
bool	 sbmergeaddr(struct sockbuf *, const struct sockname *,
	    const struct socontrol *, struct mbuf *);
/*
 * sbdetachaddr() removes the first datagram, or returns NULL.  sbheader()
 * strips sender and control messages from its front.
 */
struct mbuf *sbdetachaddr(struct sockbuf *);
void	 sbheader(struct mbuf *, struct sockname *, struct socontrol *);
uint32_t sbdatalen(const struct mbuf *);	/* bytes after the header */
void	 sbdrop(struct sockbuf *, uint32_t len);
/* like sbdrop(), but returns the data */
struct mbuf *sbcut(struct sockbuf *, uint32_t len);
/* The mbuf that holds byte off; *moff is the offset in it. */
struct mbuf *sbsendptr(struct sockbuf *, uint32_t off, uint32_t *moff);
/* Empties so_rcv or so_snd; a list of packets, which so_errors always is. */
void	 sbflush(struct socket *, struct sockbuf *);
void	 sbflushpackets(struct sockbuf *);
uint32_t sbspace(const struct sockbuf *);
/*
 * How many of resid bytes a writer may append now; 0: it must wait.  fill: see
 * pr_sendroom.
 */
uint32_t sosendspace(const struct socket *so, size_t resid, bool fill)
    REQUIRES(so->so_lock);
/*
 * Serializes readers (or writers) of a buffer.  EWOULDBLOCK with MSG_DONTWAIT,
 * EINTR, EBADF if the descriptor was closed meanwhile.
 */
int	 sblock(struct socket *so, struct sockbuf *, int flags)
	    REQUIRES(so->so_lock);
void	 sbunlock(struct sockbuf *);
/* Sleeps until a wakeup of the buffer or until deadline. */
int	 sbwait(struct socket *so, struct sockbuf *, const char *wmesg,
	    nsec_t deadline) REQUIRES(so->so_lock);
nsec_t	 sbdeadline(const struct sockbuf *);	/* computed from sb_timeo */

void	 socket_init(void);			/* at boot */
uint32_t so_count(void);			/* number of sockets */

/*
 * Calls fn for every socket, entered as by a socket call (stackctl netstat
 * -a).  No locks held.
 */
void	 so_foreach(void (*fn)(struct socket *, void *), void *arg);

#endif /* KERN_SOCKETVAR_H */
