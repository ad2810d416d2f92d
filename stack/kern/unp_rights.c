/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ancillary data of UNIX-domain sockets: credentials, descriptors in flight
 * (SCM_RIGHTS), and the collector of descriptors that cannot be received any
 * more.
 *
 * A descriptor in a message keeps its file open.  Sockets can thus keep each
 * other or themselves open without a reader.  When a socket is closed while
 * others are in flight, unp_gc() searches for such cycles.  A socket is
 * reachable if it has a reference other than messages, or if it is in a
 * message to, or waits for accept at, a reachable socket.  Messages to all
 * others lose their descriptors, which closes these sockets.
 *
 * The descriptors in a socket's buffer are also on its list unp_passed, so
 * that the collector needs only unp_rights_lock.  It is taken with a socket
 * locked; no lock is taken under it.
 */
#include <errno.h>
#include <string.h>

#include "kern/file.h"
#include "kern/planted.h"
#include "kern/sysctl.h"
#include "kern/unpcb.h"

/* user and group of a message without credentials (proc_sys_kernel(5)) */
#define	UNP_OVERFLOWID	65534
#define	RIGHTS_INFLIGHT	65536	/* in all messages together */

struct unp_rights {
	/* [r] unp_passed, or discarded */
	TAILQ_ENTRY(unp_rights) ur_link GUARDED_BY(unp_rights_lock);
	/* [r] whose unp_passed; NULL */
	struct unpcb	*ur_to GUARDED_BY(unp_rights_lock);
	/*
	 * Of the thread that builds or takes the message; protected by
	 * unp_rights_lock while it is passed.
	 */
	unsigned	 ur_n;
	void		*ur_files[RIGHTS_MAX];
};

const struct fileops *fileops;		/* [I] after boot */

struct mtx unp_rights_lock;
static LIST_HEAD(, unpcb) unp_list GUARDED_BY(unp_rights_lock);
static atomic_u32 unp_inflight;		/* written with unp_rights_lock */
static atomic_u64 gc_runs, gc_closed, gc_deferred;
static TAILQ_HEAD(, unp_rights) discarded GUARDED_BY(unp_rights_lock) =
    TAILQ_HEAD_INITIALIZER(discarded);
static bool discarding GUARDED_BY(unp_rights_lock);

static const struct sysctl_oid rights_oids[] = {
	{ .oid_name = "unix.stats.inflight", .oid_type = CTL_U32,
	  .oid_ptr = &unp_inflight, .oid_max = UINT32_MAX,
	  .oid_descr = "descriptors in messages" },
	{ .oid_name = "unix.stats.gc_runs", .oid_type = CTL_U64,
	  .oid_ptr = &gc_runs, .oid_descr = "searches for unreachable "
	  "sockets in messages" },
	{ .oid_name = "unix.stats.gc_closed", .oid_type = CTL_U64,
	  .oid_ptr = &gc_closed, .oid_descr = "descriptors closed by these "
	  "searches" },
	{ .oid_name = "unix.stats.deferred", .oid_type = CTL_U64,
	  .oid_ptr = &gc_deferred, .oid_descr = "closes deferred to an outer "
	  "close" },
};

void
unp_rights_init(void)
{
	sysctl_register(rights_oids, nitems(rights_oids));
	mtx_init(&unp_rights_lock, LC_UNPRIGHTS);
}

void
unp_rights_attach(struct unpcb *unp)
{
	mtx_lock(&unp_rights_lock);
	TAILQ_INIT(&unp->unp_passed);
	LIST_INSERT_HEAD(&unp_list, unp, unp_all);
	mtx_unlock(&unp_rights_lock);
}

void
unp_rights_detach(struct unpcb *unp)
{
	mtx_lock(&unp_rights_lock);
	KASSERT(TAILQ_EMPTY(&unp->unp_passed),
	    ("unp_rights_detach: descriptors are left"));
	LIST_REMOVE(unp, unp_all);
	unp->unp_head = NULL;
	mtx_unlock(&unp_rights_lock);
}

void
unp_rights_head(struct unpcb *unp, struct unpcb *head)
{
	mtx_lock(&unp_rights_lock);
	unp->unp_head = head;
	mtx_unlock(&unp_rights_lock);
}

/*
 * The pcb of a file that is a socket of this domain, or NULL.  so_pcb does not
 * change while a file refers to the socket.
 */
static struct unpcb *
file_unpcb(void *file)
{
	struct socket *so = fileops->fo_socket(file);

	if (so == NULL || so->so_proto->pr_domain != AF_UNIX)
		return (NULL);
	mtx_stable(&so->so_lock);
	return (sotounpcb(so));
}

static void
rights_count(const struct unp_rights *ur, int sign)
    REQUIRES(unp_rights_lock)
{
	for (unsigned i = 0; i < ur->ur_n; i++) {
		struct unpcb *unp = file_unpcb(ur->ur_files[i]);

		if (unp == NULL)
			continue;
		unp->unp_inflight += (unsigned)sign;
		unp->unp_file = ur->ur_files[i];
	}
	atomic_fetchadd_u32(&unp_inflight, (uint32_t)sign * ur->ur_n);
}

