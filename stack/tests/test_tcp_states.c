/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP state machine (RFC 9293 section 3.10.7, RFC 5961): which segment in
 * which state leads where, and what is answered.
 */
#include "tests/check.h"

#include <errno.h>
#include <netinet/ip_icmp.h>

#include "tests/states.h"

/* seq is relative to what the stack expects, ack to all it has sent. */
struct segment {
	const char	*name;
	uint8_t		 flags;
	int		 seq, ack;
	uint32_t	 len;
};

static const struct segment segments[] = {
	{ "SYN", TH_SYN, 0, 0, 0 },
	{ "SYN,ACK", SYN_ACK, 0, 0, 0 },
	{ "ACK", TH_ACK, 0, 0, 0 },
	{ "ACK of what was not sent", TH_ACK, 0, 1, 0 },
	{ "ACK of long ago", TH_ACK, 0, -100000, 0 },
	{ "ACK left of the window", TH_ACK, -1, 0, 0 },
	{ "ACK right of the window", TH_ACK, 70000000, 0, 0 },
	{ "data", TH_ACK, 0, 0, 10 },
	{ "data without ACK", 0, 0, 0, 10 },
	{ "urgent pointer", TH_ACK | TH_URG, 0, 0, 0 },
	{ "FIN", FIN_ACK, 0, 0, 0 },
	{ "FIN without ACK", TH_FIN, 0, 0, 0 },
	{ "RST", TH_RST, 0, 0, 0 },
	{ "RST,ACK", RST_ACK, 0, 0, 0 },
	{ "RST in the window", TH_RST, 1, 0, 0 },
	{ "RST left of the window", TH_RST, -1, 0, 0 },
};

struct cell {
	enum tcp_state	 to;		/* TCPS_COUNT: stays */
	uint8_t		 answer;
};
#define	STAYS(answer)		{ TCPS_COUNT, answer }
#define	GOES(to, answer)	{ TCPS_##to, answer }

/*
 * RFC 9293 sections 3.10.7.1 to 3.10.7.4 with RFC 5961; the columns are the
 * segments above.  The ACKs cover our FIN if there is one.  A listener's only
 * result is a connection in SYN-RECEIVED.
 */
