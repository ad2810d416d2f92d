/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Server of the control socket: one thread, one request for each connection.
 * The socket's file has mode 0600.  Only the user who runs the stack can send
 * requests, who could also kill it.
 */
#include "kern/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kern/lock.h"
#include "kern/sysctl.h"
#include "kern/thread.h"

#define	CTL_COMMANDS_MAX 48
/* Limits the time for which a slow client delays others and shutdown. */
#define	CTL_TIMEOUT	(500 * NSEC_PER_MSEC)

struct ctl_out {
	char	*co_text;
	size_t	 co_len, co_size;
};

/* Registered at boot, before the server's thread starts. */
static struct ctl_command {
	const char	*command;
	void		(*show)(struct ctl_out *); /* for a view, or NULL */
	ctl_run_t	*run;
} ctl_commands[CTL_COMMANDS_MAX];
static unsigned ctl_ncommands;

static char ctl_path[108];		/* as long as sun_path */
static struct mach_ctl *ctl_socket;
static struct thread *ctl_thread;
static atomic_u32 ctl_held;		/* the server parks on this word */

static const struct sysctl_oid ctl_oids[] = {
	{ .oid_name = "ctl.path", .oid_type = CTL_STRING, .oid_flags = CTL_TUN,
	    .oid_ptr = ctl_path, .oid_max = sizeof(ctl_path),
	    .oid_descr = "file name of the control socket; empty: none" },
};

static void
ctl_grow(struct ctl_out *co, size_t more)
{
	char *text;

	if (co->co_len + more <= co->co_size)
		return;
	co->co_size = 2 * (co->co_len + more);
	text = kmalloc(co->co_size);
	if (co->co_text != NULL)
		memcpy(text, co->co_text, co->co_len);
	kfree(co->co_text);
	co->co_text = text;
}

void
ctl_printf(struct ctl_out *co, const char *fmt, ...)
{
	va_list ap, again;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	KASSERT(len >= 0, ("ctl_printf: format %s", fmt));
	ctl_grow(co, (size_t)len + 1);
	vsnprintf(co->co_text + co->co_len, (size_t)len + 1, fmt, again);
	co->co_len += (size_t)len;
	va_end(again);
	va_end(ap);
}

static void
command_register(const struct ctl_command *cc)
{
	KASSERT(ctl_socket == NULL, ("ctl: %s is late", cc->command));
	if (ctl_ncommands == CTL_COMMANDS_MAX)
		panic("ctl: too many commands: %s", cc->command);
	ctl_commands[ctl_ncommands++] = *cc;
}

void
ctl_view_register(const char *command, void (*show)(struct ctl_out *))
{
	command_register(&(struct ctl_command){ command, show, NULL });
}

void
ctl_command_register(const char *command, ctl_run_t *run)
{
	command_register(&(struct ctl_command){ command, NULL, run });
}

static void
show_value(const struct sysctl_oid *oid, const char *value, void *arg)
{
	ctl_printf(arg, "%s: %s\n", oid->oid_name, value);
}

static void
show_description(const struct sysctl_oid *oid, const char *value, void *arg)
{
	(void)value;
	ctl_printf(arg, "%s%s: %s\n", oid->oid_name,
	    (oid->oid_flags & CTL_RUN) != 0 ? " [run]" :
	    (oid->oid_flags & CTL_TUN) != 0 ? " [boot]" : "", oid->oid_descr);
}

/*
 * For programs: "name: a b c" for an enumeration, "name: 0-9" for a number,
 * "name:" for a string.
 */