void
unp_rights_pass(struct unpcb *to, struct unp_rights *ur)
{
	mtx_lock(&unp_rights_lock);
	rights_count(ur, 1);
	ur->ur_to = to;
	TAILQ_INSERT_TAIL(&to->unp_passed, ur, ur_link);
	mtx_unlock(&unp_rights_lock);
}

void
unp_rights_take(struct unp_rights *ur)
{
	mtx_lock(&unp_rights_lock);
	rights_count(ur, -1);
	TAILQ_REMOVE(&ur->ur_to->unp_passed, ur, ur_link);
	ur->ur_to = NULL;
	mtx_unlock(&unp_rights_lock);
}

struct unp_rights *
unp_rights_copy(struct unp_rights *ur)
{
	struct unp_rights *copy = kmalloc(sizeof(*copy));

	mtx_lock(&unp_rights_lock);
	copy->ur_n = ur->ur_n;
	memcpy(copy->ur_files, ur->ur_files, sizeof(copy->ur_files));
	for (unsigned i = 0; i < copy->ur_n; i++)
		fileops->fo_hold(copy->ur_files[i]);
	mtx_unlock(&unp_rights_lock);
	return (copy);
}

/*
 * Closing a file may close a socket whose messages hold files, and so on.
 * Only the outermost call closes files, in a loop, so that long chains do not
 * exhaust the stack.
 */
void
unp_rights_discard(struct unp_rights *ur)
{
	if (ur == NULL)
		return;
	mtx_lock(&unp_rights_lock);
	KASSERT(ur->ur_to == NULL, ("unp_rights_discard: still passed"));
	TAILQ_INSERT_TAIL(&discarded, ur, ur_link);
	if (discarding) {
		atomic_count_u64(&gc_deferred, 1);
		mtx_unlock(&unp_rights_lock);
		return;
	}
	discarding = true;
	while ((ur = TAILQ_FIRST(&discarded)) != NULL) {
		TAILQ_REMOVE(&discarded, ur, ur_link);
		mtx_unlock(&unp_rights_lock);
		for (unsigned i = 0; i < ur->ur_n; i++)
			fileops->fo_close(ur->ur_files[i]);
		kfree(ur);
		mtx_lock(&unp_rights_lock);
	}
	discarding = false;
	mtx_unlock(&unp_rights_lock);
}

/* Adds the descriptors of one control message; returns an errno value. */
static int
rights_add(struct unp_rights *ur, const struct cmsghdr *cm)
{
	const size_t n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int fd, error = 0;

	if (fileops == NULL || n > RIGHTS_MAX - ur->ur_n)
		return (EINVAL);
	for (size_t i = 0; i < n && error == 0; i++) {
		memcpy(&fd, CMSG_DATA(cm) + i * sizeof(fd), sizeof(fd));
		error = fileops->fo_get(fd, &ur->ur_files[ur->ur_n]);
		if (error == 0)
			ur->ur_n++;
	}
	return (error);
}

/* Only the superuser may send other credentials. */
static int
cred_check(const struct cmsghdr *cm, struct ucred *cred)
{
	struct ucred own, other;

	if (cm->cmsg_len != CMSG_LEN(sizeof(other)))
		return (EINVAL);
	memcpy(&other, CMSG_DATA(cm), sizeof(other));
	mach_credentials(&own.pid, &own.uid, &own.gid);
	if (own.uid != 0 && memcmp(&other, &own, sizeof(other)) != 0)
		return (EPERM);
	*cred = other;
	return (0);
}

void
unp_identify(struct unp_control *uc)
{
	if (uc->uc_cred.pid == 0)
		mach_credentials(&uc->uc_cred.pid, &uc->uc_cred.uid,
		    &uc->uc_cred.gid);
}

static int
control_add(const struct cmsghdr *cm, struct unp_control *uc)
{
	if (cm->cmsg_level != SOL_SOCKET)
		return (0);
	switch (cm->cmsg_type) {
	case SCM_RIGHTS:
		if (uc->uc_rights == NULL)
			uc->uc_rights = kmalloc(sizeof(*uc->uc_rights));
		return (rights_add(uc->uc_rights, cm));
	case SCM_CREDENTIALS:
		return (cred_check(cm, &uc->uc_cred));
	default:
		return (EINVAL);
	}
}

int
unp_internalize(const struct msghdr *msg, struct unp_control *uc)
{
	const struct cmsghdr *cm = NULL;
	int error;

	uc->uc_rights = NULL;
	uc->uc_cred = (struct ucred){ 0, UNP_OVERFLOWID, UNP_OVERFLOWID };
	while ((cm = socontrol_next(msg, cm, &error)) != NULL)
		if ((error = control_add(cm, uc)) != 0)
			break;
	if (error == 0 && uc->uc_rights != NULL &&
	    atomic_load_u32(&unp_inflight) + uc->uc_rights->ur_n >
	    RIGHTS_INFLIGHT)
		error = ETOOMANYREFS;
	if (error != 0 || (uc->uc_rights != NULL &&
	    uc->uc_rights->ur_n == 0)) {
		unp_rights_discard(uc->uc_rights);
		uc->uc_rights = NULL;
	}
	return (error);
}

