/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that has the stack, as the server of its forked children
 * (remote.h).
 */
#ifndef API_SERVER_H
#define API_SERVER_H

#include "api/poll.h"
#include "api/remote.h"

/*
 * A client is created before fork(), with its files as handles 1 to n, whose
 * holds it takes over; a NULL file leaves a handle free.  server_add() or
 * server_drop() follows.
 */
struct client;
struct client *server_client(int root, struct file *const *, unsigned n);
void	 server_add(struct client *);
void	 server_drop(struct client *);
/*
 * A client that has one file only: the other end of a ticket (ticket.c), with
 * its root, which is consumed.  server_exchange() returns a hold of that file.
 * Both return an errno value.
 */
int	 server_ticket(int root, struct file *);
int	 server_exchange(uint32_t number, struct file **);
bool	 server_has_clients(void);
bool	 server_in_use(void);		/* by a client that has not ended */
void	 server_linger(void);		/* until no client is left */

/* Files of a client. */
struct file *client_file(struct client *, uint32_t handle); /* referenced */
uint32_t client_add(struct client *, struct file *);	/* consumes a hold */
struct file *client_remove(struct client *, uint32_t handle); /* its hold */

/* A channel: all members but ch_link belong to its thread. */
struct channel {
	struct client	*ch_client;	/* referenced */
	struct thread	*ch_thread;
	LIST_ENTRY(channel) ch_link;	/* after its thread has ended */
	struct remote_call *ch_call;	/* shared with the client */
	int		 ch_fd;		/* hidden */
	/* Hidden descriptors of the request, and of its answer. */
	int		 ch_passed[RIGHTS_MAX], ch_answer[RIGHTS_MAX];
	unsigned	 ch_npassed, ch_nanswer;
	unsigned	 ch_nnumbers;	/* in the answer's control messages */
	struct waiter	 ch_waiter;	/* on the client's eventfd */
	/* Sockets whose readiness wakes the client; ch_npoll 0: none. */
	struct pollent	*ch_ents;
	struct pollfd	*ch_poll;
	unsigned	 ch_npoll;
};

/* NULL: the descriptors are unusable; they are consumed. */
struct channel *channel_new(struct client *, const int fds[ROOT_FDS]);
void	 channel_serve(void *ch);	/* its thread */
/* No socket wakes the client any more. */
void	 channel_disarm(struct channel *);
/* Makes room for n sockets. */
void	 channel_room(struct channel *, unsigned n);
/* Adds a socket; consumes the caller's reference. */
void	 channel_append(struct channel *, struct file *, int events);
/*
 * The answer is: repeat the request when one of events may have come.
 * channel_arm() is true if one is there, and leaves the wakeup to its caller.
 */
bool	 channel_arm(struct channel *, struct file *, int events);
void	 channel_again(struct channel *, struct file *, int events);
/* The descriptors that came with a request are hidden, and closed after it. */
void	 channel_hide(struct channel *);
void	 channel_close(struct channel *);
/* A descriptor that came with the request, which becomes the caller's; or -1 */
int	 channel_take(struct channel *, unsigned i);
void	 channel_ended(struct channel *); /* at its thread's end */
void	 channel_free(struct channel *);

/*
 * Numbers in messages (rights.c).  Between rights_serve(ch) and
 * rights_serve(NULL), when rights_remote() is true, right_get() and
 * right_put() do the work of fo_get and fo_install.
 */
void	 rights_serve(struct channel *);
bool	 rights_remote(void);
int	 right_get(int number, void **file);
int	 right_put(void *file);

#endif /* API_SERVER_H */
