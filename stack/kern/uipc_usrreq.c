/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UNIX-domain sockets: life, connections and what the socket calls ask.
 * unpcb.h says how data moves; names are in uipc_usrname.c, data in
 * uipc_usrio.c, descriptors in uipc_rights.c, locking strategies in
 * uipc_usrlock.c.
 *
 * The strategy's locks come before those of sockets, and the socket layer
 * calls most functions here with the socket locked: they let it go, which is
 * safe because the caller holds a reference, and take it again at the end.
 */
#include <errno.h>
#include <string.h>

#include "kern/sysctl.h"
#include "kern/synch.h"
#include "kern/unpcb.h"

static atomic_u32 unp_sendspace = 212992;	/* Linux: wmem_default */
static atomic_u32 unp_recvspace = 212992;

static const struct sysctl_oid unp_oids[] = {
	{ .oid_name = "unix.recvspace", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &unp_recvspace,
	  .oid_min = 2048, .oid_max = 16777216,
	  .oid_descr = "receive buffer of a new UNIX-domain socket, bytes" },
	{ .oid_name = "unix.sendspace", .oid_type = CTL_U32,
	  .oid_flags = CTL_TUN | CTL_RUN, .oid_ptr = &unp_sendspace,
	  .oid_min = 2048, .oid_max = 16777216,
	  .oid_descr = "what a new UNIX-domain socket may have sent that is "
	      "not read yet, bytes" },
};

struct unpcb *
unp_hold(struct socket *so)
{
	struct unpcb *unp = sotounpcb(so);

	mtx_assert_owned(&so->so_lock);
	if (unp != NULL)
		atomic_fetchadd_u32(&unp->unp_refs, 1);
	return (unp);
}

void
unp_rele(struct unpcb *unp)
{
	if (atomic_fetchadd_u32(&unp->unp_refs, UINT32_MAX) == 1)
		kfree(unp);
}

static int
unp_attach(struct socket *so)
{
	struct unpcb *unp = kmalloc(sizeof(*unp));

	unp->unp_socket = so;
	atomic_store_u32(&unp->unp_refs, 1);
	LIST_INIT(&unp->unp_senders);
	soref(so);
	so->so_pcb = unp;
	soreserve(so, atomic_load_u32(&unp_sendspace),
	    atomic_load_u32(&unp_recvspace));
	unp_rights_attach(unp);
	return (0);
}

/* One end of a connection that is over; error is 0 or the reason. */
static void
end_disconnected(struct socket *so, int error)
{
	mtx_lock(&so->so_lock);
	so->so_snd.sb_cc = 0;	/* what was charged is lost with the peer */
	if (error != 0)
		so->so_error = error;
	soisdisconnected(so);
	mtx_unlock(&so->so_lock);
}

/* A datagram socket forgets its peer.  Linkage locked. */
static void
datagram_disconnect(struct unpcb *unp, bool lost)
{
	struct socket *so = unp->unp_socket;

	LIST_REMOVE(unp, unp_sender);
	unp->unp_conn = NULL;
	unp->unp_lost = lost;
	mtx_lock(&so->so_lock);
	so->so_state &= ~(unsigned)SS_ISCONNECTED;
	mtx_unlock(&so->so_lock);
}

/* Ends whatever connects a socket to others; linkage locked. */
static void
unp_disconnect(struct unpcb *unp, int error)
{
	struct unpcb *peer = unp->unp_conn, *sender;

	if (peer != NULL && unp->unp_socket->so_proto->pr_stream) {
		KASSERT(peer->unp_conn == unp, ("unp_disconnect: one-sided"));
		unp->unp_conn = peer->unp_conn = NULL;
		end_disconnected(unp->unp_socket, 0);
		end_disconnected(peer->unp_socket, error);
	} else if (peer != NULL) {
		datagram_disconnect(unp, false);
	}
	while ((sender = LIST_FIRST(&unp->unp_senders)) != NULL)
		datagram_disconnect(sender, true);
}

/*
 * As on Linux a peer whose data was not read, or who was never accepted, is
 * told so by ECONNRESET.
 */
static void
unp_close(struct socket *so, bool refused) NO_LOCK_ANALYSIS
{
	struct unpcb *unp = sotounpcb(so);
	int error;

	error = refused || so->so_rcv.sb_cc > 0 ? ECONNRESET : 0;
	mtx_unlock(&so->so_lock);
	unp_lockops->ulo_link(unp, NULL);
	unp_disconnect(unp, error);
	mtx_lock(&so->so_lock);
	/* nobody binds, connects or sends to it any more */
	so->so_pcb = NULL;
	mtx_unlock(&so->so_lock);
	unp_lockops->ulo_linked(unp, NULL);
	unp_unbind(unp);
	unp_flush(so);
	unp_rights_detach(unp);
	unp_rele(unp);
	unp_gc();
	mtx_lock(&so->so_lock);
	sorele(so);
}

