/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket buffers.  A stream's buffer is one chain of mbufs: bytes are appended
 * by reference and removed at the head.  Therefore neither the sender (whose
 * segments share the storage until they are acknowledged) nor the receiver
 * copies data while the socket is locked.  A datagram socket's buffer is a
 * list of packets, each preceded by its sender.
 */
#include <errno.h>
#include <string.h>

#include "kern/planted.h"
#include "kern/socketvar.h"
#include "kern/synch.h"

/* Max merged datagrams and bytes of UDP_GRO, as in Linux. */
#define	SB_SEGMENTS_MAX	64
#define	SB_MERGED_MAX	65507

uint32_t
sbspace(const struct sockbuf *sb)
{
	return (sb->sb_cc < sb->sb_hiwat ? sb->sb_hiwat - sb->sb_cc : 0);
}

uint32_t
sosendspace(const struct socket *so, size_t resid, bool fill)
    REQUIRES(so->so_lock)
{
	const struct protosw *pr = so->so_proto;
	const struct sockbuf *sb = &so->so_snd;
	uint32_t space = sbspace(sb), room;

	if (space < sb->sb_lowat && space < resid)
		return (0);
	room = pr->pr_sendroom != NULL ? pr->pr_sendroom(so, fill) : UINT32_MAX;
	return (space < room ? space : room);
}

/*
 * Sets the size.  A writer is woken when a large part is free, not after each
 * acknowledged byte.
 */
void
sbreserve_snd(struct sockbuf *sb, uint32_t size)
{
	sb->sb_hiwat = size;
	sb->sb_lowat = size / 4 < 65536 ? size / 4 : 65536;
	if (sb->sb_lowat == 0)
		sb->sb_lowat = 1;
}

void
soreserve(struct socket *so, uint32_t snd, uint32_t rcv) REQUIRES(so->so_lock)
{
	sbreserve_snd(&so->so_snd, snd);
	so->so_rcv.sb_hiwat = rcv;
}

NOINLINE static void
append_chain(struct sockbuf *sb, struct mbuf *m)
{
	while (m != NULL && m->m_len == 0)
		m = m_free(m);
	if (m == NULL)
		return;
	sb->sb_cc += m_length(m);
	if (sb->sb_tail == NULL) {
		sb->sb_head = m;
		sb->sb_tail = m_pack(m, m->m_next);
	} else {
		sb->sb_tail = m_pack(sb->sb_tail, m);
	}
}

/* Fast path: one mbuf into an empty buffer, a small message. */
__hot void
sbappendstream(struct sockbuf *sb, struct mbuf *m)
{
	if (sb->sb_tail != NULL || m->m_next != NULL || m->m_len == 0) {
		append_chain(sb, m);
		return;
	}
	sb->sb_head = sb->sb_tail = m;
	sb->sb_cc = m->m_len;
}

/*
 * A datagram is preceded by its control messages and its sender, each after
 * its length.
 */
static uint32_t
sbcontrollen(const struct mbuf *m)
{
	size_t len;

	m_copydata(m, 0, sizeof(len), &len);
	return ((uint32_t)(sizeof(len) + len));
}

static uint32_t
sbnamelen(const struct mbuf *m, uint32_t at)
{
	socklen_t len;

	m_copydata(m, at, sizeof(len), &len);
	return ((uint32_t)sizeof(len) + len);
}

uint32_t
sbdatalen(const struct mbuf *m)
{
	const uint32_t clen = sbcontrollen(m);

	return (m->m_pkthdr.len - clen - sbnamelen(m, clen));
}

void
sbheader(struct mbuf *m, struct sockname *name, struct socontrol *control)
{
	const uint32_t clen = sbcontrollen(m), nlen = sbnamelen(m, clen);

	KASSERT(clen <= sizeof(*control) && nlen <= sizeof(*name),
	    ("sbheader: %u and %u bytes", clen, nlen));
	m_copydata(m, 0, clen, control);
	m_copydata(m, clen, nlen, name);
	m_adj(m, (int64_t)clen + nlen);
}

