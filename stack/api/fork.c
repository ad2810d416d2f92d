/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork(): the stack's threads stay in the parent, and the child becomes a
 * client of the process that has the stack (remote.h).
 *
 * The descriptor table is locked during fork(), so that parent and child have
 * the same one.  Before it the parent registers the client with a hold of each
 * file in the table.  In the child, the files of the table are those of the
 * client; what only calls of other threads referred to is gone.
 */
#include "api/epoll.h"
#include "api/server.h"
#include "kern/planted.h"
#include "kern/thread.h"

/* Between prepare and parent or child; guarded by the table's lock. */
static struct {
	bool		 active;
	bool		 unexposed;	/* a set that the kernel does not poll */
	int		 root;		/* of the new client; -1: none */
} forking;

static bool
is_file(int fd, const struct file *f)
{
	(void)fd;
	return (f->f_type != FT_RESERVED);
}

static void
expose_set(int fd, struct file *f)
{
	(void)f;
	f = fget(fd);
	if (f != NULL && f->f_ep != NULL)
		epoll_expose(f->f_ep);	/* the child waits with the kernel's */
	if (f != NULL)
		frele(f);
}

static void
note_unexposed(int fd, struct file *f)
{
	(void)fd;
	if (f->f_ep != NULL && !epset_exposed(f->f_ep))
		forking.unexposed = true;
}

/* Locks the table.  Until then another thread may make a set. */
static void
lock_table(void)
{
	for (;;) {
		fd_foreach(expose_set);
		if (PLANTED(FD_FORK))
			return;
		fd_lockops->change();
		forking.unexposed = false;
		fd_foreach(note_unexposed);
		if (!forking.unexposed)
			return;
		fd_lockops->changed();
	}
}

void
fork_prepare(void)
{
	if (!api_own_process())
		return;
	api_enter();
	lock_table();
	forking.active = true;
	forking.root = newclient_root(is_file);
	mach_alloc_fork();
}

void
fork_parent(void)
{
	if (!forking.active || !api_own_process())
		return;
	mach_alloc_fork_parent();
	forking.active = false;
	fd_hidden_close(forking.root);
	if (!PLANTED(FD_FORK))
		fd_lockops->changed();
	api_leave(0);
}

static void
forget_references(int fd, struct file *f)
{
	(void)fd;
	if (f->f_type == FT_RESERVED)
		return;
	atomic_store_u32(&f->f_refs, 0);
	atomic_store_u32(&f->f_fds, 0);
	f->f_inode = file_inode(f);
	f->f_so = NULL;
	f->f_ep = NULL;
	atomic_store_u32(&f->f_nonblock, 0);	/* the server knows them */
	atomic_store_u32(&f->f_async, 0);
}

static void
adopt(int fd, struct file *f)
{
	if (f->f_type == FT_RESERVED) {
		fd_drop_reserved(fd);
		return;
	}
	atomic_fetchadd_u32(&f->f_refs, 1);
	atomic_fetchadd_u32(&f->f_fds, 1);
}

/*
 * Only this thread exists.  The locks that others may have held are free
 * again.  A child of a vfork()ed process has no root and no network.
 */
void
fork_child(void)
{
	if (api_state() == API_PASSIVE)
		return;
	mach_alloc_forked();
	threads_forked();
	threads_alone();
	file_forked();
	signals_forked();
	wait_forked();
	fd_foreach(forget_references);
	fd_foreach(adopt);
	api_become_client();
	fd_close_hidden(forking.active ? forking.root : -1);
	remote_start(forking.active ? forking.root : -1);
	if (forking.active)
		fd_lockops->changed();
	fd_lock_forked();
	if (forking.active)
		api_leave(0);
	forking.active = false;
}