static void
unp_detach(struct socket *so)
{
	unp_close(so, false);
}

static void
unp_abort(struct socket *so)
{
	unp_close(so, true);
}

/*
 * Bind and connect look at the file system, without a lock; meanwhile
 * unp_busy keeps others out.
 */
static int
unp_usr_bind(struct socket *so, const struct sockname *name)
    NO_LOCK_ANALYSIS
{
	struct unpcb *unp = unp_hold(so);
	int error;

	if (unp->unp_busy) {
		unp_rele(unp);
		return (EALREADY);
	}
	unp->unp_busy = true;
	mtx_unlock(&so->so_lock);
	error = unp_bind(unp, name);
	mtx_lock(&so->so_lock);
	unp->unp_busy = false;
	if (so->so_pcb == NULL)		/* closed meanwhile */
		unp_unbind(unp);
	unp_rele(unp);
	return (error);
}

static void
credentials(struct ucred *cred)
{
	mach_credentials(&cred->pid, &cred->uid, &cred->gid);
}

static int
unp_listen(struct socket *so)
{
	struct unpcb *unp = sotounpcb(so);
	struct sockname name = { .sn_len = 0 };

	unp_getname(unp, &name);
	if (name.sn_len == 0)
		return (EINVAL);
	credentials(&unp->unp_cred);
	return (0);
}

/* Both sockets see the connection; linkage locked. */
static void
unp_link(struct unpcb *a, struct unpcb *b)
{
	struct unpcb *both[2] = { a, b };

	a->unp_conn = b;
	b->unp_conn = a;
	for (unsigned i = 0; i < 2; i++) {
		struct socket *so = both[i]->unp_socket;

		mtx_lock(&so->so_lock);
		soisconnected(so);
		sounlock_input(so);
	}
}

/* Linkage locked.  A datagram socket may connect to itself. */
static void
datagram_connect(struct unpcb *unp, struct unpcb *peer)
{
	struct socket *so = unp->unp_socket;

	if (unp->unp_conn != NULL)
		datagram_disconnect(unp, false);
	unp->unp_lost = false;
	if (peer == NULL)
		return;
	unp->unp_conn = peer;
	LIST_INSERT_HEAD(&peer->unp_senders, unp, unp_sender);
	mtx_lock(&so->so_lock);
	so->so_state |= SS_ISCONNECTED;
	mtx_unlock(&so->so_lock);
}

/*
 * The child that the listener will accept, with a reference, and who
 * listens; EWOULDBLOCK if the queue is full.
 */
static int
unp_newchild(struct socket *head, struct socket **sop, struct ucred *cred)
    NO_LOCK_ANALYSIS
{
	struct socket *so;

	mtx_lock(&head->so_lock);
	if (head->so_pcb == NULL || (head->so_state & (SS_LISTENING |
	    SS_CANTRCVMORE | SS_NOFDREF)) != SS_LISTENING) {
		mtx_unlock(&head->so_lock);
		return (ECONNREFUSED);
	}
	so = sonewconn(head);
	if (so != NULL) {
		(void)unp_attach(so);
		unp_getname(sotounpcb(head), &sotounpcb(so)->unp_name);
		credentials(&sotounpcb(so)->unp_cred);
		*cred = sotounpcb(head)->unp_cred;
		unp_rights_head(sotounpcb(so), sotounpcb(head));
		mtx_unlock(&so->so_lock);
	}
	mtx_unlock(&head->so_lock);
	*sop = so;
	return (so != NULL ? 0 : EWOULDBLOCK);
}

/* Another thread closed it meanwhile; linkage locked, socket referenced. */
static bool
unp_isclosed(const struct unpcb *unp)
{
	return (unp->unp_socket->so_pcb == NULL);
}

static int
stream_connect(struct unpcb *unp, struct socket *head)
{
	struct socket *so;
	struct unpcb *child;
	struct ucred cred = { .pid = 0 };
	int error = 0;

	unp_lockops->ulo_link(unp, NULL);
	if (unp_isclosed(unp))
		error = EBADF;
	else if (unp->unp_conn != NULL)
		error = EISCONN;	/* by another thread */
	else
		error = unp_newchild(head, &so, &cred);
	if (error == 0) {
		mtx_lock(&unp->unp_socket->so_lock);
		unp->unp_cred = cred;
		mtx_unlock(&unp->unp_socket->so_lock);
		mtx_lock(&so->so_lock);
		child = unp_hold(so);
		mtx_unlock(&so->so_lock);
		if (child != NULL) {
			unp_link(unp, child);
			unp_rele(child);
		} else {
			error = ECONNREFUSED;	/* the listener was closed */
		}
		sorele(so);
	}
	unp_lockops->ulo_linked(unp, NULL);
	return (error);
}

