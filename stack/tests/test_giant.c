/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Giant over a whole stack, or over what needs it.  $GIANT_NEEDS names
 * components that say so while the stack boots.
 */
#include "boot/boot.h"
#include "tests/console.h"

#include <errno.h>

#include "kern/kern_private.h"
#include "kern/sysctl.h"
#include "tests/net.h"

/* address of this stack, on a driver that needs Giant */
#define	WIRE		"10.9.0.1"
/* another address of this stack, beyond the wire */
#define	MIRROR		"10.9.0.7"

static const char *needs;		/* [I] components, or NULL */

/* Sends count datagrams through the wire to this stack, and receives them. */
static void
exchange(uint16_t port, unsigned count)
{
	struct sockaddr_in here = t_addr(WIRE, port), there = t_addr(MIRROR,
	    port);
	struct socket *so = t_socket(SOCK_DGRAM);
	char buf[8];

	CHECK_EQ(sobind(so, (struct sockaddr *)&here, sizeof(here)), 0);
	CHECK_EQ(soconnect(so, (struct sockaddr *)&there, sizeof(there), 0), 0);
	for (unsigned i = 0; i < count; i++) {
		t_send(so, &i, sizeof(i));
		t_recv(so, buf, sizeof(i));
		CHECK_EQ(memcmp(buf, &i, sizeof(i)), 0);
	}
	soclose(so);
}

TEST(a_component_that_needs_giant_brings_it_back)
{
	char value[64];

	CHECK_EQ(t_sysctl("debug.mpsafenet"), needs == NULL);
	CHECK_EQ(sysctl_get("debug.mpsafenet_forced_by", value, sizeof(value)),
	    0);
	CHECK_STREQ(value, needs != NULL ? needs : "");
}

TEST(a_driver_that_needs_giant_gets_its_frames_from_who_has_it)
{
	uint64_t before = t_sysctl("if.mem0.stats.ogiant");

	exchange(7000, 20);
	/* Giant is held already: the driver is called at once. */
	if (needs != NULL)
		CHECK_EQ(t_sysctl("if.mem0.stats.ogiant"), before);
	else
		CHECK(t_sysctl("if.mem0.stats.ogiant") >= before + 20);
	CHECK_EQ(t_sysctl("if.mem0.stats.odrops"), 0);
}

static void
report_late(void)
{
	t_sysctl_set("debug.needsgiant", "raw");
	t_sysctl_set("debug.needsgiant", "raw tunnel");
}

TEST(a_late_component_is_warned_of)
{
	bool before = mpsafenet;
	char *text = console_of(report_late);
	char *first;

	CHECK_EQ(mpsafenet, before);
	if (needs != NULL) {
		CHECK_STREQ(text, "");
		CHECK_EQ(t_sysctl("debug.mpsafenet_warnings"), 0);
		return;
	}
	CHECK(strstr(text, "tunnel needs Giant") != NULL);
	CHECK_EQ(t_sysctl("debug.mpsafenet_warnings"), 3);
	/* the hint is given once */
	first = strstr(text, "it cannot change after the boot");
	CHECK(first != NULL);
	CHECK(strstr(first + 1, "it cannot change after the boot") == NULL);
}

TEST(an_unknown_component_is_refused)
{
	char why[256] = "";

	CHECK_EQ(sysctl_set("debug.needsgiant", "raw ipx", why, sizeof(why)),
	    EINVAL);
	CHECK(strstr(why, "is not a list of arp bridge") != NULL);
}

static int
configure(const char *components)
{
	char text[256];

	snprintf(text, sizeof(text), "boot_mute=\"1\"\n"
	    "debug.needsgiant=\"%s\"\ndebug.mpsafenet=\"1\"\n"
	    "if.mem0.wire=\"mirror\"\nif.mem0.inet=\"" WIRE "/24\"\n"
	    "if.mem0.needsgiant=\"1\"\n", components);
	return (loader_parse("test", text));
}

static void
boot(void)
{
	CHECK_EQ(stack_boot_config(configure, needs != NULL ? needs : ""), 0);
}

int
main(int argc, char **argv)
{
	const char *text;
	int status;

	needs = getenv("GIANT_NEEDS");
	text = console_of(boot);
	if (needs != NULL)
		CHECK(strstr(text, "debug.mpsafenet is 0, not 1: bridge needs "
		    "Giant") != NULL);
	else
		CHECK_STREQ(text, "");
	status = check_main(argc, argv);
	stack_shutdown();
	return (status);
}
