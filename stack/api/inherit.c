/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets that survive exec(), and those of posix_spawn()'s programs.  A process
 * that executes a program registers a new client, which has a root and the
 * sockets without FD_CLOEXEC.  $STACK_CLIENT has what the library needs to boot
 * without a network in the program (stack_boot_client()):
 *
 *	root all api_owner api.inet6_kernel unix.sockets
 *
 * Without a root (-1) its calls fail like those of the process itself.
 *
 * While the kernel executes the program, the number of each socket is a file in
 * memory in the place of its placeholder, which contains the file's handle.  So
 * the kernel itself does what file actions say (posix_spawn(3)), and the program
 * finds its sockets by these texts, without /proc too.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/remote.h"
#include "kern/planted.h"

#define	TEXT_LEN	64	/* max characters in a file */

/* From inherit_prepare() to inherit_undo(); guarded by the table's lock. */
static struct {
	int		 root;
	file_test	*wanted;
	int		 error;
} passing;

static bool
any_socket(int fd, const struct file *f)
{
	(void)fd;
	return (f->f_type == FT_SOCKET);
}

static bool
survives(int fd, const struct file *f)
{
	return (f->f_type == FT_SOCKET && !fd_cloexec(fd));
}

/*
 * A file in the place of the placeholder.  A program without the library that
 * reads it is at its end.
 */
static void
name_number(int fd, struct file *f)
{
	char text[TEXT_LEN];
	size_t len;
	int named;

	if (passing.error != 0 || !passing.wanted(fd, f))
		return;
	len = (size_t)snprintf(text, sizeof(text), "libstack.%d.%u.%ju",
	    (int)api_owner, f->f_handle, (uintmax_t)file_inode(f));
	named = memfd_create("libstack", MFD_CLOEXEC);
	if (named == -1 || real.write(named, text, len) != (ssize_t)len ||
	    real.dup3(named, fd, fd_cloexec(fd) ? O_CLOEXEC : 0) == -1)
		passing.error = errno;
	if (named != -1)
		real.close(named);
}

static void
unname_number(int fd, struct file *f)
{
	if (passing.wanted(fd, f))
		fd_hold_place(fd);
}

int
inherit_prepare(bool all, char text[INHERIT_LEN])
{
	int error;

	api_enter();	/* a handler must not find the table locked */
	if (!PLANTED(FD_EXEC))
		fd_lockops->change();
	passing.wanted = all ? any_socket : survives;
	passing.error = 0;
	passing.root = newclient_root(passing.wanted);
	snprintf(text, INHERIT_LEN, "STACK_CLIENT=%d %d %d %u %u",
	    passing.root, all, (int)api_owner,
	    atomic_load_u32(&api_inet6_kernel),
	    atomic_load_u32(&api_unix_sockets));
	fd_foreach(name_number);
	error = passing.error;
	if (error != 0) {
		inherit_undo();
		return (error);
	}
	(void)real.fcntl(passing.root, F_SETFD, 0);
	return (0);
}

void
inherit_undo(void)
{
	fd_foreach(unname_number);
	fd_hidden_close(passing.root);
	if (!PLANTED(FD_EXEC))
		fd_lockops->changed();
	api_leave(0);
}

static void
any_survivor(int fd, struct file *f)
{
	if (survives(fd, f))
		passing.error = 1;
}

bool
inherit_any(void)
{
	bool any;

	api_enter();
	fd_lockops->change();
	passing.error = 0;
	fd_foreach(any_survivor);
	any = passing.error != 0;
	fd_lockops->changed();
	api_leave(0);
	return (any);
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

/* The handles that a new program has found. */
struct found {
	uint32_t	 n, room;
	uint32_t	*handles;
};

static void
found_add(struct found *found, uint32_t handle)
{
	if (found->n == found->room) {
		found->room = 2 * found->room + 16;
		found->handles = realloc(found->handles, found->room *
		    sizeof(*found->handles));
		if (found->handles == NULL)
			panic("libstack: no memory for a client of the stack");
	}
	found->handles[found->n++] = handle;
}

/* A descriptor that the program has got: is it a socket of the stack? */
static void
adopt(int fd, void *arg)
{
	char text[TEXT_LEN];
	uint32_t handle;
	uint64_t inode;
	struct file *f;
	ssize_t len;
	int owner;

	if (fd >= API_MAXFD || real.fcntl(fd, F_GET_SEALS) == -1)
		return;		/* no file in memory */
	len = real.pread(fd, text, sizeof(text) - 1, 0);
	if (len <= 0)
		return;
	text[len] = '\0';
	if (sscanf(text, "libstack.%d.%" SCNu32 ".%" SCNu64, &owner,
	    &handle, &inode) != 3 || owner != api_owner)
		return;
	f = same_file((int)fd_limit(), handle);
	if (f == NULL) {
		f = file_new(FT_SOCKET);
		f->f_handle = handle;
		f->f_inode = inode;
		found_add(arg, handle);
	}
	fd_convert(fd, f, false);
}

void
inherit_boot(const char *value)
{
	struct found found = { 0 };
	unsigned inet6_kernel, unix_sockets;
	int root, all, owner;

	if (sscanf(value, "%d %d %d %u %u", &root, &all, &owner, &inet6_kernel,
	    &unix_sockets) != 5)
		panic("libstack: STACK_CLIENT=%s", value);
	(void)real.fcntl(root, F_SETFD, FD_CLOEXEC);
	fd_hide(root);
	remote_start(root);
	api_owner = owner;
	atomic_store_u32(&api_inet6_kernel, inet6_kernel);
	atomic_store_u32(&api_unix_sockets, unix_sockets);
	each_descriptor(adopt, &found);
	if (all)
		remote_keep(found.handles, found.n);
	free(found.handles);
}
