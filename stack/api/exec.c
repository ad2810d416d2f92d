/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exec(): a program that this process becomes gets a stack of its own, with the
 * same configuration, because the descriptors of the old one's device are
 * closed then.  Thus env(1), nice(1) and sh -c 'exec ...' run their command on
 * the stack.
 *
 * A child that executes a program leaves the stack in the parent.  The program
 * uses it, too, if a socket survives exec() (inherit.c).  Otherwise, if the
 * parent has not made a socket, it probably started the program for its sake,
 * as timeout(1) does, so a line on standard error shows where its sockets are.
 * With --strict of bootstack the program does not run.
 */
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/api.h"
#include "boot/reach.h"

#define	EX_UNREACHED	2	/* as bootstack */
#define	LINE_MAX_LEN	(PATH_MAX + 160)

/* What bootstack set, and what a process shares with its children. */
static char *preload, *conf;		/* [I] after boot: NAME=value */
static bool strict;			/* [I] after boot */
static atomic_u32 *children_noted;	/* [I] after boot */
pid_t api_owner;			/* [I] after boot */
atomic_u32 api_sockets_made;

static char *
copy_variable(const char *name)
{
	const char *value = getenv(name);
	char *copy = NULL;

	if (value != NULL && asprintf(&copy, "%s=%s", name, value) == -1)
		panic("libstack: no memory for the environment");
	return (copy);
}

void
exec_init(void)
{
	preload = copy_variable("LD_PRELOAD");
	conf = copy_variable("STACK_CONF");
	strict = getenv("STACK_STRICT") != NULL;
	api_owner = getpid();
	children_noted = mmap(NULL, sizeof(*children_noted), PROT_READ |
	    PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (children_noted == MAP_FAILED)
		children_noted = NULL;
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

/* In a child, or for one.  False: it must not run the program. */
static bool
child_may_run(const char *program)
{
	char reason[64];

	if (conf == NULL || atomic_load_u32(&api_sockets_made) != 0)
		return (true);
	if (strict || children_noted == NULL ||
	    atomic_fetchadd_u32(children_noted, 1) == 0) {
		snprintf(reason, sizeof(reason),
		    "is a child of process %d, which has the stack",
		    (int)api_owner);
		note(program, reason);
	}
	return (!strict);
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

static const char *
find_variable(char *const env[], const char *name)
{
	const size_t len = strlen(name);

	for (; *env != NULL; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return (*env + len + 1);
	return (NULL);
}

/*
 * The environment with the library and a variable for its boot; libraries that
 * the program preloads come first.  Allocated, and freed by exec().
 */
static char **
stack_environment(char *const env[], char *variable)
{
	const char *others = find_variable(env, "LD_PRELOAD");
	size_t n = 0, kept = 0;
	char **all, *both = preload;

	while (env[n] != NULL)
		n++;
	all = calloc(n + 4, sizeof(*all));
	if (all == NULL)
		return (NULL);
	if (others != NULL && preload != NULL && *others != '\0' &&
	    asprintf(&both, "LD_PRELOAD=%s:%s", others,
	    strchr(preload, '=') + 1) == -1)
		both = preload;
	for (size_t i = 0; i < n; i++)
		if (strncmp(env[i], "LD_PRELOAD=", 11) != 0)
			all[kept++] = env[i];
	all[kept++] = variable;
	if (both != NULL)
		all[kept++] = both;
	if (strict)
		all[kept++] = (char *)(uintptr_t)"STACK_STRICT=1";
	return (all);
}

/* What exec() needs: the environment, and what is freed or undone afterwards. */
struct plan {
	char *const	*env;
	char		**copy;		/* allocated, or NULL */
	char		*inherited;	/* inherit_prepare() */
};

static void
forget_inherited(struct plan *p)
{
	if (p->inherited != NULL)
		inherit_undo();
	free(p->inherited);
	p->inherited = NULL;
}

/* Ends a process that must not run the program. */
static struct plan
prepare(const char *program, char *const env[])
{
	struct plan p = { .env = env };
	const bool child = api_state() == API_CLIENT || !api_own_process();

	if (api_state() == API_PASSIVE || env == NULL)
		return (p);
	if (child)
		p.inherited = inherit_prepare();
	if (child && p.inherited == NULL) {
		if (!child_may_run(program))
			_exit(EX_UNREACHED);
		return (p);
	}
	if (!child && conf == NULL)
		return (p);
	if (!reachable(program)) {
		if (strict)
			_exit(EX_UNREACHED);
		forget_inherited(&p);
	}
	if (!child || p.inherited != NULL)
		p.copy = stack_environment(env, child ? p.inherited : conf);
	if (p.copy != NULL)
		p.env = p.copy;
	return (p);
}

/* exec() has failed. */
static int
undo(struct plan *p)
{
	const int error = errno;

	forget_inherited(p);
	free(p->copy);
	errno = error;
	return (-1);
}

EXPORT int
execve(const char *path, char *const argv[], char *const env[])
{
	struct plan p = prepare(path, env);

	(void)real.execve(path, argv, p.env);
	return (undo(&p));
}

EXPORT int
execvpe(const char *file, char *const argv[], char *const env[])
{
	struct plan p = prepare(file, env);

	(void)real.execvpe(file, argv, p.env);
	return (undo(&p));
}

EXPORT int
fexecve(int fd, char *const argv[], char *const env[])
{
	struct plan p;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	p = prepare(path, env);
	(void)real.fexecve(fd, argv, p.env);
	return (undo(&p));
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

EXPORT int
posix_spawn(pid_t *restrict pid, const char *restrict path,
    const posix_spawn_file_actions_t *restrict actions,
    const posix_spawnattr_t *restrict attr, char *const argv[restrict],
    char *const env[restrict])
{
	if (api_own_process() && !child_may_run(path))
		return (EPERM);
	return (real.posix_spawn(pid, path, actions, attr, argv, env));
}

EXPORT int
posix_spawnp(pid_t *restrict pid, const char *restrict file,
    const posix_spawn_file_actions_t *restrict actions,
    const posix_spawnattr_t *restrict attr, char *const argv[restrict],
    char *const env[restrict])
{
	if (api_own_process() && !child_may_run(file))
		return (EPERM);
	return (real.posix_spawnp(pid, file, actions, attr, argv, env));
}
