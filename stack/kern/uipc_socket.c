/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets: creation, destruction, and calls that change state.  connect() is in
 * uipc_connect.c, data transfer in uipc_io.c, listening in uipc_listen.c,
 * options in uipc_sockopt.c, readiness in uipc_ready.c, buffers in
 * uipc_sockbuf.c.
 *
 * One mutex covers a socket, its two buffers and its protocol control block.
 * A socket is freed with its last reference.  A thread that looked a socket up
 * can therefore lock it, and then detects by so_pcb and so_state whether it
 * was closed meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/epoch.h"
#include "kern/sigio.h"
#include "kern/socopies.h"
#include "kern/synch.h"
#include "kern/sysctl.h"
#include "kern/thread.h"
#include "kern/uipc_filter.h"

#define	MAX_PROTOSW	16
#define	ERRORS_MAX	65536	/* max bytes of queued errors of a socket */

static const struct protosw *protocols[MAX_PROTOSW];	/* [I] after boot */
static unsigned nprotocols;				/* [I] after boot */

/*
 * All sockets, in parts: a socket is in that of the CPU that created it.
 *	[l] sp_lock
 */
#define	SOLIST_PARTS	64
static struct solist {
	struct mtx	 sp_lock;
	LIST_HEAD(, socket) sp_sockets GUARDED_BY(sp_lock);	/* [l] */
	atomic_u32	 sp_count;	/* [a] written with sp_lock */
} __attribute__((aligned(64))) solists[SOLIST_PARTS];

uint32_t
so_count(void)
{
	uint32_t total = 0;

	for (unsigned i = 0; i < SOLIST_PARTS; i++)
		total += atomic_load_u32(&solists[i].sp_count);
	return (total);
}

static int
proc_sockets(const struct sysctl_oid *oid, const char *newval, char *buf,
    size_t len)
{
	(void)oid;
	(void)newval;
	snprintf(buf, len, "%u", so_count());
	return (0);
}

static const struct sysctl_oid socket_oids[] = {
	{ .oid_name = "kern.ipc.sockets", .oid_type = CTL_PROC,
	  .oid_flags = CTL_RD, .oid_proc = proc_sockets,
	  .oid_descr = "sockets, including connections without a descriptor" },
};

void
socket_init(void)
{
	for (unsigned i = 0; i < SOLIST_PARTS; i++)
		mtx_init(&solists[i].sp_lock, LC_SOLIST);
	socopies_init();
	sysctl_register(socket_oids, nitems(socket_oids));
}

void
protosw_register(const struct protosw *pr)
{
	KASSERT(nprotocols < MAX_PROTOSW, ("protosw_register: %s is one too "
	    "many", pr->pr_name));
	protocols[nprotocols++] = pr;
}

static const struct protosw *
protosw_find(int domain, int type, int protocol, int *error)
{
	*error = EAFNOSUPPORT;
	for (unsigned i = 0; i < nprotocols; i++) {
		const struct protosw *pr = protocols[i];

		if (pr->pr_domain != domain)
			continue;
		if (*error == EAFNOSUPPORT)
			*error = ESOCKTNOSUPPORT;
		if (pr->pr_type == type)
			*error = EPROTONOSUPPORT;
		if (pr->pr_type == type && (pr->pr_anyproto ? protocol != 0 :
		    protocol == 0 || protocol == pr->pr_protocol))
			return (pr);
	}
	return (NULL);
}

/* Allocates a socket with one reference, the caller's. */
static struct socket *
soalloc(const struct protosw *pr, int protocol)
{
	struct socket *so = kmalloc_aligned(pr->pr_sosize != 0 ?
	    pr->pr_sosize : sizeof(*so), _Alignof(struct socket));

	mtx_init(&so->so_lock, LC_SOCKET);
	mtx_init(&so->so_qlock, LC_ACCEPT);
	mtx_private(&so->so_lock);
	mtx_private(&so->so_qlock);
	atomic_store_u32(&so->so_refs, 1);
	so->so_proto = pr;
	so->so_type = pr->pr_type;
	so->so_protocol = protocol;
	so->so_errors.sb_hiwat = ERRORS_MAX;
	so->so_linger = so->so_stamp = NSEC_FOREVER;
	so->so_rcv.sb_timeo = so->so_snd.sb_timeo = NSEC_FOREVER;
	so->so_rcv.sb_lowat = 1;
	so_keepinit(so);
	LIST_INIT(&so->so_watch);
	TAILQ_INIT(&so->so_incomp);
	TAILQ_INIT(&so->so_comp);
	return (so);
}

