/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets: what the socket calls (api/) call and protocols implement.
 *
 * All so*() functions return 0 or an errno value.  Addresses, levels, option
 * names and MSG_ flags are the host's (Linux's), since unmodified programs
 * use them.  "nonblock" is MSG_DONTWAIT in flags: it belongs to the
 * descriptor, which the api layer keeps.
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

/* A socket address of any family, and how long it is. */
struct sockname {
	socklen_t	 sn_len;
	union {
		struct sockaddr		 sn_sa;
		struct sockaddr_in	 sn_sin;
		struct sockaddr_in6	 sn_sin6;
		struct sockaddr_un	 sn_un;
	};
};

/* Control messages (cmsg(3)) that came with a datagram, one behind another. */
#define	SOCONTROL_MAX	184
struct socontrol {
	size_t		 sc_len;
	char		 sc_buf[SOCONTROL_MAX];
};

/*
 * Somebody who wants to know when a socket's readiness may have changed
 * (poll, select, epoll).  fn is called with the socket's lock held, must not
 * block and must not call back into the socket.
 */
struct sowatch {
	LIST_ENTRY(sowatch) sw_link;		/* [s] socket lock */
	void		(*sw_fn)(struct sowatch *, int events);
};

/* A socket buffer.  [s] socket lock */
struct sockbuf {
	struct mbuf	*sb_head, *sb_tail;	/* [s] stream: one chain of bytes;
						   datagrams: m_nextpkt list */
	struct mbuf	*sb_sendm;		/* [s] where sbsendptr() found */
	uint32_t	 sb_sendoff;		/* [s] ... and its offset */
	uint32_t	 sb_cc;			/* [s] bytes; a datagram counts
						   SB_DGRAM_OVERHEAD more */
	uint32_t	 sb_hiwat;		/* [s] most bytes */
	uint32_t	 sb_lowat;		/* [s] least to wake up for */
	nsec_t		 sb_timeo;		/* [s] SO_RCVTIMEO, SO_SNDTIMEO,
						   NSEC_FOREVER: none */
	bool		 sb_fixed;		/* [s] size set by the program */
	bool		 sb_busy;		/* [s] sblock: one reader/writer */
	unsigned	 sb_waiters;		/* [s] threads asleep for data
						   or space */
	unsigned	 sb_lockwaiters;	/* [s] ... for sb_busy */
};

/* So that empty datagrams cannot pile up without end. */
#define	SB_DGRAM_OVERHEAD	256

/* Where a socket that nobody has accepted yet is queued. */
enum so_queue { SQ_NONE, SQ_INCOMPLETE, SQ_COMPLETE };
TAILQ_HEAD(socketq, socket);

/* Out-of-band data: none, announced, to be fetched, fetched or skipped. */
enum so_oob { OOB_NONE, OOB_AWAITED, OOB_HERE, OOB_READ };

struct protosw;

/*
 * Locks used to protect struct socket members:
 *	[I] immutable after creation
 *	[s] so_lock
 *	[q] so_qlock of the listener (so_head of a child); taken after the
 *	    so_lock of either, so that a child can leave the queue without
 *	    its listener's lock
 *	[l] the lock of the list of all sockets
 *	[a] atomic
 *
 * References: one for the descriptor (or the accept queue that stands in
 * for it), one for the pcb, one for each pending callout, and one for
 * everybody who looked the socket up and works on it.
 */