static const struct cell cells[TCPS_COUNT][nitems(segments)] = {
	[TCPS_CLOSED] = {
		STAYS(RST_ACK), STAYS(TH_RST), STAYS(TH_RST), STAYS(TH_RST),
		STAYS(TH_RST), STAYS(TH_RST), STAYS(TH_RST), STAYS(TH_RST),
		STAYS(RST_ACK), STAYS(TH_RST), STAYS(TH_RST), STAYS(RST_ACK),
		STAYS(NONE), STAYS(NONE), STAYS(NONE), STAYS(NONE),
	},
	[TCPS_LISTEN] = {
		GOES(SYN_RECEIVED, SYN_ACK), STAYS(TH_RST), STAYS(TH_RST),
		STAYS(TH_RST), STAYS(TH_RST), STAYS(TH_RST), STAYS(TH_RST),
		STAYS(TH_RST), STAYS(NONE), STAYS(TH_RST), STAYS(TH_RST),
		STAYS(NONE), STAYS(NONE), STAYS(NONE), STAYS(NONE),
		STAYS(NONE),
	},
	[TCPS_SYN_SENT] = {
		GOES(SYN_RECEIVED, SYN_ACK), GOES(ESTABLISHED, TH_ACK),
		STAYS(NONE), STAYS(TH_RST), STAYS(TH_RST), STAYS(NONE),
		STAYS(NONE), STAYS(NONE), STAYS(NONE), STAYS(NONE),
		STAYS(NONE), STAYS(NONE), STAYS(NONE), GOES(CLOSED, NONE),
		STAYS(NONE), STAYS(NONE),
	},
	[TCPS_SYN_RECEIVED] = {
		STAYS(SYN_ACK), STAYS(TH_ACK), GOES(ESTABLISHED, NONE),
		STAYS(TH_RST), STAYS(TH_RST), STAYS(TH_ACK), STAYS(TH_ACK),
		GOES(ESTABLISHED, NONE), STAYS(NONE), GOES(ESTABLISHED, NONE),
		GOES(CLOSE_WAIT, TH_ACK), STAYS(NONE), GOES(CLOSED, NONE),
		GOES(CLOSED, NONE), STAYS(TH_ACK), STAYS(NONE),
	},
	[TCPS_ESTABLISHED] = {
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(NONE), STAYS(TH_ACK),
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK), STAYS(NONE),
		STAYS(NONE), STAYS(NONE), GOES(CLOSE_WAIT, TH_ACK),
		STAYS(NONE), GOES(CLOSED, NONE), GOES(CLOSED, NONE),
		STAYS(TH_ACK), STAYS(NONE),
	},
	[TCPS_CLOSE_WAIT] = {
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(NONE), STAYS(TH_ACK),
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK), STAYS(NONE),
		STAYS(NONE), STAYS(NONE), STAYS(NONE), STAYS(NONE),
		GOES(CLOSED, NONE), GOES(CLOSED, NONE), STAYS(TH_ACK),
		STAYS(NONE),
	},
	[TCPS_FIN_WAIT_1] = {
		STAYS(TH_ACK), STAYS(TH_ACK), GOES(FIN_WAIT_2, NONE),
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK),
		GOES(FIN_WAIT_2, NONE), STAYS(NONE), GOES(FIN_WAIT_2, NONE),
		GOES(TIME_WAIT, TH_ACK), STAYS(NONE), GOES(CLOSED, NONE),
		GOES(CLOSED, NONE), STAYS(TH_ACK), STAYS(NONE),
	},
	[TCPS_CLOSING] = {
		STAYS(TH_ACK), STAYS(TH_ACK), GOES(TIME_WAIT, NONE),
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK),
		GOES(TIME_WAIT, TH_ACK), STAYS(NONE), GOES(TIME_WAIT, NONE),
		GOES(TIME_WAIT, TH_ACK), STAYS(NONE), GOES(CLOSED, NONE),
		GOES(CLOSED, NONE), STAYS(TH_ACK), STAYS(NONE),
	},
	[TCPS_LAST_ACK] = {
		STAYS(TH_ACK), STAYS(TH_ACK), GOES(CLOSED, NONE),
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK),
		GOES(CLOSED, NONE), STAYS(NONE), GOES(CLOSED, NONE),
		GOES(CLOSED, NONE), STAYS(NONE), GOES(CLOSED, NONE),
		GOES(CLOSED, NONE), STAYS(TH_ACK), STAYS(NONE),
	},
	[TCPS_FIN_WAIT_2] = {
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(NONE), STAYS(TH_ACK),
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK), STAYS(NONE),
		STAYS(NONE), STAYS(NONE), GOES(TIME_WAIT, TH_ACK),
		STAYS(NONE), GOES(CLOSED, NONE), GOES(CLOSED, NONE),
		STAYS(TH_ACK), STAYS(NONE),
	},
	[TCPS_TIME_WAIT] = {
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(NONE), STAYS(TH_ACK),
		STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK), STAYS(TH_ACK),
		STAYS(NONE), STAYS(NONE), STAYS(TH_ACK), STAYS(NONE),
		GOES(CLOSED, NONE), GOES(CLOSED, NONE), STAYS(TH_ACK),
		STAYS(NONE),
	},
};

static void
send_segment(struct connection *f, const struct segment *g)
{
	static const uint8_t data[64];

	/*
	 * a timer's probe must not be mistaken for the response, so only
	 * segments sent at once count
	 */
	peer_send(&f->p, g->flags, f->p.snd_nxt + (uint32_t)g->seq,
	    g->flags & TH_ACK ? f->p.rcv_nxt + (uint32_t)g->ack : 0, data,
	    g->len);
}

/* For a listener: the state of the connection that the segment may create. */
static enum tcp_state
state_before(enum tcp_state from)
{
	return (from == TCPS_LISTEN ? TCPS_CLOSED : from);
}

static void
check_reached(struct connection *f, enum tcp_state from,
    const struct segment *g, enum tcp_state to, uint8_t wanted)
{
	enum tcp_state now;
	uint8_t answer;

	send_segment(f, g);
	answer = states_answer();
	now = states_now(&f->p);
	if (now != to || answer != wanted) {
		fprintf(stderr, "%s in %s (flags %#x seq %+d ack %+d len %u): "
		    "now %s, not %s; answer %#x, not %#x\n", g->name,
		    tcp_state_names[from], g->flags, g->seq, g->ack, g->len,
		    tcp_state_names[now], tcp_state_names[to], answer, wanted);
		abort();
	}
	states_leave(f);
}

static void
check_segment(enum tcp_state from, const struct segment *g, enum tcp_state to,
    uint8_t wanted)
{
	struct connection f;

	states_reach(&f, from);
	check_reached(&f, from, g, to, wanted);
}

