/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP state machine (RFC 9293 section 3.10.7, RFC 5961): which segment in
 * which state leads where, and what is answered.
 */
#include "tests/check.h"

#include <errno.h>

#include "netinet/tcp_syncache.h"
#include "tests/peer.h"

#define	PORT	8080
#define	NONE	0		/* no answer */

struct fixture {
	struct socket	*head, *so;	/* so NULL: not accepted */
	struct peer	 p;
};

static enum tcp_state
state_of(const struct peer *p)
{
	struct in_conninfo c = { in_map(t_addr(PEER_STACK_IP, 0).sin_addr),
	    in_map(t_addr(PEER_IP, 0).sin_addr), htons(p->stack_port),
	    htons(p->port), 0 };
	struct socket *so = in_pcblookup_conn(&tcp_table, &c);
	struct tcp_half half;
	enum tcp_state state;
	nsec_t since;

	if (so == NULL)
		return (tcp_syncache_find(&c, &half, &since) ?
		    TCPS_SYN_RECEIVED : TCPS_CLOSED);
	mtx_lock(&so->so_lock);
	state = so->so_pcb == NULL ? TCPS_CLOSED : sototcpcb(so)->t_state;
	mtx_unlock(&so->so_lock);
	sorele(so);
	return (state);
}

static void
connect_nonblocking(struct fixture *f)
{
	struct sockaddr_in sin = t_addr(PEER_IP, 9000);
	struct peer_seg s;

	f->so = t_socket(SOCK_STREAM);
	CHECK_EQ(soconnect(f->so, (struct sockaddr *)&sin, sizeof(sin),
	    MSG_DONTWAIT), EINPROGRESS);
	peer_await(&s, 1000);
	CHECK_EQ(s.flags, TH_SYN);
	f->p = (struct peer){ .port = 9000, .stack_port = s.sport,
	    .snd_nxt = 5000, .rcv_nxt = s.seq + 1, .window = 60000 };
}

static void
half_open(struct fixture *f)
{
	struct peer_seg s;

	f->p = (struct peer){ .window = 60000 };
	peer_syn(&f->p, PORT, 0, &s);
}

static void
peer_fin(struct fixture *f)
{
	peer_send(&f->p, TH_FIN | TH_ACK, f->p.snd_nxt++, f->p.rcv_nxt, NULL,
	    0);
}

static void
stack_fin(struct fixture *f)
{
	CHECK_EQ(soshutdown(f->so, SHUT_WR), 0);
}

/* A connection in the state wanted. */
static void
reach(struct fixture *f, enum tcp_state state)
{
	memset(f, 0, sizeof(*f));
	peer_forget();
	if (state == TCPS_SYN_SENT) {
		connect_nonblocking(f);
		return;
	}
	f->head = t_listen(PEER_STACK_IP, PORT, 5);
	if (state == TCPS_SYN_RECEIVED) {
		half_open(f);
		return;
	}
	peer_open(&f->p, PORT);
	f->so = t_accept(f->head);
	if (state == TCPS_CLOSE_WAIT || state == TCPS_LAST_ACK)
		peer_fin(f);
	if (state != TCPS_ESTABLISHED && state != TCPS_CLOSE_WAIT)
		stack_fin(f);
	if (state == TCPS_CLOSING)
		peer_fin(f);
	if (state == TCPS_FIN_WAIT_2 || state == TCPS_TIME_WAIT)
		peer_send(&f->p, TH_ACK, f->p.snd_nxt, ++f->p.rcv_nxt, NULL,
		    0);
	else if (state != TCPS_ESTABLISHED && state != TCPS_CLOSE_WAIT)
		f->p.rcv_nxt++;		/* the FIN that we have not acked */
	if (state == TCPS_TIME_WAIT)
		peer_fin(f);
	peer_forget();
	CHECK_EQ(state_of(&f->p), state);
}

static void
leave(struct fixture *f)
{
	/* no state may linger: the next case uses the port again */
	peer_send(&f->p, TH_RST | TH_ACK, f->p.snd_nxt, f->p.rcv_nxt, NULL, 0);
	if (f->so != NULL)
		soclose(f->so);
	if (f->head != NULL)
		soclose(f->head);
	peer_forget();
}

