/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a search looks for races in: a few threads that do under each other's
 * hands what programs do, and a state that they must end in.  A scene that
 * goes wrong ends the process (CHECK, KASSERT, witness, the machine); one that
 * goes well returns, and has left nothing behind.
 */
#ifndef TESTS_SEARCH_SCENES_H
#define TESTS_SEARCH_SCENES_H

#include <stdbool.h>

struct scene {
	const char	*name, *what;
	const char	*settings;	/* tunables: name=value, with spaces */
	void		(*prepare)(void);	/* before the search, or NULL */
	void		(*run)(void);
};

/* One list for each file, with an empty one at the end. */
extern const struct scene fd_scenes[], kern_scenes[], unix_scenes[],
    inet_scenes[];

/* A condition: the number of sockets is at most *start (a uint32_t). */
bool	 scene_none_left(void *start);
/*
 * Threads that do something with a socket that others may close meanwhile.
 * Those that move data have a reference, as a program's call has one to the
 * file, which ends with them.
 */
void	 scene_close_one(void *so);
void	 scene_send_some(void *so);
void	 scene_receive_all(void *so);	/* until end of file or an error */

#endif /* TESTS_SEARCH_SCENES_H */
