/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server's side of remote.h: clients, and the thread that waits for what
 * arrives on their roots.
 */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/server.h"
#include "api/ticket.h"
#include "kern/synch.h"

#define	HANDLES_MIN	16

static struct mtx clients_lock;

/*
 * Locks used to protect struct client members:
 *	[I] immutable after creation
 *	[a] atomic
 *	[c] cl_lock
 *	[l] clients_lock
 */
struct client {
	atomic_u32	 cl_refs;	/* [a] its root, and its channels */
	int		 cl_root;	/* [I] hidden */
	uint32_t	 cl_ticket;	/* [I] 0: it is a process */
	struct mtx	 cl_lock;
	/* [c] handle - 1: a hold, or NULL */
	struct file	**cl_files GUARDED_BY(cl_lock);
	uint32_t	 cl_nfiles GUARDED_BY(cl_lock);	/* [c] */
	LIST_ENTRY(client) cl_link GUARDED_BY(clients_lock);	/* [l] */
};

#define	ROOT_HANDLES	50000	/* a message of the kernel has no room for more */
struct root_buffer {
	struct root_header header;
	uint32_t	 handles[ROOT_HANDLES];
};

static LIST_HEAD(, client) clients GUARDED_BY(clients_lock) =
    LIST_HEAD_INITIALIZER(clients);
static LIST_HEAD(, channel) ended GUARDED_BY(clients_lock) =
    LIST_HEAD_INITIALIZER(ended);
static unsigned nclients GUARDED_BY(clients_lock);	/* dropped ones, too */
static bool serves GUARDED_BY(clients_lock);	/* the server's thread runs */
static int news = -1;		/* [I] eventfd: the list has changed */
static struct thread *server;	/* [I] */

struct client *
server_client(int root, struct file *const *files, unsigned n)
{
	struct client *cl = kmalloc(sizeof(*cl));

	atomic_store_u32(&cl->cl_refs, 1);
	cl->cl_root = root;
	cl->cl_ticket = 0;
	mtx_init(&cl->cl_lock, LC_FD);
	mtx_lock(&cl->cl_lock);
	cl->cl_nfiles = n < HANDLES_MIN ? HANDLES_MIN : n;
	cl->cl_files = kmalloc(cl->cl_nfiles * sizeof(*cl->cl_files));
	if (n > 0)
		memcpy(cl->cl_files, files, n * sizeof(*files));
	mtx_unlock(&cl->cl_lock);
	return (cl);
}

struct file *
client_file(struct client *cl, uint32_t handle)
{
	struct file *f = NULL;

	mtx_lock(&cl->cl_lock);
	if (handle - 1 < cl->cl_nfiles)
		f = cl->cl_files[handle - 1];
	if (f != NULL)
		atomic_fetchadd_u32(&f->f_refs, 1);
	mtx_unlock(&cl->cl_lock);
	return (f);
}

static void
client_grow(struct client *cl) REQUIRES(cl->cl_lock)
{
	struct file **files = kmalloc(2 * cl->cl_nfiles * sizeof(*files));

	memcpy(files, cl->cl_files, cl->cl_nfiles * sizeof(*files));
	kfree(cl->cl_files);
	cl->cl_files = files;
	cl->cl_nfiles *= 2;
}

uint32_t
client_add(struct client *cl, struct file *f)
{
	uint32_t i = 0;

	mtx_lock(&cl->cl_lock);
	while (i < cl->cl_nfiles && cl->cl_files[i] != NULL)
		i++;
	if (i == cl->cl_nfiles)
		client_grow(cl);
	cl->cl_files[i] = f;
	mtx_unlock(&cl->cl_lock);
	return (i + 1);
}

struct file *
client_remove(struct client *cl, uint32_t handle)
{
	struct file *f = NULL;

	mtx_lock(&cl->cl_lock);
	if (handle - 1 < cl->cl_nfiles) {
		f = cl->cl_files[handle - 1];
		cl->cl_files[handle - 1] = NULL;
	}
	mtx_unlock(&cl->cl_lock);
	return (f);
}

/* The files of a process that has ended: their close must not wait. */
static void
close_at_exit(struct file *f)
{
	const struct linger none = { 0 };
	struct linger l = { 0 };
	socklen_t len = sizeof(l);

	if (f->f_type == FT_SOCKET && atomic_load_u32(&f->f_fds) == 1 &&
	    sogetopt(f->f_so, SOL_SOCKET, SO_LINGER, &l, &len) == 0 &&
	    l.l_onoff && l.l_linger > 0)
		(void)sosetopt(f->f_so, SOL_SOCKET, SO_LINGER, &none,
		    sizeof(none));
	file_close(f);
}

