/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers a process to come with the process that has the stack: a child
 * before fork() (fork.c), and a program before exec() (inherit.c).  It gets a
 * hold of each file that it will have.
 */
#include "api/server.h"

/* While a process registers another one; guarded by the table's lock. */
static struct {
	file_test	*wanted;
	uint32_t	 n;
	union {
		struct file **files;
		uint32_t *handles;
	};
} list;

static void
count(int fd, struct file *f)
{
	list.n += list.wanted(fd, f);
}

static void
count_afresh(int fd, struct file *f)
{
	f->f_handle = 0;
	count(fd, f);
}

/* Handles are the order of files in the table. */
static void
hold_file(int fd, struct file *f)
{
	if (!list.wanted(fd, f) || f->f_handle != 0)
		return;
	(void)file_hold(f);
	list.files[list.n++] = f;
	f->f_handle = list.n;
}

static void
note_handle(int fd, struct file *f)
{
	if (list.wanted(fd, f))
		list.handles[list.n++] = f->f_handle;
}

/* Table locked, in the process with the stack. */
static void
register_here(int theirs)
{
	list.n = 0;
	fd_foreach(count_afresh);
	list.files = kmalloc((list.n + 1) * sizeof(*list.files));
	list.n = 0;
	fd_foreach(hold_file);
	server_add(server_client(theirs, list.files, list.n));
	kfree(list.files);
}

/* Table locked, in a client. */
static bool
register_there(int theirs)
{
	bool known;

	list.n = 0;
	fd_foreach(count);
	list.handles = kmalloc((list.n + 1) * sizeof(*list.handles));
	list.n = 0;
	fd_foreach(note_handle);
	known = remote_fork(theirs, list.handles, list.n);
	kfree(list.handles);
	fd_hidden_close(theirs);
	return (known);
}

int
newclient_root(file_test *wanted)
{
	int ours, theirs;

	list.wanted = wanted;
	remote_root_pair(&ours, &theirs);
	if (ours == -1 || theirs == -1) {
		fd_hidden_close(ours);
		fd_hidden_close(theirs);
		return (-1);
	}
	if (api_state() == API_UP)
		register_here(theirs);
	else if (!register_there(theirs)) {
		fd_hidden_close(ours);
		return (-1);
	}
	return (ours);
}