/* seq is relative to what the stack expects, ack to all it has sent. */
struct transition {
	enum tcp_state	 from;
	uint8_t		 flags;
	int		 seq, ack;
	uint32_t	 len;
	enum tcp_state	 to;
	uint8_t		 answer;
};

#define	RST_ACK	(TH_RST | TH_ACK)
#define	SYN_ACK	(TH_SYN | TH_ACK)
#define	FIN_ACK	(TH_FIN | TH_ACK)

static const struct transition transitions[] = {
	/* SYN-SENT */
	{ TCPS_SYN_SENT, TH_ACK, 0, -1, 0, TCPS_SYN_SENT, TH_RST },
	{ TCPS_SYN_SENT, TH_ACK, 0, 1, 0, TCPS_SYN_SENT, TH_RST },
	{ TCPS_SYN_SENT, TH_RST, 0, 0, 0, TCPS_SYN_SENT, NONE },
	{ TCPS_SYN_SENT, RST_ACK, 0, 1, 0, TCPS_SYN_SENT, NONE },
	{ TCPS_SYN_SENT, RST_ACK, 0, 0, 0, TCPS_CLOSED, NONE },
	{ TCPS_SYN_SENT, TH_ACK, 0, 0, 0, TCPS_SYN_SENT, NONE },
	{ TCPS_SYN_SENT, TH_FIN, 0, 0, 0, TCPS_SYN_SENT, NONE },
	{ TCPS_SYN_SENT, TH_SYN, 0, 0, 0, TCPS_SYN_RECEIVED, SYN_ACK },
	{ TCPS_SYN_SENT, SYN_ACK, 0, 0, 0, TCPS_ESTABLISHED, TH_ACK },
	/* SYN-RECEIVED */
	{ TCPS_SYN_RECEIVED, TH_RST, 0, 0, 0, TCPS_CLOSED, NONE },
	{ TCPS_SYN_RECEIVED, TH_RST, 1, 0, 0, TCPS_SYN_RECEIVED, SYN_ACK },
	{ TCPS_SYN_RECEIVED, TH_RST, -1, 0, 0, TCPS_SYN_RECEIVED, NONE },
	{ TCPS_SYN_RECEIVED, TH_ACK, 0, 1, 0, TCPS_SYN_RECEIVED, TH_RST },
	{ TCPS_SYN_RECEIVED, TH_ACK, 0, -1, 0, TCPS_SYN_RECEIVED, TH_RST },
	{ TCPS_SYN_RECEIVED, TH_SYN, -1, 0, 0, TCPS_SYN_RECEIVED, SYN_ACK },
	{ TCPS_SYN_RECEIVED, SYN_ACK, -1, 0, 0, TCPS_ESTABLISHED, NONE },
	{ TCPS_SYN_RECEIVED, TH_ACK, 0, 0, 0, TCPS_ESTABLISHED, NONE },
	{ TCPS_SYN_RECEIVED, FIN_ACK, 0, 0, 0, TCPS_CLOSE_WAIT, TH_ACK },
	{ TCPS_SYN_RECEIVED, 0, 0, 0, 10, TCPS_SYN_RECEIVED, NONE },
	/* ESTABLISHED */
	{ TCPS_ESTABLISHED, TH_RST, 0, 0, 0, TCPS_CLOSED, NONE },
	{ TCPS_ESTABLISHED, TH_RST, 1, 0, 0, TCPS_ESTABLISHED, TH_ACK },
	{ TCPS_ESTABLISHED, TH_RST, -1, 0, 0, TCPS_ESTABLISHED, NONE },
	{ TCPS_ESTABLISHED, TH_SYN, 0, 0, 0, TCPS_ESTABLISHED, TH_ACK },
	{ TCPS_ESTABLISHED, TH_SYN, 500, 0, 0, TCPS_ESTABLISHED, TH_ACK },
	{ TCPS_ESTABLISHED, SYN_ACK, -1, 0, 0, TCPS_ESTABLISHED, TH_ACK },
	{ TCPS_ESTABLISHED, TH_ACK, 0, 1, 0, TCPS_ESTABLISHED, TH_ACK },
	{ TCPS_ESTABLISHED, TH_ACK, 0, -100000, 0, TCPS_ESTABLISHED, TH_ACK },
	{ TCPS_ESTABLISHED, TH_ACK, 0, 0, 0, TCPS_ESTABLISHED, NONE },
	{ TCPS_ESTABLISHED, TH_ACK, -1, 0, 0, TCPS_ESTABLISHED, TH_ACK },
	{ TCPS_ESTABLISHED, TH_ACK, -100, 0, 50, TCPS_ESTABLISHED, TH_ACK },
	{ TCPS_ESTABLISHED, TH_ACK, 100, 0, 50, TCPS_ESTABLISHED, TH_ACK },
	{ TCPS_ESTABLISHED, TH_ACK, 70000000, 0, 50, TCPS_ESTABLISHED,
	    TH_ACK },
	{ TCPS_ESTABLISHED, 0, 0, 0, 50, TCPS_ESTABLISHED, NONE },
	{ TCPS_ESTABLISHED, FIN_ACK, 0, 0, 0, TCPS_CLOSE_WAIT, TH_ACK },
	{ TCPS_ESTABLISHED, FIN_ACK, 0, 0, 20, TCPS_CLOSE_WAIT, TH_ACK },
	{ TCPS_ESTABLISHED, FIN_ACK, 10, 0, 20, TCPS_ESTABLISHED, TH_ACK },
	{ TCPS_ESTABLISHED, TH_FIN, 0, 0, 0, TCPS_ESTABLISHED, NONE },
	/* CLOSE-WAIT */
	{ TCPS_CLOSE_WAIT, TH_RST, 0, 0, 0, TCPS_CLOSED, NONE },
	{ TCPS_CLOSE_WAIT, TH_ACK, 0, 0, 10, TCPS_CLOSE_WAIT, NONE },
	{ TCPS_CLOSE_WAIT, FIN_ACK, -1, 0, 0, TCPS_CLOSE_WAIT, TH_ACK },
	{ TCPS_CLOSE_WAIT, TH_SYN, 0, 0, 0, TCPS_CLOSE_WAIT, TH_ACK },
	/* FIN-WAIT-1; ack 0 covers our FIN, -1 does not */
	{ TCPS_FIN_WAIT_1, TH_ACK, 0, 0, 0, TCPS_FIN_WAIT_2, NONE },
	{ TCPS_FIN_WAIT_1, TH_ACK, 0, -1, 0, TCPS_FIN_WAIT_1, NONE },
	{ TCPS_FIN_WAIT_1, FIN_ACK, 0, -1, 0, TCPS_CLOSING, TH_ACK },
	{ TCPS_FIN_WAIT_1, FIN_ACK, 0, 0, 0, TCPS_TIME_WAIT, TH_ACK },
	{ TCPS_FIN_WAIT_1, TH_RST, 0, 0, 0, TCPS_CLOSED, NONE },
	{ TCPS_FIN_WAIT_1, TH_SYN, 0, 0, 0, TCPS_FIN_WAIT_1, TH_ACK },
	/* FIN-WAIT-2 */
	{ TCPS_FIN_WAIT_2, TH_ACK, 0, 0, 0, TCPS_FIN_WAIT_2, NONE },
	{ TCPS_FIN_WAIT_2, FIN_ACK, 0, 0, 0, TCPS_TIME_WAIT, TH_ACK },
	{ TCPS_FIN_WAIT_2, TH_RST, 0, 0, 0, TCPS_CLOSED, NONE },
	{ TCPS_FIN_WAIT_2, TH_ACK, 0, 1, 0, TCPS_FIN_WAIT_2, TH_ACK },
	/* CLOSING */
	{ TCPS_CLOSING, TH_ACK, 0, 0, 0, TCPS_TIME_WAIT, TH_ACK },
	{ TCPS_CLOSING, TH_ACK, 0, -1, 0, TCPS_CLOSING, NONE },
	{ TCPS_CLOSING, TH_RST, 0, 0, 0, TCPS_CLOSED, NONE },
	{ TCPS_CLOSING, FIN_ACK, -1, -1, 0, TCPS_CLOSING, TH_ACK },
	/* LAST-ACK */
	{ TCPS_LAST_ACK, TH_ACK, 0, 0, 0, TCPS_CLOSED, NONE },
	{ TCPS_LAST_ACK, TH_ACK, 0, -1, 0, TCPS_LAST_ACK, NONE },
	{ TCPS_LAST_ACK, TH_RST, 0, 0, 0, TCPS_CLOSED, NONE },
	{ TCPS_LAST_ACK, FIN_ACK, -1, -1, 0, TCPS_LAST_ACK, TH_ACK },
	/* TIME-WAIT */
	{ TCPS_TIME_WAIT, TH_ACK, 0, 0, 0, TCPS_TIME_WAIT, NONE },
	{ TCPS_TIME_WAIT, FIN_ACK, -1, 0, 0, TCPS_TIME_WAIT, TH_ACK },
	{ TCPS_TIME_WAIT, TH_RST, 0, 0, 0, TCPS_CLOSED, NONE },
	{ TCPS_TIME_WAIT, TH_SYN, -5000, 0, 0, TCPS_TIME_WAIT, TH_ACK },
	{ TCPS_TIME_WAIT, TH_SYN, 5000, 0, 0, TCPS_SYN_RECEIVED, SYN_ACK },
};

