/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stackctl: sends requests to a booted stack through its control socket
 * (kern/ctl.h).
 *
 *	stackctl -s SOCKET sysctl [-a | -d | -t | name | name=value]
 *	stackctl -s SOCKET ifconfig
 *	stackctl -s SOCKET arp | ndp
 *	stackctl -s SOCKET netstat -a | -r | -s | -Q | -m | -f unix
 *	stackctl -s SOCKET top [-b] [-n TIMES] [-d SECONDS]
 *	stackctl -s SOCKET pcap start INTERFACE FILE [MEGABYTES] |
 *	    stop INTERFACE
 *	stackctl -s SOCKET route | route6 show | get ADDRESS |
 *	    add DESTINATION GATEWAY | delete DESTINATION
 */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "tools/ctl_client.h"
#include "tools/top.h"

static void
usage(FILE *out)
{
	fprintf(out,
	    "usage: stackctl -s SOCKET sysctl [-a | -d | -t | name | "
	    "name=value]\n"
	    "       stackctl -s SOCKET ifconfig\n"
	    "       stackctl -s SOCKET arp | ndp\n"
	    "       stackctl -s SOCKET netstat -a | -r | -s | -Q | -m | -f unix\n"
	    "       stackctl -s SOCKET top [-b] [-n TIMES] [-d SECONDS]\n"
	    "       stackctl -s SOCKET pcap start INTERFACE FILE "
	    "[MEGABYTES] |\n"
	    "           stop INTERFACE\n"
	    "       stackctl -s SOCKET route | route6 show | get ADDRESS |\n"
	    "           add DESTINATION GATEWAY | delete DESTINATION\n"
	    "SOCKET is the stack's ctl.path; $STACK_CTL if -s is not given.\n");
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

int
main(int argc, char **argv)
{
	const char *path = getenv("STACK_CTL");
	char line[CTL_REQUEST_MAX];
	FILE *in;
	int opt;

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
	if (strcmp(argv[optind], "top") == 0)
		return (top_main(path, argc - optind, argv + optind));
	if (join(line, sizeof(line), argc - optind, argv + optind) < 0) {
		fprintf(stderr, "stackctl: request longer than %d bytes\n",
		    CTL_REQUEST_MAX);
		return (EX_USAGE);
	}
	in = ctl_ask("stackctl", path, line);
	return (in != NULL ? ctl_answer("stackctl", in, stdout) :
	    EX_UNAVAILABLE);
}
