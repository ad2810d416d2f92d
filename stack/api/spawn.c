/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that execute a program in a child without fork(): posix_spawn(), and
 * those that the C library builds on it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/api.h"

typedef int spawn_fn(pid_t *, const char *, const posix_spawn_file_actions_t *,
    const posix_spawnattr_t *, char *const [], char *const []);

/*
 * With file actions the descriptor table stays locked until the program is
 * executed: other threads that open or close a descriptor wait meanwhile, also
 * if an action waits (the open of a FIFO).
 */
static int
spawn(spawn_fn *fn, pid_t *pid, const char *program,
    const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
    char *const argv[], char *const env[])
{
	struct exec_plan p;
	int error;

	error = exec_plan(&p, program, env, actions != NULL ? MOVE : SPAWN);
	if (error == 0)
		error = fn(pid, program, actions, attr, argv, p.env);
	exec_end(&p);
	return (error);
}

EXPORT int
posix_spawn(pid_t *restrict pid, const char *restrict path,
    const posix_spawn_file_actions_t *restrict actions,
    const posix_spawnattr_t *restrict attr, char *const argv[restrict],
    char *const env[restrict])
{
	return (spawn(real.posix_spawn, pid, path, actions, attr, argv, env));
}

EXPORT int
posix_spawnp(pid_t *restrict pid, const char *restrict file,
    const posix_spawn_file_actions_t *restrict actions,
    const posix_spawnattr_t *restrict attr, char *const argv[restrict],
    char *const env[restrict])
{
	return (spawn(real.posix_spawnp, pid, file, actions, attr, argv, env));
}

static int
spawn_shell(pid_t *pid, const char *command,
    const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr)
{
	char *const argv[] = { (char *)(uintptr_t)"sh",
	    (char *)(uintptr_t)"-c", (char *)(uintptr_t)command, NULL };

	return (posix_spawn(pid, "/bin/sh", actions, attr, argv, environ));
}

static pid_t
wait_for(pid_t pid, int *status)
{
	pid_t r;

	do
		r = waitpid(pid, status, 0);
	while (r == -1 && errno == EINTR);
	return (r);
}

/* SIGINT and SIGQUIT are ignored while threads are in system(). */
static pthread_mutex_t system_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	unsigned	 threads;
	struct sigaction intr, quit;	/* as they were before */
} ignoring;

static void
ignore_signals(sigset_t *defaults)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	pthread_mutex_lock(&system_lock);
	if (ignoring.threads++ == 0) {
		sigaction(SIGINT, &ignore, &ignoring.intr);
		sigaction(SIGQUIT, &ignore, &ignoring.quit);
	}
	if (ignoring.intr.sa_handler != SIG_IGN)
		sigaddset(defaults, SIGINT);
	if (ignoring.quit.sa_handler != SIG_IGN)
		sigaddset(defaults, SIGQUIT);
	pthread_mutex_unlock(&system_lock);
}

static void
restore_signals(void)
{
	pthread_mutex_lock(&system_lock);
	if (--ignoring.threads == 0) {
		sigaction(SIGINT, &ignoring.intr, NULL);
		sigaction(SIGQUIT, &ignoring.quit, NULL);
	}
	pthread_mutex_unlock(&system_lock);
}

/* system(3): the status of a shell that cannot be executed is 127. */
static int
run_shell(const char *command, const sigset_t *mask, const sigset_t *defaults)
{
	posix_spawnattr_t attr;
	int status = 127 << 8, error;
	pid_t pid;

	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, mask);
	posix_spawnattr_setsigdefault(&attr, defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
	    POSIX_SPAWN_SETSIGDEF);
	error = spawn_shell(&pid, command, NULL, &attr);
	posix_spawnattr_destroy(&attr);
	if (error == 0 && wait_for(pid, &status) != pid)
		status = -1;
	return (status);
}

EXPORT int
system(const char *command)
{
	sigset_t child, mask, defaults;
	int status;

	if (api_state() == API_PASSIVE || command == NULL)
		return (real.system(command));
	sigemptyset(&defaults);
	ignore_signals(&defaults);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, &mask);
	status = run_shell(command, &mask, &defaults);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	restore_signals();
	return (status);
}

/* Streams of popen(). */
struct command {
	FILE		*co_file;
	int		 co_fd;
	pid_t		 co_pid;
	LIST_ENTRY(command) co_link;
};
static pthread_mutex_t commands_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, command) commands = LIST_HEAD_INITIALIZER(commands);

/* popen(3p): streams of earlier calls are closed in the command. */
static int
start_command(struct command *co, const char *command, int end, int target)
{
	posix_spawn_file_actions_t actions;
	struct command *other;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, end, target);
	LIST_FOREACH(other, &commands, co_link)
		if (other->co_fd != target)
			posix_spawn_file_actions_addclose(&actions,
			    other->co_fd);
	error = spawn_shell(&co->co_pid, command, &actions, NULL);
	posix_spawn_file_actions_destroy(&actions);
	if (error == 0)
		LIST_INSERT_HEAD(&commands, co, co_link);
	return (error);
}

/* Stores the stream and the process; returns an errno value. */
static int
command_open(struct command *co, const char *command, bool reads, bool cloexec)
{
	int p[2], error;

	if (pipe2(p, O_CLOEXEC) != 0)
		return (errno);
	co->co_fd = p[reads ? 0 : 1];
	co->co_file = real.fdopen(co->co_fd, reads ? "r" : "w");
	error = co->co_file == NULL ? errno : 0;
	pthread_mutex_lock(&commands_lock);
	if (error == 0)
		error = start_command(co, command, p[reads ? 1 : 0],
		    reads ? STDOUT_FILENO : STDIN_FILENO);
	pthread_mutex_unlock(&commands_lock);
	real.close(p[reads ? 1 : 0]);
	if (error == 0 && !cloexec)
		(void)real.fcntl(co->co_fd, F_SETFD, 0);
	if (error != 0 && co->co_file != NULL)
		fclose(co->co_file);
	else if (error != 0)
		real.close(co->co_fd);
	return (error);
}

EXPORT FILE *
popen(const char *command, const char *mode)
{
	struct command *co;
	int error;

	if (api_state() == API_PASSIVE ||
	    strspn(mode, "rwe") != strlen(mode) ||
	    (strchr(mode, 'r') != NULL) == (strchr(mode, 'w') != NULL))
		return (real.popen(command, mode));
	co = calloc(1, sizeof(*co));
	if (co == NULL)
		return (NULL);
	error = command_open(co, command, strchr(mode, 'r') != NULL,
	    strchr(mode, 'e') != NULL);
	if (error == 0)
		return (co->co_file);
	free(co);
	errno = error;
	return (NULL);
}

EXPORT int
pclose(FILE *file)
{
	struct command *co;
	int status = -1;

	pthread_mutex_lock(&commands_lock);
	LIST_FOREACH(co, &commands, co_link)
		if (co->co_file == file)
			break;
	if (co != NULL)
		LIST_REMOVE(co, co_link);
	pthread_mutex_unlock(&commands_lock);
	if (co == NULL)
		return (real.pclose(file));
	fclose(file);
	if (wait_for(co->co_pid, &status) == -1)
		status = -1;
	free(co);
	return (status);
}
