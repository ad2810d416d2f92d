/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcpload: the smallest load that shows the costs of TCP; the same program on
 * the stack and on the host.
 *
 *	tcpload serve [-6] [-e] PORT
 *	tcpload MODE [-e] [-n CONNECTIONS] [-t SECONDS] [-s BYTES] ADDRESS PORT
 *	tcpload self MODE ...		client and server in one process
 *	tcpload alone rr [-p THREADS] ... and in one thread, turn by turn;
 *					or so many, with connections and a CPU
 *					of its own
 *	tcpload asked ASKED ADDRESS PORT
 *	tcpload ask MODE ... ADDRESS ASKED
 *
 * "asked" serves at PORT, and is also a client: for each request to its TCP
 * port ASKED from another host's "ask" (a MODE, a number of connections and a
 * time), it connects to ADDRESS.  Requests run one after the other
 * (tools/load_server.h).
 *
 * An ADDRESS that begins with a slash is the path of a UNIX-domain socket;
 * PORT is then ignored.
 *
 * MODE is in (bytes to the server), out (from it), rr (request and response of
 * BYTES each on a persistent connection) or crr (one on a new connection each
 * time).  With -e, which only rr and crr support, a server or a client has all
 * its connections in one thread with an event loop.  The client counts for
 * SECONDS after a warm-up and prints "number bytes/s" or "number
 * transactions/s".
 *
 * With crr the server closes first, and the client then resets the connection,
 * so that no side stays in TIME_WAIT (tools/tcpconnect.c).  If the client
 * closed first, it would use up its 28000 ports within two seconds, and then
 * the search for a free port would be measured.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#include "tools/argument.h"
#include "tools/load_server.h"
#include "tools/clock.h"
#include "tools/tcpload.h"

#define	BLOCK		(128 << 10)	/* bytes of one call of a transfer */
#define	WARM_UP		0.3		/* seconds */
#define	SECONDS_MAX	3600

static const char *const modes[NMODES] = { "in", "out", "rr", "crr" };

struct options options = {
	.connections = 1, .threads = 1, .seconds = 2, .size = 1
};

/* Bytes or transactions, each thread in its own cache line. */
static struct done {
	_Alignas(64) atomic_ullong n;
} dones[CONNECTIONS_MAX];
static atomic_uint counting;	/* threads that have counted so far */
static atomic_int accepting;	/* server threads without a connection */
static atomic_bool over;	/* clients must end */

_Noreturn void
die(const char *what)
{
	fprintf(stderr, "tcpload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static _Noreturn void
usage(void)
{
	fprintf(stderr, "usage: tcpload serve [-6] [-e] PORT\n"
	    "       tcpload [self] in|out|rr|crr [-e] [-n CONNECTIONS] "
	    "[-t SECONDS] [-s BYTES] ADDRESS PORT\n"
	    "       tcpload alone rr [-p THREADS] ...\n"
	    "       tcpload asked ASKED ADDRESS PORT\n"
	    "       tcpload ask in|out|rr|crr [-n CONNECTIONS] [-t SECONDS] "
	    "ADDRESS ASKED\n");
	exit(EX_USAGE);
}

bool
read_all(int fd, void *buf, size_t len)
{
	return (recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len);
}

bool
write_all(int fd, const void *buf, size_t len)
{
	return (send(fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len);
}

/* Serves until the other end has closed, or once. */
static void
serve_hello(int fd, const struct hello *h, char *buf)
{
	switch (h->mode) {
	case IN:
		while (recv(fd, buf, BLOCK, 0) > 0)
			continue;
		break;
	case OUT:
		while (write_all(fd, buf, BLOCK))
			continue;
		break;
	default:
		while (read_all(fd, buf, h->size) &&
		    write_all(fd, buf, h->size) && h->mode == RR)
			continue;
	}
}

void
no_delay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void
serve_one(int fd, char *buf)
{
	struct hello h;

	no_delay(fd);
	if (read_all(fd, &h, sizeof(h)) && h.size <= SIZE_MAX_RR)
		serve_hello(fd, &h, buf);
	close(fd);
}

pthread_t
start_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, fn, arg);
	if (errno != 0)
		die("thread");
	return (thread);
}

/*
 * The accepting thread also serves, so that a connection costs no thread
 * switch.  The last idle thread starts another one before it serves.
 */
static void *
serve(void *arg)
{
	int listener = (int)(intptr_t)arg, fd;
	char *buf = calloc(1, BLOCK);

	if (buf == NULL)
		die("memory");
	for (;;) {
		atomic_fetch_add(&accepting, 1);
		do
			fd = accept(listener, NULL, NULL);
		while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
		if (fd < 0)
			die("accept");
		if (atomic_fetch_sub(&accepting, 1) == 1)
			pthread_detach(start_thread(serve, arg));
		serve_one(fd, buf);
	}
	return (NULL);
}

/* Listens on the port of all addresses of its family, or at its path. */
static int
listen_everywhere(struct sockaddr_storage sa, socklen_t len)
{
	int fd = socket(sa.ss_family, SOCK_STREAM, 0), on = 1;

	if (fd < 0)
		die("socket");
	if (sa.ss_family == AF_INET)
		((struct sockaddr_in *)&sa)->sin_addr.s_addr = INADDR_ANY;
	else if (sa.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&sa)->sin6_addr = in6addr_any;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sa, len) != 0)
		die("bind");
	if (listen(fd, CONNECTIONS_MAX) != 0)
		die("listen");
	return (fd);
}

