/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * syscall(2): programs and language runtimes use it for calls whose C library
 * function would be a cancellation point (libuv's close()) or is missing
 * (io_uring).  Calls on descriptors, sockets and signals become those of this
 * library, so that a socket of the stack behaves alike both ways.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "api/api.h"

#define	NARGS	6

/* The kernel's struct sigaction; its signal mask has 8 bytes. */
struct kernel_sigaction {
	sighandler_t	 handler;
	unsigned long	 flags;
	void		(*restorer)(void);
	uint64_t	 mask;
};

static int
raw_sigaction(int sig, const struct kernel_sigaction *ksa,
    struct kernel_sigaction *kold)
{
	struct sigaction sa = { .sa_handler = SIG_DFL }, old;

	if (ksa != NULL) {
		sa.sa_handler = ksa->handler;
		sa.sa_flags = (int)ksa->flags;
		memcpy(&sa.sa_mask, &ksa->mask, sizeof(ksa->mask));
	}
	if (sigaction(sig, ksa != NULL ? &sa : NULL, &old) != 0)
		return (-1);
	if (kold != NULL) {
		*kold = (struct kernel_sigaction){ .handler = old.sa_handler,
		    .flags = (unsigned)old.sa_flags };
		memcpy(&kold->mask, &old.sa_mask, sizeof(kold->mask));
	}
	return (0);
}

#define	NUM(i)	((int)a[i])
#define	PTR(i)	((void *)a[i])
#define	LEN(i)	((size_t)a[i])

/* The posix_ functions return the error. */
static long
result_of(int error)
{
	return (api_return(error, 0));
}

/* Sockets; false: another call. */
static bool
socket_call(long number, const long a[NARGS], long *r)
{
	switch (number) {
	case SYS_socket:
		*r = socket(NUM(0), NUM(1), NUM(2));
		return (true);
	case SYS_socketpair:
		*r = socketpair(NUM(0), NUM(1), NUM(2), PTR(3));
		return (true);
	case SYS_bind:
		*r = bind(NUM(0), PTR(1), (socklen_t)a[2]);
		return (true);
	case SYS_listen:
		*r = listen(NUM(0), NUM(1));
		return (true);
	case SYS_accept:
		*r = accept(NUM(0), PTR(1), PTR(2));
		return (true);
	case SYS_accept4:
		*r = accept4(NUM(0), PTR(1), PTR(2), NUM(3));
		return (true);
	case SYS_connect:
		*r = connect(NUM(0), PTR(1), (socklen_t)a[2]);
		return (true);
	case SYS_shutdown:
		*r = shutdown(NUM(0), NUM(1));
		return (true);
	case SYS_getsockname:
		*r = getsockname(NUM(0), PTR(1), PTR(2));
		return (true);
	case SYS_getpeername:
		*r = getpeername(NUM(0), PTR(1), PTR(2));
		return (true);
	case SYS_getsockopt:
		*r = getsockopt(NUM(0), NUM(1), NUM(2), PTR(3), PTR(4));
		return (true);
	case SYS_setsockopt:
		*r = setsockopt(NUM(0), NUM(1), NUM(2), PTR(3),
		    (socklen_t)a[4]);
		return (true);
	default:
		return (false);
	}
}

static bool
data_call(long number, const long a[NARGS], long *r)
{
	switch (number) {
	case SYS_read:
		*r = read(NUM(0), PTR(1), LEN(2));
		return (true);
	case SYS_readv:
		*r = readv(NUM(0), PTR(1), NUM(2));
		return (true);
	case SYS_recvfrom:
		*r = recvfrom(NUM(0), PTR(1), LEN(2), NUM(3), PTR(4), PTR(5));
		return (true);
	case SYS_recvmsg:
		*r = recvmsg(NUM(0), PTR(1), NUM(2));
		return (true);
	case SYS_recvmmsg:
		*r = recvmmsg(NUM(0), PTR(1), (unsigned)a[2], NUM(3), PTR(4));
		return (true);
	case SYS_write:
		*r = write(NUM(0), PTR(1), LEN(2));
		return (true);
	case SYS_writev:
		*r = writev(NUM(0), PTR(1), NUM(2));
		return (true);
	case SYS_sendto:
		*r = sendto(NUM(0), PTR(1), LEN(2), NUM(3), PTR(4),
		    (socklen_t)a[5]);
		return (true);
	case SYS_sendmsg:
		*r = sendmsg(NUM(0), PTR(1), NUM(2));
		return (true);
	case SYS_sendmmsg:
		*r = sendmmsg(NUM(0), PTR(1), (unsigned)a[2], NUM(3));
		return (true);
	case SYS_sendfile:
		*r = sendfile(NUM(0), NUM(1), PTR(2), LEN(3));
		return (true);
	case SYS_splice:
		*r = splice(NUM(0), PTR(1), NUM(2), PTR(3), LEN(4),
		    (unsigned)a[5]);
		return (true);
	case SYS_tee:
		*r = tee(NUM(0), NUM(1), LEN(2), (unsigned)a[3]);
		return (true);
	case SYS_copy_file_range:
		*r = copy_file_range(NUM(0), PTR(1), NUM(2), PTR(3), LEN(4),
		    (unsigned)a[5]);
		return (true);
	case SYS_lseek:
		*r = lseek(NUM(0), a[1], NUM(2));
		return (true);
	case SYS_pread64:
		*r = pread(NUM(0), PTR(1), LEN(2), a[3]);
		return (true);
	case SYS_pwrite64:
		*r = pwrite(NUM(0), PTR(1), LEN(2), a[3]);
		return (true);
	case SYS_preadv:
		*r = preadv(NUM(0), PTR(1), NUM(2), a[3]);
		return (true);
	case SYS_pwritev:
		*r = pwritev(NUM(0), PTR(1), NUM(2), a[3]);
		return (true);
	case SYS_preadv2:
		*r = preadv2(NUM(0), PTR(1), NUM(2), a[3], NUM(5));
		return (true);
	case SYS_pwritev2:
		*r = pwritev2(NUM(0), PTR(1), NUM(2), a[3], NUM(5));
		return (true);
	default:
		return (false);
	}
}

static bool
descriptor_call(long number, const long a[NARGS], long *r)
{
	switch (number) {
	case SYS_close:
		*r = close(NUM(0));
		return (true);
	case SYS_close_range:
		*r = close_range((unsigned)a[0], (unsigned)a[1], NUM(2));
		return (true);
	case SYS_dup:
		*r = dup(NUM(0));
		return (true);
#ifdef SYS_dup2
	case SYS_dup2:
		*r = dup2(NUM(0), NUM(1));
		return (true);
#endif
	case SYS_dup3:
		*r = dup3(NUM(0), NUM(1), NUM(2));
		return (true);
	case SYS_fcntl:
		*r = fcntl(NUM(0), NUM(1), PTR(2));
		return (true);
	case SYS_ioctl:
		*r = ioctl(NUM(0), (unsigned long)a[1], PTR(2));
		return (true);
	case SYS_fstat:
		*r = fstat(NUM(0), PTR(1));
		return (true);
	case SYS_newfstatat:
		*r = fstatat(NUM(0), PTR(1), PTR(2), NUM(3));
		return (true);
	case SYS_fsync:
		*r = fsync(NUM(0));
		return (true);
	case SYS_fdatasync:
		*r = fdatasync(NUM(0));
		return (true);
	case SYS_ftruncate:
		*r = ftruncate(NUM(0), a[1]);
		return (true);
	case SYS_fallocate:
		*r = fallocate(NUM(0), NUM(1), a[2], a[3]);
		return (true);
	case SYS_fadvise64:
		*r = result_of(posix_fadvise(NUM(0), a[1], a[2], NUM(3)));
		return (true);
	case SYS_sync_file_range:
		*r = sync_file_range(NUM(0), a[1], a[2], (unsigned)a[3]);
		return (true);
	case SYS_readahead:
		*r = readahead(NUM(0), a[1], LEN(2));
		return (true);
	case SYS_syncfs:
		*r = syncfs(NUM(0));
		return (true);
	case SYS_flock:
		*r = flock(NUM(0), NUM(1));
		return (true);
	case SYS_fgetxattr:
		*r = fgetxattr(NUM(0), PTR(1), PTR(2), LEN(3));
		return (true);
	case SYS_fsetxattr:
		*r = fsetxattr(NUM(0), PTR(1), PTR(2), LEN(3), NUM(4));
		return (true);
	case SYS_fremovexattr:
		*r = fremovexattr(NUM(0), PTR(1));
		return (true);
	case SYS_vmsplice:
		*r = vmsplice(NUM(0), PTR(1), LEN(2), (unsigned)a[3]);
		return (true);
	case SYS_getdents64:
		*r = getdents64(NUM(0), PTR(1), LEN(2));
		return (true);
	case SYS_fchdir:
		*r = fchdir(NUM(0));
		return (true);
	case SYS_fchmod:
		*r = fchmod(NUM(0), (mode_t)a[1]);
		return (true);
	case SYS_fchown:
		*r = fchown(NUM(0), (uid_t)a[1], (gid_t)a[2]);
		return (true);
	case SYS_flistxattr:
		*r = flistxattr(NUM(0), PTR(1), LEN(2));
		return (true);
	case SYS_fstatfs:
		*r = fstatfs(NUM(0), PTR(1));
		return (true);
	case SYS_timerfd_settime:
		*r = timerfd_settime(NUM(0), NUM(1), PTR(2), PTR(3));
		return (true);
	case SYS_timerfd_gettime:
		*r = timerfd_gettime(NUM(0), PTR(1));
		return (true);
	case SYS_inotify_add_watch:
		*r = inotify_add_watch(NUM(0), PTR(1), (uint32_t)a[2]);
		return (true);
	case SYS_inotify_rm_watch:
		*r = inotify_rm_watch(NUM(0), NUM(1));
		return (true);
	case SYS_statx:
		*r = statx(NUM(0), PTR(1), NUM(2), (unsigned)a[3], PTR(4));
		return (true);
	default:
		return (false);
	}
}

/* The last argument of pselect6(2). */
struct pselect_mask {
	const sigset_t	*mask;
	size_t		 size;
};

static bool
wait_call(long number, const long a[NARGS], long *r)
{
	const struct pselect_mask *pm;

	switch (number) {
#ifdef SYS_poll
	case SYS_poll:
		*r = poll(PTR(0), (nfds_t)a[1], NUM(2));
		return (true);
	case SYS_select:
		*r = select(NUM(0), PTR(1), PTR(2), PTR(3), PTR(4));
		return (true);
	case SYS_epoll_create:
		*r = epoll_create(NUM(0));
		return (true);
	case SYS_epoll_wait:
		*r = epoll_wait(NUM(0), PTR(1), NUM(2), NUM(3));
		return (true);
#endif
	case SYS_ppoll:
		*r = ppoll(PTR(0), (nfds_t)a[1], PTR(2), PTR(3));
		return (true);
	case SYS_pselect6:
		pm = PTR(5);
		*r = pselect(NUM(0), PTR(1), PTR(2), PTR(3), PTR(4),
		    pm != NULL ? pm->mask : NULL);
		return (true);
	case SYS_epoll_create1:
		*r = epoll_create1(NUM(0));
		return (true);
	case SYS_epoll_ctl:
		*r = epoll_ctl(NUM(0), NUM(1), NUM(2), PTR(3));
		return (true);
	case SYS_epoll_pwait:
		*r = epoll_pwait(NUM(0), PTR(1), NUM(2), NUM(3), PTR(4));
		return (true);
	case SYS_epoll_pwait2:
		*r = epoll_pwait2(NUM(0), PTR(1), NUM(2), PTR(3), PTR(4));
		return (true);
	default:
		return (false);
	}
}

/* Whether a system call makes a process with its own memory. */
static bool
forks(long number, const long a[NARGS])
{
#ifdef SYS_fork
	if (number == SYS_fork)
		return (true);
#endif
	if (number == SYS_clone3)
		return (!address_bad(PTR(0)) && (((const struct clone_args *)
		    PTR(0))->flags & CLONE_VM) == 0);
	return (number == SYS_clone && (a[0] & CLONE_VM) == 0);
}

static bool
process_call(long number, const long a[NARGS], long *r)
{
	if (forks(number, a)) {
		fork_prepare();
		*r = real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (*r == 0)
			fork_child();
		else
			fork_parent();
		return (true);
	}
	switch (number) {
	case SYS_execve:
		*r = execve(PTR(0), PTR(1), PTR(2));
		return (true);
	case SYS_execveat:
		*r = execveat(NUM(0), PTR(1), PTR(2), PTR(3), NUM(4));
		return (true);
	case SYS_rt_sigaction:
		*r = raw_sigaction(NUM(0), PTR(1), PTR(2));
		return (true);
	case SYS_io_uring_setup:
		/* a ring would bypass the library: as without io_uring(7) */
		*r = api_return(ENOSYS, 0);
		return (true);
	default:
		return (false);
	}
}

/*
 * The number of arguments is that of the call, which is not known here: with
 * fewer than NARGS the last ones are whatever the caller's stack has there, as
 * in the C library.  A sanitizer sees that they are not the caller's.
 */
EXPORT EARLY __attribute__((no_sanitize_address)) long
syscall(long number, ...)
{
	long a[NARGS], r;
	va_list ap;

	va_start(ap, number);
	for (unsigned i = 0; i < NARGS; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (api_state() != API_PASSIVE &&
	    (data_call(number, a, &r) || descriptor_call(number, a, &r) ||
	    socket_call(number, a, &r) || wait_call(number, a, &r) ||
	    process_call(number, a, &r)))
		return (r);
	return (real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}
