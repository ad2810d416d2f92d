/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters of sockets (socket(7), bpf(4)): which programs are accepted, what
 * they see, and who may remove them.
 */
#include "posix.h"

#include <linux/filter.h>
#include <sys/un.h>

#define	KEEP_ALL	BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)
#define	DROP		BPF_STMT(BPF_RET | BPF_K, 0)
#define	UDP_HEADER	8
#define	COUNT(a)	(sizeof(a) / sizeof((a)[0]))

static int
attach(int fd, struct sock_filter *prog, size_t len)
{
	struct sock_fprog fprog = { (unsigned short)len, prog };

	return (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &fprog,
	    sizeof(fprog)));
}

static int
detach(int fd)
{
	int none = 0;

	return (setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none,
	    sizeof(none)));
}

/* s[0] sends to s[1]; family AF_INET or AF_UNIX. */
static void
datagram_pair(int family, int s[2])
{
	struct sockaddr_in sin;

	if (family == AF_UNIX) {
		OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
		return;
	}
	s[1] = bound(SOCK_DGRAM);
	s[0] = bound(SOCK_DGRAM);
	sin = own_address(s[1]);
	OK(connect(s[0], (struct sockaddr *)&sin, sizeof(sin)));
}

/* Waits until what was sent before has passed the receiver's filter. */
static void
settle(void)
{
	int s[2];
	char c;

	/* over loopback, packets keep their order */
	datagram_pair(AF_INET, s);
	send_byte(s[0]);
	CHECK_EQ(recv(s[1], &c, 1, 0), 1);
	close_pair(s);
}

/* Sends text, then a mark; returns the length received before it, or -1. */
static int
passes(int s[2], const char *text, size_t len)
{
	char buf[64] = "";
	ssize_t n;

	CHECK_EQ(send(s[0], text, len, 0), len);
	settle();
	OK(detach(s[1]));
	CHECK_EQ(send(s[0], "MARK", 4, 0), 4);
	n = OK(recv(s[1], buf, sizeof(buf), 0));
	if (n == 4 && memcmp(buf, "MARK", 4) == 0)
		return (-1);
	CHECK(memcmp(buf, text, (size_t)n) == 0);
	CHECK_EQ(recv(s[1], buf, sizeof(buf), 0), 4);
	return ((int)n);
}

/* The filter of UDP begins at its header, that of AF_UNIX at the data. */
TEST(a_filter_drops_by_content)
{
	static const int families[] = { AF_INET, AF_UNIX };
	int s[2];

	for (size_t i = 0; i < COUNT(families); i++) {
		struct sock_filter prog[] = {
			BPF_STMT(BPF_LD | BPF_B | BPF_ABS,
			    families[i] == AF_INET ? UDP_HEADER : 0),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'a', 0, 1),
			KEEP_ALL, DROP
		};

		datagram_pair(families[i], s);
		OK(attach(s[1], prog, COUNT(prog)));
		CHECK_EQ(passes(s, "abc", 3), 3);
		OK(attach(s[1], prog, COUNT(prog)));
		CHECK_EQ(passes(s, "bcd", 3), -1);
		close_pair(s);
	}
}

TEST(a_filter_cuts)
{
	struct sock_filter udp[] = { BPF_STMT(BPF_RET | BPF_K, UDP_HEADER + 2) };
	struct sock_filter empty[] = { BPF_STMT(BPF_RET | BPF_K, 1) };
	struct sock_filter computed[] = { BPF_STMT(BPF_LD | BPF_IMM,
	    UDP_HEADER + 3), BPF_STMT(BPF_RET | BPF_A, 0) };
	struct sock_filter local[] = { BPF_STMT(BPF_RET | BPF_K, 2) };
	int s[2];

	datagram_pair(AF_INET, s);
	OK(attach(s[1], udp, 1));
	CHECK_EQ(passes(s, "abcdef", 6), 2);
	OK(attach(s[1], empty, 1));
	CHECK_EQ(passes(s, "abcdef", 6), 0);
	OK(attach(s[1], computed, 2));
	CHECK_EQ(passes(s, "abcdef", 6), 3);
	close_pair(s);
	datagram_pair(AF_UNIX, s);
	OK(attach(s[1], local, 1));
	CHECK_EQ(passes(s, "abcdef", 6), 2);
	close_pair(s);
}

