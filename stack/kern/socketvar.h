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

#include "kern/lock.h"
#include "kern/mbuf.h"

struct socket;

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
	uint32_t	 sb_cc;			/* [s] bytes */
	uint32_t	 sb_hiwat;		/* [s] most bytes */
	uint32_t	 sb_lowat;		/* [s] */
	nsec_t		 sb_timeo;		/* [s] SO_RCVTIMEO, SO_SNDTIMEO */
	bool		 sb_busy;		/* [s] sblock: one reader/writer */
	unsigned	 sb_waiters;		/* [s] threads asleep */
};

struct protosw;

/*
 * Locks used to protect struct socket members:
 *	[I] immutable after creation
 *	[s] so_lock
 *	[a] atomic
 */
struct socket {
	struct mtx	 so_lock;
	atomic_u32	 so_refs;		/* [a] */
	const struct protosw *so_proto;		/* [I] */
	int		 so_type;		/* [I] */
	void		*so_pcb;		/* [s] NULL when detached */
	unsigned	 so_state;		/* [s] SS_* */
	unsigned	 so_options;		/* [s] SOO_* */
	int		 so_error;		/* [s] */
	nsec_t		 so_linger;		/* [s] NSEC_FOREVER: off */
	struct sockbuf	 so_rcv, so_snd;	/* [s] */
	LIST_HEAD(, sowatch) so_watch;		/* [s] */
	/* listener */
	struct socket	*so_head;		/* [s] of child: its listener */
	TAILQ_HEAD(, socket) so_comp;		/* [s] of listener: complete */
	TAILQ_ENTRY(socket) so_link;		/* listener's lock */
	unsigned	 so_qlen, so_qlimit;	/* [s] */
};

#define	SS_ISCONNECTED	0x001
#define	SS_ISCONNECTING	0x002
#define	SS_ISDISCONNECTING 0x004
#define	SS_CANTRCVMORE	0x008
#define	SS_CANTSENDMORE	0x010
#define	SS_NOFDREF	0x020
#define	SS_LISTENING	0x040

#define	SOO_REUSEADDR	0x01
#define	SOO_KEEPALIVE	0x02
#define	SOO_BROADCAST	0x04
#define	SOO_REUSEPORT	0x08

/* Entered and left with the socket locked, where the name has no other. */
struct protosw {
	const char	*pr_name;
	int		 pr_domain, pr_type, pr_protocol;
	bool		 pr_stream;
	int		(*pr_attach)(struct socket *);
	/* Last descriptor gone; the pcb may live on (TCP). */
	void		(*pr_detach)(struct socket *);
	int		(*pr_bind)(struct socket *, const struct sockaddr_in *);
	int		(*pr_listen)(struct socket *);
	int		(*pr_connect)(struct socket *, const struct sockaddr_in *);
	int		(*pr_shutdown)(struct socket *);
	void		(*pr_rcvd)(struct socket *);	/* buffer was drained */
	/* Stream: m NULL = data was appended to so_snd, push it out. */
	int		(*pr_send)(struct socket *, struct mbuf *,
			    const struct sockaddr_in *to, int flags);
	int		(*pr_setopt)(struct socket *, int level, int name,
			    const void *, socklen_t);
	int		(*pr_getopt)(struct socket *, int level, int name,
			    void *, socklen_t *);
	int		(*pr_sockaddr)(struct socket *, struct sockaddr_in *);
	int		(*pr_peeraddr)(struct socket *, struct sockaddr_in *);
};
void	 protosw_register(const struct protosw *);

/* Socket calls. */
int	 socreate(int domain, int type, int protocol, struct socket **);
int	 sobind(struct socket *, const struct sockaddr *, socklen_t);
int	 solisten(struct socket *, int backlog);
int	 soaccept(struct socket *, int flags, struct sockaddr *, socklen_t *,
	    struct socket **);
int	 soconnect(struct socket *, const struct sockaddr *, socklen_t, int flags);
int	 sosend(struct socket *, const struct msghdr *, int flags, size_t *done);
int	 soreceive(struct socket *, struct msghdr *, int flags, size_t *done);
int	 soshutdown(struct socket *, int how);
int	 soclose(struct socket *);	/* drops the descriptor's reference */
int	 sosetopt(struct socket *, int level, int name, const void *, socklen_t);
int	 sogetopt(struct socket *, int level, int name, void *, socklen_t *);
int	 sogetsockname(struct socket *, struct sockaddr *, socklen_t *);
int	 sogetpeername(struct socket *, struct sockaddr *, socklen_t *);
int	 sopoll(struct socket *, int events);	/* POLLIN ...: ready now */
int	 soavail(struct socket *);		/* FIONREAD */
/* Registers, and returns what is ready of events, in one locked step. */
int	 sowatch_add(struct socket *, struct sowatch *, int events);
void	 sowatch_remove(struct socket *, struct sowatch *);

/* References: a descriptor, the pcb, an input in progress. */
void	 soref(struct socket *);
void	 sorele(struct socket *);

/* For protocols; socket locked. */
struct socket *sonewconn(struct socket *head);	/* child, locked, unlinked */
void	 soisconnecting(struct socket *);
void	 soisconnected(struct socket *);
void	 soisdisconnected(struct socket *);
void	 socantrcvmore(struct socket *);
void	 socantsendmore(struct socket *);
void	 sorwakeup(struct socket *);
void	 sowwakeup(struct socket *);
void	 soseterror(struct socket *, int error);
void	 sbappendstream(struct sockbuf *, struct mbuf *);
/* Datagram with its sender; false, m freed: no room. */
bool	 sbappendaddr(struct sockbuf *, const struct sockaddr_in *,
	    struct mbuf *);
void	 sbdrop(struct sockbuf *, uint32_t len);
uint32_t sbspace(const struct sockbuf *);

/* Every socket, for stackctl netstat -a: fn with the socket locked. */
void	 so_foreach(void (*fn)(struct socket *, void *), void *arg);

#endif /* KERN_SOCKETVAR_H */