void
so_enlist(struct socket *so)
{
	struct solist *sp = &solists[mach_curcpu() % SOLIST_PARTS];

	so->so_list = sp;
	mtx_lock_as(&sp->sp_lock, &solist_role);
	LIST_INSERT_HEAD(&sp->sp_sockets, so, so_all);
	atomic_store_u32(&sp->sp_count, atomic_load_u32(&sp->sp_count) + 1);
	mtx_unlock_as(&sp->sp_lock, &solist_role);
}

/* Does nothing with a socket that is in no list, the copy of a listener. */
static void
so_delist(struct socket *so)
{
	struct solist *sp = so->so_list;

	if (sp == NULL)
		return;
	mtx_lock_as(&sp->sp_lock, &solist_role);
	LIST_REMOVE(so, so_all);
	atomic_store_u32(&sp->sp_count, atomic_load_u32(&sp->sp_count) - 1);
	mtx_unlock_as(&sp->sp_lock, &solist_role);
}

void
soref(struct socket *so)
{
	uint32_t old __attribute__((unused));

	old = atomic_fetchadd_u32(&so->so_refs, 1);
	KASSERT(old > 0, ("soref: socket %p is gone", (void *)so));
}

/*
 * The list of all sockets holds no reference, and neither do indices that are
 * read in epochs: they skip a socket whose last reference is gone.
 */
bool
soref_unless_dying(struct socket *so)
{
	uint32_t refs = atomic_load_u32(&so->so_refs);

	while (refs != 0)
		if (atomic_cmpset_u32(&so->so_refs, &refs, refs + 1))
			return (true);
	return (false);
}

static void
so_free(void *arg)
{
	struct socket *so = arg;

	mtx_destroy(&so->so_qlock);
	mtx_destroy(&so->so_lock);
	kfree(so);
}

__hot void
sorele(struct socket *so)
{
	uint32_t old = atomic_fetchadd_u32(&so->so_refs, UINT32_MAX);
	struct socket *head;
	bool retired;

	KASSERT(old > 0, ("sorele: socket %p is gone", (void *)so));
	if (__predict_true(old != 1))
		return;
	so_delist(so);
	mtx_lock(&so->so_lock);
	KASSERT(so->so_pcb == NULL, ("sorele: socket %p has a pcb",
	    (void *)so));
	KASSERT(LIST_EMPTY(&so->so_watch), ("sorele: socket %p is watched",
	    (void *)so));
	sbflush(so, &so->so_rcv);
	sbflush(so, &so->so_snd);
	sbflushpackets(&so->so_errors);
	sofilter_free(so);
	head = so->so_head;
	retired = so->so_retired;
	mtx_unlock(&so->so_lock);
	if (retired)
		epoch_call(so_free, so);
	else
		so_free(so);
	if (head != NULL)
		sorele(head);
}

/* Takes references to the sockets of a part; returns their number. */
static unsigned
solist_ref(struct solist *sp, struct socket ***sos)
{
	struct socket **all, *so;
	unsigned n = 0;

	mtx_lock_as(&sp->sp_lock, &solist_role);
	all = kmalloc((atomic_load_u32(&sp->sp_count) + 1) * sizeof(*all));
	LIST_FOREACH(so, &sp->sp_sockets, so_all)
		if (soref_unless_dying(so))
			all[n++] = so;
	mtx_unlock_as(&sp->sp_lock, &solist_role);
	*sos = all;
	return (n);
}

void
so_foreach(void (*fn)(struct socket *, void *), void *arg)
{
	struct socket **all;
	unsigned n;

	for (unsigned part = 0; part < SOLIST_PARTS; part++) {
		n = solist_ref(&solists[part], &all);
		for (unsigned i = 0; i < n; i++) {
			so_enter(all[i]);
			fn(all[i], arg);
			so_leave(all[i]);
			sorele(all[i]);
		}
		kfree(all);
	}
}

int
socreate(int domain, int type, int protocol, struct socket **sop)
{
	const struct protosw *pr;
	struct socket *so;
	int error;

	if (domain == AF_UNIX && type == SOCK_RAW)
		type = SOCK_DGRAM;	/* as in Linux */
	pr = protosw_find(domain, type, protocol, &error);
	if (pr == NULL)
		return (error);
	so = soalloc(pr, protocol != 0 ? protocol : pr->pr_protocol);
	so_enlist(so);
	so_enter(so);
	error = pr->pr_attach(so);
	so_leave(so);
	if (error != 0) {
		sorele(so);
		return (error);
	}
	*sop = so;
	return (0);
}

