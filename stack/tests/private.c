/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * private PROGRAM ARGUMENT...: executes a program with a network of its own,
 * whose only interface is lo (network_namespaces(7)).  On the machine's network
 * other programs take ports and abstract names that a test expects to be free.
 *
 * A caller who may not make a network namespace uses the machine's.
 */
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int
start_loopback(void)
{
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int result = ioctl(fd, SIOCSIFFLAGS, &req);

	(void)close(fd);
	return (result);
}

int
main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: private program [argument ...]\n");
		return (2);
	}
	if (unshare(CLONE_NEWNET) == 0 && start_loopback() != 0) {
		perror("private: lo");
		return (1);
	}
	(void)execv(argv[1], argv + 1);
	perror(argv[1]);
	return (1);
}