TEST(every_segment_in_every_state)
{
	for (int from = 0; from < TCPS_COUNT; from++)
		for (size_t i = 0; i < nitems(segments); i++) {
			const struct cell *c = &cells[from][i];

			check_segment((enum tcp_state)from, &segments[i],
			    c->to == TCPS_COUNT ?
			    state_before((enum tcp_state)from) : c->to,
			    c->answer);
		}
}

/* Other segments that matter in some states. */
static const struct transition {
	enum tcp_state	 from, to;
	uint8_t		 answer;
	struct segment	 segment;
} transitions[] = {
	{ TCPS_SYN_SENT, TCPS_SYN_SENT, TH_RST,
	    { "segment", TH_ACK, 0, -1, 0 } },
	{ TCPS_SYN_SENT, TCPS_SYN_SENT, NONE,
	    { "segment", RST_ACK, 0, 1, 0 } },
	{ TCPS_SYN_RECEIVED, TCPS_SYN_RECEIVED, TH_RST,
	    { "segment", TH_ACK, 0, -1, 0 } },
	{ TCPS_SYN_RECEIVED, TCPS_SYN_RECEIVED, SYN_ACK,
	    { "segment", TH_SYN, -1, 0, 0 } },
	{ TCPS_SYN_RECEIVED, TCPS_ESTABLISHED, NONE,
	    { "segment", SYN_ACK, -1, 0, 0 } },
	{ TCPS_SYN_RECEIVED, TCPS_SYN_RECEIVED, TH_ACK,
	    { "segment", TH_ACK, -50, 0, 50 } },
	{ TCPS_SYN_RECEIVED, TCPS_ESTABLISHED, TH_ACK,
	    { "segment", TH_ACK, -50, 0, 51 } },
	/* the window comes before the ACK */
	{ TCPS_SYN_RECEIVED, TCPS_SYN_RECEIVED, TH_ACK,
	    { "segment", TH_ACK, -1, 1, 0 } },
	{ TCPS_SYN_RECEIVED, TCPS_SYN_RECEIVED, NONE,
	    { "segment", TH_RST, 70000, 0, 0 } },
	/* RFC 5961 section 5.2: the peer's window was 60000 at most */
	{ TCPS_ESTABLISHED, TCPS_ESTABLISHED, NONE,
	    { "segment", TH_ACK, 0, -60000, 0 } },
	{ TCPS_ESTABLISHED, TCPS_ESTABLISHED, TH_ACK,
	    { "segment", TH_ACK, 0, -60001, 0 } },
	{ TCPS_ESTABLISHED, TCPS_ESTABLISHED, TH_ACK,
	    { "segment", TH_SYN, 500, 0, 0 } },
	{ TCPS_ESTABLISHED, TCPS_ESTABLISHED, TH_ACK,
	    { "segment", SYN_ACK, -1, 0, 0 } },
	{ TCPS_ESTABLISHED, TCPS_ESTABLISHED, TH_ACK,
	    { "segment", TH_ACK, -100, 0, 50 } },
	{ TCPS_ESTABLISHED, TCPS_ESTABLISHED, TH_ACK,
	    { "segment", TH_ACK, 100, 0, 50 } },
	{ TCPS_ESTABLISHED, TCPS_ESTABLISHED, TH_ACK,
	    { "segment", TH_ACK, 70000000, 0, 50 } },
	{ TCPS_ESTABLISHED, TCPS_CLOSE_WAIT, TH_ACK,
	    { "segment", FIN_ACK, 0, 0, 20 } },
	{ TCPS_ESTABLISHED, TCPS_ESTABLISHED, TH_ACK,
	    { "segment", FIN_ACK, 10, 0, 20 } },
	{ TCPS_ESTABLISHED, TCPS_CLOSED, NONE,
	    { "segment", TH_RST, 0, 0, 50 } },
	/* data from left of the window on is not where it expects a RST */
	{ TCPS_ESTABLISHED, TCPS_ESTABLISHED, TH_ACK,
	    { "segment", TH_RST, -20, 0, 50 } },
	{ TCPS_ESTABLISHED, TCPS_ESTABLISHED, TH_ACK,
	    { "segment", TH_RST, 20, 0, 50 } },
	{ TCPS_CLOSE_WAIT, TCPS_CLOSE_WAIT, TH_ACK,
	    { "segment", FIN_ACK, -1, 0, 0 } },
	{ TCPS_FIN_WAIT_1, TCPS_FIN_WAIT_1, NONE,
	    { "segment", TH_ACK, 0, -1, 0 } },
	{ TCPS_FIN_WAIT_1, TCPS_CLOSING, TH_ACK,
	    { "segment", FIN_ACK, 0, -1, 0 } },
	{ TCPS_CLOSING, TCPS_CLOSING, NONE,
	    { "segment", TH_ACK, 0, -1, 0 } },
	{ TCPS_CLOSING, TCPS_CLOSING, TH_ACK,
	    { "segment", FIN_ACK, -1, -1, 0 } },
	{ TCPS_LAST_ACK, TCPS_LAST_ACK, NONE,
	    { "segment", TH_ACK, 0, -1, 0 } },
	{ TCPS_LAST_ACK, TCPS_LAST_ACK, TH_ACK,
	    { "segment", FIN_ACK, -1, -1, 0 } },
	{ TCPS_TIME_WAIT, TCPS_TIME_WAIT, TH_ACK,
	    { "segment", FIN_ACK, -1, 0, 0 } },
	{ TCPS_TIME_WAIT, TCPS_TIME_WAIT, TH_ACK,
	    { "segment", TH_SYN, -5000, 0, 0 } },
	{ TCPS_TIME_WAIT, TCPS_SYN_RECEIVED, SYN_ACK,
	    { "segment", TH_SYN, 5000, 0, 0 } },
};

