/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server's end of a channel (remote.h): the page that it shares with the
 * client, and the sockets whose readiness wakes the client.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "api/server.h"

struct channel *
channel_new(struct client *cl, const int fds[ROOT_FDS])
{
	struct channel *ch = kmalloc(sizeof(*ch));
	void *p = mmap(NULL, sizeof(*ch->ch_call), PROT_READ | PROT_WRITE,
	    MAP_SHARED, fds[1], 0);

	fd_hidden_close(fds[1]);
	if (p == MAP_FAILED || fds[2] == -1) {
		fd_hidden_close(fds[0]);
		fd_hidden_close(fds[2]);
		kfree(ch);
		return (NULL);
	}
	ch->ch_client = cl;
	ch->ch_call = p;
	ch->ch_fd = fds[0];
	(void)waiter_init(&ch->ch_waiter, false);
	ch->ch_waiter.wt_eventfd = fds[2];
	return (ch);
}

void
channel_free(struct channel *ch)
{
	fd_hidden_close(ch->ch_fd);
	fd_hidden_close(ch->ch_waiter.wt_eventfd);
	mtx_destroy(&ch->ch_waiter.wt_lock);
	munmap(ch->ch_call, sizeof(*ch->ch_call));
	kfree(ch);
}

void
channel_disarm(struct channel *ch)
{
	if (ch->ch_npoll > 0) {
		pollents_unwatch(ch->ch_ents, ch->ch_npoll);
		for (unsigned i = 0; i < ch->ch_npoll; i++)
			frele(ch->ch_ents[i].pe_file);
		kfree(ch->ch_ents);
		kfree(ch->ch_poll);
	}
	ch->ch_npoll = 0;
	waiter_reset(&ch->ch_waiter);
}

void
channel_room(struct channel *ch, unsigned n)
{
	KASSERT(ch->ch_npoll == 0, ("channel_room: %u armed", ch->ch_npoll));
	ch->ch_ents = kmalloc(n * sizeof(*ch->ch_ents));
	ch->ch_poll = kmalloc(n * sizeof(*ch->ch_poll));
}

void
channel_append(struct channel *ch, struct file *f, int events)
{
	const unsigned i = ch->ch_npoll++;

	ch->ch_poll[i].events = (short)events;
	ch->ch_poll[i].revents = 0;
	pollent_init(&ch->ch_ents[i], f, &ch->ch_poll[i], &ch->ch_waiter);
}

bool
channel_arm(struct channel *ch, struct file *f, int events)
{
	atomic_fetchadd_u32(&f->f_refs, 1);
	channel_room(ch, 1);
	channel_append(ch, f, events);
	ch->ch_call->rc_again = REMOTE_AGAIN;
	ch->ch_call->rc_timeout = sotimeout(f->f_so, (events & POLLIN) != 0);
	return (pollents_watch(ch->ch_ents, 1) > 0);
}

void
channel_again(struct channel *ch, struct file *f, int events)
{
	if (channel_arm(ch, f, events))
		waiter_wake(&ch->ch_waiter);
}

void
channel_hide(struct channel *ch)
{
	ch->ch_npassed = 0;
	while (ch->ch_npassed < RIGHTS_MAX &&
	    ch->ch_passed[ch->ch_npassed] != -1) {
		ch->ch_passed[ch->ch_npassed] =
		    fd_hidden_copy(ch->ch_passed[ch->ch_npassed]);
		ch->ch_npassed++;
	}
	ch->ch_nanswer = ch->ch_nnumbers = 0;
}

int
channel_take(struct channel *ch, unsigned i)
{
	int fd = -1;

	if (i < ch->ch_npassed) {
		fd = ch->ch_passed[i];
		ch->ch_passed[i] = -1;
	}
	return (fd);
}

void
channel_close(struct channel *ch)
{
	for (unsigned i = 0; i < ch->ch_npassed; i++)
		fd_hidden_close(ch->ch_passed[i]);
	for (unsigned i = 0; i < ch->ch_nanswer; i++)
		fd_hidden_close(ch->ch_answer[i]);
}