/* Sends the hello, and with a single request in the same write. */
bool
say_hello_to(int fd)
{
	struct hello h = { options.mode, options.size };

	no_delay(fd);
	return (send(fd, &h, sizeof(h), options.mode == CRR ? MSG_MORE |
	    MSG_NOSIGNAL : MSG_NOSIGNAL) == (ssize_t)sizeof(h));
}

int
say_hello(void)
{
	int fd = socket(options.sa.ss_family, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&options.sa,
	    options.salen) != 0)
		die("connect");
	if (!say_hello_to(fd))
		die("send");
	return (fd);
}

/* Called after the server has closed. */
void
reset(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

void
count(unsigned long long n)
{
	static _Thread_local struct done *mine;

	if (mine == NULL)
		mine = &dones[atomic_fetch_add(&counting, 1) % CONNECTIONS_MAX];
	atomic_fetch_add_explicit(&mine->n, n, memory_order_relaxed);
}

static unsigned long long
counted(void)
{
	unsigned long long sum = 0;

	for (int i = 0; i < CONNECTIONS_MAX; i++)
		sum += atomic_load_explicit(&dones[i].n, memory_order_relaxed);
	return (sum);
}

static void *
client(void *arg)
{
	char *buf = calloc(1, BLOCK);
	ssize_t n;
	int fd;

	(void)arg;
	if (buf == NULL)
		die("memory");
	fd = say_hello();
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		switch (options.mode) {
		case IN:
			n = send(fd, buf, BLOCK, MSG_NOSIGNAL);
			break;
		case OUT:
			n = recv(fd, buf, BLOCK, 0);
			break;
		default:
			n = write_all(fd, buf, options.size) &&
			    read_all(fd, buf, options.size) ? 1 : -1;
		}
		if (n <= 0)
			die("transfer");
		if (options.mode == CRR) {
			if (recv(fd, buf, 1, 0) != 0)
				die("end");
			reset(fd);
			fd = say_hello();
		}
		count((unsigned long long)n);
	}
	close(fd);
	free(buf);
	return (NULL);
}

/* Measures the started clients; the result has LOAD_LINE bytes. */
static void
measure(char *said)
{
	unsigned long long before;
	double start;

	pause_for(WARM_UP);
	before = counted();
	start = now();
	pause_for(options.seconds);
	snprintf(said, LOAD_LINE, "%.0f %s\n",
	    (double)(counted() - before) / (now() - start),
	    options.mode == IN || options.mode == OUT ? "bytes/s" :
	    "transactions/s");
}

/* Measures once and exits without joining threads, which may never end. */
static _Noreturn void
measure_once(void)
{
	char said[LOAD_LINE];

	measure(said);
	fputs(said, stdout);
	fflush(stdout);
	_exit(0);
}

/* NMODES: unknown mode. */
static enum mode
mode_named(const char *name)
{
	int mode;

	for (mode = 0; mode < NMODES; mode++)
		if (strcmp(name, modes[mode]) == 0)
			break;
	return ((enum mode)mode);
}

/* Whether an event loop can write whole requests. */
static bool
events_good(void)
{
	return (!options.events || ((options.mode == RR ||
	    options.mode == CRR) && options.size <= SIZE_MAX_EVENTS));
}

static bool
options_good(void)
{
	return (options.mode != NMODES && options.connections >= 1 &&
	    options.connections <= CONNECTIONS_MAX && options.seconds > 0 &&
	    options.seconds <= SECONDS_MAX && options.size >= 1 &&
	    options.size <= SIZE_MAX_RR && events_good());
}