TEST(other_transitions)
{
	for (size_t i = 0; i < nitems(transitions); i++)
		check_segment(transitions[i].from, &transitions[i].segment,
		    transitions[i].to, transitions[i].answer);
}

/* SYN-RECEIVED of a simultaneous open, where a socket exists. */
TEST(every_segment_after_both_have_called)
{
	static const struct transition cases[] = {
		{ 0, TCPS_SYN_RECEIVED, SYN_ACK,
		    { "SYN again", TH_SYN, -1, 0, 0 } },
		{ 0, TCPS_ESTABLISHED, NONE,
		    { "SYN,ACK", SYN_ACK, -1, 0, 0 } },
		{ 0, TCPS_SYN_RECEIVED, TH_ACK,
		    { "another SYN", TH_SYN, 5, 0, 0 } },
		{ 0, TCPS_SYN_RECEIVED, TH_ACK,
		    { "RST in the window", TH_RST, 1, 0, 0 } },
		{ 0, TCPS_SYN_RECEIVED, NONE,
		    { "RST left of the window", TH_RST, -1, 0, 0 } },
		{ 0, TCPS_CLOSED, NONE, { "RST", TH_RST, 0, 0, 0 } },
		{ 0, TCPS_SYN_RECEIVED, TH_ACK,
		    { "ACK left of the window", TH_ACK, -1, 0, 0 } },
		{ 0, TCPS_SYN_RECEIVED, TH_ACK,
		    { "ACK right of the window", TH_ACK, 70000000, 0, 0 } },
		{ 0, TCPS_SYN_RECEIVED, TH_RST,
		    { "ACK of nothing", TH_ACK, 0, -1, 0 } },
		{ 0, TCPS_SYN_RECEIVED, NONE,
		    { "data without ACK", 0, 0, 0, 10 } },
		{ 0, TCPS_CLOSE_WAIT, TH_ACK, { "FIN", FIN_ACK, 0, 0, 0 } },
	};
	struct connection f;

	for (size_t i = 0; i < nitems(cases); i++) {
		states_open_both(&f);
		check_reached(&f, TCPS_SYN_RECEIVED, &cases[i].segment,
		    cases[i].to, cases[i].answer);
	}
}

/* RFC 9293 section 3.10.7.4: <SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>. */
TEST(answer_in_syn_received_is_a_plain_ack)
{
	struct connection f;
	struct peer_seg s;

	for (int both = 0; both < 2; both++) {
		if (both)
			states_open_both(&f);
		else
			states_reach(&f, TCPS_SYN_RECEIVED);
		peer_send(&f.p, TH_RST, f.p.snd_nxt + 1, 0, NULL, 0);
		CHECK(peer_next(&s));
		CHECK_EQ(s.flags, TH_ACK);
		CHECK_EQ(s.seq, f.p.rcv_nxt);
		CHECK_EQ(s.ack, f.p.snd_nxt);
		CHECK_EQ(s.optlen, 0);
		CHECK(s.window > 0);
		states_leave(&f);
	}
}

