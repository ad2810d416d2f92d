/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A far end that is a character generator (RFC 864) at every address and port
 * beyond an interface in memory.  Each connection gets segments as fast as its
 * window permits; received data is acknowledged and discarded.
 *
 * It implements the necessary subset of TCP (RFC 9293) over IPv4.  Memory
 * loses no packets, so it has neither congestion control nor SACK; segments
 * that the stack dropped are sent again from there on.  It costs almost
 * nothing, and its thread works like that of a device queue: it receives
 * bursts of segments, while the program reads on another CPU.
 */
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <string.h>

#include "dev/mem.h"
#include "kern/thread.h"
#include "kern/worker.h"
#include "netinet/ip_private.h"
#include "netinet/tcp_header.h"

#define	BURST		64	/* segments in one epoch section */
/* max unacknowledged segments: half of netisr's queue limit */
#define	FLIGHT_MAX	128U
#define	MSS		1460	/* for an MTU of 1500 bytes */
#define	MSS_DEFAULT	536 /* of a peer without the option (RFC 9293 3.7.1) */
#define	ISS		1000	/* for all connections: no attackers here */
#define	PORTS		65536
#define	RESEND		(200 * NSEC_PER_MSEC)	/* timeout without progress */
#define	LINE		74	/* characters of a line, with CRLF */
#define	PATTERN		(95 * LINE)	/* length of one period */

struct headers {
	struct ether_header eh;
	struct ip	 ip;
	struct tcphdr	 th;
} __attribute__((packed));

/* cg_lock of a connection's generator */
extern struct lock_role cg_role;

/*
 * A connection.  Locks used to protect its members:
 *	[c] cg_lock
 *	[I] immutable once it is on the list
 */
struct stream {
	LIST_ENTRY(stream) s_link GUARDED_BY(cg_role);	/* [c] */
	/* [I] the stack's address; the far end's */
	struct in_addr	 s_near, s_far;
	uint16_t	 s_nport, s_fport; /* [I] network byte order */
	uint8_t		 s_lladdr[6];	/* [I] of the stack's interface */
	uint8_t		 s_wscale;	/* [I] scale of received windows */
	uint16_t	 s_mss;		/* [I] bytes of a segment */
	/* [c] the stack waits for an ACK */
	bool		 s_answer GUARDED_BY(cg_role);
	/* [c] its FIN is due at s_end */
	bool		 s_fin GUARDED_BY(cg_role);
	/* [c] reset or replaced */
	bool		 s_gone GUARDED_BY(cg_role);
	tcp_seq		 s_rcvnxt GUARDED_BY(cg_role);	/* [c] */
	/* [c] sequence numbers: acknowledged; next to send; max sent */
	tcp_seq		 s_una GUARDED_BY(cg_role), s_nxt GUARDED_BY(cg_role),
			 s_max GUARDED_BY(cg_role);
	/* [c] sequence number of its FIN, if s_fin */
	tcp_seq		 s_end GUARDED_BY(cg_role);
	uint32_t	 s_wnd GUARDED_BY(cg_role);	/* [c] */
	/* [c] when s_una advanced */
	nsec_t		 s_moved GUARDED_BY(cg_role);
};

struct chargen {
	struct mtx	 cg_lock;
	LIST_HEAD(, stream) cg_streams GUARDED_BY(cg_lock);	/* [c] */
	/* [c] indexed by the stack's port */
	struct stream	*cg_ports[PORTS] GUARDED_BY(cg_lock);
	struct worker	 cg_worker;
	struct ifnet	*cg_ifp;	/* [I] once attached */
	char		 cg_pattern[PATTERN + MSS];	/* [I] */
};

/* A burst of segments to send. */
struct burst {
	tcp_seq		 b_seq;
	uint32_t	 b_len;
	uint8_t		 b_flags;
};

/* A segment sent by the stack, in host byte order. */
struct heard {
	const struct headers *h_headers;
	uint32_t	 h_len;
	tcp_seq		 h_seq, h_ack;
	uint8_t		 h_flags;
	struct tcpopts	 h_opt;
};

/* RFC 864: each line has 72 of the 95 characters, starting at the next one. */
static void
pattern_make(char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		size_t line = i / LINE, column = i % LINE;

		p[i] = column == 72 ? '\r' : column == 73 ? '\n' :
		    (char)(' ' + (line + column) % 95);
	}
}

