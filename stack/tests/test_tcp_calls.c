/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of a program, and the passing of time, in every state of a TCP
 * connection (RFC 9293 section 3.10): what they return, where they lead, and
 * what is sent.
 */
#include "tests/check.h"

#include <errno.h>

#include "tests/states.h"

enum call { LISTEN, CONNECT, SEND, RECV, SHUTDOWN, CLOSE, ABORT, CALLS };
static const char *const call_names[CALLS] = {
	"listen", "connect", "send", "receive", "shutdown", "close", "abort"
};

struct outcome {
	int		 error;
	enum tcp_state	 to;
	uint8_t		 answer;
};

/* OPEN, SEND, RECEIVE, CLOSE and ABORT of sections 3.10.1 to 3.10.5. */
static const struct outcome outcomes[TCPS_COUNT][CALLS] = {
	[TCPS_CLOSED] = {
		[LISTEN] = { 0, TCPS_LISTEN, NONE },
		[CONNECT] = { EINPROGRESS, TCPS_SYN_SENT, TH_SYN },
		[SEND] = { EPIPE, TCPS_CLOSED, NONE },
		[RECV] = { ENOTCONN, TCPS_CLOSED, NONE },
		[SHUTDOWN] = { ENOTCONN, TCPS_CLOSED, NONE },
		[CLOSE] = { 0, TCPS_CLOSED, NONE },
		[ABORT] = { 0, TCPS_CLOSED, NONE },
	},
	[TCPS_LISTEN] = {
		[LISTEN] = { 0, TCPS_LISTEN, NONE },
		[CONNECT] = { EISCONN, TCPS_LISTEN, NONE },
		[SEND] = { EPIPE, TCPS_LISTEN, NONE },
		[RECV] = { ENOTCONN, TCPS_LISTEN, NONE },
		[SHUTDOWN] = { 0, TCPS_LISTEN, NONE },
		[CLOSE] = { 0, TCPS_CLOSED, NONE },
		[ABORT] = { 0, TCPS_CLOSED, NONE },
	},
	[TCPS_SYN_SENT] = {
		[LISTEN] = { EINVAL, TCPS_SYN_SENT, NONE },
		[CONNECT] = { EALREADY, TCPS_SYN_SENT, NONE },
		[SEND] = { EWOULDBLOCK, TCPS_SYN_SENT, NONE },
		[RECV] = { EWOULDBLOCK, TCPS_SYN_SENT, NONE },
		[SHUTDOWN] = { 0, TCPS_CLOSED, NONE },	/* as in Linux */
		[CLOSE] = { 0, TCPS_CLOSED, NONE },
		[ABORT] = { 0, TCPS_CLOSED, NONE },
	},
	[TCPS_SYN_RECEIVED] = {
		[LISTEN] = { EINVAL, TCPS_SYN_RECEIVED, NONE },
		[CONNECT] = { EALREADY, TCPS_SYN_RECEIVED, NONE },
		[SEND] = { EWOULDBLOCK, TCPS_SYN_RECEIVED, NONE },
		[RECV] = { EWOULDBLOCK, TCPS_SYN_RECEIVED, NONE },
		[SHUTDOWN] = { 0, TCPS_CLOSED, RST_ACK },
		/* the FIN is sent when the connection stands */
		[CLOSE] = { 0, TCPS_SYN_RECEIVED, NONE },
		[ABORT] = { 0, TCPS_CLOSED, RST_ACK },
	},
	[TCPS_ESTABLISHED] = {
		[LISTEN] = { EINVAL, TCPS_ESTABLISHED, NONE },
		[CONNECT] = { EISCONN, TCPS_ESTABLISHED, NONE },
		[SEND] = { 0, TCPS_ESTABLISHED, PSH_ACK },
		[RECV] = { EWOULDBLOCK, TCPS_ESTABLISHED, NONE },
		[SHUTDOWN] = { 0, TCPS_FIN_WAIT_1, FIN_ACK },
		[CLOSE] = { 0, TCPS_FIN_WAIT_1, FIN_ACK },
		[ABORT] = { 0, TCPS_CLOSED, RST_ACK },
	},
	[TCPS_CLOSE_WAIT] = {
		[LISTEN] = { EINVAL, TCPS_CLOSE_WAIT, NONE },
		[CONNECT] = { EISCONN, TCPS_CLOSE_WAIT, NONE },
		[SEND] = { 0, TCPS_CLOSE_WAIT, PSH_ACK },
		[RECV] = { 0, TCPS_CLOSE_WAIT, NONE },
		[SHUTDOWN] = { 0, TCPS_LAST_ACK, FIN_ACK },
		[CLOSE] = { 0, TCPS_LAST_ACK, FIN_ACK },
		[ABORT] = { 0, TCPS_CLOSED, RST_ACK },
	},
	[TCPS_FIN_WAIT_1] = {
		[LISTEN] = { EINVAL, TCPS_FIN_WAIT_1, NONE },
		[CONNECT] = { EISCONN, TCPS_FIN_WAIT_1, NONE },
		[SEND] = { EPIPE, TCPS_FIN_WAIT_1, NONE },
		[RECV] = { EWOULDBLOCK, TCPS_FIN_WAIT_1, NONE },
		[SHUTDOWN] = { 0, TCPS_FIN_WAIT_1, NONE },
		[CLOSE] = { 0, TCPS_FIN_WAIT_1, NONE },
		[ABORT] = { 0, TCPS_CLOSED, RST_ACK },
	},
	[TCPS_FIN_WAIT_2] = {
		[LISTEN] = { EINVAL, TCPS_FIN_WAIT_2, NONE },
		[CONNECT] = { EISCONN, TCPS_FIN_WAIT_2, NONE },
		[SEND] = { EPIPE, TCPS_FIN_WAIT_2, NONE },
		[RECV] = { EWOULDBLOCK, TCPS_FIN_WAIT_2, NONE },
		[SHUTDOWN] = { 0, TCPS_FIN_WAIT_2, NONE },
		[CLOSE] = { 0, TCPS_FIN_WAIT_2, NONE },
		[ABORT] = { 0, TCPS_CLOSED, RST_ACK },
	},
	/* section 3.10.5: from here on an abort sends no reset */
	[TCPS_CLOSING] = {
		[LISTEN] = { EINVAL, TCPS_CLOSING, NONE },
		[CONNECT] = { EISCONN, TCPS_CLOSING, NONE },
		[SEND] = { EPIPE, TCPS_CLOSING, NONE },
		[RECV] = { 0, TCPS_CLOSING, NONE },
		[SHUTDOWN] = { 0, TCPS_CLOSING, NONE },
		[CLOSE] = { 0, TCPS_CLOSING, NONE },
		[ABORT] = { 0, TCPS_CLOSED, NONE },
	},
	[TCPS_LAST_ACK] = {
		[LISTEN] = { EINVAL, TCPS_LAST_ACK, NONE },
		[CONNECT] = { EISCONN, TCPS_LAST_ACK, NONE },
		[SEND] = { EPIPE, TCPS_LAST_ACK, NONE },
		[RECV] = { 0, TCPS_LAST_ACK, NONE },
		[SHUTDOWN] = { 0, TCPS_LAST_ACK, NONE },
		[CLOSE] = { 0, TCPS_LAST_ACK, NONE },
		[ABORT] = { 0, TCPS_CLOSED, NONE },
	},
	[TCPS_TIME_WAIT] = {
		[LISTEN] = { EINVAL, TCPS_TIME_WAIT, NONE },
		[CONNECT] = { EISCONN, TCPS_TIME_WAIT, NONE },
		[SEND] = { EPIPE, TCPS_TIME_WAIT, NONE },
		[RECV] = { 0, TCPS_TIME_WAIT, NONE },
		[SHUTDOWN] = { ENOTCONN, TCPS_TIME_WAIT, NONE },
		[CLOSE] = { 0, TCPS_TIME_WAIT, NONE },
		[ABORT] = { 0, TCPS_CLOSED, NONE },
	},
};