/* RFC 9293 MUST-56, with net.inet.tcp.icmp_drops_syn=0. */
TEST(unreachable_may_end_a_handshake_of_both_sides)
{
	struct connection f;

	for (int drops = 0; drops <= 1; drops++) {
		t_sysctl_set("net.inet.tcp.icmp_drops_syn", drops ? "1" : "0");
		states_open_both(&f);
		/* not about our SYN: no effect (RFC 5927) */
		peer_icmp(&f.p, ICMP_DEST_UNREACH, ICMP_HOST_UNREACH, 0,
		    f.p.rcv_nxt + 1000);
		CHECK_EQ(states_now(&f.p), TCPS_SYN_RECEIVED);
		peer_icmp(&f.p, ICMP_DEST_UNREACH, ICMP_HOST_UNREACH, 0,
		    f.p.rcv_nxt - 1);
		CHECK_EQ(states_now(&f.p), drops ? TCPS_CLOSED :
		    TCPS_SYN_RECEIVED);
		CHECK_EQ(t_getint(f.so, SOL_SOCKET, SO_ERROR), drops ?
		    EHOSTUNREACH : 0);
		states_leave(&f);
	}
}

/* RFC 9293 section 3.10.7.3: what is in the SYN waits for the handshake. */
TEST(data_of_a_syn_are_kept_until_the_handshake_is_complete)
{
	static const struct { uint8_t flags, last; uint32_t off; } cases[] = {
		{ 0, TH_ACK, 3 },		/* an ACK after the data */
		{ 0, TH_ACK, 0 },		/* one that repeats them */
		{ TH_FIN, TH_ACK, 4 },
	};
	struct connection f;

	for (size_t i = 0; i < nitems(cases); i++) {
		states_reach(&f, TCPS_SYN_SENT);
		peer_send(&f.p, TH_SYN | cases[i].flags, f.p.snd_nxt++, 0,
		    "abc", 3);
		CHECK_EQ(states_answer(), SYN_ACK);
		CHECK_EQ(soavail(f.so), 0);
		peer_send(&f.p, cases[i].last, f.p.snd_nxt + cases[i].off,
		    f.p.rcv_nxt, "abc", cases[i].off == 0 ? 3 : 0);
		t_expect(f.so, "abc");
		CHECK_EQ(states_now(&f.p), cases[i].flags & TH_FIN ?
		    TCPS_CLOSE_WAIT : TCPS_ESTABLISHED);
		f.p.snd_nxt += 3 + (cases[i].flags & TH_FIN ? 1 : 0);
		states_leave(&f);
	}
}

/* RFC 9293 section 3.9.2: all segments of a connection have its TOS and TTL. */
static void
expect_marked_reset(void)
{
	struct peer_seg s;

	do {
		CHECK(peer_next(&s));
	} while ((s.flags & TH_RST) == 0);
	CHECK_EQ(s.tos, 32);
	CHECK_EQ(s.ttl, 7);
}

static void
mark(struct socket *so)
{
	t_setint(so, IPPROTO_IP, IP_TOS, 32);
	t_setint(so, IPPROTO_IP, IP_TTL, 7);
}

TEST(resets_have_the_options_of_their_socket)
{
	struct connection f;

	states_reach(&f, TCPS_SYN_SENT);
	mark(f.so);
	peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt - 1, NULL, 0);
	expect_marked_reset();
	states_leave(&f);
	states_reach(&f, TCPS_LISTEN);
	mark(f.so);
	peer_send(&f.p, TH_ACK, 1, 1, NULL, 0);
	expect_marked_reset();
	states_leave(&f);
	states_reach(&f, TCPS_ESTABLISHED);
	mark(f.so);
	peer_text(&f.p, "unread");
	CHECK_EQ(soclose(f.so), 0);
	f.so = NULL;
	expect_marked_reset();
	states_leave(&f);
}

TEST(listener_refuses_what_is_not_a_syn)
{
	struct socket *head = t_listen(PEER_STACK_IP, STATES_PORT, 5);
	struct peer p = { .port = 30000, .stack_port = STATES_PORT, .window = 1000 };
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

/*
 * Guesses of an attacker who cannot see the connection, with or without data.
 */
static void
check_challenges(uint8_t flags, const char *data, uint32_t len)
{
	struct connection f;
	struct peer_seg s;
	unsigned answers = 0;

	states_reach(&f, TCPS_ESTABLISHED);
	for (int i = 0; i < 100; i++)
		peer_send(&f.p, flags, f.p.snd_nxt + 1, 0, data, len);
	while (peer_next(&s))
		answers++;
	CHECK(answers >= 1 && answers <= 10);
	CHECK_EQ(states_now(&f.p), TCPS_ESTABLISHED);
	states_leave(&f);
}

TEST(challenge_acks_are_limited)
{
	check_challenges(TH_RST, NULL, 0);
	check_challenges(TH_RST, "data", 4);
	check_challenges(TH_SYN, NULL, 0);
	check_challenges(TH_SYN, "data", 4);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
