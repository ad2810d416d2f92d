/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets that survive exec().  A client that executes a program forks for the
 * server's sake: the new client has a root and the sockets without FD_CLOEXEC,
 * and exec() ends the old one.  Placeholders and the new root stay open, and
 * $STACK_CLIENT has their numbers:
 *
 *	root api_owner api.inet6_kernel unix.sockets { descriptor handle inode }
 *
 * The library boots without a network in the program (stack_boot_client()).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/remote.h"

#define	HEAD_LEN	64	/* max characters of the variable's start */
#define	SOCKET_LEN	48	/* and of each socket */

/* From inherit_prepare() to inherit_undo(); guarded by the table's lock. */
static struct {
	int		 root;
	uint32_t	 n;
	uint32_t	*handles;
	char		*end;	/* of the variable */
} passing;

static bool
survives(int fd, const struct file *f)
{
	return (f->f_type == FT_SOCKET && !fd_cloexec(fd));
}

static void
count(int fd, struct file *f)
{
	if (survives(fd, f))
		passing.n++;
}

static void
note(int fd, struct file *f)
{
	if (survives(fd, f))
		passing.handles[passing.n++] = f->f_handle;
}

static void
describe(int fd, struct file *f)
{
	if (survives(fd, f))
		passing.end += snprintf(passing.end, SOCKET_LEN,
		    " %d %u %ju", fd, f->f_handle, (uintmax_t)f->f_inode);
}

static void
keep(int fd, struct file *f)
{
	if (survives(fd, f))
		(void)real.fcntl(fd, F_SETFD, 0);
}

static void
keep_no_longer(int fd, struct file *f)
{
	if (survives(fd, f))
		(void)real.fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Table locked.  The variable that has the text; NULL: nothing is inherited. */
static char *
new_client(void)
{
	char *variable = malloc(HEAD_LEN + passing.n * SOCKET_LEN);
	int theirs;

	remote_root_pair(&passing.root, &theirs);
	if (variable == NULL || passing.root == -1 || theirs == -1 ||
	    !remote_fork(theirs, passing.handles, passing.n)) {
		fd_hidden_close(passing.root);
		free(variable);
		variable = NULL;
	} else
		passing.end = variable + snprintf(variable, HEAD_LEN,
		    "STACK_CLIENT=%d %d %u %u", passing.root, (int)api_owner,
		    atomic_load_u32(&api_inet6_kernel),
		    atomic_load_u32(&api_unix_sockets));
	fd_hidden_close(theirs);
	return (variable);
}

/* Table locked. */
static char *
pass(void)
{
	char *variable = NULL;

	passing.n = 0;
	fd_foreach(count);
	passing.handles = calloc(passing.n + 1, sizeof(*passing.handles));
	if (passing.n == 0 || passing.handles == NULL)
		goto out;
	passing.n = 0;
	fd_foreach(note);
	variable = new_client();
	if (variable == NULL)
		goto out;
	fd_foreach(describe);
	(void)real.fcntl(passing.root, F_SETFD, 0);
	fd_foreach(keep);
out:
	free(passing.handles);
	return (variable);
}

char *
inherit_prepare(void)
{
	char *variable;

	if (api_state() != API_CLIENT || !api_own_process())
		return (NULL);
	api_enter();	/* a handler must not find the table locked */
	fd_lockops->change();
	variable = pass();
	if (variable == NULL) {
		fd_lockops->changed();
		api_leave(0);
	}
	return (variable);
}

void
inherit_undo(void)
{
	fd_foreach(keep_no_longer);
	fd_hidden_close(passing.root);
	fd_lockops->changed();
	api_leave(0);
}

/* The file of a handle that an earlier descriptor has: a hold, or NULL. */
static struct file *
same_file(int before, uint32_t handle)
{
	struct file *f;

	for (int fd = 0; fd < before; fd++) {
		f = fget_type(fd, FT_SOCKET);
		if (f == NULL)
			continue;
		if (f->f_handle == handle && file_hold(f)) {
			frele(f);
			return (f);
		}
		frele(f);
	}
	return (NULL);
}

static void
adopt(int fd, uint32_t handle, uint64_t inode)
{
	struct file *f = same_file(fd, handle);

	if (f == NULL) {
		f = file_new(FT_SOCKET);
		f->f_handle = handle;
		f->f_inode = inode;
	}
	(void)real.fcntl(fd, F_SETFD, FD_CLOEXEC);
	fd_adopt(fd, f, false);
}

void
inherit_boot(const char *value)
{
	char *p;
	const int root = (int)strtol(value, &p, 10);

	(void)real.fcntl(root, F_SETFD, FD_CLOEXEC);
	fd_hide(root);
	remote_start(root);
	api_owner = (pid_t)strtol(p, &p, 10);
	atomic_store_u32(&api_inet6_kernel, (uint32_t)strtoul(p, &p, 10));
	atomic_store_u32(&api_unix_sockets, (uint32_t)strtoul(p, &p, 10));
	while (*p != '\0') {
		const int fd = (int)strtol(p, &p, 10);
		const uint32_t handle = (uint32_t)strtoul(p, &p, 10);

		adopt(fd, handle, strtoumax(p, &p, 10));
	}
}
