/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The api layer: libstack.so interposes the C library's socket calls and
 * serves those on the stack's own descriptors.  Shared definitions.
 *
 * Like machine/, this folder faces the host.  It may keep thread-local
 * variables and call the C library, but only through the table "real", because
 * the C library's names are its own exports.  It waits for the stack only with
 * msleep(), preceded by spin_until().
 */
#ifndef API_API_H
#define API_API_H

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "kern/lock.h"
#include "kern/socketvar.h"
#include "kern/systm.h"

/* Exported: the program calls this function instead of the C library's. */
#define	EXPORT	__attribute__((visibility("default")))

struct addrinfo;
struct statfs;
struct statvfs;
struct if_nameindex;
struct ifaddrs;
struct termios;

/*
 * For functions that a thread sanitizer's runtime calls while it starts,
 * before instrumented code can run.
 */
#define	EARLY	__attribute__((no_sanitize_thread))

/* The C library's own functions. */
#define	REAL_CALLS(X)							\
	X(int, socket, (int, int, int))					\
	X(int, socketpair, (int, int, int, int [2]))			\
	X(int, bind, (int, const struct sockaddr *, socklen_t))		\
	X(int, listen, (int, int))					\
	X(int, accept4, (int, struct sockaddr *, socklen_t *, int))	\
	X(int, connect, (int, const struct sockaddr *, socklen_t))	\
	X(int, shutdown, (int, int))					\
	X(int, getsockname, (int, struct sockaddr *, socklen_t *))	\
	X(int, getpeername, (int, struct sockaddr *, socklen_t *))	\
	X(int, getsockopt, (int, int, int, void *, socklen_t *))	\
	X(int, setsockopt, (int, int, int, const void *, socklen_t))	\
	X(ssize_t, read, (int, void *, size_t))				\
	X(ssize_t, readv, (int, const struct iovec *, int))		\
	X(ssize_t, recvfrom, (int, void *, size_t, int,			\
	    struct sockaddr *, socklen_t *))				\
	X(ssize_t, recvmsg, (int, struct msghdr *, int))		\
	X(int, recvmmsg, (int, struct mmsghdr *, unsigned, int,		\
	    struct timespec *))						\
	X(ssize_t, write, (int, const void *, size_t))			\
	X(ssize_t, writev, (int, const struct iovec *, int))		\
	X(ssize_t, sendto, (int, const void *, size_t, int,		\
	    const struct sockaddr *, socklen_t))			\
	X(ssize_t, sendmsg, (int, const struct msghdr *, int))		\
	X(int, sendmmsg, (int, struct mmsghdr *, unsigned, int))	\
	X(ssize_t, sendfile, (int, int, off_t *, size_t))		\
	X(ssize_t, splice, (int, off64_t *, int, off64_t *, size_t,	\
	    unsigned))							\
	X(ssize_t, tee, (int, int, size_t, unsigned))			\
	X(off_t, lseek, (int, off_t, int))				\
	X(ssize_t, pread, (int, void *, size_t, off_t))			\
	X(ssize_t, pwrite, (int, const void *, size_t, off_t))		\
	X(ssize_t, preadv, (int, const struct iovec *, int, off_t))	\
	X(ssize_t, pwritev, (int, const struct iovec *, int, off_t))	\
	X(ssize_t, preadv2, (int, const struct iovec *, int, off_t, int)) \
	X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int)) \
	X(int, fsync, (int))						\
	X(int, fdatasync, (int))					\
	X(int, ftruncate, (int, off_t))					\
	X(int, fallocate, (int, int, off_t, off_t))			\
	X(int, posix_fallocate, (int, off_t, off_t))			\
	X(int, posix_fadvise, (int, off_t, off_t, int))			\
	X(int, sync_file_range, (int, off64_t, off64_t, unsigned))	\
	X(ssize_t, readahead, (int, off64_t, size_t))			\
	X(ssize_t, copy_file_range, (int, off64_t *, int, off64_t *,	\
	    size_t, unsigned))						\
	X(int, syncfs, (int))						\
	X(int, flock, (int, int))					\
	X(int, lockf, (int, int, off_t))				\
	X(ssize_t, fgetxattr, (int, const char *, void *, size_t))	\
	X(int, fsetxattr, (int, const char *, const void *, size_t,	\
	    int))							\
	X(int, fremovexattr, (int, const char *))			\
	X(ssize_t, vmsplice, (int, const struct iovec *, size_t,	\
	    unsigned))							\
	X(ssize_t, getdents64, (int, void *, size_t))			\
	X(int, fchdir, (int))						\
	X(DIR *, fdopendir, (int))					\
	X(int, fchmod, (int, mode_t))					\
	X(int, fchown, (int, uid_t, gid_t))				\
	X(int, futimens, (int, const struct timespec [2]))		\
	X(int, futimes, (int, const struct timeval [2]))		\
	X(ssize_t, flistxattr, (int, char *, size_t))			\
	X(int, fstatfs, (int, struct statfs *))				\
	X(int, fstatvfs, (int, struct statvfs *))			\
	X(int, signalfd, (int, const sigset_t *, int))			\
	X(int, timerfd_settime, (int, int, const struct itimerspec *,	\
	    struct itimerspec *))					\
	X(int, timerfd_gettime, (int, struct itimerspec *))		\
	X(int, inotify_add_watch, (int, const char *, uint32_t))	\
	X(int, inotify_rm_watch, (int, int))				\
	X(int, isatty, (int))						\
	X(pid_t, tcgetpgrp, (int))					\
	X(int, tcsetpgrp, (int, pid_t))					\
	X(pid_t, tcgetsid, (int))					\
	X(int, tcgetattr, (int, struct termios *))			\
	X(int, tcsetattr, (int, int, const struct termios *))		\
	X(int, tcdrain, (int))						\
	X(int, tcflow, (int, int))					\
	X(int, tcflush, (int, int))					\
	X(int, tcsendbreak, (int, int))					\
	X(char *, ttyname, (int))					\
	X(int, ttyname_r, (int, char *, size_t))			\
	X(int, close, (int))						\
	X(int, close_range, (unsigned, unsigned, int))			\
	X(int, dup, (int))						\
	X(int, dup2, (int, int))					\
	X(int, dup3, (int, int, int))					\
	X(int, fcntl, (int, int, ...))					\
	X(int, ioctl, (int, unsigned long, ...))			\
	X(int, fstat, (int, struct stat *))				\
	X(int, fstatat, (int, const char *, struct stat *, int))	\
	X(int, statx, (int, const char *, int, unsigned, struct statx *)) \
	X(FILE *, fdopen, (int, const char *))				\
	X(int, fileno, (FILE *))					\
	X(int, vdprintf, (int, const char *, va_list))			\
	X(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, \
	    const sigset_t *))						\
	X(int, pselect, (int, fd_set *, fd_set *, fd_set *,		\
	    const struct timespec *, const sigset_t *))			\
	X(int, select, (int, fd_set *, fd_set *, fd_set *,		\
	    struct timeval *))						\
	X(int, epoll_create1, (int))					\
	X(int, epoll_ctl, (int, int, int, struct epoll_event *))	\
	X(int, epoll_pwait, (int, struct epoll_event *, int, int,	\
	    const sigset_t *))						\
	X(int, epoll_pwait2, (int, struct epoll_event *, int,		\
	    const struct timespec *, const sigset_t *))			\
	X(int, getaddrinfo, (const char *, const char *,		\
	    const struct addrinfo *, struct addrinfo **))		\
	X(int, getnameinfo, (const struct sockaddr *, socklen_t,	\
	    char *, socklen_t, char *, socklen_t, int))			\
	X(int, getifaddrs, (struct ifaddrs **))				\
	X(struct if_nameindex *, if_nameindex, (void))			\
	X(unsigned, if_nametoindex, (const char *))			\
	X(char *, if_indextoname, (unsigned, char [16]))			\
	X(int, sigtimedwait, (const sigset_t *, siginfo_t *,		\
	    const struct timespec *))					\
	X(int, sigaction, (int, const struct sigaction *,		\
	    struct sigaction *))					\
	X(pid_t, fork, (void))						\
	X(pid_t, _Fork, (void))						\
	X(int, __register_atfork, (void (*)(void), void (*)(void),	\
	    void (*)(void), void *))					\
	X(int, pthread_create, (pthread_t *, const pthread_attr_t *,	\
	    void *(*)(void *), void *))					\
	X(int, thrd_create, (pthread_t *, int (*)(void *), void *))		\
	X(int, execve, (const char *, char *const [], char *const []))	\
	X(int, execvpe, (const char *, char *const [], char *const []))	\
	X(int, fexecve, (int, char *const [], char *const []))		\
	X(int, execveat, (int, const char *, char *const [],		\
	    char *const [], int))					\
	X(int, posix_spawn, (pid_t *, const char *,			\
	    const posix_spawn_file_actions_t *,				\
	    const posix_spawnattr_t *, char *const [], char *const []))	\
	X(int, posix_spawnp, (pid_t *, const char *,			\
	    const posix_spawn_file_actions_t *,				\
	    const posix_spawnattr_t *, char *const [], char *const []))	\
	X(int, system, (const char *))					\
	X(FILE *, popen, (const char *, const char *))			\
	X(int, pclose, (FILE *))					\
	X(long, syscall, (long, ...))

