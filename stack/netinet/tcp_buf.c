/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic TCP buffer sizes.  Throughput is limited to the smaller buffer for
 * each round trip, and the right size is not known in advance.  A buffer
 * therefore starts with a size for local networks, and grows while it limits
 * the connection.  A size set by the program (SO_SNDBUF, SO_RCVBUF) is fixed.
 *
 * The receive buffer follows the program, not the sender.  It is twice what is
 * read in a round trip, so that a window that doubles each round trip fits
 * (Fisk and Feng, "Dynamic Right-Sizing in TCP", 2001).
 */
#include "netinet/tcp_var.h"

static uint32_t
grown(uint32_t size, uint32_t step, uint32_t most)
{
	if (size >= most)
		return (size);
	return (step < most - size ? size + step : most);
}

/*
 * If the reader took half the buffer within a round trip, adds as much again.
 * The round trip is t_srtt: of the handshake and, if we send data, of later
 * samples.  A queue that built up on the path since then needs no larger
 * buffer.
 */
NOINLINE static void
half_read(struct tcpcb *tp, struct sockbuf *sb, uint64_t read)
{
	const uint64_t fresh = read - tp->t_readmark;
	const uint32_t inc = atomic_load_u32(&tcp_recvbuf_inc);
	const nsec_t now = getuptime();

	if (atomic_load_u32(&tcp_recvbuf_auto) != 0 && tp->t_readtime != 0 &&
	    now - tp->t_readtime <= tp->t_srtt)
		sb->sb_hiwat = grown(sb->sb_hiwat, fresh > inc ?
		    (uint32_t)fresh : inc, atomic_load_u32(&tcp_recvbuf_max));
	tp->t_readmark = read;
	tp->t_readtime = now;
}

void
tcp_recvbuf_tune(struct tcpcb *tp)
{
	struct sockbuf *sb = &tp->t_inp.inp_socket->so_rcv;
	const uint64_t read = tp->t_bytes_received - sb->sb_cc;

	if (!sb->sb_fixed && read - tp->t_readmark >= sb->sb_hiwat / 2)
		half_read(tp, sb, read);
}

/*
 * Enlarges the send buffer if it is full although both windows would permit
 * more data in flight.
 */
void
tcp_sendbuf_tune(struct tcpcb *tp)
{
	struct sockbuf *sb = &tp->t_inp.inp_socket->so_snd;
	uint32_t inc = atomic_load_u32(&tcp_sendbuf_inc), size = sb->sb_hiwat;

	if (sb->sb_fixed || sb->sb_cc < size / 8 * 7 ||
	    atomic_load_u32(&tcp_sendbuf_auto) == 0 ||
	    tp->snd_cwnd < size || tp->snd_wnd < size)
		return;
	sbreserve_snd(sb, grown(size, inc,
	    atomic_load_u32(&tcp_sendbuf_max)));
}
