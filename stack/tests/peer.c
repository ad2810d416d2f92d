/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP peer made of single segments.
 */
#include <net/ethernet.h>
#include <netinet/if_ether.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

#include "tests/peer.h"

#include "dev/mem.h"
#include "kern/synch.h"
#include "netinet/ip_var.h"
#include "tests/check.h"

#define	HEADROOM	48	/* aligns the IP header */

static struct ifnet *peer_if;
static struct mtx sent_lock;
static struct mbufq sent;		/* [sent_lock] */
static const uint8_t peer_ll[6] = { 2, 'p', 'e', 'e', 'r', 0 };

static struct in_addr
addr(const char *ip)
{
	return (t_addr(ip, 0).sin_addr);
}

/* Delivers an IP packet (m) to the stack in a frame. */
static void
deliver(struct mbuf *m, uint8_t proto, uint8_t tos)
{
	struct ether_header *eh;
	struct ip *ip;

	m = m_prepend(m, sizeof(*ip));
	ip = mtod(m, struct ip *);
	memset(ip, 0, sizeof(*ip));
	ip->ip_v = 4;
	ip->ip_hl = 5;
	ip->ip_tos = tos;
	ip->ip_len = htons((uint16_t)m->m_pkthdr.len);
	ip->ip_ttl = 64;
	ip->ip_p = proto;
	ip->ip_src = addr(PEER_IP);
	ip->ip_dst = addr(PEER_STACK_IP);
	ip->ip_sum = in_fold(in_sum(m, 0, sizeof(*ip), 0));
	m = m_prepend(m, sizeof(*eh));
	eh = mtod(m, struct ether_header *);
	memcpy(eh->ether_dhost, peer_if->if_lladdr, 6);
	memcpy(eh->ether_shost, peer_ll, 6);
	eh->ether_type = htons(ETHERTYPE_IP);
	mem_input(peer_if, m);
}

static struct mbuf *
packet(const void *data, uint32_t len)
{
	struct mbuf *m = m_getcl(MCLBYTES);

	m->m_data += HEADROOM + 60;	/* keeps all headers aligned */
	KASSERT(len < 1600, ("packet of %u", len));
	if (len > 0)
		memcpy(m->m_data, data, len);
	m->m_len = m->m_pkthdr.len = len;
	return (m);
}

void
peer_send(struct peer *p, uint8_t flags, tcp_seq seq, tcp_seq ack,
    const void *data, uint32_t len)
{
	struct mbuf *m = packet(data, len);
	struct tcphdr *th;
	uint16_t sum;

	KASSERT(p->optlen % 4 == 0, ("options of %u bytes", p->optlen));
	m = m_prepend(m, (uint32_t)sizeof(*th) + p->optlen);
	th = mtod(m, struct tcphdr *);
	memset(th, 0, sizeof(*th));
	th->th_sport = htons(p->port);
	th->th_dport = htons(p->stack_port);
	th->th_seq = htonl(seq);
	th->th_ack = htonl(ack);
	th->th_off = (5 + p->optlen / 4) & 0xf;
	th->th_flags = flags;
	th->th_win = htons(p->window);
	th->th_urp = htons(p->urgent);
	if (p->optlen > 0)
		memcpy(th + 1, p->options, p->optlen);
	sum = in_fold(in_sum(m, 0, m->m_pkthdr.len, in_pseudo(addr(PEER_IP),
	    addr(PEER_STACK_IP), IPPROTO_TCP, m->m_pkthdr.len)));
	th->th_sum = sum;
	deliver(m, IPPROTO_TCP, p->tos);
}

void
peer_udp(uint16_t sport, uint16_t dport, const void *data, uint32_t len)
{
	struct mbuf *m = m_prepend(packet(data, len), sizeof(struct udphdr));
	struct udphdr *uh = mtod(m, struct udphdr *);

	uh->uh_sport = htons(sport);
	uh->uh_dport = htons(dport);
	uh->uh_ulen = htons((uint16_t)m->m_pkthdr.len);
	uh->uh_sum = 0;
	deliver(m, IPPROTO_UDP, 0);
}

/* The part of a packet that an ICMP error quotes: the stack's ports first. */
struct quote {
	uint8_t		 proto;
	const char	*dst;
	uint16_t	 sport, dport;
	tcp_seq		 seq;
};