static void
run_request(const char *line, char *said)
{
	pthread_t threads[CONNECTIONS_MAX];
	char mode[LOAD_LINE];

	options.mode = sscanf(line, "%127s %5d %lf", mode,
	    &options.connections, &options.seconds) == 3 ? mode_named(mode) :
	    NMODES;
	if (!options_good()) {
		snprintf(said, LOAD_LINE, "tcpload: unknown load; an example "
		    "is \"in 10 2\"\n");
		return;
	}
	atomic_store(&over, false);
	for (int i = 0; i < options.connections; i++)
		threads[i] = start_thread(client, NULL);
	measure(said);
	atomic_store(&over, true);
	for (int i = 0; i < options.connections; i++)
		pthread_join(threads[i], NULL);
}

static int
ask(void)
{
	char line[LOAD_LINE];

	snprintf(line, sizeof(line), "%s %d %g\n", modes[options.mode],
	    options.connections, options.seconds);
	return (load_request("tcpload", (struct sockaddr *)&options.sa,
	    options.salen, line));
}

static void
resolve(const char *address, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
	    .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *ai;
	struct sockaddr_un *un = (struct sockaddr_un *)&options.sa;

	if (address[0] == '/') {
		un->sun_family = AF_UNIX;
		if (snprintf(un->sun_path, sizeof(un->sun_path), "%s",
		    address) >= (int)sizeof(un->sun_path))
			usage();
		options.salen = sizeof(*un);
		return;
	}
	if (getaddrinfo(address, port, &hints, &ai) != 0) {
		fprintf(stderr, "tcpload: '%s' port '%s' is not an address\n",
		    address, port);
		exit(EX_USAGE);
	}
	memcpy(&options.sa, ai->ai_addr, ai->ai_addrlen);
	options.salen = ai->ai_addrlen;
	freeaddrinfo(ai);
}

/* MODE [-n ...] ADDRESS PORT; argv[0] is the mode. */
static void
parse_client(int argc, char **argv)
{
	int opt;

	if (argc < 1)
		usage();
	options.mode = mode_named(argv[0]);
	while ((opt = getopt(argc, argv, "en:p:t:s:")) != -1)
		if (opt == 'e')
			options.events = true;
		else if (opt == 'n')
			options.connections = (int)argument_whole("-n", optarg,
			    1, CONNECTIONS_MAX);
		else if (opt == 'p')
			options.threads = (int)argument_whole("-p", optarg, 1,
			    THREADS_MAX);
		else if (opt == 't')
			options.seconds = argument_number("-t", optarg, 0.01,
			    SECONDS_MAX);
		else if (opt == 's')
			options.size = (uint32_t)argument_whole("-s", optarg, 1,
			    SIZE_MAX_RR);
		else
			usage();
	if (argc - optind != 2 || !options_good())
		usage();
	resolve(argv[optind], argv[optind + 1]);
}

static int
listener(void)
{
	return (listen_everywhere(options.sa, options.salen));
}

static void
start_server(void)
{
	pthread_detach(start_thread(serve, (void *)(intptr_t)listener()));
}

static void
start_clients(void)
{
	if (options.events) {
		start_thread(ask_events, NULL);
		return;
	}
	for (int i = 0; i < options.connections; i++)
		start_thread(client, NULL);
}

/* [-6] [-e] PORT; argv[0] is "serve". */
static void
parse_serve(int argc, char **argv)
{
	const char *any = "0.0.0.0";
	bool events = false;
	int opt;

	while ((opt = getopt(argc, argv, "6e")) != -1)
		if (opt == '6')
			any = "::";
		else if (opt == 'e')
			events = true;
		else
			usage();
	if (argc - optind != 1)
		usage();
	resolve(any, argv[optind]);
	if (events)
		serve_events(listener());
	serve((void *)(intptr_t)listener());
}

/* serve ..., or asked ASKED ADDRESS PORT: without end. */
static void
parse_server(int argc, char **argv)
{
	in_port_t port;

	if (argc > 1 && strcmp(argv[1], "serve") == 0) {
		parse_serve(argc - 1, argv + 1);
	} else if (argc == 5 && strcmp(argv[1], "asked") == 0) {
		port = (in_port_t)argument_whole("ASKED", argv[2], 1,
		    UINT16_MAX);
		resolve(argv[3], argv[4]);
		start_server();
		load_server_run("tcpload", port, run_request);
	}
}

int
main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	const bool alone = strcmp(word, "alone") == 0;
	const bool self = alone || strcmp(word, "self") == 0;
	const bool asks = strcmp(word, "ask") == 0;

	signal(SIGPIPE, SIG_IGN);
	parse_server(argc, argv);
	parse_client(argc - 1 - (self || asks), argv + 1 + (self || asks));
	if (options.events && (asks || alone))
		usage();
	if (asks)
		return (ask());
	if (alone ? options.mode != RR : options.threads != 1)
		usage();
	if (alone) {
		start_alone(listener());
	} else {
		if (self)
			start_server();
		start_clients();
	}
	measure_once();
}