static void
check_transition(const struct transition *t)
{
	static const uint8_t data[64];
	struct fixture f;
	struct peer_seg s;
	bool answered;

	reach(&f, t->from);
	/* a probe that the stack sends by a timer must not be taken for the
	   answer: what is there is there at once */
	peer_send(&f.p, t->flags, f.p.snd_nxt + (uint32_t)t->seq,
	    t->flags & TH_ACK ? f.p.rcv_nxt + (uint32_t)t->ack : 0, data,
	    t->len);
	answered = peer_next(&s);
	if (state_of(&f.p) != t->to ||
	    (answered ? s.flags : NONE) != t->answer) {
		fprintf(stderr, "%s, flags %#x seq %+d ack %+d len %u: now "
		    "%s, not %s; answer %#x, not %#x\n",
		    tcp_state_names[t->from], t->flags, t->seq, t->ack,
		    t->len, tcp_state_names[state_of(&f.p)],
		    tcp_state_names[t->to], answered ? s.flags : NONE,
		    t->answer);
		abort();
	}
	leave(&f);
}

TEST(every_transition)
{
	for (size_t i = 0; i < nitems(transitions); i++)
		check_transition(&transitions[i]);
}

TEST(listener_refuses_what_is_not_a_syn)
{
	struct socket *head = t_listen(PEER_STACK_IP, PORT, 5);
	struct peer p = { .port = 30000, .stack_port = PORT, .window = 1000 };
	struct peer_seg s;

	peer_forget();
	peer_send(&p, TH_ACK, 1, 77, NULL, 0);
	CHECK(peer_next(&s));
	CHECK_EQ(s.flags, TH_RST);
	CHECK_EQ(s.seq, 77);
	peer_send(&p, TH_RST, 1, 0, NULL, 0);
	peer_send(&p, TH_FIN, 1, 0, NULL, 0);
	peer_send(&p, 0, 1, 0, "data", 4);
	CHECK(!peer_next(&s));
	soclose(head);
}