struct socket {
	struct mtx	 so_lock;
	atomic_u32	 so_refs;		/* [a] */
	const struct protosw *so_proto;		/* [I] */
	int		 so_type;		/* [I] */
	int		 so_protocol;		/* [I] */
	void		*so_pcb;		/* [s] NULL when detached */
	unsigned	 so_state;		/* [s] SS_* */
	unsigned	 so_options;		/* [s] SOO_* */
	int		 so_error;		/* [s] */
	nsec_t		 so_date;		/* [s] the newest getuptime() that
						   was used while it was locked */
	nsec_t		 so_linger;		/* [s] NSEC_FOREVER: off */
	/* out-of-band data, see uipc_oob.c */
	enum so_oob	 so_oob;		/* [s] */
	uint32_t	 so_oobmark;		/* [s] bytes of so_rcv before it */
	char		 so_oobbyte;		/* [s] when it is OOB_HERE */
	pid_t		 so_owner;		/* [s] F_SETOWN: gets SIGURG */
	struct sockbuf	 so_rcv, so_snd;	/* [s] */
	struct sockbuf	 so_errors;		/* [s] of datagrams sent, for
						   MSG_ERRQUEUE */
	LIST_HEAD(, sowatch) so_watch;		/* [s] */
	LIST_ENTRY(socket) so_all;		/* [l] */
	/* of a child, until it is accepted */
	struct socket	*so_head;		/* [s] its listener, referenced */
	enum so_queue	 so_onqueue;		/* [q] */
	TAILQ_ENTRY(socket) so_link;		/* [q] */
	/* of a listener */
	struct mtx	 so_qlock;
	struct socketq	 so_incomp;		/* [q] handshake unfinished */
	struct socketq	 so_comp;		/* [q] to be accepted */
	unsigned	 so_qlen;		/* [q] */
	unsigned	 so_qlimit;		/* [s] */
	/* of TCP, see tcp_defer.c */
	struct thread	*so_gatherer;		/* [s] */
	atomic_u32	 so_gathered;		/* [a] */
	/* with net.inet.tcp.input=backlog */
	struct thread	*so_caller;		/* [s] that works on it */
	unsigned	 so_callwaiters;	/* [s] others who want to */
	unsigned	 so_nleft;		/* [s] */
	STAILQ_HEAD(, so_left) so_leftq;	/* [s] segments for it */
} __attribute__((aligned(64)));	/* no line is shared with another one */

#define	SS_ISCONNECTED	0x001
#define	SS_ISCONNECTING	0x002
#define	SS_ISDISCONNECTING 0x004
#define	SS_CANTRCVMORE	0x008
#define	SS_CANTSENDMORE	0x010
#define	SS_NOFDREF	0x020
#define	SS_LISTENING	0x040
#define	SS_WAKEHEAD	0x080	/* just queued: tell the listener */

#define	SOO_REUSEADDR	0x01
#define	SOO_KEEPALIVE	0x02
#define	SOO_BROADCAST	0x04
#define	SOO_REUSEPORT	0x08
#define	SOO_PASSCRED	0x10
#define	SOO_TIMESTAMP	0x20
#define	SOO_TIMESTAMPNS	0x40
#define	SOO_OOBINLINE	0x80
#define	SOO_INQ		0x100

/* Entered and left with the socket locked, where the name has no other. */
struct protosw {
	const char	*pr_name;
	int		 pr_domain, pr_type, pr_protocol;
	socklen_t	 pr_namelen;	/* of the name of a nameless socket */
	bool		 pr_anyproto;	/* of any number but 0: raw sockets */
	bool		 pr_sendanyway;	/* errors are told to readers alone:
					   raw and ping sockets */
	bool		 pr_stream;	/* connections, not single datagrams */
	bool		 pr_local;	/* sent is delivered: no lingering */
	int		(*pr_attach)(struct socket *);
	/*
	 * Last descriptor gone; the pcb may live on (TCP) and then frees
	 * itself when the protocol is done.
	 */
	void		(*pr_detach)(struct socket *);
	/* The same, dropping the connection with a reset. */
	void		(*pr_abort)(struct socket *);
	/* Names are checked for family and length by the protocol. */
	int		(*pr_bind)(struct socket *, const struct sockname *);
	int		(*pr_listen)(struct socket *);
	/* NULL address: dissolve the association (datagrams). */
	int		(*pr_connect)(struct socket *, const struct sockname *,
			    int flags);
	int		(*pr_shutdown)(struct socket *);
	void		(*pr_rcvd)(struct socket *);	/* buffer was drained */
	/*
	 * Bytes that may be appended to so_snd, whatever its space, since
	 * more must not wait unsent.  NULL: space alone counts.
	 */
	uint32_t	(*pr_sendroom)(const struct socket *);
	/*
	 * Stream: m NULL = data was appended to so_snd, push it out.  msg is
	 * for the control messages of a datagram.
	 */
	int		(*pr_send)(struct socket *, struct mbuf *,
			    const struct sockname *to, const struct msghdr *msg,
			    int flags);
	int		(*pr_setopt)(struct socket *, int level, int name,
			    const void *, socklen_t);
	int		(*pr_getopt)(struct socket *, int level, int name,
			    void *, socklen_t *);
	int		(*pr_sockaddr)(struct socket *, struct sockname *);
	int		(*pr_peeraddr)(struct socket *, struct sockname *);
	/*
	 * Of protocols that keep messages in so_rcv themselves (the UNIX
	 * domain), NULL for others.  The first two are entered and left with
	 * the socket unlocked.
	 */
	int		(*pr_sosend)(struct socket *, const struct msghdr *,
			    int flags, size_t len, size_t *done);
	int		(*pr_soreceive)(struct socket *, struct msghdr *,
			    int flags, size_t len, size_t *done);
	uint32_t	(*pr_avail)(struct socket *);	/* FIONREAD */
	void		(*pr_shutrd)(struct socket *);	/* SHUT_RD */
	/* A child of head has been accepted; head locked. */
	void		(*pr_accepted)(struct socket *head, struct socket *);
	int		(*pr_connect2)(struct socket *, struct socket *);
};
void	 protosw_register(const struct protosw *);

