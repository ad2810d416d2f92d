/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The first process.  Its environment is the end of the kernel's command line:
 *
 *     only=PREFIX	runs only loads whose name begins with PREFIX
 *     windows=N	windows of each load
 *     seed=N		varies the distance of windows from the timer's ticks
 */
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

static void
switch_off(void)
{
	fflush(stdout);
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

void
die(const char *what)
{
	printf("counted: error: %s: %s\n", what, strerror(errno));
	switch_off();
	abort();
}

/* A kernel with modules has those that it needs in /modules. */
static void
load_modules(void)
{
	struct dirent *entry;
	DIR *folder;
	int fd;

	folder = opendir("/modules");
	if (folder == NULL)
		return;
	while ((entry = readdir(folder)) != NULL)
		if (strstr(entry->d_name, ".ko") != NULL) {
			fd = TRY(openat(dirfd(folder), entry->d_name, O_RDONLY));
			TRY(syscall(SYS_finit_module, fd, "", 0));
			close(fd);
		}
	closedir(folder);
}

static unsigned
number(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return (text != NULL ? (unsigned)strtoul(text, NULL, 10) : otherwise);
}

int
main(void)
{
	const char *only = getenv("only");

	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/proc", 0755);
	TRY(mount("proc", "/proc", "proc", 0, NULL));
	load_modules();
	set_up_network();
	printf("counted: up\n");
	sleep(1);	/* Linux finishes its boot; a second takes no time. */
	run_loads(only != NULL ? only : "", number("windows", 8),
	    number("seed", 1));
	printf("counted: done\n");
	switch_off();
}
