/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stackctl: asks a booted stack through its control socket (kern/ctl.h).
 *
 *	stackctl -s SOCKET sysctl [-a | -d | name | name=value]
 *	stackctl -s SOCKET ifconfig
 *	stackctl -s SOCKET netstat -a | -r | -s | -Q | -m
 *	stackctl -s SOCKET route show | get ADDRESS |
 *	    add DESTINATION GATEWAY | delete DESTINATION
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define	EX_USAGE	64
#define	EX_UNAVAILABLE	69
#define	REQUEST_MAX	1024

static void
usage(FILE *out)
{
	fprintf(out,
	    "usage: stackctl -s SOCKET sysctl [-a | -d | name | name=value]\n"
	    "       stackctl -s SOCKET ifconfig\n"
	    "       stackctl -s SOCKET netstat -a | -r | -s | -Q | -m\n"
	    "       stackctl -s SOCKET route show | get ADDRESS |\n"
	    "           add DESTINATION GATEWAY | delete DESTINATION\n"
	    "SOCKET is the stack's ctl.path; $STACK_CTL if -s is not given.\n");
}

static int
ctl_connect(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path)) {
		fprintf(stderr, "stackctl: %s: longer than %zu bytes\n", path,
		    sizeof(sun.sun_path) - 1);
		return (-1);
	}
	strcpy(sun.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0) {
		fprintf(stderr, "stackctl: %s: %s; is the stack running, and "
		    "are you its user?\n", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return (-1);
	}
	return (fd);
}

static int
join(char *line, size_t size, int argc, char **argv)
{
	size_t len = 0;

	for (int i = 0; i < argc; i++) {
		int n = snprintf(line + len, size - len, "%s%s", argv[i],
		    i + 1 < argc ? " " : "\n");

		if (n < 0 || (size_t)n >= size - len)
			return (-1);
		len += (size_t)n;
	}
	return ((int)len);
}

/*
 * Copies the answer: text behind "ok" to standard output, anything else to
 * standard error.  Returns the exit status.
 */
static int
print_answer(FILE *in)
{
	char line[4096];
	FILE *out = NULL;

	while (fgets(line, sizeof(line), in) != NULL) {
		if (out == NULL && strcmp(line, "ok\n") == 0) {
			out = stdout;
			continue;
		}
		if (out == NULL)
			out = stderr;
		fputs(line, out);
	}
	if (out == NULL)
		fprintf(stderr, "stackctl: the stack hung up\n");
	return (out == stdout ? 0 : 1);
}

int
main(int argc, char **argv)
{
	const char *path = getenv("STACK_CTL");
	char line[REQUEST_MAX];
	FILE *in;
	int fd, len, opt, status;

	while ((opt = getopt(argc, argv, "+s:h")) != -1) {
		if (opt == 's') {
			path = optarg;
			continue;
		}
		usage(opt == 'h' ? stdout : stderr);
		return (opt == 'h' ? 0 : EX_USAGE);
	}
	if (path == NULL || optind == argc) {
		usage(stderr);
		return (EX_USAGE);
	}
	len = join(line, sizeof(line), argc - optind, argv + optind);
	if (len < 0) {
		fprintf(stderr, "stackctl: request longer than %d bytes\n",
		    REQUEST_MAX);
		return (EX_USAGE);
	}
	fd = ctl_connect(path);
	if (fd < 0)
		return (EX_UNAVAILABLE);
	if (write(fd, line, (size_t)len) != len || (in = fdopen(fd, "r")) == NULL) {
		fprintf(stderr, "stackctl: %s: %s\n", path, strerror(errno));
		close(fd);
		return (EX_UNAVAILABLE);
	}
	status = print_answer(in);
	fclose(in);
	return (status);
}
