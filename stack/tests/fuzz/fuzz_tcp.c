/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole TCP connections in virtual time.  An input is a program of small
 * steps: a segment arrives, the application makes a call, time passes.
 * Sequence numbers are distances from the valid ones, so that the fuzzer
 * reaches the states of a connection.
 *
 * At the end all sockets are closed and the peer sends nothing.  All sockets
 * must then be freed by timers.
 */
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>

#include "boot/boot.h"
#include "dev/mem.h"
#include "fuzz.h"
#include "kern/socketvar.h"
#include "machine/virtual/virtual.h"
#include "netinet/ip_private.h"
#include "netinet/tcp_var.h"

#define	STACK_IP	0x0a090001	/* 10.9.0.1 */
#define	PEER_IP		0x0a090002
#define	LISTEN_PORT	80
#define	PEER_PORT	4000		/* connects to LISTEN_PORT */
#define	SERVER_PORT	5000		/* the stack connects to it */
#define	DATA_MAX	2000
#define	STEPS_MAX	200
#define	AFTERLIFE	(2 * 3600 * NSEC_PER_SEC)	/* all time-outs */

/* A connection from the peer's side: the valid values of the next segment. */
struct peer {
	uint16_t	 port, stack_port;
	/* next sequence number the stack expects */
	uint32_t	 seq;
	uint32_t	 ack;		/* next sequence number of the stack */
};

static struct ifnet *mem;
static struct socket *listener, *passive, *active;
static struct peer peers[2];

/* The rest of the input; zeroes follow its end. */
static const uint8_t *input;
static size_t left;

static unsigned
byte(void)
{
	if (left == 0)
		return (0);
	left--;
	return (*input++);
}

static int32_t
distance(void)
{
	int32_t v = (int16_t)(byte() << 8 | byte());

	return (v & 1 ? v : v / 256);	/* small and large values */
}

/*
 * The stack sends: checks that the packet is complete, and learns the valid
 * values from it.
 */
static void
sent(void *arg, struct mbuf *m)
{
	struct { struct ip ip; struct tcphdr th; } h;
	uint32_t len = m->m_pkthdr.len;
	struct peer *p;

	(void)arg;
	if (len < sizeof(h.ip) || len != m_length(m))
		panic("a packet of %u bytes, %u say its header", m_length(m),
		    len);
	memset(&h, 0, sizeof(h));
	m_copydata(m, 0, len < sizeof(h) ? len : sizeof(h), &h);
	if (ntohs(h.ip.ip_len) != len || in_hdrsum(&h.ip, sizeof(h.ip)) != 0)
		panic("an IP header with a length of %u in %u bytes",
		    ntohs(h.ip.ip_len), len);
	m_freem(m);
	if (h.ip.ip_p != IPPROTO_TCP)
		return;
	p = &peers[h.th.th_dport == htons(SERVER_PORT)];
	p->stack_port = ntohs(h.th.th_sport);
	p->ack = ntohl(h.th.th_seq) + len - sizeof(h.ip) -
	    ((uint32_t)h.th.th_off << 2) +
	    ((h.th.th_flags & (TH_SYN | TH_FIN)) != 0);
	if (h.th.th_flags & TH_ACK)
		p->seq = ntohl(h.th.th_ack);
}

static struct socket *
new_socket(uint32_t ip, uint16_t port, int (*fn)(struct socket *,
    const struct sockaddr *, socklen_t))
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
	    .sin_port = htons(port), .sin_addr.s_addr = htonl(ip) };
	struct socket *so;

	if (socreate(AF_INET, SOCK_STREAM, 0, &so) != 0)
		panic("no socket");
	(void)fn(so, (struct sockaddr *)&sin, sizeof(sin));
	return (so);
}

static int
connect_nonblocking(struct socket *so, const struct sockaddr *sa,
    socklen_t len)
{
	return (soconnect(so, sa, len, MSG_DONTWAIT));
}

static void
setup(void)
{
	struct if_config ic = { .name = "mem0", .queues = 1, .ninet = 1,
	    .inet = { { { htonl(STACK_IP) }, inet_mask(24) } } };

	mach_virtual_enter(true);
	if (stack_boot(NULL) != 0)
		panic("the stack does not boot");
	mem = mem_attach_ip(&ic, sent, NULL);
	listener = new_socket(STACK_IP, LISTEN_PORT, sobind);
	if (solisten(listener, 8) != 0)
		panic("no listener");
}

/*
 * Sends a segment with flags, distances, window, options and length from the
 * input.
 */