/* Installs as many descriptors as fit for the reader; closes the others. */
static void
rights_put(struct msghdr *msg, size_t room, size_t *used,
    struct unp_rights *ur, bool cloexec)
{
	int fds[RIGHTS_MAX];
	unsigned n = 0, fit = 0;

	if (room - *used >= CMSG_LEN(sizeof(int)))
		fit = (unsigned)((room - *used - CMSG_LEN(0)) / sizeof(int));
	while (n < ur->ur_n && n < fit) {
		fds[n] = fileops->fo_install(ur->ur_files[n], cloexec);
		if (fds[n] == -1)
			break;
		n++;
	}
	if (n < ur->ur_n)
		msg->msg_flags |= MSG_CTRUNC;
	if (n > 0)
		socontrol_put(msg, room, used, SOL_SOCKET, SCM_RIGHTS, fds,
		    n * sizeof(fds[0]));
}

void
unp_externalize(bool passcred, struct msghdr *msg, size_t room,
    struct unp_control *uc, int flags)
{
	size_t used = 0;

	if (msg->msg_control == NULL)
		room = 0;
	if (passcred)
		socontrol_put(msg, room, &used, SOL_SOCKET, SCM_CREDENTIALS,
		    &uc->uc_cred, sizeof(uc->uc_cred));
	if (uc->uc_rights != NULL) {
		rights_put(msg, room, &used, uc->uc_rights,
		    (flags & MSG_CMSG_CLOEXEC) != 0);
		unp_rights_discard(uc->uc_rights);
	}
	msg->msg_controllen = used;
}

/* Whether it has a reference other than messages and its own listener. */
static bool
gc_isroot(struct unpcb *unp) REQUIRES(unp_rights_lock)
{
	if (unp->unp_head != NULL)
		return (false);
	return (unp->unp_inflight == 0 ||
	    fileops->fo_refs(unp->unp_file) > unp->unp_inflight);
}

/* One round: marks newly reachable sockets; false if there was none. */
static bool
gc_spread(void) REQUIRES(unp_rights_lock)
{
	struct unpcb *unp, *other;
	struct unp_rights *ur;
	bool found = false;

	LIST_FOREACH(unp, &unp_list, unp_all) {
		if (!unp->unp_reached && unp->unp_head != NULL &&
		    unp->unp_head->unp_reached)
			found = unp->unp_reached = true;
		if (!unp->unp_reached)
			continue;
		TAILQ_FOREACH(ur, &unp->unp_passed, ur_link)
			for (unsigned i = 0; i < ur->ur_n; i++) {
				other = file_unpcb(ur->ur_files[i]);
				if (other != NULL && !other->unp_reached)
					found = other->unp_reached = true;
			}
	}
	return (found);
}

/* Removes the descriptors of all messages that cannot be received. */
static struct unp_rights *
gc_steal(void) REQUIRES(unp_rights_lock)
{
	struct unp_rights *ur, *stolen = NULL, *copy;
	struct unpcb *unp;

	LIST_FOREACH(unp, &unp_list, unp_all) {
		if (unp->unp_reached)
			continue;
		TAILQ_FOREACH(ur, &unp->unp_passed, ur_link) {
			rights_count(ur, -1);
			copy = kmalloc(sizeof(*copy));
			copy->ur_n = ur->ur_n;
			memcpy(copy->ur_files, ur->ur_files,
			    sizeof(ur->ur_files));
			copy->ur_link.tqe_next = stolen;
			stolen = copy;
			atomic_count_u64(&gc_closed, ur->ur_n);
			ur->ur_n = 0;
		}
	}
	return (stolen);
}

void
unp_gc(void)
{
	struct unp_rights *stolen, *next;
	struct unpcb *unp;

	mtx_lock(&unp_rights_lock);
	if (atomic_load_u32(&unp_inflight) == 0) {
		mtx_unlock(&unp_rights_lock);
		return;
	}
	atomic_count_u64(&gc_runs, 1);
	LIST_FOREACH(unp, &unp_list, unp_all)
		unp->unp_reached = gc_isroot(unp);
	if (PLANTED(GC_UNLOCKED)) {
		mtx_unlock(&unp_rights_lock);
		mtx_lock(&unp_rights_lock);
	}
	while (gc_spread())
		;
	stolen = gc_steal();
	mtx_unlock(&unp_rights_lock);
	for (; stolen != NULL; stolen = next) {
		mtx_private(&unp_rights_lock);	/* for the copies alone */
		next = stolen->ur_link.tqe_next;
		unp_rights_discard(stolen);
	}
}