#define	X(ret, name, args)	ret (*name) args;
struct real_calls {
	REAL_CALLS(X)
};
#undef X

extern struct real_calls real_calls;	/* [I] after real_resolve() */
void	 real_resolve(void);
#define	real	(*real_table())

/* The program may call the stack before its constructor has run. */
EARLY static inline struct real_calls *
real_table(void)
{
	if (__predict_false(real_calls.socket == NULL))
		real_resolve();
	return (&real_calls);
}

/*
 * Open files.  A file is what descriptors refer to: several after dup().  Its
 * memory is reused but never freed, so that fget() needs no lock.
 *
 * Locks used to protect struct file members:
 *	[I] immutable while f_refs > 0
 *	[a] atomic
 *	[f] file_lock
 *	[e] epoll_filelock
 *	[t] the descriptor table is locked for a change
 */
enum file_type {
	FT_SOCKET,	/* of the stack */
	FT_EPOLL,	/* a kernel epoll, with a set of the stack's sockets */
	FT_KERNEL,	/* a kernel descriptor in a message, see passed.c */
	FT_RESERVED	/* no file yet: a call will install one */
};

struct epset;
struct epitem;
extern struct mtx file_lock;
extern struct lock_role epoll_filelock;	/* filelock_enter() */

struct file {
	atomic_u32	 f_refs;	/* [a] holds and calls; 0: free */
	atomic_u32	 f_fds;		/* [a] holds: descriptors, messages */
	enum file_type	 f_type;	/* [I] */
	/* [I] in a client, see remote.h; else [t] for a client to come */
	uint32_t	 f_handle;
	struct socket	*f_so;		/* [I] FT_SOCKET; NULL in a client */
	struct epset	*f_ep;		/* [I] FT_EPOLL; NULL in a client */
	int		 f_kernel;	/* [I] FT_KERNEL: hidden, or -1 */
	atomic_u32	 f_nonblock;	/* [a] O_NONBLOCK */
	atomic_u32	 f_async;	/* [a] O_ASYNC */
	atomic_u32	 f_timeo;	/* [a] FTIMEO_*: no restart of calls */
	/* [e] entries in epoll sets */
	LIST_HEAD(, epitem) f_items GUARDED_BY(epoll_filelock);
	union {
		struct file *f_free GUARDED_BY(file_lock); /* [f] free */
		uint64_t f_inode;	/* [I] in a client: file_inode() */
	};
/* each call counts f_refs: no cache line is shared */
} __attribute__((aligned(64)));