static void
client_rele(struct client *cl)
{
	struct file **files;
	uint32_t n;

	if (atomic_fetchadd_u32(&cl->cl_refs, (uint32_t)-1) != 1)
		return;
	mtx_lock(&cl->cl_lock);
	files = cl->cl_files;
	n = cl->cl_nfiles;
	mtx_unlock(&cl->cl_lock);
	for (uint32_t i = 0; i < n; i++)
		if (files[i] != NULL)
			close_at_exit(files[i]);
	fd_hidden_close(cl->cl_root);
	kfree(files);
	mtx_destroy(&cl->cl_lock);
	kfree(cl);
	mtx_lock(&clients_lock);
	if (--nclients == 0)
		wakeup(&nclients);
	mtx_unlock(&clients_lock);
}

static void
wake_server(void)
{
	const uint64_t one = 1;

	(void)!real.write(news, &one, sizeof(one));
}

void
server_add(struct client *cl)
{
	mtx_lock(&clients_lock);
	LIST_INSERT_HEAD(&clients, cl, cl_link);
	nclients++;
	mtx_unlock(&clients_lock);
	wake_server();
}

void
server_drop(struct client *cl)
{
	mtx_lock(&clients_lock);
	nclients++;
	mtx_unlock(&clients_lock);
	client_rele(cl);
}

int
server_ticket(int root, struct file *f)
{
	static atomic_u32 last;
	struct client *cl;
	uint32_t number;
	int error;

	if (!file_hold(f)) {
		fd_hidden_close(root);
		return (EBADF);
	}
	cl = server_client(root, &f, 1);
	do
		number = atomic_fetchadd_u32(&last, 1) + 1;
	while (number == 0);
	cl->cl_ticket = number;
	error = ticket_bind(root, number);
	if (error != 0)
		server_drop(cl);
	else
		server_add(cl);
	return (error);
}

int
server_exchange(uint32_t number, struct file **fp)
{
	struct client *cl;
	struct file *f;
	bool open;

	if (number == 0)
		return (EBADF);
	mtx_lock(&clients_lock);
	LIST_FOREACH(cl, &clients, cl_link)
		if (cl->cl_ticket == number)
			break;
	if (cl != NULL)
		atomic_fetchadd_u32(&cl->cl_refs, 1);
	mtx_unlock(&clients_lock);
	if (cl == NULL)
		return (EBADF);
	f = client_file(cl, 1);
	open = file_hold(f);
	frele(f);
	client_rele(cl);
	*fp = f;
	return (open ? 0 : EBADF);
}

static void
channel_start(struct client *cl, const int fds[ROOT_FDS])
{
	struct channel *ch = channel_new(cl, fds);

	if (ch == NULL)
		return;
	atomic_fetchadd_u32(&cl->cl_refs, 1);
	if (kthread_create("channel", MACH_CPU_ANY, channel_serve, ch,
	    &ch->ch_thread) != 0) {
		channel_free(ch);
		client_rele(cl);
	}
}

void
channel_ended(struct channel *ch)
{
	mtx_lock(&clients_lock);
	LIST_INSERT_HEAD(&ended, ch, ch_link);
	mtx_unlock(&clients_lock);
	wake_server();
}

/* Joins the threads of channels that have ended. */
static void
reap(void)
{
	struct channel *ch;
	struct client *cl;

	for (;;) {
		mtx_lock(&clients_lock);
		ch = LIST_FIRST(&ended);
		if (ch != NULL)
			LIST_REMOVE(ch, ch_link);
		mtx_unlock(&clients_lock);
		if (ch == NULL)
			return;
		kthread_join(ch->ch_thread);
		cl = ch->ch_client;
		channel_free(ch);
		client_rele(cl);
	}
}

/* Copies those of a client's files that its child has: holds, by handle. */
static struct file **
copy_files(struct client *cl, const uint32_t *handles, uint32_t n,
    uint32_t *nfiles)
{
	struct file **files, *f;

	mtx_lock(&cl->cl_lock);
	*nfiles = cl->cl_nfiles;
	mtx_unlock(&cl->cl_lock);
	files = kmalloc(*nfiles * sizeof(*files));
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t h = handles[i] - 1;

		if (h >= *nfiles || files[h] != NULL ||
		    (f = client_file(cl, h + 1)) == NULL)
			continue;
		if (file_hold(f))
			files[h] = f;
		frele(f);
	}
	return (files);
}

/* A client forks: it waits for the answer. */
static void
client_fork(struct client *cl, int root, const uint32_t *handles, uint32_t n)
{
	const char done = 0;
	const struct iovec answer = { (void *)(uintptr_t)&done, 1 };
	struct file **files;
	uint32_t nfiles;

	files = copy_files(cl, handles, n, &nfiles);
	server_add(server_client(root, files, nfiles));
	kfree(files);
	(void)rights_send(cl->cl_root, &answer, 1, NULL, 0);
}

/* Drops the files that a client does not need. */
static void
client_keep(struct client *cl, const uint32_t *handles, uint32_t n)
{
	struct file **unneeded, **needed;
	uint32_t room;

	mtx_lock(&cl->cl_lock);
	room = cl->cl_nfiles;
	unneeded = cl->cl_files;
	needed = kmalloc(room * sizeof(*needed));
	for (uint32_t i = 0; i < n; i++)
		if (handles[i] - 1 < room) {
			needed[handles[i] - 1] = unneeded[handles[i] - 1];
			unneeded[handles[i] - 1] = NULL;
		}
	cl->cl_files = needed;
	mtx_unlock(&cl->cl_lock);
	for (uint32_t i = 0; i < room; i++)
		if (unneeded[i] != NULL)
			close_at_exit(unneeded[i]);
	kfree(unneeded);
}