bool
sbappendaddr(struct sockbuf *sb, const struct sockname *from,
    const struct socontrol *control, struct mbuf *m)
{
	const uint32_t nlen = (uint32_t)sizeof(from->sn_len) + from->sn_len;
	const uint32_t clen = (uint32_t)(sizeof(control->sc_len) +
	    control->sc_len);
	uint32_t len = m->m_pkthdr.len;

	_Static_assert(offsetof(struct sockname, sn_sa) ==
	    sizeof(from->sn_len), "the name follows its length");
	_Static_assert(offsetof(struct socontrol, sc_buf) ==
	    sizeof(control->sc_len), "the messages follow their length");

	if (sb->sb_cc + len + SB_DGRAM_OVERHEAD > sb->sb_hiwat) {
		m_freem(m);
		return (false);
	}
	m = m_prepend(m, clen + nlen);
	memcpy(m->m_data, control, clen);
	memcpy(m->m_data + clen, from, nlen);
	m->m_pkthdr.tso_segsz = 0;
	m->m_nextpkt = NULL;
	if (sb->sb_tail == NULL)
		sb->sb_head = m;
	else
		sb->sb_tail->m_nextpkt = m;
	sb->sb_tail = m;
	sb->sb_cc += len + SB_DGRAM_OVERHEAD;
	return (true);
}

/* Whether exactly this sender and these control messages precede a datagram. */
static bool
sbhasheader(const struct mbuf *m, const struct sockname *from,
    const struct socontrol *control)
{
	const uint32_t clen = sbcontrollen(m), nlen = sbnamelen(m, clen);

	return (clen == sizeof(control->sc_len) + control->sc_len &&
	    nlen == sizeof(from->sn_len) + from->sn_len &&
	    m->m_len >= clen + nlen && memcmp(m->m_data, control, clen) == 0 &&
	    memcmp(m->m_data + clen, from, nlen) == 0);
}

bool
sbmergeaddr(struct sockbuf *sb, const struct sockname *from,
    const struct socontrol *control, struct mbuf *m)
{
	struct mbuf *first = sb->sb_tail, *last = first;
	const uint32_t len = m->m_pkthdr.len;
	uint32_t size, have;

	if (first == NULL || (size = first->m_pkthdr.tso_segsz) == 0 ||
	    len == 0 || len > size || !sbhasheader(first, from, control))
		return (false);
	have = sbdatalen(first);
	if (have % size != 0 || have / size == SB_SEGMENTS_MAX ||
	    have + len > SB_MERGED_MAX || sb->sb_cc + len > sb->sb_hiwat)
		return (false);
	while (last->m_next != NULL)
		last = last->m_next;
	m_pack(last, m);
	first->m_pkthdr.len += len;
	sb->sb_cc += len;
	return (true);
}

struct mbuf *
sbdetachaddr(struct sockbuf *sb)
{
	struct mbuf *m = sb->sb_head;
	uint32_t size;

	if (m == NULL)
		return (NULL);
	size = sbdatalen(m) + SB_DGRAM_OVERHEAD;
	KASSERT(sb->sb_cc >= size, ("sbdetachaddr: %u bytes, packet of %u",
	    sb->sb_cc, size));
	sb->sb_head = m->m_nextpkt;
	if (sb->sb_head == NULL)
		sb->sb_tail = NULL;
	m->m_nextpkt = NULL;
	sb->sb_cc -= size;
	return (m);
}

/*
 * Removes len bytes at the head and returns their mbufs.  If an mbuf is split
 * and wanted is set, its storage is shared.
 */
NOINLINE static struct mbuf *
sbtake_some(struct sockbuf *sb, uint32_t len, bool wanted)
{
	struct mbuf *first = sb->sb_head, *m = first, **last = &first;
	uint32_t left = len;

	KASSERT(len <= sb->sb_cc, ("sbtake: %u bytes of %u", len, sb->sb_cc));
	for (; left > 0 && m->m_len <= left; m = m->m_next) {
		left -= m->m_len;
		if (m == sb->sb_sendm)
			sb->sb_sendm = NULL;
		last = &m->m_next;
		KASSERT(left == 0 || m->m_next != NULL,
		    ("sbtake: %u bytes missing", left));
	}
	sb->sb_head = m;
	if (m == NULL)
		sb->sb_tail = NULL;
	*last = wanted && left > 0 ? m_copym(m, 0, left) : NULL;
	if (left > 0) {
		m->m_data += left;
		m->m_len -= left;
	}
	sb->sb_cc -= len;
	sb->sb_sendoff = sb->sb_sendoff > len ? sb->sb_sendoff - len : 0;
	return (first);
}

