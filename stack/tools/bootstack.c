/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bootstack: boots the stack, alone as a router or under a program.
 *
 *	bootstack -c FILE			router until SIGTERM or SIGINT
 *	bootstack -c FILE -- PROGRAM [ARG ...]	the program's sockets are the
 *						stack's
 *
 * A program that the library cannot serve runs on the kernel's network, after a
 * line on standard error; with --strict it does not run.
 */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "boot/boot.h"
#include "kern/systm.h"
#include "boot/reach.h"

#define	EX_UNREACHED	2	/* --strict: the program would bypass the stack */

static void
usage(FILE *out)
{
	fprintf(out,
	    "usage: bootstack -c FILE                      run as a router\n"
	    "       bootstack -c FILE [--strict] -- PROGRAM [ARG ...]\n"
	    "                                              run a program on "
	    "the stack\n"
	    "--strict: status 2 for a program that cannot use the stack\n"
	    "FILE has lines name=\"value\"; 'stackctl -s SOCKET sysctl -d' "
	    "explains the names.\n");
}

/* The library in the directory of this binary, or of a build. */
static const char *
find_library(void)
{
	static const char *const places[] = {
		"../lib/libstack.so", "libstack.so"
	};
	static char path[PATH_MAX];
	char self[PATH_MAX], try[PATH_MAX + 32];
	ssize_t n;

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return (NULL);
	self[n] = '\0';
	dirname(self);
	for (size_t i = 0; i < nitems(places); i++) {
		snprintf(try, sizeof(try), "%s/%s", self, places[i]);
		if (realpath(try, path) != NULL)
			return (path);
	}
	return (NULL);
}

/* False: the program bypasses the stack, and may not. */
static bool
may_run(const char *program, bool strict)
{
	const char *refusal = NULL;
	char path[PATH_MAX];

	if (reach_find(program, path, sizeof(path)))
		refusal = reach_refusal(path);
	if (refusal != NULL)
		fprintf(stderr, "bootstack: %s %s: its sockets %s the "
		    "kernel's\n", program, refusal,
		    strict ? "would be" : "are");
	return (refusal == NULL || !strict);
}

static int
run_program(const char *conf, char **argv, bool strict)
{
	const char *library = find_library(), *others = getenv("LD_PRELOAD");
	char preload[2 * PATH_MAX];

	if (library == NULL) {
		fprintf(stderr, "bootstack: libstack.so not found next to "
		    "this program; run 'meson install'\n");
		return (EX_UNAVAILABLE);
	}
	if (!may_run(argv[0], strict))
		return (EX_UNREACHED);
	/* Other libraries first: a sanitizer's runtime must be the first. */
	snprintf(preload, sizeof(preload), "%s%s%s",
	    others != NULL ? others : "", others != NULL ? ":" : "", library);
	setenv("LD_PRELOAD", preload, 1);
	setenv("STACK_CONF", conf, 1);
	if (strict)
		setenv("STACK_STRICT", "1", 1);
	execvp(argv[0], argv);
	fprintf(stderr, "bootstack: %s: %s\n", argv[0], strerror(errno));
	return (errno == ENOENT ? 127 : 126);
}

static int
run_router(const char *conf)
{
	sigset_t stop;
	int sig;

	/*
	 * Blocked before the stack's threads exist, so that they inherit the
	 * mask.
	 */
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	if (stack_boot(conf) != 0)
		return (EX_CONFIG);
	sigwait(&stop, &sig);
	stack_shutdown();
	return (0);
}

int
main(int argc, char **argv)
{
	const struct option options[] = {
		{ "strict", no_argument, NULL, 's' }, { 0 }
	};
	char conf[PATH_MAX];
	const char *file = NULL;
	bool strict = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "+c:h", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			file = optarg;
			break;
		case 's':
			strict = true;
			break;
		case 'h':
			usage(stdout);
			return (0);
		default:
			usage(stderr);
			return (EX_USAGE);
		}
	}
	if (file == NULL) {
		fprintf(stderr, "bootstack: option -c FILE is missing\n");
		usage(stderr);
		return (EX_USAGE);
	}
	if (realpath(file, conf) == NULL) {
		fprintf(stderr, "bootstack: %s: %s\n", file, strerror(errno));
		return (EX_CONFIG);
	}
	if (optind < argc)
		return (run_program(conf, argv + optind, strict));
	return (run_router(conf));
}