/* Socket calls. */
int	 socreate(int domain, int type, int protocol, struct socket **);
/* Two connected sockets; EOPNOTSUPP. */
int	 sosocketpair(int domain, int type, int protocol, struct socket *[2]);
int	 sobind(struct socket *, const struct sockaddr *, socklen_t);
int	 solisten(struct socket *, int backlog);
int	 soaccept(struct socket *, int flags, struct sockaddr *, socklen_t *,
	    struct socket **);
int	 soconnect(struct socket *, const struct sockaddr *, socklen_t, int flags);
int	 sosend(struct socket *, const struct msghdr *, int flags, size_t *done);
int	 soreceive(struct socket *, struct msghdr *, int flags, size_t *done);
int	 soshutdown(struct socket *, int how);
/*
 * The descriptor is closed: threads blocked in the socket return EBADF.
 * Drops the descriptor's reference.
 */
int	 soclose(struct socket *);
int	 sosetopt(struct socket *, int level, int name, const void *, socklen_t);
int	 sogetopt(struct socket *, int level, int name, void *, socklen_t *);
int	 sogetsockname(struct socket *, struct sockaddr *, socklen_t *);
int	 sogetpeername(struct socket *, struct sockaddr *, socklen_t *);
int	 sopoll(struct socket *, int events);	/* POLLIN ...: ready now */
int	 soavail(struct socket *);		/* FIONREAD */
int	 soatmark(struct socket *);		/* SIOCATMARK: 0 or 1 */
void	 sosetowner(struct socket *, pid_t);	/* F_SETOWN */
pid_t	 sogetowner(struct socket *);
int	 sounsent(struct socket *);		/* SIOCOUTQ */
/* Registers, and returns what is ready of events, in one locked step. */
int	 sowatch_add(struct socket *, struct sowatch *, int events);
void	 sowatch_remove(struct socket *, struct sowatch *);

/* References: a descriptor, the pcb, an input in progress. */
void	 soref(struct socket *);
void	 sorele(struct socket *);

/*
 * The lock of a socket.  A socket call comes in by so_enter() and goes by
 * so_leave(), with Giant and the net lock around; in between it lets the
 * socket go for a while by so_pause() and so_resume(), or sleeps until a
 * wakeup of chan (as msleep() with PCATCH; also wakes up for nothing).
 *
 * Input and timers, which have Giant and the net lock already, use solock()
 * and sounlock().
 */
void	 so_enter(struct socket *so) ACQUIRES(so->so_lock);
void	 so_leave(struct socket *so) RELEASES(so->so_lock);
void	 so_resume(struct socket *so) ACQUIRES(so->so_lock);
void	 so_pause(struct socket *so) RELEASES(so->so_lock);
int	 so_sleep(struct socket *so, const void *chan, const char *wmesg,
	    nsec_t timeout) REQUIRES(so->so_lock);
bool	 so_owned(struct socket *);

static inline void
so_assert_locked(struct socket *so) ASSERTS_LOCK(so->so_lock)
{
	KASSERT(so_owned(so), ("socket %p is not locked", (void *)so));
	(void)so;
}

/*
 * The same by a strategy that does not lock connections of TCP by their mutex
 * alone (netinet/tcp_lock.h): sl_enter, sl_leave and sl_sleep are for socket
 * calls, sl_lock and sl_unlock for input and timers.
 */
struct so_lockops {
	void		(*sl_enter)(struct socket *);
	void		(*sl_leave)(struct socket *);
	int		(*sl_sleep)(struct socket *, const void *chan,
			    const char *wmesg, nsec_t timeout);
	void		(*sl_lock)(struct socket *, const struct lock_site *);
	void		(*sl_unlock)(struct socket *);
	bool		(*sl_owned)(struct socket *);
	bool		 sl_waits;	/* sl_lock may wait for a call's end */
};
extern const struct so_lockops *so_lockops;	/* [I] NULL: the mutex */