/* Like sbtake_some(); fast path for one mbuf with all the data. */
static struct mbuf *
sbtake(struct sockbuf *sb, uint32_t len, bool wanted)
{
	struct mbuf *m = sb->sb_head;

	if (m == NULL || m->m_next != NULL || len != m->m_len)
		return (sbtake_some(sb, len, wanted));
	KASSERT(len == sb->sb_cc, ("sbtake: %u bytes of %u", len, sb->sb_cc));
	sb->sb_head = sb->sb_tail = sb->sb_sendm = NULL;
	sb->sb_cc = sb->sb_sendoff = 0;
	return (m);
}

__hot struct mbuf *
sbcut(struct sockbuf *sb, uint32_t len)
{
	return (sbtake(sb, len, true));
}

__hot void
sbdrop(struct sockbuf *sb, uint32_t len)
{
	m_freem(sbtake(sb, len, false));
}

/*
 * Finds byte off of a stream's buffer.  The position is cached, because a
 * sender usually continues after the last segment and the chain may be long.
 * sb_sendoff is the offset of the first byte of sb_sendm.  It is 0 for the
 * head, whose front may have been dropped.
 */
struct mbuf *
sbsendptr(struct sockbuf *sb, uint32_t off, uint32_t *moff)
{
	struct mbuf *m = sb->sb_sendm;
	uint32_t at = sb->sb_sendoff;

	KASSERT(off < sb->sb_cc, ("sbsendptr: byte %u of %u", off, sb->sb_cc));
	if (m == NULL || at > off) {
		m = sb->sb_head;
		at = 0;
	}
	while (off - at >= m->m_len) {
		at += m->m_len;
		m = m->m_next;
		KASSERT(m != NULL, ("sbsendptr: chain ends at %u", at));
	}
	sb->sb_sendm = m;
	sb->sb_sendoff = at;
	*moff = off - at;
	return (m);
}

void
sbflushpackets(struct sockbuf *sb)
{
	struct mbuf *m;

	while ((m = sbdetachaddr(sb)) != NULL)
		m_freem(m);
	KASSERT(sb->sb_cc == 0, ("sbflushpackets: %u bytes left", sb->sb_cc));
}

void
sbflush(struct socket *so, struct sockbuf *sb)
{
	if (so->so_proto->pr_stream)
		sbdrop(sb, sb->sb_cc);
	else
		sbflushpackets(sb);
}

NOINLINE static nsec_t
after(nsec_t timeo)
{
	return (mach_uptime() + timeo);
}

nsec_t
sbdeadline(const struct sockbuf *sb)
{
	return (__predict_true(sb->sb_timeo == NSEC_FOREVER) ? NSEC_FOREVER :
	    after(sb->sb_timeo));
}

int
sbwait(struct socket *so, struct sockbuf *sb, const char *wmesg,
    nsec_t deadline)
{
	nsec_t left = NSEC_FOREVER, now;
	int error;

	/* Closing wakes only the threads that sleep at that time. */
	if (so->so_state & SS_NOFDREF)
		return (EBADF);
	if (deadline != NSEC_FOREVER) {
		now = mach_uptime();
		if (now >= deadline)
			return (EWOULDBLOCK);
		left = deadline - now;
	}
	sb->sb_waiters++;
	error = so_sleep(so, sb, wmesg, left);
	KASSERT(sb->sb_waiters > 0, ("sbwait: no waiter"));
	sb->sb_waiters--;
	if (so->so_state & SS_NOFDREF)
		return (EBADF);
	return (error);
}

/* Waits until the buffer is not busy. */
__cold static int
sblock_wait(struct socket *so, struct sockbuf *sb, int flags)
    REQUIRES(so->so_lock)
{
	int error = 0;

	while (sb->sb_busy && error == 0) {
		if (flags & MSG_DONTWAIT)
			return (EWOULDBLOCK);
		sb->sb_lockwaiters++;
		error = so_sleep(so, &sb->sb_busy, "sblock", NSEC_FOREVER);
		sb->sb_lockwaiters--;
		if (PLANTED(SBLOCK_ONCE))
			break;
	}
	return (so->so_state & SS_NOFDREF ? EBADF : error);
}

int
sblock(struct socket *so, struct sockbuf *sb, int flags)
{
	int error = 0;

	if (sb->sb_busy)
		error = sblock_wait(so, sb, flags);
	else if (so->so_state & SS_NOFDREF)
		error = EBADF;
	if (error == 0)
		sb->sb_busy = true;
	return (error);
}

void
sbunlock(struct sockbuf *sb)
{
	KASSERT(sb->sb_busy, ("sbunlock: not locked"));
	sb->sb_busy = false;
	if (__predict_false(sb->sb_lockwaiters > 0))
		(void)wakeup_one(&sb->sb_busy);
}