static void
icmp_about(const struct quote *about, uint8_t type, uint8_t code, uint16_t mtu)
{
	struct {
		struct icmphdr ic;
		struct ip ip;
		uint16_t sport, dport;
		uint32_t seq;
	} q;
	struct mbuf *m;

	memset(&q, 0, sizeof(q));
	q.ic.type = type;
	q.ic.code = code;
	q.ic.un.frag.mtu = htons(mtu);
	q.ip.ip_v = 4;
	q.ip.ip_hl = 5;
	q.ip.ip_p = about->proto;
	q.ip.ip_len = htons(1500);
	q.ip.ip_src = addr(PEER_STACK_IP);
	q.ip.ip_dst = addr(about->dst);
	q.sport = htons(about->sport);
	q.dport = htons(about->dport);
	q.seq = htonl(about->seq);
	m = packet(&q, sizeof(q));
	mtod(m, struct icmphdr *)->checksum = in_fold(in_sum(m, 0,
	    m->m_pkthdr.len, 0));
	deliver(m, IPPROTO_ICMP, 0);
}

void
peer_icmp(struct peer *p, uint8_t type, uint8_t code, uint16_t mtu,
    tcp_seq seq)
{
	icmp_about(&(struct quote){ IPPROTO_TCP, PEER_IP, p->stack_port,
	    p->port, seq }, type, code, mtu);
}

void
peer_udp_toobig(uint16_t sport, const char *dst, uint16_t dport, uint16_t mtu)
{
	icmp_about(&(struct quote){ IPPROTO_UDP, dst, sport, dport, 0 },
	    ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, mtu);
}

/* Answers the stack's ARP request for the peer. */
static void
answer_arp(struct mbuf *m)
{
	struct ether_arp ea;
	struct mbuf *r = packet(NULL, 0);

	m_copydata(m, ETHER_HDR_LEN, sizeof(ea), &ea);
	m_freem(m);
	if (ea.arp_op != htons(ARPOP_REQUEST)) {
		m_freem(r);
		return;
	}
	memcpy(ea.arp_tha, ea.arp_sha, 6);
	memcpy(ea.arp_sha, peer_ll, 6);
	for (int i = 0; i < 4; i++) {
		uint8_t b = ea.arp_spa[i];

		ea.arp_spa[i] = ea.arp_tpa[i];
		ea.arp_tpa[i] = b;
	}
	ea.arp_op = htons(ARPOP_REPLY);
	r = m_prepend(r, sizeof(ea));
	memcpy(r->m_data, &ea, sizeof(ea));
	r = m_prepend(r, ETHER_HDR_LEN);
	memcpy(r->m_data, ea.arp_tha, 6);
	memcpy(r->m_data + 6, peer_ll, 6);
	memcpy(r->m_data + 12, "\x08\x06", 2);
	mem_input(peer_if, r);
}

static void
take(struct mbuf *m)
{
	uint16_t type;

	m_copydata(m, 12, sizeof(type), &type);
	if (type == htons(ETHERTYPE_ARP)) {
		answer_arp(m);
		return;
	}
	mtx_lock(&sent_lock);
	mbufq_enqueue(&sent, m);
	wakeup(&sent);
	mtx_unlock(&sent_lock);
}

/* The packets that the stack has sent. */
static void
peer_output(void *arg, struct mbuf *m)
{
	struct mbuf *next;

	(void)arg;
	for (; m != NULL; m = next) {
		next = m->m_nextpkt;
		m->m_nextpkt = NULL;
		take(m);
	}
}

static void
parse(struct mbuf *m, struct peer_seg *s)
{
	struct ip ip;
	struct tcphdr th;
	uint32_t at = ETHER_HDR_LEN, hlen;

	memset(s, 0, sizeof(*s));
	m_copydata(m, at, sizeof(ip), &ip);
	at += (uint32_t)ip.ip_hl << 2;
	s->proto = ip.ip_p;
	s->tos = ip.ip_tos;
	s->ttl = ip.ip_ttl;
	if (ip.ip_p == IPPROTO_ICMP) {
		m_copydata(m, at, 1, &s->icmp_type);
		m_copydata(m, at + 1, 1, &s->icmp_code);
	} else if (ip.ip_p == IPPROTO_TCP) {
		m_copydata(m, at, sizeof(th), &th);
		hlen = (uint32_t)th.th_off << 2;
		s->sport = ntohs(th.th_sport);
		s->dport = ntohs(th.th_dport);
		s->seq = ntohl(th.th_seq);
		s->ack = ntohl(th.th_ack);
		s->window = ntohs(th.th_win);
		s->urgent = ntohs(th.th_urp);
		s->flags = th.th_flags;
		s->optlen = hlen - (uint32_t)sizeof(th);
		m_copydata(m, at + (uint32_t)sizeof(th), s->optlen,
		    s->options);
		s->len = m->m_pkthdr.len - at - hlen;
		s->segsz = m->m_pkthdr.csum_flags & CSUM_TSO ?
		    m->m_pkthdr.tso_segsz : s->len;
		m_copydata(m, at + hlen, s->len < sizeof(s->data) ? s->len :
		    (uint32_t)sizeof(s->data), s->data);
	}
	m_freem(m);
}