#define	FTIMEO_RCV	0x1
#define	FTIMEO_SND	0x2

#define	API_MAXFD	(1 << 20)	/* max descriptor of the stack + 1 */

extern atomic_uptr fdtable[API_MAXFD];

/* Cheap test: false if a descriptor cannot be the stack's. */
static inline bool
fd_ours(int fd)
{
	return (__predict_true((unsigned)fd < API_MAXFD) &&
	    atomic_load_uptr(&fdtable[fd]) != 0);
}

/* Locking of the descriptor table: a strategy, selected at boot by fd.lock. */
struct fd_lockops {
	struct file	*(*get)(int fd);	/* referenced, or NULL */
	/* One thread at a time may change slots and their numbers. */
	void		(*change)(void);
	void		(*changed)(void);
};
extern const struct fd_lockops *fd_lockops;	/* [I] after boot */
void	 fd_lock_init(void);		/* registers fd.lock */
void	 fd_lock_start(void);		/* after loader.conf is read */
void	 fd_lock_forked(void);		/* in the child: nothing waits for it */

/*
 * The discipline of references and holds is described in file.c.  fget() and
 * fget_type() return a reference for frele(); NULL for a number that is not
 * the stack's or is reserved.
 */
struct file *fget(int fd);
/* Like fget(); NULL for other types. */
struct file *fget_type(int fd, enum file_type);
void	 frele(struct file *);
/* file_new() returns a hold; file_hold() adds one: false if it is closed. */
struct file *file_new(enum file_type);
bool	 file_hold(struct file *);
void	 file_close(struct file *);	/* drops a hold; may block */
/* Identifies the file in all processes that have it. */
uint64_t file_inode(const struct file *);
/* The file's part of calls on sockets that the stack of this process has. */
int	 file_socket(int domain, int type, int protocol, struct file **);
int	 file_socketpair(int domain, int type, int protocol, struct file *[2]);
int	 file_accept(struct file *, int msgflags, struct sockaddr *,
	    socklen_t *, int flags, struct file **);
