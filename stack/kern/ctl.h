/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket: stackctl's connection to a booted stack.
 *
 * Each connection carries one request.  The client sends a line of at most
 * CTL_LINEMAX bytes.  The stack answers "ok\n" and text, or "error: reason\n",
 * and closes the connection.  Requests are "sysctl -a", "sysctl -d" (with
 * descriptions), "sysctl -t" (the values each tunable accepts), "sysctl name"
 * and "sysctl name=value".  Subsystems register further requests: views
 * ("ifconfig", "netstat -r") and commands with arguments ("route add").
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
 * Splits a request line in place.  Returns NULL, or an error message if the
 * syntax is wrong.
 */
const char *ctl_parse(char *line, struct ctl_request *);

/* The growing answer to a request. */
struct ctl_out;
void	 ctl_printf(struct ctl_out *, const char *fmt, ...) PRINTFLIKE(2, 3);

/* Registers a view; both arguments are constants of the subsystem. */
void	 ctl_view_register(const char *command, void (*show)(struct ctl_out *));
/*
 * Registers a command with up to CTL_ARGS_MAX arguments; argv[0] is the first
 * argument.  Several commands may share run, which gets the command's name.
 * If run returns an errno value, the answer is only the reason in why.
 */
#define	CTL_ARGS_MAX	8
typedef int ctl_run_t(const char *command, struct ctl_out *, int argc,
	    char *argv[], char *why, size_t len);
void	 ctl_command_register(const char *command, ctl_run_t *);

/* Starts the server if the tunable ctl.path is set. */
void	 ctl_init(void);	/* registers the tunable */
int	 ctl_start(void); /* 0 or an errno value, printed on the console */
void	 ctl_stop(void);
/*
 * ctl_hold() delays answers until ctl_release().  A caller that lists all
 * descriptors opened by the boot needs this, because each connection
 * temporarily has one, too.
 */
void	 ctl_hold(void);
void	 ctl_release(void);

#endif /* KERN_CTL_H */
