/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of UNIX-domain sockets (unix(7), "Address format").
 *
 * An abstract name is compared byte by byte.  A path name is a file of the
 * host, created by bind().  It obeys the host's permissions, umask and
 * unlink(), and two paths to one file are one name.  A removed file's inode
 * number may be reused, so its birth time is part of the identity.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kern/siphash.h"
#include "kern/unpcb.h"

#define	NAME_BUCKETS	256
#define	PATH_AT		offsetof(struct sockaddr_un, sun_path)
#define	AUTO_LAST	0xfffff		/* max of names chosen by the stack */

struct mtx unp_name_lock;
static LIST_HEAD(, unpcb) name_table[NAME_BUCKETS];
static struct siphash_key name_key;	/* [I] after boot */
static uint32_t name_auto GUARDED_BY(unp_name_lock);

void
unp_name_init(void)
{
	mtx_init(&unp_name_lock, LC_UNPNAME);
	mach_random(&name_key, sizeof(name_key));
}

/* The comparison key of a name: abstract by its bytes, path by its file. */
struct name {
	struct sockname	 text;
	struct mach_node node;
	bool		 path;
};

/* Parses a program's name; EAFNOSUPPORT, EINVAL. */
static int
name_parse(const struct sockname *from, struct name *name)
{
	const size_t len = from->sn_len;

	if (from->sn_sa.sa_family != AF_UNIX)
		return (EINVAL);
	if (len <= PATH_AT || len > sizeof(struct sockaddr_un))
		return (EINVAL);
	memset(name, 0, sizeof(*name));
	memcpy(&name->text.sn_sa, &from->sn_sa, len);
	name->text.sn_len = from->sn_len;
	name->path = from->sn_un.sun_path[0] != '\0';
	if (name->path)		/* the terminating NUL is optional */
		name->text.sn_len = (socklen_t)(PATH_AT +
		    strnlen(name->text.sn_un.sun_path, len - PATH_AT) + 1);
	return (0);
}

static const char *
name_path(const struct name *name, char path[sizeof(struct sockaddr_un)])
{
	const size_t len = name->text.sn_len - PATH_AT - 1;

	memcpy(path, name->text.sn_un.sun_path, len);
	path[len] = '\0';
	return (path);
}

static uint64_t
name_hash(const struct name *name)
{
	uint64_t words[(sizeof(struct sockaddr_un) + 7) / 8 + 1] = { 0 };

	if (name->path)
		return (siphash_words(&name_key,
		    (const uint64_t *)&name->node, 3));
	memcpy(words, &name->text.sn_un, name->text.sn_len);
	return (siphash_words(&name_key, words, nitems(words)));
}

static bool
name_equal(const struct unpcb *unp, const struct name *name)
    REQUIRES(unp_name_lock)
{
	if (name->path)
		return (memcmp(&unp->unp_node, &name->node,
		    sizeof(name->node)) == 0);
	return (unp->unp_name.sn_len == name->text.sn_len &&
	    memcmp(&unp->unp_name.sn_un, &name->text.sn_un,
	    name->text.sn_len) == 0);
}

static struct unpcb *
name_find(const struct name *name) REQUIRES(unp_name_lock)
{
	struct unpcb *unp;

	LIST_FOREACH(unp, &name_table[name_hash(name) % NAME_BUCKETS],
	    unp_hash)
		if (name_equal(unp, name))
			return (unp);
	return (NULL);
}

static void
name_insert(struct unpcb *unp, const struct name *name) REQUIRES(unp_name_lock)
{
	unp->unp_name = name->text;
	unp->unp_node = name->node;
	LIST_INSERT_HEAD(&name_table[name_hash(name) % NAME_BUCKETS], unp,
	    unp_hash);
}

/* Chooses a free abstract name of five digits, unix(7) "Autobind". */
static int
name_choose(struct unpcb *unp)
{
	struct name name = { .text.sn_len = (socklen_t)PATH_AT + 6 };
	int error = EADDRINUSE;
	char digits[6];

	name.text.sn_un.sun_family = AF_UNIX;
	mtx_lock(&unp_name_lock);
	for (uint32_t n = 0; n <= AUTO_LAST && error != 0; n++) {
		snprintf(digits, sizeof(digits), "%05x",
		    name_auto++ & AUTO_LAST);
		memcpy(name.text.sn_un.sun_path + 1, digits, 5);
		if (name_find(&name) == NULL) {
			name_insert(unp, &name);
			error = 0;
		}
	}
	mtx_unlock(&unp_name_lock);
	return (error);
}

int
unp_bind(struct unpcb *unp, const struct sockname *from)
{
	char path[sizeof(struct sockaddr_un)];
	struct name name;
	bool named;
	int error;

	mtx_lock(&unp_name_lock);
	named = unp->unp_name.sn_len != 0;
	mtx_unlock(&unp_name_lock);
	if (from->sn_len == PATH_AT && from->sn_sa.sa_family == AF_UNIX)
		return (named ? 0 : name_choose(unp));
	if (named)
		return (EINVAL);
	error = name_parse(from, &name);
	if (error == 0 && name.path)
		error = mach_node_make(name_path(&name, path), &name.node);
	if (error != 0)
		return (error == EEXIST ? EADDRINUSE : error);
	mtx_lock(&unp_name_lock);
	if (name_find(&name) != NULL)
		error = EADDRINUSE;
	else
		name_insert(unp, &name);
	mtx_unlock(&unp_name_lock);
	return (error);
}

/* The file of a path name remains, as in Linux and BSD. */
void
unp_unbind(struct unpcb *unp)
{
	mtx_lock(&unp_name_lock);
	/* An accepted socket has its listener's name, but not in the table. */
	if (unp->unp_hash.le_prev != NULL) {
		LIST_REMOVE(unp, unp_hash);
		unp->unp_hash.le_prev = NULL;
	}
	mtx_unlock(&unp_name_lock);
}

int
unp_lookup(const struct sockname *to, struct socket **sop)
{
	char path[sizeof(struct sockaddr_un)];
	struct unpcb *unp;
	struct name name;
	int error;

	error = name_parse(to, &name);
	if (error == 0 && name.path)
		error = mach_node_find(name_path(&name, path), &name.node);
	if (error != 0)
		return (error);
	mtx_lock(&unp_name_lock);
	unp = name_find(&name);
	if (unp != NULL) {
		/* valid, because its reference is dropped after unp_unbind() */
		*sop = unp->unp_socket;
		soref(*sop);
	}
	mtx_unlock(&unp_name_lock);
	return (unp != NULL ? 0 : ECONNREFUSED);
}

void
unp_getname(struct unpcb *unp, struct sockname *name)
{
	mtx_lock(&unp_name_lock);
	if (unp->unp_name.sn_len != 0)
		*name = unp->unp_name;
	mtx_unlock(&unp_name_lock);
}