/* With a socket in every state. */
static void
reach(struct connection *f, enum tcp_state state)
{
	if (state == TCPS_SYN_RECEIVED)
		states_open_both(f);
	else
		states_reach(f, state);
}

/* STATUS (section 3.10.6), in our numbers. */
static enum tcp_state
status(const struct connection *f)
{
	enum tcp_state state;

	if (f->so == NULL)
		return (states_now(&f->p));
	so_resume(f->so);
	state = sototcpcb(f->so)->t_state;
	so_pause(f->so);
	return (state);
}

static void
close_socket(struct connection *f)
{
	soclose(f->so);
	if (f->so == f->head)
		f->head = NULL;
	f->so = NULL;
}

static int
make_call(struct connection *f, enum call call)
{
	const struct sockaddr_in sin = t_addr(PEER_IP, 9001);
	const struct linger at_once = { .l_onoff = 1 };
	size_t done;
	char c = 'c';

	switch (call) {
	case LISTEN:
		return (solisten(f->so, 5));
	case CONNECT:
		return (soconnect(f->so, (const struct sockaddr *)&sin,
		    sizeof(sin), MSG_DONTWAIT));
	case SEND:
		return (t_trysend(f->so, &c, 1, MSG_DONTWAIT, &done));
	case RECV:
		return (t_tryrecv(f->so, &c, 1, MSG_DONTWAIT, &done));
	case SHUTDOWN:
		return (soshutdown(f->so, SHUT_WR));
	case ABORT:
		CHECK_EQ(sosetopt(f->so, SOL_SOCKET, SO_LINGER, &at_once,
		    sizeof(at_once)), 0);
		/* FALLTHROUGH */
	default:
		close_socket(f);
		return (0);
	}
}

