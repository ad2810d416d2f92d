/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Standard I/O on a socket.  The C library's streams make system calls on
 * their number, which would reach the placeholder.  A stream of a socket is
 * therefore one of fopencookie(3), whose functions are this library's.
 *
 * If descriptor 0, 1 or 2 becomes a socket, as in a server that inetd started,
 * such a stream takes the place of stdin, stdout or stderr until the
 * descriptor is the kernel's again.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/api.h"

struct stream {
	FILE		*st_file;
	int		 st_fd;
	LIST_ENTRY(stream) st_link;
};

/* Streams of sockets, for fileno(). */
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, stream) streams = LIST_HEAD_INITIALIZER(streams);

static ssize_t
stream_read(void *cookie, char *buf, size_t len)
{
	return (read(((struct stream *)cookie)->st_fd, buf, len));
}

/* fopencookie(3): an error is 0 bytes, never -1. */
static ssize_t
stream_write(void *cookie, const char *buf, size_t len)
{
	const ssize_t n = write(((struct stream *)cookie)->st_fd, buf, len);

	return (n > 0 ? n : 0);
}

static int
stream_close(void *cookie)
{
	struct stream *st = cookie;
	const int fd = st->st_fd;

	pthread_mutex_lock(&streams_lock);
	LIST_REMOVE(st, st_link);
	pthread_mutex_unlock(&streams_lock);
	free(st);
	return (close(fd));
}

static FILE *
stream_open(int fd, const char *mode)
{
	const cookie_io_functions_t calls = {
		.read = stream_read,
		.write = stream_write,
		.close = stream_close
	};
	struct stream *st = calloc(1, sizeof(*st));

	if (st == NULL)
		return (NULL);
	st->st_fd = fd;
	st->st_file = fopencookie(st, mode, calls);
	if (st->st_file == NULL) {
		free(st);
		return (NULL);
	}
	pthread_mutex_lock(&streams_lock);
	LIST_INSERT_HEAD(&streams, st, st_link);
	pthread_mutex_unlock(&streams_lock);
	return (st->st_file);
}

static bool
is_socket(int fd)
{
	struct file *f = fget_type(fd, FT_SOCKET);

	if (f != NULL)
		frele(f);
	return (f != NULL);
}

EXPORT FILE *
fdopen(int fd, const char *mode)
{
	return (is_socket(fd) ? stream_open(fd, mode) :
	    real.fdopen(fd_kernel(fd), mode));
}

EXPORT int
fileno(FILE *file)
{
	struct stream *st;
	int fd = -1;

	pthread_mutex_lock(&streams_lock);
	LIST_FOREACH(st, &streams, st_link)
		if (st->st_file == file)
			fd = st->st_fd;
	pthread_mutex_unlock(&streams_lock);
	return (fd != -1 ? fd : real.fileno(file));
}

EXPORT int fileno_unlocked(FILE *) __attribute__((alias("fileno")));

EXPORT int
vdprintf(int fd, const char *restrict format, va_list ap)
{
	ssize_t n = 0;
	char *text;
	int len;

	if (!is_socket(fd))
		return (real.vdprintf(fd_kernel(fd), format, ap));
	len = vasprintf(&text, format, ap);
	for (int done = 0; done < len && n >= 0; done += (int)n)
		n = write(fd, text + done, (size_t)(len - done));
	if (len >= 0)
		free(text);
	return (n < 0 ? -1 : len);
}

EXPORT int
dprintf(int fd, const char *restrict format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vdprintf(fd, format, ap);
	va_end(ap);
	return (n);
}

EXPORT int __dprintf_chk(int, int, const char *, ...);
EXPORT int __vdprintf_chk(int, int, const char *, va_list);

EXPORT int
__vdprintf_chk(int fd, int flag, const char *format, va_list ap)
{
	(void)flag;
	return (vdprintf(fd, format, ap));
}

EXPORT int
__dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, format);
	n = vdprintf(fd, format, ap);
	va_end(ap);
	return (n);
}

void
stdio_follow(int fd)
{
	static FILE *originals[3], *substitutes[3];
	FILE **const standard[3] = { &stdin, &stdout, &stderr };
	FILE **file;

	if (fd < 0 || fd > STDERR_FILENO || is_socket(fd) ==
	    (originals[fd] != NULL))
		return;
	file = standard[fd];
	fflush(*file);
	if (originals[fd] != NULL) {
		*file = originals[fd];
		originals[fd] = NULL;
		return;
	}
	if (substitutes[fd] == NULL)
		substitutes[fd] = stream_open(fd,
		    fd == STDIN_FILENO ? "r" : "w");
	if (substitutes[fd] == NULL)
		return;
	if (fd == STDERR_FILENO)
		setvbuf(substitutes[fd], NULL, _IONBF, 0);
	originals[fd] = *file;
	*file = substitutes[fd];
}
