/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UNIX-domain sockets: creation, destruction and socket operations.  unpcb.h
 * describes the data flow.  Connections are in unp_conn.c, names in
 * unp_name.c, data in unp_io.c and unp_record.c, descriptors in
 * unp_rights.c, locking strategies in unp_lock.c.
 *
 * The strategy's locks come before those of sockets, and the socket layer
 * calls most of these functions with the socket locked.  They unlock it, which
 * is safe because the caller holds a reference, and lock it again at the end.
 */
#include <errno.h>
#include <string.h>

#include "kern/sysctl.h"
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
	  .oid_descr = "max unread bytes sent by a new UNIX-domain socket" },
};

struct unpcb *
unp_hold(struct socket *so) REQUIRES(so->so_lock)
{
	struct unpcb *unp = sotounpcb(so);

	mtx_assert_owned(&so->so_lock);
	if (unp != NULL)
		unp_ref(unp);
	return (unp);
}

void
unp_ref(struct unpcb *unp)
{
	atomic_fetchadd_u32(&unp->unp_refs, 1);
}

void
unp_rele(struct unpcb *unp)
{
	struct socket *so = unp->unp_socket;

	if (atomic_fetchadd_u32(&unp->unp_refs, UINT32_MAX) != 1)
		return;
	mtx_destroy(&unp->unp_mtx);
	kfree(unp);
	sorele(so);
}

int
unp_attach(struct socket *so) REQUIRES(so->so_lock)
{
	struct unpcb *unp = kmalloc(sizeof(*unp));

	unp->unp_socket = so;
	atomic_store_u32(&unp->unp_refs, 1);
	mtx_init(&unp->unp_mtx, LC_UNPCB);
	role_assert(&unp_linkage);	/* it is linked to nothing yet */
	LIST_INIT(&unp->unp_senders);
	soref(so);
	so->so_pcb = unp;
	soreserve(so, atomic_load_u32(&unp_sendspace),
	    atomic_load_u32(&unp_recvspace));
	unp_rights_attach(unp);
	return (0);
}

/*
 * As in Linux, a peer whose data was not read, or which was not accepted, gets
 * ECONNRESET.
 */
static void
unp_close(struct socket *so, bool refused) REQUIRES(so->so_lock)
{
	struct unpcb *unp = sotounpcb(so);
	int error;

	error = refused || so->so_rcv.sb_cc > 0 ? ECONNRESET : 0;
	mtx_unlock(&so->so_lock);
	unp_disconnect(unp, error);
	unp_unbind(unp);
	unp_flush(so);
	unp_rights_detach(unp);
	unp_rele(unp);
	unp_gc();
	mtx_lock(&so->so_lock);
}

static void
unp_detach(struct socket *so) REQUIRES(so->so_lock)
{
	unp_close(so, false);
}

void
unp_abort(struct socket *so) REQUIRES(so->so_lock)
{
	unp_close(so, true);
}

int
unp_hold_busy(struct socket *so, struct unpcb **unpp)
{
	struct unpcb *unp = unp_hold(so);

	if (unp == NULL)
		return (EINVAL);
	so_assert_locked(unp->unp_socket);
	if (unp->unp_busy) {
		unp_rele(unp);
		return (EALREADY);
	}
	unp->unp_busy = true;
	*unpp = unp;
	return (0);
}

void
unp_rele_busy(struct unpcb *unp)
{
	unp->unp_busy = false;
	unp_rele(unp);
}

static int
unp_usr_bind(struct socket *so, const struct sockname *name)
    REQUIRES(so->so_lock)
{
	struct unpcb *unp;
	int error = unp_hold_busy(so, &unp);

	if (error != 0)
		return (error);
	mtx_unlock(&so->so_lock);
	error = unp_bind(unp, name);
	mtx_lock(&so->so_lock);
	if (so->so_pcb == NULL)		/* closed meanwhile */
		unp_unbind(unp);
	so_assert_locked(unp->unp_socket);
	unp_rele_busy(unp);
	return (error);
}

void
unp_credentials(struct ucred *cred)
{
	mach_credentials(&cred->pid, &cred->uid, &cred->gid);
}

static int
unp_listen(struct socket *so)
    REQUIRES(so->so_lock)
{
	struct unpcb *unp = sotounpcb(so);
	struct sockname name = { .sn_len = 0 };

	unp_getname(unp, &name);
	if (name.sn_len == 0)
		return (EINVAL);
	so_assert_locked(unp->unp_socket);
	unp_credentials(&unp->unp_cred);
	return (0);
}

static void
unp_accepted(struct socket *head, struct socket *so)
{
	mtx_assert_owned(&head->so_lock);
	mtx_lock_child(&so->so_lock);
	if (so->so_pcb != NULL)
		unp_rights_head(sotounpcb(so), NULL);
	mtx_unlock(&so->so_lock);
	sowwakeup(head);	/* a thread that waits to connect has space */
}

/* Shuts one direction down: this socket as writer, or its peer. */
static void
unp_shut(struct socket *so, bool writing) REQUIRES(so->so_lock)
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
	/* datagrams: only this side is notified */
	if (peer != NULL && so->so_proto->pr_stream) {
		other = peer->unp_socket;
		unp_solock(other);
		if (writing)
			socantrcvmore(other);
		else
			socantsendmore(other);
		unp_sounlock(other);
	}
	unp_lockops->ulo_sent(unp, peer);
	mtx_lock(&so->so_lock);
	unp_rele(unp);
}

static int
unp_shutdown(struct socket *so) REQUIRES(so->so_lock)
{
	unp_shut(so, true);
	return (0);
}

static void
unp_shutrd(struct socket *so) REQUIRES(so->so_lock)
{
	unp_shut(so, false);
}

static void
unp_rcvd(struct socket *so)
{
	(void)so;
}

/* Never called: unp_sosend() is used instead. */
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
    REQUIRES(so->so_lock)
{
	struct ucred cred = { .pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1 };
	struct unpcb *unp = sotounpcb(so);

	if (level != SOL_SOCKET)
		return (EOPNOTSUPP);
	if (name != SO_PEERCRED)
		return (ENOPROTOOPT);
	so_assert_locked(unp->unp_socket);
	if (unp->unp_cred.pid != 0)
		cred = unp->unp_cred;
	if (*len > sizeof(cred))
		*len = sizeof(cred);
	memcpy(val, &cred, *len);
	return (0);
}

static int
unp_sockaddr(struct socket *so, struct sockname *name) REQUIRES(so->so_lock)
{
	unp_getname(sotounpcb(so), name);
	return (0);
}

static int
unp_peeraddr(struct socket *so, struct sockname *name)
    REQUIRES(so->so_lock)
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
	.pr_protocol = AF_UNIX,		/* Linux accepts PF_UNIX as 0 */ \
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
	giant_component("unix");
	unp_lock_init();
	unp_name_init();
	unp_rights_init();
	unp_netstat_init();
	sysctl_register(unp_oids, nitems(unp_oids));
	for (size_t i = 0; i < nitems(unp_protosw); i++)
		protosw_register(&unp_protosw[i]);
}