static void
check_call(enum tcp_state from, enum call call)
{
	const struct outcome *o = &outcomes[from][call];
	struct connection f;
	enum tcp_state to;
	uint8_t answer;
	int error;

	reach(&f, from);
	CHECK_EQ(status(&f), from);
	error = make_call(&f, call);
	answer = states_answer();
	to = status(&f);
	if (error != o->error || answer != o->answer || to != o->to) {
		fprintf(stderr, "%s in %s: error %d, not %d; now %s, not %s; "
		    "sent %#x, not %#x\n", call_names[call],
		    tcp_state_names[from], error, o->error,
		    tcp_state_names[to], tcp_state_names[o->to], answer,
		    o->answer);
		abort();
	}
	if (from == TCPS_SYN_RECEIVED && call == CLOSE) {
		peer_send(&f.p, TH_ACK, f.p.snd_nxt, f.p.rcv_nxt, NULL, 0);
		CHECK_EQ(states_answer(), FIN_ACK);
		CHECK_EQ(states_now(&f.p), TCPS_FIN_WAIT_1);
	}
	states_leave(&f);
}

TEST(every_call_in_every_state)
{
	for (int state = 0; state < TCPS_COUNT; state++)
		for (int call = 0; call < CALLS; call++)
			check_call((enum tcp_state)state, (enum call)call);
}

/*
 * Section 3.10.8: the peer does not respond.  In some states a timer waits for
 * its response.  UNTIL is when the connection still exists, AFTER when it does
 * not, in seconds (0: it stays).
 */
struct silence {
	enum tcp_state	 from;
	bool		 closed;	/* the socket was closed */
	int		 usertimeo;	/* TCP_USER_TIMEOUT, s */
	unsigned	 until, after;
	int		 error;		/* of a socket that is there */
	uint8_t		 last;		/* segment that was sent last */
};

static const struct silence silences[] = {
	{ TCPS_LISTEN, false, 0, 7200, 0, 0, NONE },
	{ TCPS_SYN_SENT, false, 0, 60, 140, ETIMEDOUT, TH_SYN },
	{ TCPS_SYN_SENT, false, 3, 2, 10, ETIMEDOUT, TH_SYN },
	{ TCPS_SYN_RECEIVED, false, 0, 60, 140, ETIMEDOUT, SYN_ACK },
	/* data is sent until there is no hope, or the user has none */
	{ TCPS_ESTABLISHED, false, 0, 400, 600, ETIMEDOUT, RST_ACK },
	{ TCPS_CLOSE_WAIT, false, 0, 400, 600, ETIMEDOUT, RST_ACK },
	{ TCPS_ESTABLISHED, false, 5, 4, 10, ETIMEDOUT, RST_ACK },
	{ TCPS_CLOSE_WAIT, false, 5, 4, 10, ETIMEDOUT, RST_ACK },
	/* and so is a FIN */
	{ TCPS_FIN_WAIT_1, false, 0, 400, 600, ETIMEDOUT, RST_ACK },
	{ TCPS_FIN_WAIT_1, true, 0, 400, 600, 0, RST_ACK },
	{ TCPS_FIN_WAIT_1, true, 5, 4, 10, 0, RST_ACK },
	{ TCPS_CLOSING, false, 0, 400, 600, ETIMEDOUT, FIN_ACK },
	{ TCPS_CLOSING, false, 5, 4, 10, ETIMEDOUT, FIN_ACK },
	{ TCPS_LAST_ACK, false, 0, 400, 600, ETIMEDOUT, FIN_ACK },
	{ TCPS_LAST_ACK, true, 5, 4, 10, 0, FIN_ACK },
	/* the peer may send as long as there is a reader */
	{ TCPS_FIN_WAIT_2, false, 0, 7200, 0, 0, NONE },
	{ TCPS_FIN_WAIT_2, true, 0, 59, 61, 0, NONE },
	/* two maximum segment lifetimes */
	{ TCPS_TIME_WAIT, false, 0, 59, 61, 0, NONE },
	{ TCPS_TIME_WAIT, true, 0, 59, 61, 0, NONE },
};

static void
check_silence(const struct silence *s)
{
	struct connection f;
	uint8_t sent, last = NONE;

	reach(&f, s->from);
	if (s->usertimeo != 0)
		t_setint(f.so, IPPROTO_TCP, TCP_USER_TIMEOUT,
		    s->usertimeo * 1000);
	if (s->from == TCPS_ESTABLISHED || s->from == TCPS_CLOSE_WAIT)
		t_send(f.so, "x", 1);
	if (s->closed)
		close_socket(&f);
	t_sleep(s->until * 1000);
	CHECK_EQ(status(&f), s->from);
	if (s->after != 0) {
		t_sleep((s->after - s->until) * 1000);
		CHECK_EQ(status(&f), TCPS_CLOSED);
		if (f.so != NULL)
			CHECK_EQ(t_getint(f.so, SOL_SOCKET, SO_ERROR),
			    s->error);
	}
	while ((sent = states_answer()) != NONE)
		last = sent;
	if (s->from == TCPS_SYN_SENT && last == NONE)
		last = TH_SYN;
	CHECK_EQ(last, s->last);
	states_leave(&f);
}

TEST(silence_ends_what_waits_for_an_answer)
{
	for (size_t i = 0; i < nitems(silences); i++) {
		printf("  %s, row %zu\n", tcp_state_names[silences[i].from],
		    i);
		check_silence(&silences[i]);
	}
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
