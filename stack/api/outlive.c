/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process with the stack executes a program while others need the stack:
 * sockets that the program inherits, or children.  The program runs as its
 * child.  The process keeps nothing else open, passes on the signals that
 * others send to it, and ends as the program does, after the last client.
 */
#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/api.h"

#define	THREADS_MAX	4096

static volatile pid_t program;

/* The terminal's signals reach the program, too. */
static void
pass_on(int sig, siginfo_t *info, void *context)
{
	const int error = errno;

	(void)context;
	if (info->si_code <= 0)
		(void)kill(program, sig);
	errno = error;
}

/* Of a program that ignores one, the program that it executes does, too. */
static void
pass_signals_on(void)
{
	const int passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1,
	    SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, SIGPIPE, SIGIO, SIGURG };
	const struct sigaction pass = {
		.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART
	};
	struct sigaction was;

	signals_default();
	for (size_t i = 0; i < nitems(passed); i++)
		if (real.sigaction(passed[i], NULL, &was) == 0 &&
		    was.sa_handler != SIG_IGN)
			(void)real.sigaction(passed[i], &pass, NULL);
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

/* Where a thread of the program that exec() would have ended stays. */
static void
stay(int sig)
{
	(void)sig;
	for (;;)
		pause();
}

/*
 * Ends the other threads of the old program, as exec() does: each stays in a
 * handler, outside the stack.  Threads of the stack block all signals.
 */
static void
stop_threads(void)
{
	const struct sigaction sa = { .sa_handler = stay };
	pid_t threads[THREADS_MAX];
	unsigned n = 0;
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/task");

	while (dir != NULL && n < THREADS_MAX &&
	    (entry = readdir(dir)) != NULL)
		if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != gettid())
			threads[n++] = atoi(entry->d_name);
	if (dir != NULL)
		closedir(dir);
	(void)sigaction(SIGRTMAX, &sa, NULL);
	while (n-- > 0)
		(void)tgkill(getpid(), threads[n], SIGRTMAX);
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

int
outlive_spawn(const char *path, char *const argv[], char *const env[],
    bool search)
{
	sigset_t all, none, mask;
	int status = 0, error;

	sigfillset(&all);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	error = start(path, argv, env, search, &mask);
	if (error != 0) {
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
		return (error);
	}
	pass_signals_on();
	stop_threads();
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	api_let_go();
	while (waitpid(program, &status, 0) == -1 && errno == EINTR)
		;
	end_as(status);
}
