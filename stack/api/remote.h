/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of a process without the stack to the process that has it.
 *
 * After fork() the stack stays in the parent.  The child is a client of it: a
 * call on one of its sockets becomes a request, which a thread of the parent
 * (the server) executes on the same file.  See remote.c for the client's side,
 * server.c and serve.c for the server's, and fork.c for the moment of fork().
 *
 * Connections between the two are pairs of AF_UNIX sockets of the kernel:
 *
 *	root	  one for each client, made before fork().  It exists as long as
 *		  the client: its end closes the client's files.  It carries
 *		  new channels, and the client's own forks.
 *	channel   one for each thread of a client, with a page of shared memory
 *		  for one request and its answer, and an eventfd.  A byte sent
 *		  means that the page has a request, one received that it has
 *		  the answer.
 *
 * No request waits in the server.  A call that has to wait is answered with
 * rc_again; the eventfd is readable as soon as it is worth repeating.  The
 * client thus waits in its kernel, where signals interrupt it and where it can
 * wait for other descriptors, too.  The parts together return what the call
 * returns in the server: a wait that ends early takes what has come, and the
 * result of a connection that a call begins is the call's.
 */
#ifndef API_REMOTE_H
#define API_REMOTE_H

#include <net/if.h>

#include "api/api.h"
#include "kern/file.h"
#include "net/if_var.h"

/* Requests. */
#define	REMOTE_REQUESTS(X)						\
	X(SOCKET, socket)						\
	X(SOCKETPAIR, socketpair)					\
	X(BIND, bind)							\
	X(LISTEN, listen)						\
	X(ACCEPT, accept)						\
	X(CONNECT, connect)						\
	X(CONNECTED, connected)						\
	X(SHUTDOWN, shutdown)						\
	X(SOCKNAME, sockname)						\
	X(PEERNAME, peername)						\
	X(GETOPT, getopt)						\
	X(SETOPT, setopt)						\
	X(SEND, send)							\
	X(RECEIVE, receive)						\
	X(CLOSE, close)							\
	X(FCNTL, fcntl)							\
	X(NUMBER, number)						\
	X(STAMP, stamp)							\
	X(POLL, poll)							\
	X(TICKET, ticket)						\
	X(EXCHANGE, exchange)						\
	X(INTERFACES, interfaces)					\
	X(EPOLL_CREATE, epoll_create)					\
	X(EPOLL_CTL, epoll_ctl)						\
	X(EPOLL_COLLECT, epoll_collect)					\
	X(EPOLL_REFRESH, epoll_refresh)

enum remote_request {
#define	X(id, name)	REMOTE_##id,
	REMOTE_REQUESTS(X)
#undef X
	REMOTE_COUNT
};

/* What the client does after an answer. */
enum remote_again {
	REMOTE_DONE,
	REMOTE_AGAIN,		/* waits, and repeats the request */
	REMOTE_CONNECTING	/* CONNECTED, for the result of a connection */
};

#define	REMOTE_DATA	((size_t)256 << 10)	/* max bytes of a request */
#define	REMOTE_CONTROL	4096		/* max bytes of control messages */
#define	REMOTE_NARGS	4

/* The shared page of a channel: a request, then its answer. */
struct remote_call {
	enum remote_request rc_request;
	uint32_t	 rc_handle;	/* of the file; 0: none */
	int32_t		 rc_arg[REMOTE_NARGS];
	/* lengths of the parts below; the answer has those of its own */
	uint32_t	 rc_namelen;
	uint32_t	 rc_controllen;
	uint32_t	 rc_len;
	int32_t		 rc_error;	/* answer: errno value */
	enum remote_again rc_again;	/* answer */
	int32_t		 rc_flags;	/* answer: msg_flags */
	int64_t		 rc_value;	/* answer: bytes, or a number */
	nsec_t		 rc_timeout;	/* answer: max time for AGAIN */
	/* answer: new files */
	uint32_t	 rc_new[2];	/* handles */
	uint64_t	 rc_inode[2];
	/* answer: of the sockets in its control messages, in their order */
	uint64_t	 rc_inodes[RIGHTS_MAX];
	struct sockaddr_storage rc_name;
	char		 rc_control[REMOTE_CONTROL]
			    __attribute__((aligned(16)));
	char		 rc_data[REMOTE_DATA] __attribute__((aligned(16)));
};

/* An element of a POLL request's data, and of its answer's. */
struct remote_poll {
	uint32_t	 rp_handle;
	int16_t		 rp_events;
	int16_t		 rp_revents;
};
/* The value of a REMOTE_SETOPT. */
enum remote_value { REMOTE_VALUE, REMOTE_FILTER, REMOTE_NO_VALUE };

#define	REMOTE_POLL_MAX	(REMOTE_DATA / sizeof(struct remote_poll))

