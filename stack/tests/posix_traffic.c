/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All kinds of traffic at the same time: TCP streams in both directions and
 * UDP datagrams in each family, and a stream and datagrams of the UNIX domain.
 * No byte may be lost, changed or reordered, whatever the wire does; a lost
 * datagram is sent again.
 *
 * $TRAFFIC_INET and $TRAFFIC_INET6 are the destination addresses, those of the
 * loopback interface by default.  With $TRAFFIC_WAIT the program prints "done"
 * and waits for the end of its input, so that the caller can inspect the
 * stack.
 */
#include <sys/un.h>

#include "posix.h"

#define	STREAM		(150 << 10)	/* bytes each way */
#define	DATAGRAMS	30
#define	DATAGRAM_MAX	4000		/* some are fragmented */
#define	RESEND		50		/* milliseconds */
#define	DATAGRAM_TRIES	2000

/* An address of either family, and its form for bind(). */
struct endpoint {
	struct sockaddr_storage ss;
	socklen_t	 len;
};

static struct endpoint
endpoint(int family, const char *variable, const char *otherwise)
{
	struct endpoint e = { .ss.ss_family = (sa_family_t)family };
	const char *text = getenv(variable);
	void *at = &((struct sockaddr_in *)&e.ss)->sin_addr;

	e.len = sizeof(struct sockaddr_in);
	if (family == AF_INET6) {
		at = &((struct sockaddr_in6 *)&e.ss)->sin6_addr;
		e.len = sizeof(struct sockaddr_in6);
	}
	CHECK_EQ(inet_pton(family, text != NULL ? text : otherwise, at), 1);
	return (e);
}

static struct endpoint
far_of(int family)
{
	return (family == AF_INET ?
	    endpoint(family, "TRAFFIC_INET", "127.0.0.1") :
	    endpoint(family, "TRAFFIC_INET6", "::1"));
}

static in_port_t *
port_of(struct endpoint *e)
{
	return (e->ss.ss_family == AF_INET ?
	    &((struct sockaddr_in *)&e->ss)->sin_port :
	    &((struct sockaddr_in6 *)&e->ss)->sin6_port);
}

/* A socket bound to any address, and the far address with its port. */
static int
bound_to_any(int family, int type, struct endpoint *far)
{
	struct endpoint any = { .ss.ss_family = (sa_family_t)family };
	int fd = OK(socket(family, type, 0));

	*far = far_of(family);
	any.len = far->len;
	OK(bind(fd, (struct sockaddr *)&any.ss, any.len));
	OK(getsockname(fd, (struct sockaddr *)&any.ss, &any.len));
	*port_of(far) = *port_of(&any);
	return (fd);
}

static unsigned char
byte_at(unsigned seed, size_t at)
{
	return ((unsigned char)((at * 2654435761U + seed) >> 7));
}

/* One direction of a stream. */
struct direction {
	int		 fd;
	unsigned	 seed;
};

static void *
stream_send(void *arg)
{
	const struct direction *d = arg;
	unsigned char buf[20000];
	size_t at = 0, n;

	for (size_t piece = 1; at < STREAM; at += n) {
		piece = piece * 7 % 20011;
		n = piece < sizeof(buf) ? piece : sizeof(buf);
		n = n < STREAM - at ? n : STREAM - at;
		for (size_t i = 0; i < n; i++)
			buf[i] = byte_at(d->seed, at + i);
		n = (size_t)OK(send(d->fd, buf, n, MSG_NOSIGNAL));
	}
	OK(shutdown(d->fd, SHUT_WR));
	return (NULL);
}

static void
stream_receive(const struct direction *d)
{
	unsigned char buf[30000];
	size_t at = 0;
	ssize_t n;

	while ((n = OK(recv(d->fd, buf, sizeof(buf), 0))) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			CHECK_EQ(buf[i], byte_at(d->seed, at));
	CHECK_EQ(at, STREAM);
}

/* One end: sends its stream while it receives the peer's, then closes. */
static void
exchange(int fd, unsigned mine, unsigned others)
{
	struct direction out = { fd, mine }, in = { fd, others };
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, stream_send, &out), 0);
	stream_receive(&in);
	CHECK_EQ(pthread_join(t, NULL), 0);
	OK(close(fd));
}

static void *
exchange_back(void *arg)
{
	exchange(*(int *)arg, 2, 1);
	return (NULL);
}

static void
exchange_both(int a, int b)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, exchange_back, &b), 0);
	exchange(a, 1, 2);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/*
 * The first byte is sent before a reader exists.  If the handshake's last ACK
 * is lost, a listener that sent a SYN cookie learns of the connection only
 * from the next segment.
 */
