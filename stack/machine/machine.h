/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine: what hardware and host operating system give to the stack.
 *
 * Everything that blocks, reads a clock, touches an atomic or a device
 * queue goes through this interface and machine/atomic.h; no other folder
 * calls pthreads, futexes, clocks, poll or read.  machine/posix runs for
 * real, machine/sim runs the same code on virtual CPUs in virtual time.  For
 * the same reason there is no _Thread_local outside machine/: what a
 * thread owns hangs off struct thread (kern/thread.h).
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

typedef uint64_t nsec_t;	/* nanoseconds; as a date: since boot */

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
 * Memory, zeroed, at a multiple of align, a power of two that divides size; 0:
 * where any object may be.  NULL: there is none.
 */
void	*mach_alloc(size_t size, size_t align);
void	 mach_free(void *);

/* The console: standard error. */
void	 mach_console(const char *text, size_t len);
/* A whole small file; its length, at most size, or -errno. */
ssize_t	 mach_readfile(const char *path, char *buf, size_t size);
/* Appends; with create to a new or emptied file of this user's alone, that
   is not a symbolic link.  An errno value. */
int	 mach_appendfile(const char *path, const void *, size_t, bool create);

/*
 * A file that stands for a socket: what tells it from all others, made and
 * found by path as the host's permissions allow.  Errno values: those of
 * mknod(2); of stat(2) and access(2), ECONNREFUSED if it is no socket.
 */
struct mach_node {
	uint64_t	 mn_dev, mn_ino, mn_born;
};
int	 mach_node_make(const char *path, struct mach_node *);
int	 mach_node_find(const char *path, struct mach_node *);
/* kill(2) whose failure does not matter. */
void	 mach_kill(pid_t, int sig);
/* Who this process is. */
void	 mach_credentials(pid_t *, uid_t *, gid_t *);

/*
 * CPUs.  mach_cpus_set() names the host CPUs on which the stack's own
 * threads may run ("0-1,3"; error EINVAL or ENODEV); the stack numbers
 * them 0 .. mach_ncpus() - 1.
 */
int	 mach_cpus_set(const char *list);
/* Leaves out all but the first of the CPUs that are threads of one core. */
void	 mach_cpus_nosmt(void);
/*
 * All threads, the program's too, use the first of these CPUs from now on.  An
 * errno value.  A stack that is built for one CPU (MACH_UP) begins so.
 */