/* Each program returns whether one kind of instruction gave what it must. */
TEST(instructions_compute)
{
	static const struct { struct sock_filter in[7]; uint32_t a; } cases[] = {
		{ { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, UDP_HEADER) },
		    0x61626364 },
		{ { BPF_STMT(BPF_LD | BPF_H | BPF_ABS, UDP_HEADER + 1) },
		    0x6263 },
		{ { BPF_STMT(BPF_LDX | BPF_IMM, 3),
		    BPF_STMT(BPF_LD | BPF_B | BPF_IND, UDP_HEADER) }, 'd' },
		{ { BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0) }, UDP_HEADER + 6 },
		{ { BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0),
		    BPF_STMT(BPF_MISC | BPF_TXA, 0) }, UDP_HEADER + 6 },
		{ { BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, UDP_HEADER),
		    BPF_STMT(BPF_MISC | BPF_TXA, 0) }, ('a' & 15) << 2 },
		{ { BPF_STMT(BPF_LD | BPF_IMM, 7), BPF_STMT(BPF_ST, 15),
		    BPF_STMT(BPF_LD | BPF_IMM, 1),
		    BPF_STMT(BPF_LDX | BPF_MEM, 15), BPF_STMT(BPF_STX, 0),
		    BPF_STMT(BPF_LD | BPF_MEM, 0) }, 7 },
		{ { BPF_STMT(BPF_LD | BPF_IMM, 7),
		    BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 9),
		    BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff0),
		    BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 5),
		    BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 1) }, 0xff4 },
		{ { BPF_STMT(BPF_LD | BPF_IMM, 1000), BPF_STMT(BPF_LDX |
		    BPF_IMM, 7), BPF_STMT(BPF_ALU | BPF_MOD | BPF_X, 0),
		    BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
		    BPF_STMT(BPF_ALU | BPF_LSH | BPF_X, 0),
		    BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 128) }, 42 },
		{ { BPF_STMT(BPF_LD | BPF_IMM, 5),
		    BPF_STMT(BPF_ALU | BPF_NEG, 0) }, (uint32_t)-5 },
		{ { BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    (uint32_t)SKF_AD_OFF + SKF_AD_PROTOCOL) }, 0x0800 },
		{ { BPF_STMT(BPF_LD | BPF_B | BPF_ABS,
		    (uint32_t)SKF_NET_OFF + 9) }, IPPROTO_UDP },
		{ { BPF_STMT(BPF_LD | BPF_IMM, 3),
		    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 2, 0, 1),
		    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 3, 1, 0),
		    BPF_STMT(BPF_LD | BPF_IMM, 99),
		    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 0, 1),
		    BPF_STMT(BPF_LD | BPF_IMM, 98) }, 3 },
		{ { BPF_STMT(BPF_LD | BPF_IMM, 3), BPF_STMT(BPF_JMP | BPF_JA,
		    1), BPF_STMT(BPF_LD | BPF_IMM, 99) }, 3 },
	};
	int s[2];

	datagram_pair(AF_INET, s);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct sock_filter prog[10];
		size_t n = 0;

		while (n < COUNT(cases[i].in) && (cases[i].in[n].code != 0 ||
		    cases[i].in[n].k != 0)) {
			prog[n] = cases[i].in[n];
			n++;
		}
		prog[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ |
		    BPF_K, cases[i].a, 1, 0);
		prog[n++] = (struct sock_filter)DROP;
		prog[n++] = (struct sock_filter)KEEP_ALL;
		OK(attach(s[1], prog, n));
		if (passes(s, "abcdef", 6) != 6) {
			fprintf(stderr, "case %zu\n", i);
			abort();
		}
	}
	close_pair(s);
}

/* What lies outside the packet, or divides by zero, drops it. */
TEST(errors_of_a_running_filter_drop)
{
	static const struct sock_filter bad[][2] = {
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, UDP_HEADER + 3) },
		{ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, UDP_HEADER + 6) },
		{ BPF_STMT(BPF_LD | BPF_H | BPF_IND, 1000000) },
		{ BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 1000) },
		{ BPF_STMT(BPF_LDX | BPF_IMM, 0),
		    BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0) },
		{ BPF_STMT(BPF_LDX | BPF_IMM, 0),
		    BPF_STMT(BPF_ALU | BPF_MOD | BPF_X, 0) },
	};
	int s[2];

	datagram_pair(AF_INET, s);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct sock_filter prog[3] = { bad[i][0], bad[i][1],
		    KEEP_ALL };
		const size_t n = bad[i][1].code != 0 ? 3 : 2;

		prog[n - 1] = (struct sock_filter)KEEP_ALL;
		OK(attach(s[1], prog, n));
		CHECK_EQ(passes(s, "abcdef", 6), -1);
	}
	close_pair(s);
}