int
sosocketpair(int domain, int type, int protocol, struct socket *pair[2])
{
	int error;

	error = socreate(domain, type, protocol, &pair[0]);
	if (error != 0)
		return (error);
	error = socreate(domain, type, protocol, &pair[1]);
	if (error != 0) {
		(void)soclose(pair[0]);
		return (error);
	}
	giant_enter();
	error = pair[0]->so_proto->pr_connect2 == NULL ? EOPNOTSUPP :
	    pair[0]->so_proto->pr_connect2(pair[0], pair[1]);
	giant_exit();
	if (error != 0) {
		(void)soclose(pair[0]);
		(void)soclose(pair[1]);
	}
	return (error);
}

struct socket *
sonewchild(struct socket *head) REQUIRES(head->so_lock)
{
	struct socket *so = soalloc(head->so_proto, head->so_protocol);

	mtx_private(&so->so_lock);
	so->so_options = head->so_options;
	so->so_linger = head->so_linger;
	memcpy(so->so_kept, head->so_kept, sizeof(so->so_kept));
	so->so_rcv.sb_timeo = head->so_rcv.sb_timeo;
	so->so_snd.sb_timeo = head->so_snd.sb_timeo;
	so->so_rcv.sb_lowat = head->so_rcv.sb_lowat;
	so->so_rcv.sb_hiwat = head->so_rcv.sb_hiwat;
	so->so_rcv.sb_fixed = head->so_rcv.sb_fixed;
	so->so_snd.sb_fixed = head->so_snd.sb_fixed;
	sbreserve_snd(&so->so_snd, head->so_snd.sb_hiwat);
	return (so);
}

int
sockname_get(struct sockname *name, const struct sockaddr *sa, socklen_t len)
{
	const socklen_t room = sizeof(*name) - offsetof(struct sockname, sn_sa);

	if (sa == NULL || len < sizeof(sa->sa_family) ||
	    len > sizeof(struct sockaddr_storage))
		return (EINVAL);
	name->sn_len = len < room ? len : room;
	memcpy(&name->sn_sa, sa, name->sn_len);
	return (0);
}

void
sockname_put(const struct sockname *name, struct sockaddr *sa, socklen_t *len)
{
	if (*len > 0)
		memcpy(sa, &name->sn_sa,
		    *len < name->sn_len ? *len : name->sn_len);
	*len = name->sn_len;
}

struct sockname
sockname_none(const struct socket *so)
{
	struct sockname name = { .sn_len = so->so_proto->pr_namelen };

	name.sn_sa.sa_family = (sa_family_t)so->so_proto->pr_domain;
	return (name);
}

int
sobind(struct socket *so, const struct sockaddr *sa, socklen_t len)
{
	struct sockname name;
	int error;

	error = sockname_get(&name, sa, len);
	if (error != 0)
		return (error);
	so_enter(so);
	error = so->so_pcb == NULL ? EINVAL : so->so_proto->pr_bind(so, &name);
	so_leave(so);
	return (error);
}

/*
 * As in Linux, shutdown() of a listener refuses current and later accept()
 * calls; servers use it to end a thread in accept().
 */
static void
soshutlisten(struct socket *so, int how) REQUIRES(so->so_lock)
{
	if (how == SHUT_WR)
		return;
	so->so_qlimit = 0;
	socopies_limit(so, 0);
	sodrainqueues(so);
	socantrcvmore(so);
	sowwakeup(so);
}

static void
copy_shutdown(struct socket *copy, void *how) REQUIRES(copy->so_lock)
{
	soshutlisten(copy, *(int *)how);
}

/*
 * As in Linux, what was received before SHUT_RD can still be read.
 */
static int
soshutways(struct socket *so, int how) REQUIRES(so->so_lock)
{
	if (how != SHUT_WR && so->so_proto->pr_shutrd != NULL)
		so->so_proto->pr_shutrd(so);
	else if (how != SHUT_WR)
		socantrcvmore(so);
	return (how != SHUT_RD ? so->so_proto->pr_shutdown(so) : 0);
}

/*
 * Without a connection the result is ENOTCONN.  A datagram socket is shut down
 * nevertheless, which ends the calls that wait.  A connection attempt ends:
 * programs cancel a connect() of another thread so.
 */
static int
soshutunconnected(struct socket *so, int how) REQUIRES(so->so_lock)
{
	if (!so->so_proto->pr_stream && !so->so_proto->pr_local)
		(void)soshutways(so, how);
	if (!so->so_proto->pr_stream || so->so_proto->pr_local ||
	    (so->so_state & SS_ISCONNECTING) == 0)
		return (ENOTCONN);
	(void)so->so_proto->pr_connect(so, NULL, 0);
	so->so_error = ECONNRESET;
	return (0);
}