/* Parses a frame; false: not TCP over IPv4. */
static bool
hear(struct mbuf *m, uint8_t *buf, struct heard *h)
{
	const struct headers *hd;
	uint32_t len = m->m_pkthdr.len, ip_len, off;

	if (len < sizeof(*hd))
		return (false);
	hd = m_peek(m, 0, sizeof(*hd), buf);
	if (hd->eh.ether_type != htons(ETHERTYPE_IP) ||
	    hd->ip.ip_p != IPPROTO_TCP || hd->ip.ip_hl != sizeof(hd->ip) >> 2)
		return (false);
	ip_len = ntohs(hd->ip.ip_len);
	off = (uint32_t)hd->th.th_off << 2;
	if (off < sizeof(hd->th) || ip_len < sizeof(hd->ip) + off ||
	    len < ETHER_HDR_LEN + ip_len)
		return (false);
	h->h_headers = hd = m_peek(m, 0, ETHER_HDR_LEN + sizeof(hd->ip) + off,
	    buf);
	h->h_len = ip_len - (uint32_t)sizeof(hd->ip) - off;
	h->h_seq = ntohl(hd->th.th_seq);
	h->h_ack = ntohl(hd->th.th_ack);
	h->h_flags = hd->th.th_flags;
	(void)tcp_opt_parse((const uint8_t *)(hd + 1), off - sizeof(hd->th),
	    (h->h_flags & TH_SYN) != 0, &h->h_opt);
	return (true);
}

/* A new SYN replaces an old connection of the same port. */
static void
stream_open(struct chargen *cg, const struct heard *h)
    REQUIRES(cg->cg_lock, cg_role)
{
	const struct headers *hd = h->h_headers;
	struct stream **port = &cg->cg_ports[hd->th.th_sport], *s;

	if (*port != NULL)
		(*port)->s_gone = true;
	s = *port = kmalloc(sizeof(*s));
	*s = (struct stream){ .s_near = hd->ip.ip_src, .s_far = hd->ip.ip_dst,
	    .s_nport = hd->th.th_sport, .s_fport = hd->th.th_dport,
	    .s_rcvnxt = h->h_seq + 1, .s_una = ISS, .s_nxt = ISS,
	    .s_max = ISS, .s_answer = true,
	    .s_wscale = h->h_opt.has_wscale ? h->h_opt.wscale : 0,
	    .s_mss = MSS_DEFAULT };
	if (h->h_opt.has_mss && h->h_opt.mss > 0)
		s->s_mss = h->h_opt.mss < MSS ? h->h_opt.mss : MSS;
	memcpy(s->s_lladdr, hd->eh.ether_shost, sizeof(s->s_lladdr));
	LIST_INSERT_HEAD(&cg->cg_streams, s, s_link);
}

static void
stream_ack(struct stream *s, const struct heard *h) REQUIRES(cg_role)
{
	if ((h->h_flags & TH_ACK) == 0 || SEQ_LT(h->h_ack, s->s_una) ||
	    SEQ_GT(h->h_ack, s->s_max))
		return;
	s->s_wnd = (uint32_t)ntohs(h->h_headers->th.th_win) << s->s_wscale;
	if (h->h_ack == s->s_una)
		return;
	s->s_una = h->h_ack;
	s->s_nxt = seq_max(s->s_nxt, s->s_una);
	s->s_moved = mach_uptime();
}

static void
stream_data(struct stream *s, const struct heard *h) REQUIRES(cg_role)
{
	const bool fin = (h->h_flags & TH_FIN) != 0;

	if (h->h_len == 0 && !fin)
		return;
	s->s_answer = true;
	if (h->h_seq != s->s_rcvnxt)
		return;
	s->s_rcvnxt += h->h_len + (fin ? 1 : 0);
	if (fin) {
		s->s_fin = true;
		s->s_end = s->s_max;
	}
}

/* Processes a segment sent by the stack. */
static void
segment(struct chargen *cg, const struct heard *h)
    REQUIRES(cg->cg_lock, cg_role)
{
	const struct headers *hd = h->h_headers;
	struct stream *s = cg->cg_ports[hd->th.th_sport];

	if ((h->h_flags & (TH_SYN | TH_ACK)) == TH_SYN) {
		stream_open(cg, h);
	} else if (s != NULL && s->s_near.s_addr == hd->ip.ip_src.s_addr &&
	    s->s_far.s_addr == hd->ip.ip_dst.s_addr &&
	    s->s_fport == hd->th.th_dport) {
		stream_ack(s, h);
		stream_data(s, h);
		s->s_gone |= (h->h_flags & TH_RST) != 0;
	}
}

