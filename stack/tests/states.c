/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP connections in all states.
 */
#include "tests/states.h"

#include <errno.h>

#include "netinet/tcp_syncache.h"
#include "tests/check.h"

enum tcp_state
states_now(const struct peer *p)
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
	so_resume(so);
	state = so->so_pcb == NULL ? TCPS_CLOSED : sototcpcb(so)->t_state;
	so_pause(so);
	sorele(so);
	return (state);
}

uint8_t
states_answer(void)
{
	struct peer_seg s;

	return (peer_next(&s) ? s.flags : NONE);
}

static void
connect_nonblocking(struct connection *f)
{
	struct sockaddr_in sin = t_addr(PEER_IP, STATES_SERVER);
	struct peer_seg s;

	f->so = t_socket(SOCK_STREAM);
	CHECK_EQ(soconnect(f->so, (struct sockaddr *)&sin, sizeof(sin),
	    MSG_DONTWAIT), EINPROGRESS);
	peer_await(&s, 1000);
	CHECK_EQ(s.flags, TH_SYN);
	f->p = (struct peer){ .port = STATES_SERVER, .stack_port = s.sport,
	    .snd_nxt = 5000, .rcv_nxt = s.seq + 1, .window = 60000 };
}

static void
half_open(struct connection *f)
{
	struct peer_seg s;

	f->p = (struct peer){ .window = 60000 };
	peer_syn(&f->p, STATES_PORT, 0, &s);
}

void
states_peer_fin(struct connection *f)
{
	peer_send(&f->p, FIN_ACK, f->p.snd_nxt++, f->p.rcv_nxt, NULL, 0);
}

void
states_open_both(struct connection *f)
{
	memset(f, 0, sizeof(*f));
	peer_forget();
	connect_nonblocking(f);
	peer_send(&f->p, TH_SYN, f->p.snd_nxt++, 0, NULL, 0);
	peer_forget();
	CHECK_EQ(states_now(&f->p), TCPS_SYN_RECEIVED);
}

/* Closes both ends, or one of them, to reach the state. */
static void
close_ends(struct connection *f, enum tcp_state state)
{
	const bool open = state == TCPS_ESTABLISHED ||
	    state == TCPS_CLOSE_WAIT;

	if (state == TCPS_CLOSE_WAIT || state == TCPS_LAST_ACK)
		states_peer_fin(f);
	if (!open)
		CHECK_EQ(soshutdown(f->so, SHUT_WR), 0);
	if (state == TCPS_CLOSING)
		states_peer_fin(f);
	if (!open)
		f->p.rcv_nxt++;		/* the FIN, acknowledged or not */
	if (state == TCPS_FIN_WAIT_2 || state == TCPS_TIME_WAIT)
		peer_send(&f->p, TH_ACK, f->p.snd_nxt, f->p.rcv_nxt, NULL, 0);
	if (state == TCPS_TIME_WAIT)
		states_peer_fin(f);
}

void
states_reach(struct connection *f, enum tcp_state state)
{
	static uint16_t port = 30000;

	memset(f, 0, sizeof(*f));
	peer_forget();
	port++;
	f->p = (struct peer){ .port = port, .stack_port = STATES_PORT,
	    .snd_nxt = 1000, .rcv_nxt = 1000, .window = 60000 };
	if (state == TCPS_CLOSED) {
		f->so = t_socket(SOCK_STREAM);
		return;
	}
	if (state == TCPS_SYN_SENT) {
		connect_nonblocking(f);
		return;
	}
	f->head = t_listen(PEER_STACK_IP, STATES_PORT, 5);
	if (state == TCPS_LISTEN) {
		f->so = f->head;
		return;
	}
	if (state == TCPS_SYN_RECEIVED) {
		half_open(f);
		return;
	}
	peer_open(&f->p, STATES_PORT);
	f->so = t_accept(f->head);
	close_ends(f, state);
	peer_forget();
	CHECK_EQ(states_now(&f->p), state);
}

void
states_leave(struct connection *f)
{
	/* the next case uses the same port */
	peer_send(&f->p, RST_ACK, f->p.snd_nxt, f->p.rcv_nxt, NULL, 0);
	if (f->so != NULL && f->so != f->head)
		soclose(f->so);
	if (f->head != NULL)
		soclose(f->head);
	peer_forget();
}