static void
show_type(const struct sysctl_oid *oid, const char *value, void *arg)
{
	(void)value;
	if ((oid->oid_flags & CTL_TUN) == 0)
		return;
	ctl_printf(arg, "%s:", oid->oid_name);
	if (oid->oid_names != NULL)
		for (size_t i = 0; oid->oid_names[i] != NULL; i++)
			ctl_printf(arg, " %s", oid->oid_names[i]);
	else if (oid->oid_type == CTL_BOOL)
		ctl_printf(arg, " 0-1");
	else if (oid->oid_type == CTL_U32 ||
	    (oid->oid_type == CTL_PROC && oid->oid_max != 0))
		ctl_printf(arg, " %llu-%llu", (unsigned long long)oid->oid_min,
		    (unsigned long long)(oid->oid_max != 0 ? oid->oid_max :
		    UINT32_MAX));
	ctl_printf(arg, "\n");
}

struct counters {
	struct ctl_out	*co;
	const char	*last;		/* name of the previous counter, */
	size_t		 len;		/* and the length of its protocol */
};

/*
 * Counters are named <protocol>.stats.<counter>; prints one heading for each
 * protocol.
 */
static void
show_counter(const struct sysctl_oid *oid, const char *value, void *arg)
{
	struct counters *s = arg;
	const char *stats = strstr(oid->oid_name, ".stats.");
	size_t len;

	if (stats == NULL)
		return;
	len = (size_t)(stats - oid->oid_name);
	if (len != s->len || strncmp(s->last, oid->oid_name, len) != 0)
		ctl_printf(s->co, "%.*s:\n", (int)len, oid->oid_name);
	s->last = oid->oid_name;
	s->len = len;
	ctl_printf(s->co, "\t%s %s\n", value, oid->oid_descr);
}

static void
show_counters(struct ctl_out *co)
{
	struct counters s = { .co = co };

	sysctl_foreach(show_counter, &s);
}

static void
answer_get(struct ctl_out *co, const char *name)
{
	char value[512];

	if (sysctl_get(name, value, sizeof(value)) != 0)
		ctl_printf(co, "error: unknown name '%s'; 'sysctl -a' lists "
		    "them\n", name);
	else
		ctl_printf(co, "ok\n%s: %s\n", name, value);
}

static void
answer_set(struct ctl_out *co, const struct ctl_request *cr)
{
	char why[256] = "";

	if (sysctl_set(cr->cr_name, cr->cr_value, why, sizeof(why)) != 0)
		ctl_printf(co, "error: %s\n", why);
	else
		answer_get(co, cr->cr_name);
}

/* Returns the arguments if the line starts with the command, else NULL. */
static const char *
command_args(const struct ctl_command *cc, const char *line)
{
	size_t len = strlen(cc->command);

	if (strncmp(line, cc->command, len) != 0 ||
	    (line[len] != '\0' && line[len] != ' '))
		return (NULL);
	return (cc->show != NULL && line[len] != '\0' ? NULL : line + len);
}

static void
command_run(struct ctl_out *co, const struct ctl_command *cc, const char *args)
{
	char copy[CTL_LINEMAX + 1], *argv[CTL_ARGS_MAX], *save = NULL, *arg;
	char why[256] = "";
	size_t before = co->co_len;
	int argc = 0, error;

	snprintf(copy, sizeof(copy), "%s", args);
	for (arg = strtok_r(copy, " \t", &save); arg != NULL && argc <
	    CTL_ARGS_MAX; arg = strtok_r(NULL, " \t", &save))
		argv[argc++] = arg;
	ctl_printf(co, "ok\n");
	giant_enter();
	error = cc->run(cc->command, co, argc, argv, why, sizeof(why));
	giant_exit();
	if (error == 0)
		return;
	co->co_len = before;
	ctl_printf(co, "error: %s\n", why[0] != '\0' ? why : strerror(error));
}

static void
answer_command(struct ctl_out *co, const char *line)
{
	for (unsigned i = 0; i < ctl_ncommands; i++) {
		const struct ctl_command *cc = &ctl_commands[i];
		const char *args = command_args(cc, line);

		if (args == NULL)
			continue;
		if (cc->show == NULL) {
			command_run(co, cc, args);
			return;
		}
		ctl_printf(co, "ok\n");
		cc->show(co);
		return;
	}
	ctl_printf(co, "error: unknown request '%s'; known: sysctl", line);
	for (unsigned i = 0; i < ctl_ncommands; i++)
		ctl_printf(co, ", %s", ctl_commands[i].command);
	ctl_printf(co, "\n");
}

