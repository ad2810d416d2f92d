/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine layer: what the hardware and the host operating system provide.
 *
 * Every operation that blocks, reads a clock, or uses an atomic or a device
 * queue goes through this interface and machine/atomic.h.  No other folder
 * calls pthreads, futexes, clocks, poll or read.  machine/posix runs on the
 * host; machine/sim runs the same code on virtual CPUs in virtual time.  For
 * the same reason _Thread_local is used only in machine/: data of a thread is
 * reached from struct thread (kern/thread.h).
 */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "machine/atomic.h"

typedef uint64_t nsec_t; /* nanoseconds; a point in time counts from boot */

#define	NSEC_FOREVER	UINT64_MAX
#define	NSEC_PER_USEC	1000ULL
#define	NSEC_PER_MSEC	1000000ULL
#define	NSEC_PER_SEC	1000000000ULL

#define	MACH_CPU_ANY	(-1)

struct thread;
struct mach_thread;
struct mach_devq;

/* Clocks.  mach_uptime() is monotonic and starts near zero at boot. */
nsec_t	 mach_uptime(void);
void	 mach_walltime(struct timespec *);
void	 mach_random(void *buf, size_t len);

/*
 * Allocates zeroed memory.  align is a power of two that divides size; 0 means
 * the alignment of malloc(3).  Returns NULL if there is no memory.
 */
void	*mach_alloc(size_t size, size_t align);
void	 mach_free(void *);
/*
 * For fork(): before it, then in the parent or in the child, in which no thread
 * is in the two functions above.
 */
void	 mach_alloc_fork(void);
void	 mach_alloc_fork_parent(void);
void	 mach_alloc_forked(void);

/* Writes to the console: standard error. */
void	 mach_console(const char *text, size_t len);
/* Reads a whole small file.  Returns its length, at most size, or -errno. */
ssize_t	 mach_readfile(const char *path, char *buf, size_t size);
/*
 * Appends to a file.  With create, the file is created or emptied with mode
 * 0600, and must not be a symbolic link.  Returns 0 or an errno value.
 */
int	 mach_appendfile(const char *path, const void *, size_t, bool create);

/*
 * A file that represents a socket: mach_node identifies it.  The file is
 * created and found by path with the host's permission checks.  Errno values:
 * those of mknod(2), stat(2) and access(2); ECONNREFUSED if the file is no
 * socket.
 */
struct mach_node {
	uint64_t	 mn_dev, mn_ino, mn_born;
};
int	 mach_node_make(const char *path, struct mach_node *);
int	 mach_node_find(const char *path, struct mach_node *);
/* The receiver of signals, as struct f_owner_ex of fcntl(2); id 0: nobody. */
enum mach_kind { MACH_THREAD, MACH_PROCESS, MACH_GROUP };
struct mach_target {
	enum mach_kind	 kind;
	pid_t		 id;
	pid_t		 process;	/* MACH_THREAD: of this process */
};
/*
 * Sends a signal whose information has SI_SIGIO, fd and band, unless it is for
 * a group.  Failures are ignored; without room for a real-time signal SIGIO is
 * sent.
 */
void	 mach_signal(const struct mach_target *, int sig, int fd, long band);
/* Process ID, user ID and group ID of this process. */
void	 mach_credentials(pid_t *, uid_t *, gid_t *);

/*
 * CPUs.  mach_cpus_set() names the host CPUs on which the stack's own threads
 * may run, for example "0-1,3"; errors are EINVAL and ENODEV.  The stack
 * numbers these CPUs 0 ..  mach_ncpus() - 1.
 */
int	 mach_cpus_set(const char *list);
/* Keeps one hardware thread of each core and removes the others. */
void	 mach_cpus_nosmt(void);
/*
 * Confines all threads, including the program's, to the first of these CPUs.
 * A stack built for one CPU (MACH_UP) does this at boot.  Returns 0 or an
 * errno value.
 */
int	 mach_cpus_confine(void);
bool	 mach_up(void);			/* confined to one CPU */
unsigned mach_ncpus(void);
unsigned mach_curcpu(void);
void	 mach_cpu_relax(void);		/* pause instruction for spin loops */
/*
 * Cache hints: fetch a line that will be read soon; write a line back to
 * memory.
 */
static inline void
mach_prefetch(const void *p)
{
	__builtin_prefetch(p);
}
/*
 * Like mach_prefetch(), for a line that will be written: it is fetched
 * exclusively.
 */