static bool
queue_full(struct socket *head) REQUIRES(head->so_lock)
{
	bool full;

	mtx_lock(&head->so_qlock);
	full = head->so_qlen >= head->so_qlimit;
	mtx_unlock(&head->so_qlock);
	return (full);
}

/* Waits until somebody accepts, as Linux does; unlike BSD's ECONNREFUSED. */
static int
wait_for_room(struct socket *head, nsec_t deadline)
{
	int error = 0;

	mtx_lock(&head->so_lock);
	while (error == 0 && (head->so_state &
	    (SS_NOFDREF | SS_CANTRCVMORE)) == 0 && queue_full(head))
		error = sbwait(head, &head->so_snd, "connec", deadline);
	mtx_unlock(&head->so_lock);
	return (error == EBADF ? ECONNREFUSED : error);
}

static int
connect_to(struct unpcb *unp, struct socket *to, int flags, nsec_t deadline)
{
	struct unpcb *peer;
	int error;

	if (to->so_type != unp->unp_socket->so_type)
		return (EPROTOTYPE);
	if (to->so_proto->pr_stream) {
		while ((error = stream_connect(unp, to)) == EWOULDBLOCK &&
		    (flags & MSG_DONTWAIT) == 0)
			if ((error = wait_for_room(to, deadline)) != 0)
				break;
		return (error);
	}
	mtx_lock(&to->so_lock);
	peer = unp_hold(to);
	mtx_unlock(&to->so_lock);
	if (peer == NULL)
		return (ECONNREFUSED);
	unp_lockops->ulo_link(unp, peer);
	if (unp_isclosed(unp))
		error = EBADF;
	else if (unp_isclosed(peer))
		error = ECONNREFUSED;
	else if (peer->unp_conn != NULL && peer->unp_conn != unp)
		error = EPERM;
	else
		error = 0;
	if (error == 0)
		datagram_connect(unp, peer);
	unp_lockops->ulo_linked(unp, peer);
	unp_rele(peer);
	return (error);
}

static int
unp_usr_connect(struct socket *so, const struct sockname *name, int flags)
    NO_LOCK_ANALYSIS
{
	struct unpcb *unp = unp_hold(so);
	nsec_t deadline = sbdeadline(&so->so_snd);
	struct socket *to;
	int error;

	if (unp == NULL || unp->unp_busy) {
		if (unp != NULL)
			unp_rele(unp);
		return (unp == NULL ? EINVAL : EALREADY);
	}
	unp->unp_busy = true;
	mtx_unlock(&so->so_lock);
	if (name == NULL) {
		unp_lockops->ulo_link(unp, NULL);
		if (!unp_isclosed(unp))
			datagram_connect(unp, NULL);
		unp_lockops->ulo_linked(unp, NULL);
		error = 0;
	} else if ((error = unp_lookup(name, &to)) == 0) {
		error = connect_to(unp, to, flags, deadline);
		sorele(to);
	}
	mtx_lock(&so->so_lock);
	unp->unp_busy = false;
	unp_rele(unp);
	return (error);
}

/* socketpair(): both are new and nobody else knows them. */
static int
unp_connect2(struct socket *a, struct socket *b)
{
	struct unpcb *x = sotounpcb(a), *y = sotounpcb(b);

	credentials(&x->unp_cred);
	credentials(&y->unp_cred);
	unp_lockops->ulo_link(x, y);
	if (a->so_proto->pr_stream) {
		unp_link(x, y);
	} else {
		datagram_connect(x, y);
		datagram_connect(y, x);
	}
	unp_lockops->ulo_linked(x, y);
	return (0);
}

static void
unp_accepted(struct socket *head, struct socket *so)
{
	mtx_assert_owned(&head->so_lock);
	mtx_lock(&so->so_lock);
	if (so->so_pcb != NULL)
		unp_rights_head(sotounpcb(so), NULL);
	mtx_unlock(&so->so_lock);
	sowwakeup(head);	/* who waits to connect has room */
}