static void
ctl_answer(struct ctl_out *co, char *line)
{
	struct ctl_request cr;
	const char *why;

	why = ctl_parse(line, &cr);
	if (why != NULL) {
		ctl_printf(co, "error: %s\n", why);
		return;
	}
	switch (cr.cr_verb) {
	case CTL_ALL:
	case CTL_DESCRIBE:
	case CTL_TYPES:
		ctl_printf(co, "ok\n");
		sysctl_foreach(cr.cr_verb == CTL_ALL ? show_value :
		    cr.cr_verb == CTL_DESCRIBE ? show_description : show_type,
		    co);
		break;
	case CTL_GET:
		answer_get(co, cr.cr_name);
		break;
	case CTL_SET:
		answer_set(co, &cr);
		break;
	case CTL_COMMAND:
		answer_command(co, cr.cr_name);
		break;
	}
}

/* Reads up to the newline; false on a protocol error. */
static bool
ctl_readline(int handle, char *line, size_t size, nsec_t deadline)
{
	size_t have = 0;

	while (have < size - 1) {
		ssize_t n = mach_ctl_read(handle, line + have,
		    size - 1 - have, deadline);

		if (n <= 0)
			return (false);
		have += (size_t)n;
		line[have] = '\0';
		if (strchr(line, '\n') != NULL)
			return (true);
	}
	return (false);
}

static void
ctl_serve(int handle)
{
	nsec_t deadline = mach_uptime() + CTL_TIMEOUT;
	struct ctl_out co = { 0 };
	char line[CTL_LINEMAX + 1];
	size_t sent = 0;

	if (ctl_readline(handle, line, sizeof(line), deadline))
		ctl_answer(&co, line);
	else
		ctl_printf(&co, "error: a request is one line of at most %d "
		    "bytes\n", CTL_LINEMAX);
	while (sent < co.co_len) {
		ssize_t n = mach_ctl_write(handle, co.co_text + sent,
		    co.co_len - sent, deadline);

		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	kfree(co.co_text);
	mach_ctl_hangup(handle);
}

static void
ctl_main(void *arg)
{
	int handle;

	(void)arg;
	while (atomic_load_acq_u32(&ctl_held) != 0)
		(void)mach_park(&ctl_held, 1, NSEC_FOREVER);
	while ((handle = mach_ctl_accept(ctl_socket)) != -ECANCELED)
		if (handle >= 0)
			ctl_serve(handle);
}

void
ctl_init(void)
{
	sysctl_register(ctl_oids, nitems(ctl_oids));
	ctl_view_register("netstat -s", show_counters);
}

int
ctl_start(void)
{
	int error;

	if (ctl_path[0] == '\0')
		return (0);
	error = mach_ctl_listen(ctl_path, &ctl_socket);
	if (error == 0)
		error = kthread_create("ctl", MACH_CPU_ANY, ctl_main, NULL,
		    &ctl_thread);
	if (error != 0)
		console("ctl: %s: %s", ctl_path, strerror(error));
	return (error);
}

void
ctl_hold(void)
{
	atomic_store_u32(&ctl_held, 1);
}

void
ctl_release(void)
{
	atomic_store_rel_u32(&ctl_held, 0);
	mach_unpark(&ctl_held, 1);
}

void
ctl_stop(void)
{
	if (ctl_thread == NULL)
		return;
	mach_ctl_wake(ctl_socket);
	kthread_join(ctl_thread);
	mach_ctl_close(ctl_socket);
	ctl_thread = NULL;
	ctl_socket = NULL;
}