void
mem_chargen_output(void *arg, struct mbuf *m)
{
	struct chargen *cg = arg;
	uint8_t buf[sizeof(struct headers) + TCP_OPT_MAX];
	struct mbuf *next;
	struct heard h;

	for (; m != NULL; m = next) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		if (mem_answer_arp(cg->cg_ifp, m, 0))
			continue;
		if (hear(m, buf, &h)) {
			mtx_lock_as(&cg->cg_lock, &cg_role);
			segment(cg, &h);
			worker_wake(&cg->cg_worker);
			mtx_unlock_as(&cg->cg_lock, &cg_role);
		}
		m_freem(m);
	}
}

/* Makes a segment of s with a copy of so many bytes of the pattern. */
static struct mbuf *
segment_make(const struct chargen *cg, const struct stream *s, tcp_seq seq,
    uint8_t flags, uint32_t len)
{
	const struct tcpopts syn = { .has_mss = true, .mss = MSS,
	    .has_wscale = true };
	struct ip ip = { .ip_v = IPVERSION, .ip_hl = sizeof(ip) >> 2,
	    .ip_ttl = IPDEFTTL, .ip_p = IPPROTO_TCP, .ip_src = s->s_far,
	    .ip_dst = s->s_near };
	struct mbuf *m = m_getcl(MCLBYTES);
	struct headers *hd;
	uint8_t *data;
	unsigned opts;

	m->m_data += MEM_HEADROOM;
	hd = mtod(m, struct headers *);
	data = (uint8_t *)(hd + 1);
	opts = flags & TH_SYN ? tcp_opt_build(data, &syn) : 0;
	memcpy(hd->eh.ether_dhost, s->s_lladdr, sizeof(s->s_lladdr));
	role_assert(&cg_role);		/* s is a copy */
	memcpy(hd->eh.ether_shost, MEM_FAR_LLADDR, sizeof(hd->eh.ether_shost));
	hd->eh.ether_type = htons(ETHERTYPE_IP);
	ip.ip_len = htons((uint16_t)(sizeof(ip) + sizeof(hd->th) + opts + len));
	ip.ip_sum = in_hdrsum(&ip, sizeof(ip));
	hd->ip = ip;
	hd->th = tcp_header_make(&(struct tcp_header){ .seq = seq,
	    .ack = s->s_rcvnxt, .win = UINT16_MAX, .flags = flags,
	    .optlen = opts }, s->s_fport, s->s_nport);
	memcpy(data + opts, cg->cg_pattern + (seq - (ISS + 1)) % PATTERN, len);
	m->m_len = m->m_pkthdr.len = (uint32_t)sizeof(*hd) + opts + len;
	m->m_pkthdr.csum_flags = CSUM_VALID;
	return (m);
}

/* Bytes that may be sent now: whole segments, unless the window is smaller. */
static uint32_t
stream_room(const struct stream *s) REQUIRES(cg_role)
{
	uint32_t flight = s->s_nxt - s->s_una, room = s->s_wnd;

	if (room > FLIGHT_MAX * s->s_mss)
		room = FLIGHT_MAX * s->s_mss;
	room = room > flight ? room - flight : 0;
	if (room > BURST * s->s_mss)
		room = BURST * s->s_mss;
	if (room >= s->s_mss || flight > 0)
		room -= room % s->s_mss;
	if (s->s_fin && SEQ_GT(s->s_nxt + room, s->s_end))
		room = SEQ_GT(s->s_end, s->s_nxt) ? s->s_end - s->s_nxt : 0;
	return (room);
}