TEST(closed_port_answers_with_a_reset)
{
	struct peer p = { .port = 30001, .stack_port = 4, .window = 1000 };
	struct peer_seg s;

	peer_forget();
	peer_send(&p, TH_SYN, 100, 0, NULL, 0);
	CHECK(peer_next(&s));
	CHECK_EQ(s.flags, TH_RST | TH_ACK);
	CHECK_EQ(s.ack, 101);
	peer_send(&p, TH_ACK | TH_FIN, 100, 555, "xy", 2);
	CHECK(peer_next(&s));
	CHECK_EQ(s.flags, TH_RST);
	CHECK_EQ(s.seq, 555);
	peer_send(&p, TH_RST, 100, 0, NULL, 0);
	CHECK(!peer_next(&s));
}

TEST(challenge_acks_are_limited)
{
	struct fixture f;
	struct peer_seg s;
	unsigned answers = 0;

	reach(&f, TCPS_ESTABLISHED);
	for (int i = 0; i < 100; i++)
		peer_send(&f.p, TH_RST, f.p.snd_nxt + 1, 0, NULL, 0);
	while (peer_next(&s))
		answers++;
	CHECK(answers >= 1 && answers <= 10);
	CHECK_EQ(state_of(&f.p), TCPS_ESTABLISHED);
	leave(&f);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
