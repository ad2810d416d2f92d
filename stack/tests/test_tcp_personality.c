/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.inet.tcp.personality and the tunables that it sets, each against single
 * segments and in virtual time.
 */
#include "tests/check.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "kern/kern_private.h"
#include "kern/sysctl.h"
#include "netinet/tcp_var.h"
#include "tests/peer.h"

#define	TCP	"net.inet.tcp."
#define	MSS	1000

static uint8_t bytes[16 * MSS];

static void
be(const char *system)
{
	t_sysctl_set(TCP "personality", system);
}

TEST(a_system_sets_its_tunables)
{
	char value[16];

	be("linux");
	CHECK_EQ(t_sysctl(TCP "tlp_ackdelay"), 200);
	CHECK_EQ(t_sysctl(TCP "answer_unsent"), 0);
	be("openbsd");
	CHECK_EQ(t_sysctl(TCP "delacktime"), 200);
	CHECK_EQ(t_sysctl(TCP "ecn.enable"), 0);
	CHECK_EQ(sysctl_get(TCP "cc.algorithm", value, sizeof(value)), 0);
	CHECK_STREQ(value, "newreno");
	CHECK_EQ(t_sysctl(TCP "tlp_ackdelay"), 40);
	be("freebsd");
	CHECK_EQ(t_sysctl(TCP "recvspace"), 65536);
	be("default");
	CHECK_EQ(t_sysctl(TCP "recvspace"), 1048576);
	CHECK_EQ(t_sysctl(TCP "answer_unsent"), 1);
}

TEST(a_tunable_overrides_the_system)
{
	char value[16];

	be("linux");
	t_sysctl_set(TCP "quickacks", "3");
	CHECK_EQ(t_sysctl(TCP "quickacks"), 3);
	CHECK_EQ(sysctl_get(TCP "personality", value, sizeof(value)), 0);
	CHECK_STREQ(value, "linux");
	be("default");
	CHECK_EQ(t_sysctl(TCP "quickacks"), 0);
}

TEST(keys_of_cookies_are_read_back_if_they_were_set)
{
	char text[128], why[128];

	CHECK_EQ(sysctl_get(TCP "fastopen_key", text, sizeof(text)), 0);
	CHECK_STREQ(text, "random");
	t_sysctl_set(TCP "fastopen_key", "1-2-3-4,a-b-c-ffffffff");
	CHECK_EQ(sysctl_get(TCP "fastopen_key", text, sizeof(text)), 0);
	CHECK_STREQ(text, "00000001-00000002-00000003-00000004,"
	    "0000000a-0000000b-0000000c-ffffffff");
	CHECK_EQ(sysctl_set(TCP "fastopen_key", "1-2-3", why, sizeof(why)),
	    EINVAL);
	CHECK_EQ(sysctl_set(TCP "fastopen_key", "1-2-3-4,", why, sizeof(why)),
	    EINVAL);
	CHECK_EQ(sysctl_set(TCP "fastopen_key", "1-2-3-4,1-2-3-4,1-2-3-4", why,
	    sizeof(why)), EINVAL);
	t_sysctl_set(TCP "fastopen_key", "random");
	CHECK_EQ(sysctl_get(TCP "fastopen_key", text, sizeof(text)), 0);
	CHECK_STREQ(text, "random");
}

TEST(an_unknown_system_changes_nothing)
{
	char why[128] = "";

	be("linux");
	CHECK_EQ(sysctl_set(TCP "personality", "plan9", why, sizeof(why)),
	    EINVAL);
	CHECK_STREQ(why, TCP "personality: 'plan9' is none of default linux "
	    "freebsd openbsd");
	CHECK_EQ(t_sysctl(TCP "tlp_ackdelay"), 200);
	CHECK_EQ(sysctl_get(TCP "personality", why, sizeof(why)), 0);
	CHECK_STREQ(why, "linux");
	be("default");
}