int	 file_setopt(struct file *, int level, int name, const void *,
	    socklen_t);
/*
 * A request of fcntl(2); owner.c: its arguments and value.  In a client the
 * server's.
 */
#define	FCNTL_ARGS	3
int	 file_fcntl(struct file *, int cmd, const int32_t arg[FCNTL_ARGS],
	    int64_t *value);
/* F_SETFL of the flags in mask; fd is for O_ASYNC. */
void	 file_setflags(int fd, struct file *, int mask, int flags);
int	 owner_fcntl(struct file *, int cmd, long arg);	/* as fcntl(2) */
/* Requests of ioctl(2) for a number of the socket; ENOTTY: another one. */
int	 file_number(struct file *, unsigned long cmd, int *value);
/*
 * fd_reserve() returns a number for fd_install() or fd_unreserve(), or -1 and
 * errno.  fd_adopt() installs a file at a number that the kernel has returned.
 * They consume the caller's hold.  cloexec is the value for F_GETFD; sockets
 * survive exec only as inherit.c arranges it.
 */
int	 fd_reserve(void);
void	 fd_unreserve(int fd);
void	 fd_install(int fd, struct file *, bool cloexec);
void	 fd_adopt(int fd, struct file *, bool cloexec);
/* Likewise for a descriptor of the kernel, which it closes. */
void	 fd_convert(int fd, struct file *, bool cloexec);
bool	 fd_cloexec(int fd);
void	 fd_set_cloexec(int fd, bool);
/*
 * close(), dup() and dup3() of a number and its slot; -1 and errno if they
 * fail.  fd_close() and fd_replace() store the file that was there, whose hold
 * the caller drops by file_close().  fd_duplicate() and fd_replace() consume a
 * hold of f if they succeed; f is NULL if fd is the kernel's.
 */
int	 fd_close(int fd, struct file **);
int	 fd_duplicate(int fd, struct file *f, int low, bool cloexec);
int	 fd_replace(int fd, struct file *f, int newfd, int flags,
	    struct file **victim);
