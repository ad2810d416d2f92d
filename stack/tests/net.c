/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helpers of the socket tests.
 */
#include "boot/boot.h"
#include "tests/net.h"

#include <errno.h>

#include "dev/mem.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "machine/splitmix.h"
#include "tests/check.h"

#define	CHUNK	40000

static int
set_words(const char *words)
{
	char copy[512], *save = NULL, *word, *value;

	snprintf(copy, sizeof(copy), "%s", words);
	for (word = strtok_r(copy, " ", &save); word != NULL;
	    word = strtok_r(NULL, " ", &save)) {
		value = strchr(word, '=');
		CHECK(value != NULL);
		*value++ = '\0';
		t_sysctl_set(word, value);
	}
	return (0);
}

void
t_boot(void)
{
	const char *words = getenv("STACK_TUNABLES");

	CHECK_EQ(stack_boot_config(set_words, words != NULL ? words : ""), 0);
}

struct sockaddr_in
t_addr(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
	    .sin_port = htons(port) };

	CHECK_EQ(inet_pton(AF_INET, ip, &sin.sin_addr), 1);
	return (sin);
}

struct socket *
t_socket(int type)
{
	struct socket *so;

	CHECK_EQ(socreate(AF_INET, type, 0, &so), 0);
	return (so);
}

struct socket *
t_listen(const char *ip, uint16_t port, int backlog)
{
	struct sockaddr_in sin = t_addr(ip, port);
	struct socket *so = t_socket(SOCK_STREAM);

	t_setint(so, SOL_SOCKET, SO_REUSEADDR, 1);
	CHECK_EQ(sobind(so, (struct sockaddr *)&sin, sizeof(sin)), 0);
	CHECK_EQ(solisten(so, backlog), 0);
	return (so);
}

struct socket *
t_connect(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = t_addr(ip, port);
	struct socket *so = t_socket(SOCK_STREAM);

	CHECK_EQ(soconnect(so, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	return (so);
}

struct socket *
t_accept(struct socket *head)
{
	struct socket *so;

	CHECK_EQ(soaccept(head, 0, NULL, NULL, &so), 0);
	return (so);
}

int
t_trysend(struct socket *so, const void *buf, size_t len, int flags,
    size_t *done)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return (sosend(so, &msg, flags, done));
}

int
t_tryrecv(struct socket *so, void *buf, size_t len, int flags, size_t *done)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return (soreceive(so, &msg, flags, done));
}

void
t_send(struct socket *so, const void *buf, size_t len)
{
	size_t done;

	CHECK_EQ(t_trysend(so, buf, len, 0, &done), 0);
	CHECK_EQ(done, len);
}

void
t_recv(struct socket *so, void *buf, size_t len)
{
	size_t done;

	CHECK_EQ(t_tryrecv(so, buf, len, MSG_WAITALL, &done), 0);
	CHECK_EQ(done, len);
}

void
t_expect(struct socket *so, const char *text)
{
	const size_t len = strlen(text);
	char buf[64];

	CHECK(len <= sizeof(buf));
	t_recv(so, buf, len);
	CHECK_EQ(memcmp(buf, text, len), 0);
}

void
t_expect_eof(struct socket *so)
{
	char c = 0;
	size_t done;

	CHECK_EQ(t_tryrecv(so, &c, 1, 0, &done), 0);
	CHECK_EQ(done, 0);
}

void
t_setint(struct socket *so, int level, int name, int value)
{
	CHECK_EQ(sosetopt(so, level, name, &value, sizeof(value)), 0);
}

int
t_getint(struct socket *so, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	CHECK_EQ(sogetopt(so, level, name, &value, &len), 0);
	return (value);
}

/* A pseudo-random number from the position of each eight bytes. */
void
t_stream_fill(uint64_t seed, uint64_t off, uint8_t *buf, size_t len)
{
	for (size_t i = 0; i < len; i++, off++) {
		uint64_t z = splitmix(seed + off / 8 * SPLITMIX_STEP);

		buf[i] = (uint8_t)(z >> off % 8 * 8);
	}
}

void
t_stream_send(struct socket *so, uint64_t seed, uint64_t len)
{
	uint8_t *buf = malloc(CHUNK);
	uint64_t off = 0;

	for (unsigned turn = 0; off < len; turn++) {
		/* pieces of all sizes, large ones more often */
		size_t n = turn % 5 == 0 ? 1 + turn % 700 : CHUNK - turn % 900;

		if (n > len - off)
			n = (size_t)(len - off);
		t_stream_fill(seed, off, buf, n);
		t_send(so, buf, n);
		off += n;
	}
	CHECK_EQ(soshutdown(so, SHUT_WR), 0);
	free(buf);
}

void
t_stream_recv(struct socket *so, uint64_t seed, uint64_t len)
{
	uint8_t *buf = malloc(CHUNK), *want = malloc(CHUNK);
	uint64_t off = 0;
	size_t n;

	for (unsigned turn = 0;; turn++) {
		size_t most = turn % 7 == 0 ? 1 + turn % 3000 : CHUNK;

		CHECK_EQ(t_tryrecv(so, buf, most, 0, &n), 0);
		if (n == 0)
			break;
		t_stream_fill(seed, off, want, n);
		CHECK(memcmp(buf, want, n) == 0);
		off += n;
	}
	CHECK_EQ(off, len);
	free(buf);
	free(want);
}

void
t_mirror_attach(const char *name, const char *prefix, unsigned caps,
    const struct impair_config *impair)
{
	struct mem_wire *mw = mem_wire_create(true);
	struct ifnet *ifp = mem_attach(name, prefix, caps | IFCAP_BATCH,
	    impair, mem_wire_output, mw);

	ifp->if_lro = true;
	mem_wire_attach(mw, ifp, 0);
	CHECK_EQ(mem_wire_start(mw), 0);
}

struct thread *
t_thread(void (*fn)(void *), void *arg)
{
	struct thread *td;

	CHECK_EQ(kthread_create("test", MACH_CPU_ANY, fn, arg, &td), 0);
	return (td);
}

void
t_join(struct thread *td)
{
	kthread_join(td);
}

void
t_sleep(unsigned ms)
{
	atomic_u32 word = 0;
	nsec_t deadline = mach_uptime() + ms * NSEC_PER_MSEC;

	while (mach_uptime() < deadline)
		(void)mach_park(&word, 0, deadline);
}

bool
t_until(bool (*cond)(void *), void *arg)
{
	for (int i = 0; i < 10000; i++) {
		if (cond(arg))
			return (true);
		t_sleep(1);
	}
	return (false);
}

uint64_t
t_sysctl(const char *name)
{
	char buf[64];

	CHECK_EQ(sysctl_get(name, buf, sizeof(buf)), 0);
	return (strtoull(buf, NULL, 10));
}

void
t_sysctl_set(const char *name, const char *value)
{
	char why[256] = "";

	CHECK_EQ(sysctl_set(name, value, why, sizeof(why)), 0);
}