int
soshutdown(struct socket *so, int how)
{
	int error = 0;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return (EINVAL);
	so_enter(so);
	if (so->so_state & SS_NOFDREF)
		error = EBADF;		/* closed meanwhile */
	else if (so->so_state & SS_LISTENING)
		soshutlisten(so, how);
	else if ((so->so_state & SS_ISCONNECTED) == 0)
		error = soshutunconnected(so, how);
	else
		error = soshutways(so, how);
	so_leave(so);
	socopies_foreach(so, copy_shutdown, &how);
	return (error);
}

/*
 * SO_LINGER with a time: waits until the peer has acknowledged all that was
 * sent, the end included (socket(7): "successfully sent").
 */
static void
solinger(struct socket *so) REQUIRES(so->so_lock)
{
	nsec_t deadline = mach_uptime() + so->so_linger;

	(void)so->so_proto->pr_shutdown(so);
	while (so->so_proto->pr_unacked(so) && so->so_error == 0)
		if (sbwait(so, &so->so_snd, "soclos", deadline) != 0)
			break;
}

/* What is unread will be lost, which the peer learns at once by a reset. */
static bool
solingers(const struct socket *so) REQUIRES(so->so_lock)
{
	return (so->so_proto->pr_unacked != NULL &&
	    so->so_linger != NSEC_FOREVER && so->so_linger != 0 &&
	    (so->so_state & SS_ISCONNECTED) != 0 && so->so_rcv.sb_cc == 0);
}

int
soclose(struct socket *so)
{
	struct socopies *copies;

	so_enter(so);
	KASSERT((so->so_state & SS_NOFDREF) == 0, ("soclose: closed twice"));
	if (so->so_state & SS_LISTENING)
		sodrainqueues(so);
	else if (solingers(so))
		solinger(so);
	so->so_state |= SS_NOFDREF;
	sosigio_free(so);
	wakeup(&so->so_rcv);
	wakeup(&so->so_snd);
	wakeup(&so->so_rcv.sb_busy);
	wakeup(&so->so_snd.sb_busy);
	if (so->so_pcb != NULL) {
		if (so->so_proto->pr_stream && !so->so_proto->pr_local &&
		    so->so_linger == 0)
			so->so_proto->pr_abort(so);
		else
			so->so_proto->pr_detach(so);
	}
	copies = socopies_detach(so);
	so_leave(so);
	socopies_close(copies);
	sorele(so);
	return (0);
}

static int
sogetaddr(struct socket *so, struct sockaddr *sa, socklen_t *len,
    int (*get)(struct socket *, struct sockname *))
{
	struct sockname name = sockname_none(so);
	int error = 0;

	if (len == NULL || (sa == NULL && *len > 0))
		return (EINVAL);
	so_enter(so);
	if (so->so_pcb != NULL)
		error = get(so, &name);
	so_leave(so);
	if (error == 0)
		sockname_put(&name, sa, len);
	return (error);
}

int
sogetsockname(struct socket *so, struct sockaddr *sa, socklen_t *len)
{
	return (sogetaddr(so, sa, len, so->so_proto->pr_sockaddr));
}

int
sogetpeername(struct socket *so, struct sockaddr *sa, socklen_t *len)
{
	return (sogetaddr(so, sa, len, so->so_proto->pr_peeraddr));
}

void
soisconnecting(struct socket *so)
{
	so_assert_locked(so);
	so->so_state &= ~(unsigned)(SS_ISCONNECTED | SS_ISDISCONNECTING |
	    SS_CANTRCVMORE | SS_CANTSENDMORE);
	so->so_state |= SS_ISCONNECTING | SS_NOSPACE;
}

void
soisdisconnected(struct socket *so)
{
	so_assert_locked(so);
	so->so_state &= ~(unsigned)(SS_ISCONNECTED | SS_ISCONNECTING |
	    SS_ISDISCONNECTING);
	so->so_state |= SS_CANTRCVMORE | SS_CANTSENDMORE;
	sbdrop(&so->so_snd, so->so_snd.sb_cc);
	sorwakeup(so);
	sowwakeup(so);
}

void
socantrcvmore(struct socket *so)
{
	so_assert_locked(so);
	so->so_state |= SS_CANTRCVMORE;
	sorwakeup(so);
}

void
socantsendmore(struct socket *so)
{
	so_assert_locked(so);
	so->so_state |= SS_CANTSENDMORE;
	sowwakeup(so);
}

void
soseterror(struct socket *so, int error)
{
	so_assert_locked(so);
	so->so_error = error;
	sorwakeup(so);
	sowwakeup(so);
}