int	 fd_close_kernel(unsigned first, unsigned last); /* close_range() */
/* Empties a slot, but leaves the number; NULL if it had no file. */
struct file *fd_take(int fd);
__cold void	 api_explain(void);		/* on standard error, once */
unsigned fd_limit(void); /* upper bound of the stack's descriptors */
/* The stack's own descriptors, which the program may not close. */
void	 fd_hide(int fd);
void	 fd_unhide(int fd);
bool	 fd_hidden(int fd);
bool	 fd_known(int fd);		/* the stack's, hidden or not */
/*
 * The number that the kernel gets in a call of the program which is not the
 * library's: one that no process has (EBADF, POLLNVAL) in place of a hidden one.
 */
#define	FD_NONE	INT_MAX
static inline int
fd_kernel(int fd)
{
	return (__predict_false(fd_hidden(fd)) ? FD_NONE : fd);
}
int	 fd_hidden_copy(int fd);	/* hidden copy with a high number */
int	 fd_hidden_event(void);		/* an eventfd; -1 and errno */
void	 fd_hidden_close(int fd);	/* -1: none */
void	 fd_foreach(void (*fn)(int fd, struct file *));
typedef bool file_test(int fd, const struct file *);
/* Table locked: a placeholder again at a number that another file has. */
void	 fd_hold_place(int fd);
/* In a new child: closes the stack's own descriptors but one. */
void	 fd_close_hidden(int kept);
/* In a new child, table locked: empties a reserved slot, closes its number. */
void	 fd_drop_reserved(int fd);
void	 file_init(void);		/* at boot */

/* ioctl(2) for interfaces, netdevice(7); returns an errno value. */
int	 interface_ioctl(unsigned long cmd, void *arg);
bool	 interface_global6(void);	/* an IPv6 address beyond its link */

/* The stream of descriptor 0, 1 or 2 after that descriptor was replaced. */
void	 stdio_follow(int fd);

/* Boot state. */
enum api_state {
	API_PASSIVE,	/* no $STACK_CONF: all calls go to the kernel */
	API_UP,
	API_CLIENT	/* child process: calls go to the stack's (remote.h) */
};
enum api_state api_state(void);
/*
 * Like stack_boot_config(); from then on the stack serves the program's calls.
 */
int	 api_boot(int (*configure)(const char *), const char *arg);
/*
 * Sockets that a program gets from the process that executes it (inherit.c):
 * those without FD_CLOEXEC, or all, of which file actions select some.
 * inherit_prepare() stores a variable of the environment, and inherit_undo()
 * follows unless it returned an errno value.  The table is locked in between.
 */
#define	INHERIT_LEN	96	/* max characters of the variable */
int	 inherit_prepare(bool all, char variable[INHERIT_LEN]);
void	 inherit_undo(void);
void	 inherit_boot(const char *value);	/* in the program */
bool	 inherit_any(void);	/* whether a socket would survive exec() */
/* Calls fn for each open descriptor of the process. */
void	 each_descriptor(void (*fn)(int fd, void *), void *arg);
/* Variables of the environment that are the library's (environ.c). */
const char *environ_find(char *const env[], const char *name);
void	 environ_clear(void);	/* at boot */
/* An environment with the library and a variable for its boot. */
char	**environ_with(char *const env[], const char *variable, bool strict);
void	 environ_free(char **);
void	 exec_init(void);	/* before the environment is cleared */
/*
 * What a program that this process executes needs (exec.c).  EXEC: in the place
 * of this process, which does not outlive it; SPAWN: in a child; MOVE: likewise,
 * with file actions.  Async-signal-safe, as exec() must be.
 */
enum exec_kind { EXEC, SPAWN, MOVE };
struct exec_plan {
	char *const	*env;
	char		**copy;		/* environ_with(), or NULL */
	bool		 passes;	/* inherit_undo() must follow */
	char		 inherited[INHERIT_LEN];
};
/* Returns an errno value; exec_end() follows in any case. */
int	 exec_plan(struct exec_plan *, const char *program, char *const env[],
	    enum exec_kind);