int	 mach_cpus_confine(void);
bool	 mach_up(void);			/* is it so? */
unsigned mach_ncpus(void);
unsigned mach_curcpu(void);
void	 mach_cpu_relax(void);		/* in a spin loop */
/* Hints: these bytes are wanted soon; they leave the caches for memory. */
static inline void
mach_prefetch(const void *p)
{
	__builtin_prefetch(p);
}
/* The same, for what will be written to: no other CPU keeps a copy. */
static inline void
mach_prefetch_write(const void *p)
{
#ifdef __x86_64__		/* the compiler asks for it by an option only */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}
void	 mach_cache_flush(const void *, size_t len);
void	 mach_yield(void);		/* another thread goes first, if any */

/*
 * Threads.  cpu is a stack CPU number or MACH_CPU_ANY.  Returns 0 or an
 * errno value.  curthread is in kern/thread.h, built on these two hooks.
 */
enum mach_sched { MACH_SCHED_OTHER, MACH_SCHED_BATCH, MACH_SCHED_FIFO,
    MACH_SCHED_RR };
/* Of threads made from now on: sched(7); an errno value if it may not be. */
int	 mach_sched_set(enum mach_sched, int priority);
/* Those for any CPU are bound to one each, in turn. */
void	 mach_placement_set(bool pinned);
int	 mach_thread_create(const char *name, int cpu, void (*fn)(void *),
	    void *arg, struct mach_thread **);
void	 mach_thread_join(struct mach_thread *);
extern _Thread_local struct thread *mach_self	/* of machine/ alone */
    __attribute__((tls_model("initial-exec")));
/* How far from the common statistics counters a thread's own ones are. */
extern _Thread_local intptr_t mach_counters	/* kern/counter.h; 0: none */
    __attribute__((tls_model("initial-exec")));
static inline struct thread *
mach_thread_self(void)		/* NULL: not attached yet */
{
	return (mach_self);
}
void	 mach_thread_attach(struct thread *, void (*on_exit)(struct thread *));
/* The host's number of the calling thread, and the CPU time that a thread of
   this process has used since it began; 0 if there is none. */
uint32_t mach_thread_id(void);
nsec_t	 mach_thread_cputime(uint32_t id);

#ifdef LOCK_TRACKING
/*
 * The calls that a thread of this process has not come back from, latest
 * first, at most max; 0: it does not answer, or somebody else asks.  What
 * sleeps is disturbed only for a moment.  And what there is to say of one.
 */
int	 mach_thread_calls(uint32_t id, void *calls[], int max);
void	 mach_call_name(void *call, char *buf, size_t len);
#endif

/*
 * Park and unpark on a word: sleep while *word == expected, until deadline
 * (a date of mach_uptime, or NSEC_FOREVER).  Returns 0 (woken, maybe
 * spuriously, or the word differed), ETIMEDOUT, or EINTR.
 */
int	 mach_park(atomic_u32 *word, uint32_t expected, nsec_t deadline);
void	 mach_unpark(atomic_u32 *word, int nthreads);

/*
 * Device queues.  Nothing here blocks but a wait, which returns when there
 * is something to receive, at the deadline (ETIMEDOUT), or after
 * mach_devq_wake() (EINTR).  Frames begin with a struct virtio_net_hdr
 * (10 bytes) where the kind of queue says so.
 *
 * Queues that are read give a byte count or a negative errno (-EAGAIN:
 * empty).  Queues with a ring show the next frame in place: 0, -EAGAIN: none
 * yet, -EMSGSIZE: too large for a slot, to be read after the release, or
 * -EIO: damaged.  All but -EAGAIN must be released before the next, whose
 * headers may be prefetched then.
 *
 * Up to MACH_SEND_MAX frames are sent with one call: how many were, or a
 * negative errno (-EAGAIN: full) that the first one met.
 */
#define	MACH_SEND_MAX	32

struct virtio_net_hdr;

struct mach_slot {		/* a received frame in a ring */
	const char	*ms_data;
	uint32_t	 ms_len;
	const struct virtio_net_hdr *ms_vnet;	/* or NULL */
};

struct mach_frame {		/* a frame to send */
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
 * A queue of a TAP device: it is read, with headers; offloads are the TUN_F_*
 * bits offered.
 */
int	 mach_devq_open_tap(const char *ifname, bool multiqueue,
	    unsigned offloads, struct mach_devq **);
/*
 * A packet socket on a network interface of the host, with headers and a
 * ring.  Queues of one group (not 0) share what is received, by flow.
 */
int	 mach_devq_open_packet(const char *ifname, unsigned group,
	    struct mach_devq **);
/*
 * AF_XDP sockets on the first n queues of a network interface of the host:
 * with a ring, without headers; one thread at a time may send on each.  An
 * errno value, with what failed in *step.
 */
#define	MACH_XDP_MTU	1778	/* 2048, less the host's headroom, Ethernet */
int	 mach_devq_open_xdp(const char *ifname, unsigned n,
	    struct mach_devq *queues[], const char **step);
/* How many frames are where: all that are received into, and all others. */
struct mach_xdp_frames {
	uint32_t	 fill, receive;
	uint32_t	 free, send;
};
void	 mach_devq_xdp_frames(struct mach_devq *, struct mach_xdp_frames *);

/*
 * Local stream server for the control socket.  Accept blocks until
 * mach_ctl_wake() makes it return -ECANCELED; read and write until their
 * deadline, then -ETIMEDOUT.
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