/* Ends one direction: of mine, as writer, or of the peer's. */
static void
unp_shut(struct socket *so, bool writing) NO_LOCK_ANALYSIS
{
	struct unpcb *unp = unp_hold(so), *peer;
	struct socket *other;

	if (unp == NULL)
		return;
	if (writing)
		socantsendmore(so);
	else
		socantrcvmore(so);
	mtx_unlock(&so->so_lock);
	peer = unp_lockops->ulo_send(unp);
	/* of datagrams only this side hears of it */
	if (peer != NULL && so->so_proto->pr_stream) {
		other = peer->unp_socket;
		mtx_lock(&other->so_lock);
		if (writing)
			socantrcvmore(other);
		else
			socantsendmore(other);
		mtx_unlock(&other->so_lock);
	}
	unp_lockops->ulo_sent(unp, peer);
	mtx_lock(&so->so_lock);
	unp_rele(unp);
}

static int
unp_shutdown(struct socket *so)
{
	unp_shut(so, true);
	return (0);
}

static void
unp_shutrd(struct socket *so)
{
	unp_shut(so, false);
}

static void
unp_rcvd(struct socket *so)
{
	(void)so;
}

/* Never called: unp_sosend() is. */
static int
unp_send(struct socket *so, struct mbuf *m, const struct sockname *to,
    const struct msghdr *msg, int flags)
{
	panic("unp_send: %p %p %p %p %x", (void *)so, (void *)m,
	    (const void *)to, (const void *)msg, flags);
}

static int
unp_setopt(struct socket *so, int level, int name, const void *val,
    socklen_t len)
{
	(void)so;
	(void)name;
	(void)val;
	(void)len;
	return (level == SOL_SOCKET ? 0 : EOPNOTSUPP);
}

static int
unp_getopt(struct socket *so, int level, int name, void *val, socklen_t *len)
{
	struct ucred cred = { .pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1 };

	if (level != SOL_SOCKET)
		return (EOPNOTSUPP);
	if (name != SO_PEERCRED)
		return (ENOPROTOOPT);
	if (sotounpcb(so)->unp_cred.pid != 0)
		cred = sotounpcb(so)->unp_cred;
	if (*len > sizeof(cred))
		*len = sizeof(cred);
	memcpy(val, &cred, *len);
	return (0);
}

static int
unp_sockaddr(struct socket *so, struct sockname *name)
{
	unp_getname(sotounpcb(so), name);
	return (0);
}

static int
unp_peeraddr(struct socket *so, struct sockname *name) NO_LOCK_ANALYSIS
{
	struct unpcb *unp = unp_hold(so), *peer;

	mtx_unlock(&so->so_lock);
	peer = unp_lockops->ulo_send(unp);
	if (peer != NULL)
		unp_getname(peer, name);
	unp_lockops->ulo_sent(unp, peer);
	mtx_lock(&so->so_lock);
	unp_rele(unp);
	return (peer != NULL ? 0 : ENOTCONN);
}

#define	UNP_PROTOSW(name, type, stream) {				\
	.pr_name = (name),						\
	.pr_domain = AF_UNIX,						\
	.pr_type = (type),						\
	.pr_protocol = AF_UNIX,		/* Linux takes PF_UNIX for 0 */	\
	.pr_namelen = sizeof(sa_family_t),				\
	.pr_stream = (stream),						\
	.pr_local = true,						\
	.pr_attach = unp_attach,					\
	.pr_detach = unp_detach,					\
	.pr_abort = unp_abort,						\
	.pr_bind = unp_usr_bind,					\
	.pr_listen = unp_listen,					\
	.pr_connect = unp_usr_connect,					\
	.pr_shutdown = unp_shutdown,					\
	.pr_rcvd = unp_rcvd,						\
	.pr_send = unp_send,						\
	.pr_setopt = unp_setopt,					\
	.pr_getopt = unp_getopt,					\
	.pr_sockaddr = unp_sockaddr,					\
	.pr_peeraddr = unp_peeraddr,					\
	.pr_sosend = unp_sosend,					\
	.pr_soreceive = unp_soreceive,					\
	.pr_avail = unp_avail,						\
	.pr_shutrd = unp_shutrd,					\
	.pr_accepted = unp_accepted,					\
	.pr_connect2 = unp_connect2,					\
}

static const struct protosw unp_protosw[] = {
	UNP_PROTOSW("ustrm", SOCK_STREAM, true),
	UNP_PROTOSW("udgrm", SOCK_DGRAM, false),
	UNP_PROTOSW("useqp", SOCK_SEQPACKET, true),
};

void
unp_init(void)
{
	unp_lock_init();
	unp_name_init();
	unp_rights_init();
	unp_netstat_init();
	sysctl_register(unp_oids, nitems(unp_oids));
	for (size_t i = 0; i < nitems(unp_protosw); i++)
		protosw_register(&unp_protosw[i]);
}
