/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests of sockets share: short forms of the socket calls that check
 * their result, a reproducible stream of bytes, and a wire that leads back
 * to this very stack.
 */
#ifndef TESTS_NET_H
#define TESTS_NET_H

#include <arpa/inet.h>

#include "kern/socketvar.h"
#include "kern/thread.h"
#include "net/if_driver.h"

/*
 * Boots with the tunables in $STACK_TUNABLES, words like name=value, so that
 * one program tests several strategies; ends the test if it fails.
 */
void	 t_boot(void);

struct sockaddr_in t_addr(const char *ip, uint16_t port);

/* A failure of the call ends the test. */
struct socket *t_socket(int type);
struct socket *t_listen(const char *ip, uint16_t port, int backlog);
struct socket *t_connect(const char *ip, uint16_t port);
struct socket *t_accept(struct socket *head);
void	 t_send(struct socket *, const void *, size_t);
/* Exactly len bytes. */
void	 t_recv(struct socket *, void *, size_t len);
/* This text. */
void	 t_expect(struct socket *, const char *);
void	 t_expect_eof(struct socket *);
void	 t_setint(struct socket *, int level, int name, int value);
int	 t_getint(struct socket *, int level, int name);

/* These return the call's result. */
int	 t_trysend(struct socket *, const void *, size_t, int flags, size_t *);
int	 t_tryrecv(struct socket *, void *, size_t, int flags, size_t *);

/* Bytes [off, off + len) of the stream of a seed. */
void	 t_stream_fill(uint64_t seed, uint64_t off, uint8_t *, size_t len);

/* Sends a whole stream, or receives it until EOF and checks it. */
void	 t_stream_send(struct socket *, uint64_t seed, uint64_t len);
void	 t_stream_recv(struct socket *, uint64_t seed, uint64_t len);

/*
 * A wire with a mirror at its end (dev/mem.h): every address beyond
 * "10.9.N.1/24" is this stack again.
 */
void	 t_mirror_attach(const char *name, const char *prefix, unsigned caps,
	    const struct impair_config *);

/* A thread that runs fn(arg); t_join() waits for it. */
struct thread *t_thread(void (*fn)(void *), void *arg);
void	 t_join(struct thread *);
void	 t_sleep(unsigned ms);
/* Waits, at most ten seconds, until a condition holds. */
bool	 t_until(bool (*cond)(void *), void *arg);

uint64_t t_sysctl(const char *name);
void	 t_sysctl_set(const char *name, const char *value);

#endif /* TESTS_NET_H */