/* The order of the lines is not meant: it may be that of the names. */
TEST(lines_before_the_system_override_it)
{
	char text[] = TCP "delacktime=\"77\"\n"
	    TCP "personality=\"openbsd\"\n"
	    TCP "rexmit_min=\"300\"\n";

	CHECK_EQ(loader_parse("test", text), 0);
	CHECK_EQ(t_sysctl(TCP "delacktime"), 77);
	CHECK_EQ(t_sysctl(TCP "rexmit_min"), 300);
	CHECK_EQ(t_sysctl(TCP "syncache.bucketlimit"), 105);
	be("default");
}

static void
alternate(void *arg)
{
	for (int i = 0; i < 50; i++) {
		be(arg);
		t_sleep(1);
	}
}

TEST(two_changes_at_once_leave_one_system)
{
	struct thread *other = t_thread(alternate, "freebsd");
	char value[16];

	alternate("openbsd");
	t_join(other);
	CHECK_EQ(sysctl_get(TCP "personality", value, sizeof(value)), 0);
	CHECK_EQ(t_sysctl(TCP "rexmit_min"),
	    strcmp(value, "freebsd") == 0 ? 230 : 1000);
	be("default");
}

TEST(an_ack_of_unsent_data)
{
	struct peer_conn c;
	struct peer_seg s;

	peer_conn_open(&c);
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt + 99, NULL, 0);
	CHECK(peer_next(&s));
	be("linux");
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt + 99, NULL, 0);
	CHECK(!peer_next(&s));
	be("default");
	peer_conn_close(&c);
}

TEST(data_after_shutdown_for_reading)
{
	struct peer_conn c;
	size_t done;

	peer_conn_open(&c);
	CHECK_EQ(soshutdown(c.so, SHUT_RD), 0);
	peer_text(&c.p, "discarded");
	CHECK_EQ(t_tryrecv(c.so, bytes, sizeof(bytes), 0, &done), 0);
	CHECK_EQ(done, 0);
	be("linux");
	peer_text(&c.p, "kept");
	CHECK_EQ(t_tryrecv(c.so, bytes, sizeof(bytes), 0, &done), 0);
	CHECK_EQ(done, 4);
	CHECK_EQ(t_tryrecv(c.so, bytes, sizeof(bytes), 0, &done), 0);
	CHECK_EQ(done, 0);
	be("default");
	peer_conn_close(&c);
}

/* Returns the segments in which the first len bytes leave. */
static unsigned
bursts(struct peer_conn *c, uint32_t len)
{
	struct peer_seg s;
	unsigned n = 0;

	peer_forget();
	t_send(c->so, bytes, len);
	for (; peer_next(&s); n++)
		CHECK(s.flags & TH_PUSH || s.len <= s.segsz);
	return (n);
}

TEST(a_burst_is_half_the_window_at_most)
{
	struct peer_conn c;

	be("linux");
	t_sysctl_set(TCP "min_tso_segs", "64");
	peer_conn_open(&c);
	/* 10 segments of 536 bytes: two bursts */
	CHECK_EQ(bursts(&c, 5360), 2);
	peer_conn_close(&c);
	be("default");
	peer_conn_open(&c);
	CHECK_EQ(bursts(&c, 5360), 1);
	peer_conn_close(&c);
}

TEST(what_more_follows_is_not_pushed)
{
	struct peer_conn c;
	struct peer_seg s;

	peer_conn_open(&c);
	t_setint(c.so, IPPROTO_TCP, TCP_CORK, 1);
	t_send(c.so, bytes, 10);
	t_setint(c.so, IPPROTO_TCP, TCP_CORK, 0);
	CHECK(peer_next(&s));
	CHECK(s.flags & TH_PUSH);
	peer_send(&c.p, TH_ACK, c.p.snd_nxt, c.p.rcv_nxt + 10, NULL, 0);
	CHECK_EQ(t_trysend(c.so, bytes, 10, MSG_MORE, &(size_t){ 0 }), 0);
	CHECK(!peer_next(&s));
	t_setint(c.so, IPPROTO_TCP, TCP_NODELAY, 1);
	CHECK(peer_next(&s));
	CHECK(!(s.flags & TH_PUSH));
	peer_conn_close(&c);
}

int
main(int argc, char **argv)
{
	peer_boot();
	return (check_main(argc, argv));
}
