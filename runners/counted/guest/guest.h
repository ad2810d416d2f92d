/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The only program of a guest: it sets up three hosts in network namespaces,
 * left - router - right, puts loads on them, and switches the guest off.
 */
#include <stdbool.h>

enum host { LEFT, ROUTER, RIGHT, HOSTS };

/* Prints an error message with errno and switches the guest off. */
__attribute__((noreturn)) void die(const char *what);

/* The value of a call that returns -1 on an error, which ends the guest. */
#define TRY(call) __extension__ ({					\
	__typeof__(call) tried_ = (call);				\
	if (tried_ < 0)							\
		die(#call);						\
	tried_;								\
})

/* network.c */
void	enter(enum host);
void	set_up_network(void);
void	write_file(const char *path, const char *text);

/* loads.c */
void	run_loads(const char *only, unsigned windows, unsigned seed);