static inline bool
so_lockwaits(void)
{
	return (so_lockops != NULL && so_lockops->sl_waits);
}

void	 solock_slow(struct socket *so, const struct lock_site *)
	    ACQUIRES(so->so_lock);
void	 sounlock_slow(struct socket *so) RELEASES(so->so_lock);

static inline void
solock_at(struct socket *so, const struct lock_site *site)
    ACQUIRES(so->so_lock) NO_LOCK_ANALYSIS
{
	if (__predict_true(so_lockops == NULL))
		mtx_lock_at(&so->so_lock, site);
	else
		solock_slow(so, site);
}
#define	solock(so)	solock_at((so), LOCK_SITE)
/* Behind its listener; else the lower address of two comes first. */
#define	solock_child(so) solock_at((so), LOCK_SITE_OF(true))

/*
 * Dates of a socket never go back.  Before it is let go, and when it has been
 * locked by a thread that goes on with the date it has: that is forgotten if
 * another thread has been here later.  Strategies keep no such date.
 */
static inline void
so_keepdate(struct socket *so)
{
	const nsec_t now = thread_known()->td_now;

	if (now > so->so_date)
		so->so_date = now;
}

static inline void
so_checkdate(struct socket *so)
{
	struct thread *td = thread_known();

	if (__predict_false(so_lockops != NULL) || td->td_now < so->so_date)
		td->td_now = 0;
}

static inline void
sounlock(struct socket *so) RELEASES(so->so_lock) NO_LOCK_ANALYSIS
{
	so_keepdate(so);
	if (__predict_true(so_lockops == NULL))
		mtx_unlock(&so->so_lock);
	else
		sounlock_slow(so);
}

/*
 * For protocols; socket locked, which they assert at run time: the checker
 * cannot see that a pcb's socket is the one that was locked.
 *
 * sonewconn() makes the child of a locked listener: locked, referenced by
 * the queue of unfinished handshakes and by the caller; NULL when the
 * accept queue is full.  soisconnected() of a child moves it to the accept
 * queue; sounlock_input() then wakes the listener, whose lock comes before
 * the child's.  sounqueue() takes a child whose handshake failed off its
 * listener's queue; true if it was there.
 */
struct socket *sonewconn(struct socket *head);
bool	 sounqueue(struct socket *);
bool	 soacceptfull(struct socket *head);	/* sonewconn() would fail */
void	 sounlock_input(struct socket *so) RELEASES(so->so_lock);
void	 soisconnecting(struct socket *);
void	 soisconnected(struct socket *);
void	 soisdisconnected(struct socket *);
void	 socantrcvmore(struct socket *);
void	 socantsendmore(struct socket *);
void	 sorwakeup(struct socket *);
void	 sowwakeup(struct socket *);
void	 soseterror(struct socket *, int error);
int	 soready(struct socket *);		/* POLLIN ... */

/*
 * Between the files of sockets.  sockname_get() takes a program's address:
 * EINVAL if it cannot be one.  sockname_put() stores as much as there is room
 * for, and the full length.  sockname_none() is the name of a socket that
 * has none.
 */
int	 sockname_get(struct sockname *, const struct sockaddr *, socklen_t);
void	 sockname_put(const struct sockname *, struct sockaddr *, socklen_t *);
struct sockname sockname_none(const struct socket *);
struct socket *sonewchild(const struct socket *head);
/*
 * Waiting for room in so_snd (how much of resid is in *n) and for data in
 * so_rcv (so many bytes as sowant() says); EWOULDBLOCK, EINTR, EBADF, EPIPE,
 * ENOTCONN or the socket's error.
 */
int	 sosendwait(struct socket *so, size_t resid, int flags,
	    nsec_t deadline, size_t *n) REQUIRES(so->so_lock);
int	 soreceivewait(struct socket *so, uint32_t want, bool partial,
	    int flags, nsec_t deadline) REQUIRES(so->so_lock);
uint32_t sowant(const struct sockbuf *, size_t resid, int flags);
/*
 * Control messages.  socontrol_add() appends to what a datagram brings,
 * which must have room.  socontrol_put() stores one in a program's buffer of
 * room bytes, *used of them taken, cut if need be (MSG_CTRUNC);
 * socontrol_next() walks over a program's: NULL at the end, *error EINVAL if
 * one does not lie inside.
 */
