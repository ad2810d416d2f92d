/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of the control socket.
 */
#include "tools/ctl_client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int
ctl_connect(const char *program, const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path)) {
		fprintf(stderr, "%s: %s: longer than %zu bytes\n", program,
		    path, sizeof(sun.sun_path) - 1);
		return (-1);
	}
	strcpy(sun.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0) {
		fprintf(stderr, "%s: %s: %s; check that the stack runs, and "
		    "that you are its user\n", program, path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return (-1);
	}
	return (fd);
}

FILE *
ctl_ask(const char *program, const char *path, const char *line)
{
	int fd = ctl_connect(program, path);
	size_t len = strlen(line);
	FILE *in = NULL;

	if (fd < 0)
		return (NULL);
	if (write(fd, line, len) != (ssize_t)len ||
	    (in = fdopen(fd, "r")) == NULL) {
		fprintf(stderr, "%s: %s: %s\n", program, path,
		    strerror(errno));
		close(fd);
	}
	return (in);
}

int
ctl_answer(const char *program, FILE *in, FILE *out)
{
	char line[4096];
	FILE *to = NULL;

	while (fgets(line, sizeof(line), in) != NULL) {
		if (to == NULL && strcmp(line, "ok\n") == 0) {
			to = out;
			continue;
		}
		if (to == NULL)
			to = stderr;
		fputs(line, to);
	}
	if (to == NULL)
		fprintf(stderr, "%s: the stack closed the connection\n", program);
	fclose(in);
	return (to == out ? 0 : 1);
}