static void
segment(struct peer *p)
{
	struct mbuf *m = m_getcl(MMAXBYTES);
	struct ip *ip = mtod(m, struct ip *);
	struct tcphdr *th = (struct tcphdr *)(void *)(ip + 1);
	unsigned optlen, datalen;

	memset(m->m_data, 0, sizeof(*ip) + sizeof(*th));
	th->th_flags = (uint8_t)byte();
	th->th_seq = htonl(p->seq + (uint32_t)distance());
	th->th_ack = htonl(p->ack + (uint32_t)distance());
	th->th_win = htons((uint16_t)(byte() << 8 | byte()));
	if (th->th_flags & TH_URG)
		th->th_urp = htons((uint16_t)(byte() * byte()));
	th->th_sport = htons(p->port);
	th->th_dport = htons(p->stack_port);
	optlen = byte() % 11 * 4;
	th->th_off = (5 + optlen / 4) & 0xf;
	for (unsigned i = 0; i < optlen; i++)
		((uint8_t *)(th + 1))[i] = (uint8_t)byte();
	datalen = byte() * 8 % DATA_MAX;
	memset((uint8_t *)(th + 1) + optlen, 'd', datalen);
	m->m_len = m->m_pkthdr.len = (uint32_t)(sizeof(*ip) + sizeof(*th)) +
	    optlen + datalen;
	ip->ip_v = IPVERSION;
	ip->ip_hl = sizeof(*ip) >> 2;
	ip->ip_ttl = 64;
	ip->ip_p = IPPROTO_TCP;
	ip->ip_len = htons((uint16_t)m->m_len);
	ip->ip_src.s_addr = htonl(PEER_IP);
	ip->ip_dst.s_addr = htonl(STACK_IP);
	ip->ip_sum = in_hdrsum(ip, sizeof(*ip));
	m->m_pkthdr.csum_flags = CSUM_VALID;
	mem_input_ip(mem, m);
}

static void
pass_time(nsec_t length)
{
	nsec_t deadline = mach_uptime() + length;
	atomic_u32 word = 0;

	while (mach_uptime() < deadline)
		(void)mach_park(&word, 0, deadline);
}

static void
set_option(struct socket *so)
{
	static const struct { int level, name; } options[] = {
		{ IPPROTO_TCP, TCP_NODELAY }, { IPPROTO_TCP, TCP_CORK },
		{ IPPROTO_TCP, TCP_MAXSEG }, { IPPROTO_TCP, TCP_KEEPIDLE },
		{ IPPROTO_TCP, TCP_KEEPINTVL }, { IPPROTO_TCP, TCP_KEEPCNT },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT }, { SOL_SOCKET, SO_RCVBUF },
		{ SOL_SOCKET, SO_SNDBUF }, { SOL_SOCKET, SO_KEEPALIVE },
		{ SOL_SOCKET, SO_RCVLOWAT }, { SOL_SOCKET, SO_OOBINLINE },
		{ IPPROTO_TCP, TCP_QUICKACK },
		{ IPPROTO_TCP, TCP_NOTSENT_LOWAT },
	};
	unsigned which = byte() % nitems(options);
	int value = (int)(byte() * byte());

	(void)sosetopt(so, options[which].level, options[which].name, &value,
	    sizeof(value));
}

/* The application makes a call on a socket. */
static void
act(struct socket *so)
{
	static char buf[65536];
	struct iovec iov = { buf, 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	unsigned how;
	size_t n;

	switch (byte() % 6) {
	case 0:
		iov.iov_len = 1 + byte() * 256;
		(void)soreceive(so, &msg, MSG_DONTWAIT |
		    (int)(byte() & (MSG_PEEK | MSG_OOB)), &n);
		break;
	case 1:
		iov.iov_len = 1 + byte() * 256;
		how = byte();
		(void)sosend(so, &msg, MSG_DONTWAIT | MSG_NOSIGNAL |
		    (how & 1 ? MSG_MORE : 0) | (how & 2 ? MSG_OOB : 0), &n);
		break;
	case 2:
		(void)soshutdown(so, (int)(byte() % 3));
		break;
	case 3:
		set_option(so);
		break;
	case 4:
		(void)sopoll(so, POLLIN | POLLOUT);
		break;
	case 5:
		(void)soatmark(so);
		(void)soavail(so);
		break;
	}
}

static void
step(void)
{
	unsigned op = byte();

	switch (op % 4) {
	case 0:
	case 1:
		segment(&peers[op % 4]);
		break;
	case 2:
		pass_time(NSEC_PER_MSEC << (byte() % 16));
		break;
	case 3:
		if (passive == NULL)
			(void)soaccept(listener, MSG_DONTWAIT, NULL, NULL,
			    &passive);
		if (op & 0x80)
			act(active);
		else if (passive != NULL)
			act(passive);
		break;
	}
}

static void
must_listen(struct socket *so, void *arg)
{
	(void)arg;
	if (so != listener)
		panic("a closed socket in %s is left",
		    so->so_pcb != NULL ?
		    tcp_state_names[sototcpcb(so)->t_state] : "no state");
}

static void
finish(void)
{
	struct socket *so;

	(void)soclose(active);
	if (passive != NULL)
		(void)soclose(passive);
	while (soaccept(listener, MSG_DONTWAIT, NULL, NULL, &so) == 0)
		(void)soclose(so);
	pass_time(AFTERLIFE);
	so_foreach(must_listen, NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (mem == NULL)
		setup();
	input = data;
	left = size;
	peers[0] = (struct peer){ .port = PEER_PORT,
	    .stack_port = LISTEN_PORT, .seq = 1000 };
	peers[1] = (struct peer){ .port = SERVER_PORT, .seq = 1000 };
	passive = NULL;
	active = new_socket(PEER_IP, SERVER_PORT, connect_nonblocking);
	for (unsigned i = 0; i < STEPS_MAX && left > 0; i++)
		step();
	finish();
	return (0);
}