bool
peer_next(struct peer_seg *s)
{
	struct mbuf *m;

	mtx_lock(&sent_lock);
	m = mbufq_dequeue(&sent);
	mtx_unlock(&sent_lock);
	if (m == NULL)
		return (false);
	parse(m, s);
	return (true);
}

void
peer_await(struct peer_seg *s, unsigned ms)
{
	nsec_t deadline = mach_uptime() + ms * NSEC_PER_MSEC;

	mtx_lock(&sent_lock);
	while (sent.mq_len == 0) {
		CHECK(mach_uptime() < deadline);
		(void)msleep(&sent, &sent_lock, 0, "peer",
		    10 * NSEC_PER_MSEC);
	}
	mtx_unlock(&sent_lock);
	CHECK(peer_next(s));
}

void
peer_forget(void)
{
	mtx_lock(&sent_lock);
	mbufq_drain(&sent);
	mtx_unlock(&sent_lock);
}

void
peer_attach(void)
{
	mtx_init(&sent_lock, LC_NETISR);
	mbufq_init(&sent);
	peer_if = mem_attach("peer0", PEER_STACK_IP "/24",
	    IFCAP_TXCSUM | IFCAP_TSO4, NULL, peer_output, NULL);
}

void
peer_takelists(void)
{
	peer_if->if_caps |= IFCAP_BATCH;
}

/* Options of our SYNs: MSS 1000. */
static const uint8_t syn_options[] = { 2, 4, 1000 >> 8, 1000 & 0xff };

void
peer_syn(struct peer *p, uint16_t stack_port, uint8_t flags,
    struct peer_seg *answer)
{
	static uint16_t port = 20000;

	p->port = ++port;
	p->stack_port = stack_port;
	p->snd_nxt = 1000;
	peer_forget();
	peer_send(p, TH_SYN | flags, p->snd_nxt++, 0, NULL, 0);
	peer_await(answer, 1000);
	CHECK_EQ(answer->flags & (TH_SYN | TH_ACK), TH_SYN | TH_ACK);
	CHECK_EQ(answer->ack, p->snd_nxt);
	p->optlen = 0;
	p->rcv_nxt = answer->seq + 1;
}

void
peer_open(struct peer *p, uint16_t stack_port)
{
	struct peer_seg s;

	*p = (struct peer){ .window = 60000, .options = syn_options,
	    .optlen = sizeof(syn_options) };
	peer_syn(p, stack_port, 0, &s);
	CHECK_EQ(s.flags, TH_SYN | TH_ACK);
	peer_send(p, TH_ACK, p->snd_nxt, p->rcv_nxt, NULL, 0);
}

/* The stack is connecting: receives its SYN and answers it. */
void
peer_answer(struct peer *p, struct socket *so)
{
	struct peer_seg s;

	(void)so;
	peer_await(&s, 1000);
	CHECK_EQ(s.flags, TH_SYN);
	*p = (struct peer){ .port = s.dport, .stack_port = s.sport,
	    .snd_nxt = 5000, .rcv_nxt = s.seq + 1, .window = 60000,
	    .options = syn_options, .optlen = sizeof(syn_options) };
	peer_send(p, TH_SYN | TH_ACK, p->snd_nxt++, p->rcv_nxt, NULL, 0);
	p->optlen = 0;
	peer_await(&s, 1000);
	CHECK_EQ(s.flags, TH_ACK);
	CHECK_EQ(s.ack, p->snd_nxt);
}

struct socket *
peer_accept(struct peer *p, uint16_t port, struct socket **head)
{
	struct socket *so;

	*head = t_listen(PEER_STACK_IP, port, 5);
	peer_open(p, port);
	so = t_accept(*head);
	peer_forget();
	return (so);
}

void
peer_reset(struct peer *p, struct socket *so, struct socket *head)
{
	p->optlen = 0;
	p->tos = 0;
	peer_send(p, TH_RST | TH_ACK, p->snd_nxt, 0, NULL, 0);
	soclose(so);
	soclose(head);
	peer_forget();
}

void
peer_conn_open(struct peer_conn *c)
{
	static uint16_t port = 3000;

	c->so = peer_accept(&c->p, port++, &c->head);
}

void
peer_conn_close(struct peer_conn *c)
{
	peer_reset(&c->p, c->so, c->head);
}

void
peer_text(struct peer *p, const char *text)
{
	const uint32_t len = (uint32_t)strlen(text);

	peer_send(p, TH_PUSH | TH_ACK, p->snd_nxt, p->rcv_nxt, text, len);
	p->snd_nxt += len;
}