void	 socontrol_add(struct socontrol *, int level, int type, const void *,
	    size_t len);
void	 socontrol_put(struct msghdr *, size_t room, size_t *used, int level,
	    int type, const void *, size_t len);
/* TCP_INQ: what a read left in so_rcv, in a buffer of room bytes. */
COLD void	 socontrol_inq(struct socket *so, struct msghdr *, size_t room)
	    REQUIRES(so->so_lock);
const struct cmsghdr *socontrol_next(const struct msghdr *,
	    const struct cmsghdr *, int *error);
/* Copies between a message, from its byte skip on, and a chain; soscatter()
   returns how many bytes. */
struct mbuf *somakechain(const struct msghdr *, size_t skip, size_t len);
size_t	 soscatter(const struct msghdr *, size_t skip, const struct mbuf *);
void	 sodrainqueues(struct socket *head) REQUIRES(head->so_lock);

/*
 * Out-of-band data (uipc_oob.c), socket locked.  sooobmark(): the byte that
 * will stand behind off bytes of so_rcv is out-of-band.  sooobtake() is given
 * len bytes that are about to be appended to so_rcv, and returns those that
 * still are.  sooobbound() cuts n bytes to be read to those before the mark,
 * sooobpassed() is told how many were.  sooobnext(): the mark has been
 * reached.
 */
COLD void	 sooobmark(struct socket *, uint32_t off);
COLD struct mbuf *sooobtake(struct socket *, struct mbuf *, uint32_t len);
uint32_t sooobbound(const struct socket *, uint32_t n);
void	 sooobpassed(struct socket *, uint32_t n);
COLD bool	 sooobnext(const struct socket *);
/* recv(MSG_OOB), socket not locked. */
COLD int soreceiveoob(struct socket *, struct msghdr *, int flags,
	    size_t len, size_t *done);

/* Buffers; socket locked. */
void	 soreserve(struct socket *, uint32_t snd, uint32_t rcv);
void	 sbreserve_snd(struct sockbuf *, uint32_t);
void	 sbappendstream(struct sockbuf *, struct mbuf *);
/* Datagram with its sender and more; false, m freed: no room. */
bool	 sbappendaddr(struct sockbuf *, const struct sockname *,
	    const struct socontrol *, struct mbuf *);
/*
 * Appends a datagram to the last one, if that has segments (tso_segsz) and
 * this is the next of them, from the same sender and with the same control
 * messages.  False: it is not, or there is no room; m is as it was.
 */
bool	 sbmergeaddr(struct sockbuf *, const struct sockname *,
	    const struct socontrol *, struct mbuf *);
/* The first datagram, with what sbheader() takes off in front; or NULL. */
struct mbuf *sbdetachaddr(struct sockbuf *);
void	 sbheader(struct mbuf *, struct sockname *, struct socontrol *);
uint32_t sbdatalen(const struct mbuf *);	/* bytes behind the header */
void	 sbdrop(struct sockbuf *, uint32_t len);
struct mbuf *sbcut(struct sockbuf *, uint32_t len);	/* drop, but return */
/* The mbuf that holds byte off; *moff is where in it. */
struct mbuf *sbsendptr(struct sockbuf *, uint32_t off, uint32_t *moff);
void	 sbflush(struct socket *, struct sockbuf *);
uint32_t sbspace(const struct sockbuf *);
/* What a writer of resid bytes may append now; 0: he waits for more room. */
uint32_t sosendspace(const struct socket *, size_t resid);
/*
 * One reader (or writer) at a time.  EWOULDBLOCK with MSG_DONTWAIT, EINTR,
 * EBADF if the descriptor was closed meanwhile.
 */
int	 sblock(struct socket *so, struct sockbuf *, int flags)
	    REQUIRES(so->so_lock);
void	 sbunlock(struct sockbuf *);
/* Sleeps until a wakeup of the buffer, at most until deadline. */
int	 sbwait(struct socket *so, struct sockbuf *, const char *wmesg,
	    nsec_t deadline) REQUIRES(so->so_lock);
nsec_t	 sbdeadline(const struct sockbuf *);	/* from sb_timeo */

void	 socket_init(void);			/* at boot */
extern atomic_u32 sockets;			/* how many there are */

/*
 * Every socket, for stackctl netstat -a: fn with the socket entered as by a
 * socket call.  No locks held.
 */
void	 so_foreach(void (*fn)(struct socket *, void *), void *arg);

#endif /* KERN_SOCKETVAR_H */