/*
 * Of the server's thread only.  Static, so that the leak detector finds what
 * they point to when the process ends.
 */
static struct {
	struct root_buffer buffer;
	struct pollfd	*fds;	/* news, and the roots of the clients below */
	struct client	**clients;
} serving;

/* Something arrived on a root, or the client has ended. */
static void
root_input(struct client *cl)
{
	struct root_buffer *rb = &serving.buffer;
	const struct iovec iov = { rb, sizeof(*rb) };
	int fds[ROOT_FDS];
	uint32_t n;
	ssize_t len;

	fd_lockops->change();
	len = rights_receive(cl->cl_root, &iov, 1, fds, ROOT_FDS);
	for (unsigned i = 0; i < ROOT_FDS; i++)
		fds[i] = fd_hidden_copy(fds[i]);
	fd_lockops->changed();
	n = rb->header.rh_handles < ROOT_HANDLES ? rb->header.rh_handles :
	    ROOT_HANDLES;
	if (len < (ssize_t)sizeof(rb->header) || cl->cl_ticket != 0) {
		mtx_lock(&clients_lock);
		LIST_REMOVE(cl, cl_link);
		mtx_unlock(&clients_lock);
		client_rele(cl);
	} else if (rb->header.rh_message == ROOT_CHANNEL)
		channel_start(cl, fds);
	else if (rb->header.rh_message == ROOT_KEEP)
		client_keep(cl, rb->handles, n);
	else
		client_fork(cl, fds[0], rb->handles, n);
}

/* Collects what the server waits for; returns the number of descriptors. */
static unsigned
gather(void)
{
	struct client *cl;
	unsigned n = 0, room = 1;

	kfree(serving.fds);
	kfree(serving.clients);
	mtx_lock(&clients_lock);
	LIST_FOREACH(cl, &clients, cl_link)
		room++;
	serving.fds = kmalloc(room * sizeof(*serving.fds));
	serving.clients = kmalloc(room * sizeof(*serving.clients));
	serving.fds[n++] = (struct pollfd){ .fd = news, .events = POLLIN };
	LIST_FOREACH(cl, &clients, cl_link) {
		serving.clients[n] = cl;
		serving.fds[n++] = (struct pollfd){ .fd = cl->cl_root,
		    .events = POLLIN };
	}
	mtx_unlock(&clients_lock);
	return (n);
}

static void
server_main(void *arg)
{
	uint64_t count;
	unsigned n;

	(void)arg;
	mtx_lock(&clients_lock);
	serves = true;
	wakeup(&serves);
	mtx_unlock(&clients_lock);
	for (;;) {
		n = gather();
		(void)real.ppoll(serving.fds, n, NULL, NULL);
		if (serving.fds[0].revents != 0)
			(void)!real.read(news, &count, sizeof(count));
		reap();
		for (unsigned i = 1; i < n; i++)
			if (serving.fds[i].revents != 0)
				root_input(serving.clients[i]);
	}
}

/*
 * Returns when the thread runs: a thread that starts may hold a lock of a
 * sanitizer, which a child would inherit.
 */
void
server_start(void)
{
	mtx_init(&clients_lock, LC_FD);
	news = fd_hidden_event();
	if (news == -1 || kthread_create("clients", MACH_CPU_ANY, server_main,
	    NULL, &server) != 0)
		panic("libstack: no thread for child processes");
	mtx_lock(&clients_lock);
	while (!serves)
		(void)msleep(&serves, &clients_lock, 0, "clients",
		    NSEC_FOREVER);
	mtx_unlock(&clients_lock);
}

bool
server_has_clients(void)
{
	bool any;

	if (server == NULL)
		return (false);
	mtx_lock(&clients_lock);
	any = nclients > 0;
	mtx_unlock(&clients_lock);
	return (any);
}

/* False after the process has ended, before the server's thread knows it. */
static bool
client_lives(const struct client *cl)
{
	struct pollfd root = { .fd = cl->cl_root };

	return (real.ppoll(&root, 1, &(struct timespec){ 0 }, NULL) == 0);
}

bool
server_in_use(void)
{
	struct client *cl;
	bool any = false;

	if (server == NULL)
		return (false);
	mtx_lock(&clients_lock);
	LIST_FOREACH(cl, &clients, cl_link)
		any = any || client_lives(cl);
	mtx_unlock(&clients_lock);
	return (any);
}

void
server_linger(void)
{
	mtx_lock(&clients_lock);
	while (nclients > 0)
		(void)msleep(&nclients, &clients_lock, 0, "clients",
		    NSEC_FOREVER);
	mtx_unlock(&clients_lock);
}
