/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stack's lifetime in a program: it boots from $STACK_CONF before main(),
 * stays in the parent after fork(), and completes its connections when the
 * program exits.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include "api/server.h"
#include "boot/boot.h"
#include "kern/ctl.h"
#include "kern/file.h"
#include "kern/kern_private.h"
#include "kern/sysctl.h"

#define	DRAIN_STEP	(2 * NSEC_PER_MSEC)

atomic_u32 api_inet6_kernel;
atomic_u32 api_unix_sockets = UNIX_KERNEL;
static atomic_u32 drain_ms = 500;	/* milliseconds */
static atomic_u32 api_status = API_PASSIVE;
static pid_t api_pid;	/* [I] after boot, and in a child */

static const char *const unix_names[] = { "kernel", "stack", NULL };

static const struct sysctl_oid api_oids[] = {
	{ .oid_name = "api.inet6_kernel", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &api_inet6_kernel,
	  .oid_max = 1,
	  .oid_descr = "1: the kernel serves AF_INET6 sockets, 0: the stack "
	      "does" },
	{ .oid_name = "unix.sockets", .oid_type = CTL_ENUM,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &api_unix_sockets,
	  .oid_names = unix_names,
	  .oid_descr = "server of AF_UNIX sockets: kernel, "
	      "stack" },
	{ .oid_name = "api.drain", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &drain_ms,
	  .oid_max = 60000,
	  .oid_descr = "milliseconds that an exiting program waits for its "
	      "data to be acknowledged" },
};

enum api_state
api_state(void)
{
	return ((enum api_state)atomic_load_acq_u32(&api_status));
}

bool
api_own_process(void)
{
	return (api_state() != API_PASSIVE && getpid() == api_pid);
}

static void
each_number(void (*fn)(int fd, void *), void *arg)
{
	const long limit = sysconf(_SC_OPEN_MAX);
	const int end = limit < 0 || limit > API_MAXFD ? API_MAXFD : (int)limit;

	for (int fd = 0; fd < end; fd++)
		if (real.fcntl(fd, F_GETFD) != -1)
			fn(fd, arg);
}

void
each_descriptor(void (*fn)(int fd, void *), void *arg)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	if (dir == NULL) {	/* no /proc, or no free number */
		each_number(fn, arg);
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		if (*entry->d_name != '.' && atoi(entry->d_name) != dirfd(dir))
			fn(atoi(entry->d_name), arg);
	closedir(dir);
}

static void
note_descriptor(int fd, void *arg)
{
	if (fd < FD_SETSIZE)
		FD_SET(fd, (fd_set *)arg);
}

/* Marks descriptors opened by the boot as the stack's own. */
static void
hide_descriptor(int fd, void *arg)
{
	if (fd < FD_SETSIZE && !FD_ISSET(fd, (fd_set *)arg))
		fd_hide(fd);
}

/*
 * Many children only call exec() and use no socket, so the message is printed
 * at the first use.
 */
void
api_explain(void)
{
	static atomic_u32 said;
	char text[128];
	int len;

	if (atomic_fetchadd_u32(&said, 1) != 0)
		return;
	/* no standard I/O: a signal handler may be the caller */
	len = snprintf(text, sizeof(text), "libstack: process %d: the process "
	    "that has the stack cannot be reached\n", (int)getpid());
	(void)!real.write(STDERR_FILENO, text, (size_t)len);
}

void
api_become_client(void)
{
	atomic_store_rel_u32(&api_status, API_CLIENT);
	api_pid = getpid();
}

int
api_boot(int (*configure)(const char *), const char *arg)
{
	fd_set before;
	int error;

	FD_ZERO(&before);
	each_descriptor(note_descriptor, &before);
	sysctl_register(api_oids, nitems(api_oids));
	fd_lock_init();
	ctl_hold();
	error = stack_boot_config(configure, arg);
	if (error != 0)
		return (error);
	file_init();
	fd_lock_start();
	fileops = &api_fileops;
	each_descriptor(hide_descriptor, &before);
	ctl_release();
	api_pid = getpid();
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	atomic_store_rel_u32(&api_status, API_UP);
	return (0);
}

/* A program that a client has executed. */
static void
boot_client(const char *value)
{
	sysctl_register(api_oids, nitems(api_oids));
	fd_lock_init();
	if (stack_boot_client() != 0)
		panic("libstack: no memory for a client of the stack");
	file_init();
	fd_lock_start();
	inherit_boot(value);
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	api_become_client();
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		stdio_follow(fd);
}

static void
boot_stack(const char *path)
{
	threads_boot(true);
	if (api_boot(loader_read, path) != 0)
		_exit(EX_CONFIG);
	server_start();
	threads_boot(false);
}

__attribute__((constructor)) static void
boot(void)
{
	const char *path = environ_find(environ, "STACK_CONF");
	const char *client = environ_find(environ, "STACK_CLIENT");

	(void)real_table();	/* while there is only one thread */
	exec_init();
	/* Without a stack the library is inert, and so is it in children. */
	if (client == NULL && path == NULL)
		return;
	environ_clear();
	if (client != NULL)
		boot_client(client);
	else
		boot_stack(path);
}

static void
close_socket(int fd, struct file *f)
{
	if (f->f_type == FT_SOCKET && (f = fd_take(fd)) != NULL)
		file_close(f);
}

static void
count_unsent(struct socket *so, void *arg)
{
	unsigned *n = arg;

	so_assert_locked(so);
	if ((so->so_snd.sb_cc > 0 && !so->so_proto->pr_local) || (so->so_state & SS_ISDISCONNECTING))
		++*n;
}

void
api_let_go(void)
{
	api_enter();
	fd_foreach(close_socket);
	fd_close_kernel(0, ~0U);
	api_leave(0);
}

/*
 * The process must outlive its clients.  It looks as if it had ended: all its
 * descriptors are closed, and signals have their default actions.
 */
static void
serve_clients(void)
{
	if (!server_has_clients())
		return;
	signals_default();
	fd_close_kernel(0, ~0U);
	server_linger();
}

/*
 * A kernel continues to send what a program wrote before it exited.  The stack
 * ends with the program and its children, so exit() waits for a short time.
 */
void
api_drain(void)
{
	nsec_t deadline;
	unsigned unsent = 0;

	api_enter();	/* never left: no handler runs any more */
	fd_foreach(close_socket);
	serve_clients();
	deadline = deadline_ms((int)atomic_load_u32(&drain_ms));
	do {
		struct waiter nap;

		unsent = 0;
		so_foreach(count_unsent, &unsent);
		if (unsent > 0) {
			(void)waiter_init(&nap, false);
			(void)waiter_sleep(&nap, mach_uptime() + DRAIN_STEP);
		}
	} while (unsent > 0 && time_left(deadline) > 0);
	stack_shutdown();
}

__attribute__((destructor)) static void
end(void)
{
	if (!api_own_process())
		return;
	fflush(NULL);	/* streams of sockets; exit() would do it later */
	if (api_state() == API_UP)
		api_drain();
}

/*
 * _exit() ends the stack without draining it, unless children use it.  It may
 * be called in a signal handler.
 */
EXPORT void
_exit(int status)
{
	if (api_state() == API_UP && api_own_process() && server_has_clients())
		api_drain();
	(void)real.syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

EXPORT void
_Exit(int status)
{
	_exit(status);
}