/* Takes the next burst into account; false: nothing to send. */
static bool
stream_next(struct stream *s, struct burst *b) REQUIRES(cg_role)
{
	const bool syn = s->s_nxt == ISS;
	const bool fin = s->s_fin && s->s_nxt == s->s_end;

	*b = (struct burst){ .b_seq = s->s_nxt, .b_flags = (uint8_t)(TH_ACK |
	    (syn ? TH_SYN : 0) | (fin ? TH_FIN : 0)) };
	if (!syn && !fin)
		b->b_len = stream_room(s);
	if (!syn && !fin && b->b_len == 0 && !s->s_answer)
		return (false);
	if (s->s_nxt == s->s_una)
		s->s_moved = mach_uptime();
	s->s_answer = false;
	s->s_nxt += b->b_len + (syn || fin ? 1 : 0);
	s->s_max = seq_max(s->s_max, s->s_nxt);
	return (true);
}

/* Delivers a burst, or a pending ACK, to the stack. */
static void
stream_send(struct chargen *cg, const struct stream *s, const struct burst *b)
{
	tcp_seq seq = b->b_seq, end = seq + b->b_len;
	struct mbufq frames;

	mbufq_init(&frames);
	do {
		uint32_t len = end - seq < s->s_mss ? end - seq : s->s_mss;

		mbufq_enqueue(&frames, segment_make(cg, s, seq, b->b_flags,
		    len));
		seq += len;
	} while (seq != end);
	mem_pass(cg->cg_ifp, &frames, 0);
}

/* Whether it was reset or replaced, or its FIN was acknowledged. */
static bool
stream_ended(const struct stream *s) REQUIRES(cg_role)
{
	return (s->s_gone || (s->s_fin && SEQ_GT(s->s_una, s->s_end)));
}

static void
stream_free(struct chargen *cg, struct stream *s)
    REQUIRES(cg->cg_lock, cg_role)
{
	LIST_REMOVE(s, s_link);
	if (cg->cg_ports[s->s_nport] == s)
		cg->cg_ports[s->s_nport] = NULL;
	kfree(s);
}

/* The stack dropped a segment: sends everything from there on again. */
static void
stream_resend(struct stream *s) REQUIRES(cg_role)
{
	if (s->s_una == s->s_max || mach_uptime() - s->s_moved < RESEND)
		return;
	s->s_nxt = s->s_una;
	s->s_answer = true;
	s->s_moved = mach_uptime();
}

/* Sends one burst for each connection; the list does not change meanwhile. */
static nsec_t
chargen_work(void *arg)
{
	struct chargen *cg = arg;
	struct stream *s, *next, copy;
	nsec_t idle = NSEC_FOREVER;
	struct burst burst;

	mtx_assert_owned(&cg->cg_lock);
	role_take(&cg_role);		/* the worker holds cg_lock */
	for (s = LIST_FIRST(&cg->cg_streams); s != NULL; s = next) {
		stream_resend(s);
		if (!stream_ended(s) && stream_next(s, &burst)) {
			copy = *s;
			mtx_unlock_as(&cg->cg_lock, &cg_role);
			stream_send(cg, &copy, &burst);
			mtx_lock_as(&cg->cg_lock, &cg_role);
			idle = 0;
		} else if (idle > 0 && s->s_una != s->s_max)
			idle = RESEND;
		next = LIST_NEXT(s, s_link);
		if (stream_ended(s))
			stream_free(cg, s);
	}
	role_drop(&cg_role);
	return (idle);
}

struct chargen *
mem_chargen_create(void)
{
	struct chargen *cg = kmalloc(sizeof(*cg));

	mtx_init(&cg->cg_lock, LC_DEVQ);
	mtx_private(&cg->cg_lock);
	LIST_INIT(&cg->cg_streams);
	pattern_make(cg->cg_pattern, sizeof(cg->cg_pattern));
	cg->cg_worker = (struct worker){ .w_lock = &cg->cg_lock,
	    .w_fn = chargen_work, .w_arg = cg, .w_wmesg = "chargen" };
	return (cg);
}

void
mem_chargen_attach(struct chargen *cg, struct ifnet *ifp)
{
	cg->cg_ifp = ifp;
}

int
mem_chargen_start(struct chargen *cg)
{
	return (worker_start(&cg->cg_worker, "intr: chargen", MACH_CPU_ANY));
}

void
mem_chargen_stop(struct chargen *cg)
{
	struct stream *s;

	worker_stop(&cg->cg_worker);
	mtx_lock_as(&cg->cg_lock, &cg_role);
	while ((s = LIST_FIRST(&cg->cg_streams)) != NULL)
		stream_free(cg, s);
	mtx_unlock_as(&cg->cg_lock, &cg_role);
}
