/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP Fast Open (RFC 7413): data in the SYN of a client that has shown by a
 * cookie that it receives at its address.
 *
 * A child that a listener accepts with the data of its SYN has the flag
 * TF_FASTOPEN: it is in the queue of accept() and may send in SYN-RECEIVED.  A
 * client whose SYN waits for data has TF_FODEFER: it is in SYN-SENT, and for
 * the program connected.  The snd_una of both is after the SYN, as data in the
 * send buffer requires.
 */
#ifndef NETINET_TCP_FASTOPEN_H
#define NETINET_TCP_FASTOPEN_H

#include "netinet/tcp_var.h"

#define	TCP_FASTOPEN_KEYLEN	16
#define	TCP_FASTOPEN_KEYS	2	/* the current one, and the previous */

struct tcp_cookie {
	uint8_t		 optlen;	/* as tcpopts.fastopen */
	bool		 exp;		/* as tcpopts.fastopen_exp */
	uint8_t		 bytes[TCP_FASTOPEN_MAX];
};
struct tcp_fastopen_keys {
	unsigned	 n;		/* 0: those of the host */
	struct siphash_key key[TCP_FASTOPEN_KEYS]; /* current, previous */
};
struct tcp_half;

void	 tcp_fastopen_init(void);

/* tcp_fastopen_cookie.c */
void	 tcp_fastopen_cookie_init(void);
struct tcp_fastopen_keys tcp_fastopen_hostkeys(void);
/* The cookie of a connection's client. */
struct tcp_cookie tcp_fastopen_cookie(const struct siphash_key *,
	    const struct in_conninfo *);
/* The index of the key of a SYN's cookie; the number of keys: none. */
unsigned tcp_fastopen_findkey(const struct tcp_fastopen_keys *,
	    const struct tcpseg *);

/*
 * The state of a listener, which it shares with its copies and with children
 * in SYN-RECEIVED.  tcp_fastopen_share() makes the state if there is none, and
 * adds a reference; tcp_fastopen_free() drops that of a control block.
 */
struct tcp_fastopen *tcp_fastopen_share(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
void	 tcp_fastopen_free(struct tcpcb *);

/*
 * A SYN with the option or data: grants a cookie in the half if the client
 * needs one.  True: the cookie is valid and the child may be made, which is
 * counted.
 */
bool	 tcp_fastopen_check(const struct tcpcb *head, const struct tcpseg *,
	    struct tcp_half *);
/* The child of a counted request, which is locked; NULL: there is none. */
void	 tcp_fastopen_adopt(struct tcpcb *head, struct socket *child,
	    const struct tcp_half *);
/* The child's handshake is complete, or it has ended, by a reset or not. */
void	 tcp_fastopen_ended(struct tcpcb *, bool reset);
/* The cookie for the SYN-ACK of a child. */
struct tcp_cookie tcp_fastopen_grant(struct tcp_fastopen *,
	    const struct in_conninfo *);

/* listen(): with FASTOPEN_ALL, its limit is that of TCP_FASTOPEN, too. */
void	 tcp_fastopen_listen(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/* Whether a SYN of a listener may have data without a cookie. */
static inline bool
tcp_fastopen_open(const struct tcpcb *head)
{
	return ((head->t_flags & TF_FONOCOOKIE) != 0 ||
	    (atomic_load_u32(&tcp_fastopen) & FASTOPEN_OPEN) != 0);
}
/* TCP_FASTOPEN, TCP_FASTOPEN_KEY; a key has 16 bytes, two have 32. */
int	 tcp_fastopen_setlimit(struct tcpcb *tp, int limit)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
int	 tcp_fastopen_limit(const struct tcpcb *);
int	 tcp_fastopen_setkey(struct tcpcb *tp, const void *, socklen_t)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
int	 tcp_fastopen_getkey(const struct tcpcb *, void *, socklen_t *);
int	 tcp_fastopen_setconnect(struct tcpcb *, int on);
/* TCP_FASTOPEN_NO_COOKIE, of a client or a listener */
int	 tcp_fastopen_setopen(struct tcpcb *, int on);

/* tcp_fastopen_client.c */
void	 tcp_fastopen_client_init(void);
/*
 * A connection begins.  True: its SYN waits for data, because the cookie of
 * the destination is known.  False: it is sent now, maybe with a request.
 */
bool	 tcp_fastopen_defer(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/* Adds option and data to the SYN or SYN-ACK; returns the bytes of data. */
uint32_t tcp_fastopen_fill(struct tcpcb *tp, struct tcp_half *, bool first)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/* Sends the SYN that waits for data, with what is in the send buffer. */
void	 tcp_fastopen_begin(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/* The SYN-ACK of a SYN with TF_FOSYN. */
void	 tcp_fastopen_answer(struct tcpcb *tp, const struct tcpseg *)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/* A SYN was too long for the path: it is sent again without data. */
void	 tcp_fastopen_toobig(struct tcpcb *tp)
	    REQUIRES(tp->t_inp.inp_socket->so_lock);
/* The peer's SYN has crossed a SYN with TF_FOSYN. */
void	 tcp_fastopen_crossed(struct tcpcb *);
/*
 * Output before the connection is established: sends the SYN that waited for
 * data.  True: a child of TF_FASTOPEN, which may send.
 */
bool	 tcp_fastopen_output(struct tcpcb *);

#endif /* NETINET_TCP_FASTOPEN_H */
