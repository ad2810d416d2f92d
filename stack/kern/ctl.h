/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket: how stackctl asks a booted stack.
 *
 * One request a connection: the client sends a line of at most CTL_LINEMAX
 * bytes, the stack answers "ok\n" and text, or "error: reason\n", and hangs
 * up.  Requests are "sysctl -a", "sysctl -d" (with descriptions),
 * "sysctl -t" (what each tunable may be), "sysctl name", "sysctl name=value",
 * and what subsystems register: views ("ifconfig", "netstat -r") and commands
 * with arguments ("route add").
 */
#ifndef KERN_CTL_H
#define KERN_CTL_H

#include "kern/systm.h"

#define	CTL_LINEMAX	1024

enum ctl_verb { CTL_ALL, CTL_DESCRIBE, CTL_TYPES, CTL_GET, CTL_SET,
    CTL_COMMAND };

struct ctl_request {
	enum ctl_verb	 cr_verb;
	const char	*cr_name;	/* sysctl name, or the whole command */
	const char	*cr_value;	/* CTL_SET */
};

/*
 * Splits a request line in place.  Returns NULL, or the reason why it is
 * not a request.
 */
const char *ctl_parse(char *line, struct ctl_request *);

/* The growing answer to a request. */
struct ctl_out;
void	 ctl_printf(struct ctl_out *, const char *fmt, ...) PRINTFLIKE(2, 3);

/* A view is shown for a command; both are constants of the subsystem. */
void	 ctl_view_register(const char *command, void (*show)(struct ctl_out *));
/*
 * A command has up to CTL_ARGS_MAX arguments, argv[0] being the first; run is
 * told which command it is, as several may share it.  On an error, an errno
 * value, the answer is the reason in why alone.
 */
#define	CTL_ARGS_MAX	8
typedef int ctl_run_t(const char *command, struct ctl_out *, int argc,
	    char *argv[], char *why, size_t len);
void	 ctl_command_register(const char *command, ctl_run_t *);

/* Starts serving on the tunable ctl.path, if it is set. */
void	 ctl_init(void);	/* registers the tunable */
int	 ctl_start(void);	/* 0 or an errno value, said on the console */
void	 ctl_stop(void);
/*
 * Who must know all descriptors that the boot opens lets nobody be answered
 * before it has looked: a connection has one, too, for a while.
 */
void	 ctl_hold(void);
void	 ctl_release(void);

#endif /* KERN_CTL_H */