/* A message on a root, with descriptors as SCM_RIGHTS. */
enum root_message {
	ROOT_CHANNEL,	/* socket, shared memory, eventfd */
	ROOT_FORK,	/* the root of a new client; followed by its handles */
	ROOT_KEEP	/* followed by the handles that are still needed */
};
struct root_header {
	enum root_message rh_message;
	uint32_t	 rh_handles;
};
#define	ROOT_FDS	3

/* An element of an INTERFACES answer: what programs ask about an interface. */
#define	ADDRS6_MAX	16	/* max addresses of IPv6 that are listed */
struct interface {
	char		 name[IFNAMSIZ];
	unsigned	 index;
	unsigned	 mtu;
	bool		 loopback;
	unsigned char	 lladdr[6];
	unsigned	 n4, n6;	/* addresses */
	struct in_addr	 addr4[IF_INET_MAX], mask4[IF_INET_MAX];
	struct in6_addr	 addr6[ADDRS6_MAX];
	unsigned	 plen6[ADDRS6_MAX];
};
#define	INTERFACES_MAX	(REMOTE_DATA / sizeof(struct interface))
/* In the process with the stack; returns the number of interfaces. */
unsigned interface_describe(struct interface *, unsigned room);

/*
 * Sends or receives a message with up to RIGHTS_MAX descriptors; as sendmsg(2).
 */
ssize_t	 rights_send(int fd, const struct iovec *, int n, const int *fds,
	    int nfds);
/* Missing descriptors are -1. */
ssize_t	 rights_receive(int fd, const struct iovec *, int n, int *fds,
	    int nfds);

/* The client. */
void	 remote_start(int root);	/* in a new client; -1: no server */
/* Table locked: a root for a new client, hidden; -1: no descriptors left. */
void	 remote_root_pair(int *ours, int *theirs);
int	 remote_root(void);
/* In a client before its fork() or exec(): false if there is no server. */
bool	 remote_fork(int root, const uint32_t *handles, unsigned n);
void	 remote_keep(const uint32_t *handles, unsigned n);
/*
 * Table locked: the root of a process to come, hidden, which gets the files
 * for which wanted() is true (newclient.c); -1: there is no server, or no
 * descriptor is left.
 */
int	 newclient_root(file_test *wanted);
/*
 * At boot of the process with the stack: the first fork() may be in a signal's
 * handler, where no thread can be made.
 */
void	 server_start(void);

/* Like the so*() functions of the same names; in a client. */
int	 remote_socket(int domain, int type, int protocol, struct file **);
int	 remote_socketpair(int domain, int type, int protocol,
	    struct file *[2]);
int	 remote_bind(struct file *, const struct sockaddr *, socklen_t);
int	 remote_listen(struct file *, int backlog);
int	 remote_accept(struct file *, struct sockaddr *, socklen_t *, int flags,
	    struct file **);
int	 remote_connect(struct file *, const struct sockaddr *, socklen_t);
int	 remote_shutdown(struct file *, int how);
int	 remote_sockname(struct file *, struct sockaddr *, socklen_t *);
int	 remote_peername(struct file *, struct sockaddr *, socklen_t *);
int	 remote_getopt(struct file *, int level, int name, void *,
	    socklen_t *);
int	 remote_setopt(struct file *, int level, int name, const void *,
	    socklen_t);
int	 remote_send(struct file *, const struct msghdr *, int flags,
	    size_t *done);
int	 remote_receive(struct file *, struct msghdr *, int flags,
	    size_t *done);
void	 remote_close(struct file *);
int	 remote_fcntl(struct file *, int cmd, const int32_t arg[FCNTL_ARGS],
	    int64_t *value);
/* A request of ioctl(2) that returns a number; ENOTTY: another one. */
int	 remote_number(struct file *, unsigned long cmd, int *value);
int	 remote_stamp(struct file *, struct timespec *); /* SIOCGSTAMPNS */
/* There is room for INTERFACES_MAX; 0: there is no server. */
unsigned remote_interfaces(struct interface *);
/*
 * Tests n sockets; stores the number of ready ones.  With arm, and if none is
 * ready, remote_eventfd() becomes readable when one may be.
 */
int	 remote_poll(struct remote_poll *, unsigned n, bool arm, int *ready);
int	 remote_eventfd(void);	/* of this thread; -1 if there is no server */
/* A ticket for a socket, whose other end is passed, and back; see ticket.c. */
int	 remote_ticket(struct file *, int root);
int	 remote_exchange(uint32_t number, struct file **);
/* epoll(7): sets that the server keeps for a kernel epoll of the client. */
int	 remote_epoll_create(int epfd, struct file **);
int	 remote_epoll_ctl(struct file *set, int op, struct file *, int fd,
	    const struct epoll_event *);
void	 remote_epoll_refresh(void);
int	 remote_epoll_collect(struct file *set, struct epoll_event *, int max);

#endif /* API_REMOTE_H */