static inline void
mach_prefetch_write(const void *p)
{
#ifdef __x86_64__		/* GCC emits it only with -mprfchw */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}
void	 mach_cache_flush(const void *, size_t len);
void	 mach_yield(void); /* let another runnable thread go first */

/*
 * Threads.  cpu is a stack CPU number or MACH_CPU_ANY.  Functions return 0 or
 * an errno value.  curthread (kern/thread.h) is built on the two functions
 * below.
 */
enum mach_sched { MACH_SCHED_OTHER, MACH_SCHED_BATCH, MACH_SCHED_FIFO,
    MACH_SCHED_RR };
/*
 * Scheduling policy of threads created from now on: sched(7).  Returns an
 * errno value without permission.
 */
int	 mach_sched_set(enum mach_sched, int priority);
/*
 * With pinned, threads with MACH_CPU_ANY are bound to one CPU each, round
 * robin.
 */
void	 mach_placement_set(bool pinned);
int	 mach_thread_create(const char *name, int cpu, void (*fn)(void *),
	    void *arg, struct mach_thread **);
void	 mach_thread_join(struct mach_thread *);
extern _Thread_local struct thread *mach_self	/* used only in machine/ */
    __attribute__((tls_model("initial-exec")));
/* Offset from the shared statistics counters to this thread's copy. */
extern _Thread_local intptr_t mach_counters	/* kern/counter.h; 0: no copy */
    __attribute__((tls_model("initial-exec")));
static inline struct thread *
mach_thread_self(void)		/* NULL: not attached yet */
{
	return (mach_self);
}
void	 mach_thread_attach(struct thread *, void (*on_exit)(struct thread *));
/*
 * The host's ID of the calling thread, and the CPU time that a thread of this
 * process has used; 0 if it has ended.
 */
uint32_t mach_thread_id(void);
nsec_t	 mach_thread_cputime(uint32_t id);

#ifdef LOCK_TRACKING
/*
 * mach_thread_calls() returns the call stack of another thread, innermost call
 * first, at most max entries.  It returns 0 if the thread does not answer or
 * another request is running.  It interrupts a sleep only briefly.
 * mach_call_name() formats one entry.
 */
int	 mach_thread_calls(uint32_t id, void *calls[], int max);
void	 mach_call_name(void *call, char *buf, size_t len);
#endif

/*
 * Park and unpark on a word.  mach_park() sleeps while *word == expected,
 * until deadline (a time of mach_uptime(), or NSEC_FOREVER).  It returns 0
 * (woken, possibly spuriously, or the word differed), ETIMEDOUT or EINTR.
 */
int	 mach_park(atomic_u32 *word, uint32_t expected, nsec_t deadline);
void	 mach_unpark(atomic_u32 *word, int nthreads);

/*
 * Device queues.  Only mach_devq_wait() blocks.  It returns when there is
 * something to receive, at the deadline (ETIMEDOUT) or after mach_devq_wake()
 * (EINTR).  Frames begin with a struct virtio_net_hdr (10 bytes) on the queues
 * described so below.
 *
 * Queues that are read return a byte count or a negative errno (-EAGAIN:
 * empty).  Queues with a ring return the next frame in place.  Their errors
 * are -EAGAIN (no frame), -EMSGSIZE (too large for a slot, read it after the
 * release) and -EIO (damaged).  Every frame must be released before the next
 * is taken, except after -EAGAIN.  The release may prefetch the next headers.
 *
 * One call sends up to MACH_SEND_MAX frames.  It returns how many were sent,
 * or the negative errno of the first frame (-EAGAIN: full).
 */
#define	MACH_SEND_MAX	32

struct virtio_net_hdr;

struct mach_slot {		/* received frame in a ring */
	const char	*ms_data;
	uint32_t	 ms_len;
	const struct virtio_net_hdr *ms_vnet;	/* or NULL */
};

struct mach_frame {		/* frame to send */
	const struct iovec *mf_iov;
	unsigned	 mf_niov;
};

ssize_t	 mach_devq_readv(struct mach_devq *, const struct iovec *, int);
int	 mach_devq_peek(struct mach_devq *, struct mach_slot *);
void	 mach_devq_release(struct mach_devq *);
void	 mach_devq_prefetch(struct mach_devq *);
int	 mach_devq_send(struct mach_devq *, const struct mach_frame *,
	    unsigned n);
int	 mach_devq_wait(struct mach_devq *, nsec_t deadline);
void	 mach_devq_wake(struct mach_devq *);
void	 mach_devq_close(struct mach_devq *);

/*
 * Opens a queue of a TAP device.  It is read, and frames have virtio headers.
 * offloads are the TUN_F_* bits to offer.
 */
int	 mach_devq_open_tap(const char *ifname, bool multiqueue,
	    unsigned offloads, struct mach_devq **);
/*
 * Opens a packet socket on a network interface of the host, with virtio
 * headers and a ring.  Queues of one group (not 0) share received frames by
 * flow hash.
 */
int	 mach_devq_open_packet(const char *ifname, unsigned group,
	    struct mach_devq **);
/*
 * Opens AF_XDP sockets on the first n queues of a network interface of the
 * host.  They have a ring and no virtio headers.  Each allows one sending
 * thread at a time.  Returns an errno value and, in *step, what failed.
 */
/* 2048, minus the host's headroom, minus Ethernet */
#define	MACH_XDP_MTU	1778
int	 mach_devq_open_xdp(const char *ifname, unsigned n,
	    struct mach_devq *queues[], const char **step);
/* Numbers of frames in the fill ring, the receive ring and elsewhere. */
struct mach_xdp_frames {
	uint32_t	 fill, receive;
	uint32_t	 free, send;
};
void	 mach_devq_xdp_frames(struct mach_devq *, struct mach_xdp_frames *);

/*
 * Local stream server for the control socket.  mach_ctl_accept() blocks until
 * mach_ctl_wake() makes it return -ECANCELED.  Reads and writes return
 * -ETIMEDOUT at their deadline.
 */
struct mach_ctl;
int	 mach_ctl_listen(const char *path, struct mach_ctl **);
int	 mach_ctl_accept(struct mach_ctl *);	/* handle, or -errno */
ssize_t	 mach_ctl_read(int handle, void *, size_t, nsec_t deadline);
ssize_t	 mach_ctl_write(int handle, const void *, size_t, nsec_t deadline);
void	 mach_ctl_hangup(int handle);
void	 mach_ctl_wake(struct mach_ctl *);
void	 mach_ctl_close(struct mach_ctl *);

#endif /* MACHINE_MACHINE_H */
