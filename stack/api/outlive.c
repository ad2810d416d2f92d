/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process with the stack executes a program while others need the stack:
 * sockets that the program inherits, or children.  The program runs as its
 * child.  The process closes all that it had open, passes on the signals that
 * others send to it, and ends as the program does, after the last client.
 *
 * All is async-signal-safe, as exec() must be.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <paths.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/api.h"
#include "boot/reach.h"

static volatile pid_t program;
static pid_t waiting;	/* [I] the thread that waits for the program */

/*
 * Whether the program would have got a signal.  The kernel sends the terminal's
 * to the program, too.  It keeps the alarm of a process at exec(), but deletes
 * other timers (execve(2)), whose signals may be in the queue still.
 */
static bool
is_for_program(int sig, const siginfo_t *info)
{
	switch (info->si_code) {
	case SI_USER:
	case SI_QUEUE:
	case SI_TKILL:
		return (info->si_pid != getpid());
	case SI_KERNEL:
		return (sig == SIGALRM || sig == SIGVTALRM || sig == SIGPROF);
	default:
		return (false);
	}
}

/* Exec() would have ended other threads than the one that waits: they stay. */
static void
pass_on(int sig, siginfo_t *info, void *context)
{
	const int error = errno;

	(void)context;
	if (is_for_program(sig, info)) {
		if (info->si_code == SI_QUEUE)
			(void)sigqueue(program, sig, info->si_value);
		else
			(void)kill(program, sig);
	}
	while (gettid() != waiting)
		pause();
	errno = error;
}

/* All that end a process by default, apart from faults, and a few others. */
static bool
is_passed(int sig)
{
	switch (sig) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
	case SIGSYS:
	case SIGCHLD:
	case SIGKILL:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return (false);
	default:
		return (true);
	}
}

/*
 * Of a program that ignores one, the program that it executes does, too.
 * SIGRTMAX stops threads, see below.
 */
static void
pass_signals_on(void)
{
	struct sigaction was, pass = {
		.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART
	};

	sigfillset(&pass.sa_mask);
	signals_default();
	for (int sig = 1; sig < NSIG; sig++)
		if (is_passed(sig) && real.sigaction(sig, NULL, &was) == 0 &&
		    (was.sa_handler != SIG_IGN || sig == SIGRTMAX))
			(void)real.sigaction(sig, &pass, NULL);
}

/* Ends with the status of the program. */
static _Noreturn void
end_as(int status)
{
	const struct rlimit none = { 0, 0 };
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none_blocked;

	api_drain();
	if (WIFSIGNALED(status)) {
		setrlimit(RLIMIT_CORE, &none);
		(void)real.sigaction(WTERMSIG(status), &dfl, NULL);
		sigemptyset(&none_blocked);
		pthread_sigmask(SIG_SETMASK, &none_blocked, NULL);
		(void)kill(getpid(), WTERMSIG(status));
	}
	(void)real.syscall(SYS_exit_group, WIFEXITED(status) ?
	    WEXITSTATUS(status) : 1);
	__builtin_unreachable();
}

/*
 * Stops the other threads of the old program, which exec() would end: each
 * stays in a handler, outside the stack.  Threads of the stack block all
 * signals.  A thread of the program that blocks SIGRTMAX, or starts at this
 * moment, is not stopped: it finds its descriptors closed.
 */
static void
stop_threads(void)
{
	char entries[4096] __attribute__((aligned(8)));
	const struct dirent64 *entry;
	const int dir = open("/proc/self/task",
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t n;

	while (dir != -1 &&
	    (n = getdents64(dir, entries, sizeof(entries))) > 0)
		for (ssize_t at = 0; at < n; at += entry->d_reclen) {
			entry = (const void *)&entries[at];
			if (atoi(entry->d_name) > 0 &&
			    atoi(entry->d_name) != waiting)
				(void)tgkill(getpid(), atoi(entry->d_name),
				    SIGRTMAX);
		}
	if (dir != -1)
		real.close(dir);
}

static int
start(const char *path, char *const argv[], char *const env[], bool search,
    const sigset_t *mask)
{
	posix_spawnattr_t attr;
	pid_t pid = 0;
	int error;

	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, mask);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	error = (search ? posix_spawnp : posix_spawn)(&pid, path, NULL, &attr,
	    argv, env);
	posix_spawnattr_destroy(&attr);
	program = pid;
	return (error);
}

/* execvp(3): a file that the kernel does not recognise is a shell's script. */
static int
start_script(const char *file, char *const argv[], char *const env[],
    const sigset_t *mask)
{
	char path[PATH_MAX], **all;
	size_t n = 0;
	int error;

	if (!reach_find(file, path, sizeof(path)))
		return (ENOEXEC);
	while (argv[n] != NULL)
		n++;
	api_enter();
	all = kmalloc((n + 3) * sizeof(*all));
	all[0] = (char *)(uintptr_t)_PATH_BSHELL;
	all[1] = path;
	for (size_t i = 1; i < n; i++)
		all[i + 1] = argv[i];
	error = start(_PATH_BSHELL, all, env, false, mask);
	kfree(all);
	api_leave(0);
	return (error);
}

/* No signal is passed on to a process that has its number afterwards. */
static int
wait_for_program(void)
{
	siginfo_t info;
	int status;

	while (waitid(P_PID, (id_t)program, &info, WEXITED | WNOWAIT) == -1 &&
	    errno == EINTR)
		continue;
	signals_default();
	return (waitpid(program, &status, 0) == program ? status : 127 << 8);
}

/*
 * A process that ignores SIGCHLD finds no status (waitpid(2)).  The program
 * therefore finds its default action, which POSIX permits: exec() leaves it
 * unspecified.
 */
int
outlive_spawn(const char *path, char *const argv[], char *const env[],
    bool search)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct sigaction was;
	sigset_t all, none, mask;
	int error;

	sigfillset(&all);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	(void)real.sigaction(SIGCHLD, &dfl, &was);
	error = start(path, argv, env, search, &mask);
	if (error == ENOEXEC && search)
		error = start_script(path, argv, env, &mask);
	if (error != 0) {
		(void)real.sigaction(SIGCHLD, &was, NULL);
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
		return (error);
	}
	waiting = gettid();
	pass_signals_on();
	stop_threads();
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	api_let_go();
	end_as(wait_for_program());
}