void	 exec_end(struct exec_plan *);
void	 api_let_go(void);	/* closes what the program has open */
void	 api_drain(void);	/* serves the clients, and ends the stack */
/*
 * In the process with the stack: executes a program as its child, and ends when
 * it ends (outlive.c).  Returns an errno value if it cannot be executed.
 */
int	 outlive_spawn(const char *program, char *const argv[],
	    char *const env[], bool search);
extern pid_t api_owner;		/* the process that has the stack */
/* False in a vfork()ed child, which shares memory but not descriptors. */
bool	 api_own_process(void);
void	 api_become_client(void);	/* in a child with its own memory */
/*
 * Before and after a call that makes a child with its own memory (fork.c).
 */
void	 fork_prepare(void);
void	 fork_parent(void);
void	 fork_child(void);
/*
 * Between threads_boot(true) and (false) the library makes threads of the
 * stack; after threads_alone() the process has one thread (atfork.c).
 */
void	 threads_boot(bool begins);
void	 threads_alone(void);
void	 file_forked(void);		/* in the child: no lock is held */
void	 signals_forked(void);		/* in the child: none is pending */
void	 signals_default(void);		/* no handler runs any more */
void	 wait_forked(void);		/* in the child: no thread has an eventfd */
extern atomic_u32 api_inet6_kernel;
extern atomic_u32 api_unix_sockets;	/* UNIX_KERNEL, UNIX_STACK */
enum { UNIX_KERNEL, UNIX_STACK };
extern const struct fileops api_fileops;

/*
 * Enter and leave the stack.  Signals that arrive in between are deferred and
 * delivered by api_leave(), as a kernel does at the return to user mode.
 * api_leave() returns true if the call ended with EINTR only for signals whose
 * handlers have SA_RESTART.
 */
void	 api_enter(void);
bool	 api_leave(int error);
bool	 api_signalled(void); /* a signal is pending; between the two */
bool	 api_inside(void);	/* the thread is between the two */
bool	 signals_handling(void); /* the caller is a handler of the program */

/*
 * A thread that waits for sockets, and optionally kernel descriptors.
 *
 *	[I] immutable while in use
 *	[w] wt_lock
 */
struct waiter {
	struct mtx	 wt_lock;
	bool		 wt_woken GUARDED_BY(wt_lock);	/* [w] */
	int		 wt_eventfd;	/* [I] -1: sleeps in the stack */
};

int	 waiter_init(struct waiter *, bool kernel);	/* errno value */
void	 waiter_wake(struct waiter *);
/* Sleeps in the stack.  Returns 0, EINTR or EWOULDBLOCK. */
int	 waiter_sleep(struct waiter *, nsec_t deadline);
/* Clears a wakeup before its events are collected. */
void	 waiter_reset(struct waiter *);
/* Sleeps in the kernel; like ppoll(), but no signal is missed. */
int	 kernel_poll(struct pollfd *, nfds_t, nsec_t deadline,
	    const sigset_t *mask);

/*
 * Convert relative timeouts to deadlines; a negative or NULL timeout waits
 * without limit.
 */
nsec_t	 deadline_ms(int ms);
int	 deadline_ts(const struct timespec *, nsec_t *);	/* EINVAL */
nsec_t	 time_left(nsec_t deadline);

/* epoll */
struct epset *epset_new(int epfd);
void	 epset_free(struct epset *);
void	 epoll_forget(struct file *);	/* closed: leave all sets */
void	 epoll_expose(struct epset *);	/* the kernel polls the set itself */
void	 epoll_refresh(void);	/* before the kernel polls a set in a set */

/*
 * An address that no object of a program has, such as NULL or -1.  A kernel
 * finds it when it copies data, and returns EFAULT.
 */
static inline bool
address_bad(const void *p)
{
	return (__predict_false((uintptr_t)p < 4096 ||
	    (uintptr_t)p > INTPTR_MAX));
}

/* Sets errno and returns -1, or returns value. */
static inline ssize_t
api_return(int error, ssize_t value)
{
	if (error == 0)
		return (value);
	errno = error;
	return (-1);
}

#endif /* API_API_H */
