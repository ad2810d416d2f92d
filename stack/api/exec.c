/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exec(): a program that a child executes uses the stack of the process that has
 * it, with the sockets that survive exec() (inherit.c).
 *
 * A program that the process with the stack executes gets a stack of its own,
 * with the same configuration, because the descriptors of the old one's device
 * are closed then.  Thus env(1), nice(1) and sh -c 'exec ...' run their command
 * on the stack.  If a socket survives, or children use the stack, the process
 * keeps it and the program runs as its child (outlive.c).
 *
 * A line on standard error explains why a program cannot use the stack.  With
 * --strict of bootstack it does not run.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "api/server.h"
#include "boot/reach.h"

#define	EX_UNREACHED	2	/* as bootstack */
#define	LINE_MAX_LEN	(PATH_MAX + 160)

/* What bootstack set. */
static char *conf;			/* [I] after boot: NAME=value */
static bool strict;			/* [I] after boot */
pid_t api_owner;			/* [I] after boot */

static char *const no_list[] = { NULL };

void
exec_init(void)
{
	const char *path = environ_find(environ, "STACK_CONF");

	if (path != NULL && asprintf(&conf, "STACK_CONF=%s", path) == -1)
		panic("libstack: no memory for the environment");
	strict = environ_find(environ, "STACK_STRICT") != NULL;
	api_owner = getpid();
}

/* Async-signal-safe, because a child of fork() may need to be. */
static void
note(const char *program, const char *reason)
{
	char line[LINE_MAX_LEN];
	int n;

	n = snprintf(line, sizeof(line), "libstack: process %d: %.*s %s: its "
	    "sockets %s the kernel's\n", (int)getpid(), PATH_MAX, program,
	    reason, strict ? "would be" : "are");
	(void)!real.write(STDERR_FILENO, line, (size_t)n);
}

/* Whether a program can use the stack; if not, a line has the reason. */
static bool
reachable(const char *program)
{
	const char *refusal = NULL;
	char path[PATH_MAX];

	if (reach_find(program, path, sizeof(path)))
		refusal = reach_refusal(path);
	if (refusal != NULL)
		note(program, refusal);
	return (refusal == NULL);
}

/* execve(2): a NULL list has no element.  Whether it has bad addresses. */
static bool
list_bad(char *const list[])
{
	if (list == NULL)
		return (false);
	if (address_bad(list))
		return (true);
	for (; *list != NULL; list++)
		if (address_bad(*list))
			return (true);
	return (false);
}

int
exec_plan(struct exec_plan *p, const char *program, char *const env[],
    enum exec_kind kind)
{
	const bool anew = kind == EXEC && api_state() == API_UP;
	int error = 0;

	*p = (struct exec_plan){ .env = env };
	if (!api_own_process() || (anew && conf == NULL))
		return (0);
	if (address_bad(program) || list_bad(env))
		return (EFAULT);
	if (!reachable(program)) {
		if (strict && kind == EXEC)
			_exit(EX_UNREACHED);
		return (strict ? EPERM : 0);
	}
	if (!anew) {
		error = inherit_prepare(kind == MOVE, p->inherited);
		p->passes = error == 0;
	}
	if (error != 0)
		return (error);
	p->copy = environ_with(env != NULL ? env : no_list,
	    anew ? conf : p->inherited, strict);
	p->env = p->copy;
	return (0);
}

void
exec_end(struct exec_plan *p)
{
	if (p->passes)
		inherit_undo();
	if (p->copy != NULL)
		environ_free(p->copy);
}

/* Whether the program must run as a child of this process. */
static bool
outlives(void)
{
	return (api_own_process() && api_state() == API_UP &&
	    (inherit_any() || server_in_use()));
}

static int
execute(const char *program, char *const argv[], char *const env[],
    bool search)
{
	struct exec_plan p;
	int error;

	if (address_bad(program) || list_bad(argv))
		return ((int)api_return(EFAULT, 0));
	if (outlives())
		return ((int)api_return(outlive_spawn(program,
		    argv != NULL ? argv : no_list, env, search), 0));
	error = exec_plan(&p, program, env, EXEC);
	if (error == 0) {
		(void)(search ? real.execvpe : real.execve)(program, argv,
		    p.env);
		error = errno;
	}
	exec_end(&p);
	return ((int)api_return(error, 0));
}

EXPORT int
execve(const char *path, char *const argv[], char *const env[])
{
	return (execute(path, argv, env, false));
}

EXPORT int
execvpe(const char *file, char *const argv[], char *const env[])
{
	return (execute(file, argv, env, true));
}

EXPORT int
execveat(int fd, const char *path, char *const argv[], char *const env[],
    int flags)
{
	char name[PATH_MAX];
	struct exec_plan p;
	int error;

	if (address_bad(path) || list_bad(argv))
		return ((int)api_return(EFAULT, 0));
	if (fd == AT_FDCWD || *path == '/')
		snprintf(name, sizeof(name), "%s", path);
	else
		snprintf(name, sizeof(name), "/proc/self/fd/%d%s%s", fd,
		    *path != '\0' ? "/" : "", path);
	if (outlives())
		return (execute(name, argv, env, false));
	error = exec_plan(&p, name, env, EXEC);
	if (error == 0) {
		(void)real.execveat(fd, path, argv, p.env, flags);
		error = errno;
	}
	exec_end(&p);
	return ((int)api_return(error, 0));
}

EXPORT int
fexecve(int fd, char *const argv[], char *const env[])
{
	return (execveat(fd, "", argv, env, AT_EMPTY_PATH));
}

EXPORT int
execv(const char *path, char *const argv[])
{
	return (execve(path, argv, environ));
}

EXPORT int
execvp(const char *file, char *const argv[])
{
	return (execvpe(file, argv, environ));
}

/* The arguments of execl() and its relatives, after the first. */
#define	LIST_MAX	1024
#define	GATHER(argv, first, ap) do {					\
	size_t n_ = 0;							\
									\
	(argv)[n_++] = (char *)(uintptr_t)(first);			\
	while ((argv)[n_ - 1] != NULL) {				\
		if (n_ == LIST_MAX) {					\
			va_end(ap);					\
			return ((int)api_return(E2BIG, 0));		\
		}							\
		(argv)[n_++] = va_arg(ap, char *);			\
	}								\
} while (0)

EXPORT int
execl(const char *path, const char *first, ...)
{
	char *argv[LIST_MAX];
	va_list ap;

	va_start(ap, first);
	GATHER(argv, first, ap);
	va_end(ap);
	return (execve(path, argv, environ));
}

EXPORT int
execlp(const char *file, const char *first, ...)
{
	char *argv[LIST_MAX];
	va_list ap;

	va_start(ap, first);
	GATHER(argv, first, ap);
	va_end(ap);
	return (execvpe(file, argv, environ));
}

EXPORT int
execle(const char *path, const char *first, ...)
{
	char *argv[LIST_MAX], **env;
	va_list ap;

	va_start(ap, first);
	GATHER(argv, first, ap);
	env = va_arg(ap, char **);
	va_end(ap);
	return (execve(path, argv, env));
}