static void
stream(int family)
{
	struct endpoint far;
	int l = bound_to_any(family, SOCK_STREAM, &far), s, accepted;
	char c;

	OK(listen(l, 4));
	s = OK(socket(family, SOCK_STREAM, 0));
	OK(connect(s, (struct sockaddr *)&far.ss, far.len));
	CHECK_EQ(send(s, "x", 1, 0), 1);
	accepted = OK(accept(l, NULL, NULL));
	CHECK_EQ(recv(accepted, &c, 1, 0), 1);
	exchange_both(s, accepted);
	OK(close(l));
}

/* Sends datagrams back until an empty one arrives. */
struct echo {
	int		 fd;
	atomic_bool	 ended;
};

static void *
echo(void *arg)
{
	struct echo *e = arg;
	unsigned char buf[DATAGRAM_MAX];
	struct endpoint from;
	ssize_t n;

	for (;;) {
		from.len = sizeof(from.ss);
		n = OK(recvfrom(e->fd, buf, sizeof(buf), 0,
		    (struct sockaddr *)&from.ss, &from.len));
		if (n == 0)
			break;
		OK(sendto(e->fd, buf, (size_t)n, 0,
		    (struct sockaddr *)&from.ss, from.len));
	}
	atomic_store(&e->ended, true);
	return (NULL);
}

/*
 * Sends a datagram repeatedly until its echo arrives; echoes of older ones are
 * ignored.
 */
static void
there_and_back(int fd, const unsigned char *out, size_t len)
{
	unsigned char in[DATAGRAM_MAX];
	int tries = 0;

	for (;;) {
		CHECK(tries++ < DATAGRAM_TRIES);
		CHECK_EQ(OK(send(fd, out, len, 0)), len);
		while (ready(fd, POLLIN, RESEND) != 0)
			if ((size_t)OK(recv(fd, in, sizeof(in), 0)) == len &&
			    memcmp(in, out, len) == 0)
				return;
	}
}

static void
datagrams(int s, int server)
{
	unsigned char out[DATAGRAM_MAX];
	struct echo e = { .fd = server };
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, echo, &e), 0);
	for (unsigned i = 0; i < DATAGRAMS; i++) {
		size_t len = 1 + (size_t)i * 331 % DATAGRAM_MAX;

		for (size_t at = 0; at < len; at++)
			out[at] = byte_at(i, at);
		there_and_back(s, out, len);
	}
	while (!atomic_load(&e.ended)) {
		CHECK_EQ(OK(send(s, "", 0, 0)), 0);
		nap(5);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	OK(close(s));
	OK(close(server));
}

static void
datagrams_inet(int family)
{
	struct endpoint far;
	int server = bound_to_any(family, SOCK_DGRAM, &far);
	int s = OK(socket(family, SOCK_DGRAM, 0));

	OK(connect(s, (struct sockaddr *)&far.ss, far.len));
	datagrams(s, server);
}

static void
stream_by_name(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int l = OK(socket(AF_UNIX, SOCK_STREAM, 0)), s;

	snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1, "traffic-%d",
	    (int)getpid());
	OK(bind(l, (struct sockaddr *)&sun, sizeof(sun)));
	OK(listen(l, 4));
	s = OK(socket(AF_UNIX, SOCK_STREAM, 0));
	OK(connect(s, (struct sockaddr *)&sun, sizeof(sun)));
	exchange_both(s, OK(accept(l, NULL, NULL)));
	OK(close(l));
}

static void *
unix_domain(void *arg)
{
	int s[2];

	(void)arg;
	stream_by_name();
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	exchange_both(s[0], s[1]);
	return (NULL);
}

static void *
streams_of(void *arg)
{
	stream(*(const int *)arg);
	return (NULL);
}

static void *
datagrams_of(void *arg)
{
	datagrams_inet(*(const int *)arg);
	return (NULL);
}

TEST(all_of_it_arrives)
{
	static const int families[] = { AF_INET, AF_INET6 };
	pthread_t t[5];
	int n = 0;

	for (int i = 0; i < 2; i++) {
		void *family = (void *)(uintptr_t)&families[i];

		CHECK_EQ(pthread_create(&t[n++], NULL, streams_of, family), 0);
		CHECK_EQ(pthread_create(&t[n++], NULL, datagrams_of, family),
		    0);
	}
	CHECK_EQ(pthread_create(&t[n++], NULL, unix_domain, NULL), 0);
	while (n > 0)
		CHECK_EQ(pthread_join(t[--n], NULL), 0);
}

int
main(int argc, char **argv)
{
	int status = check_main(argc, argv);
	char c;

	if (getenv("TRAFFIC_WAIT") == NULL)
		return (status);
	printf("done\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return (status);
}