TEST(programs_that_cannot_be_are_refused)
{
	static struct sock_filter bad[][3] = {
		{ BPF_STMT(BPF_LD | BPF_IMM, 1), KEEP_ALL,
		    BPF_STMT(BPF_LD | BPF_IMM, 1) },	/* no return at its end */
		{ BPF_STMT(BPF_LD | BPF_MEM, 16), KEEP_ALL, KEEP_ALL },
		{ BPF_STMT(BPF_LD | BPF_MEM, 3), KEEP_ALL, KEEP_ALL },
		{ BPF_STMT(BPF_ST, 16), KEEP_ALL, KEEP_ALL },
		{ BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), KEEP_ALL, KEEP_ALL },
		{ BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 0), KEEP_ALL, KEEP_ALL },
		{ BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32), KEEP_ALL, KEEP_ALL },
		{ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0), KEEP_ALL,
		    KEEP_ALL },
		{ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2), KEEP_ALL,
		    KEEP_ALL },
		{ BPF_STMT(BPF_JMP | BPF_JA, 2), KEEP_ALL, KEEP_ALL },
		{ BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), KEEP_ALL, KEEP_ALL },
		{ BPF_STMT(BPF_RET | BPF_X, 0), KEEP_ALL, KEEP_ALL },
		{ BPF_STMT(0xffff, 0), KEEP_ALL, KEEP_ALL },
		{ BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    (uint32_t)SKF_AD_OFF + 1), KEEP_ALL, KEEP_ALL },
	};
	struct sock_filter longest[4097];
	int fd = bound(SOCK_DGRAM);

	for (size_t i = 0; i < COUNT(bad); i++)
		FAILS(attach(fd, bad[i], 3), EINVAL);
	FAILS(attach(fd, bad[0], 0), EINVAL);
	FAILS(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, bad, 4), EINVAL);
	for (size_t i = 0; i < COUNT(longest); i++)
		longest[i] = (struct sock_filter)KEEP_ALL;
	FAILS(attach(fd, longest, 4097), EINVAL);
	OK(attach(fd, longest, 4096));
	FAILS(attach(fd, bad[0], 3), EINVAL);	/* the old one stays */
	OK(detach(fd));
	FAILS(detach(fd), ENOENT);
	OK(close(fd));
}

/* Scratch memory must be written on every way to its reader. */
TEST(no_way_leads_to_unwritten_memory)
{
	struct sock_filter prog[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_ST, 5), BPF_STMT(BPF_LD | BPF_MEM, 5), KEEP_ALL
	};
	int fd = bound(SOCK_DGRAM);

	FAILS(attach(fd, prog, COUNT(prog)), EINVAL);
	prog[0].jt = 1;
	prog[0].jf = 0;
	FAILS(attach(fd, prog, COUNT(prog)), EINVAL);
	prog[0] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1);
	FAILS(attach(fd, prog, COUNT(prog)), EINVAL);
	prog[0] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0);
	OK(attach(fd, prog, COUNT(prog)));
	OK(close(fd));
}

TEST(a_locked_filter_stays)
{
	struct sock_filter prog[] = { KEEP_ALL };
	int fd = bound(SOCK_DGRAM), on = 1, off = 0;
	socklen_t len = sizeof(on);

	OK(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &off, sizeof(off)));
	OK(attach(fd, prog, 1));
	OK(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)));
	on = 9;
	OK(getsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, &len));
	CHECK_EQ(on, 1);
	FAILS(attach(fd, prog, 1), EPERM);
	FAILS(detach(fd), EPERM);
	FAILS(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &off, sizeof(off)),
	    EPERM);
	OK(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)));
	OK(close(fd));
}

/* SO_GET_FILTER: lengths are numbers of instructions. */
TEST(a_filter_can_be_read)
{
	struct sock_filter prog[] = { BPF_STMT(BPF_LD | BPF_IMM, 7), KEEP_ALL };
	struct sock_filter got[4] = { { 0 } };
	int fd = bound(SOCK_DGRAM);
	socklen_t len = 4;

	OK(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, got, &len));
	CHECK_EQ(len, 0);
	OK(attach(fd, prog, 2));
	OK(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, got, &len));
	CHECK_EQ(len, 2);
	len = 1;
	FAILS(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, got, &len), EINVAL);
	len = 4;
	OK(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, got, &len));
	CHECK_EQ(len, 2);
	CHECK(memcmp(got, prog, sizeof(prog)) == 0);
	OK(close(fd));
}

/* The length is no number of bytes, so the value may be longer. */
TEST(a_filter_is_not_read_to_a_bad_address)
{
	static const unsigned lengths[] = { 1, 65, 100, 512, 4096 };
	static struct sock_filter prog[4096];
	void *volatile const no_address = NULL;
	int fd = bound(SOCK_DGRAM);
	socklen_t len;

	for (size_t i = 0; i < COUNT(prog); i++)
		prog[i] = (struct sock_filter)KEEP_ALL;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		OK(attach(fd, prog, (unsigned short)lengths[i]));
		len = lengths[i];
		FAILS(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, no_address,
		    &len), EFAULT);
		len = 100000;
		FAILS(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, no_address,
		    &len), EFAULT);
	}
	OK(close(fd));
}

int
main(int argc, char **argv)
{
	return (posix_main(argc, argv));
}
