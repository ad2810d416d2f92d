/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of the control socket. */
#include "tests/check.h"

#include "kern/ctl.h"

static const char *
parse(const char *text, struct ctl_request *cr)
{
	static char line[CTL_LINEMAX];

	strcpy(line, text);
	return (ctl_parse(line, cr));
}

TEST(requests_are_split)
{
	struct ctl_request cr;

	CHECK(parse("sysctl -a\n", &cr) == NULL);
	CHECK_EQ(cr.cr_verb, CTL_ALL);
	CHECK(parse("sysctl -t", &cr) == NULL);
	CHECK_EQ(cr.cr_verb, CTL_TYPES);
	CHECK(parse("sysctl net.isr.dispatch", &cr) == NULL);
	CHECK_EQ(cr.cr_verb, CTL_GET);
	CHECK_STREQ(cr.cr_name, "net.isr.dispatch");
	CHECK(parse("  sysctl a.b = 1 2 \r\n", &cr) == NULL);
	CHECK_EQ(cr.cr_verb, CTL_SET);
	CHECK_STREQ(cr.cr_name, "a.b");
	CHECK_STREQ(cr.cr_value, "1 2");
	CHECK(parse("netstat -r", &cr) == NULL);
	CHECK_EQ(cr.cr_verb, CTL_COMMAND);
	CHECK_STREQ(cr.cr_name, "netstat -r");
}

TEST(what_is_no_request_is_refused)
{
	struct ctl_request cr;

	CHECK(parse("", &cr) != NULL);
	CHECK(parse(" \n", &cr) != NULL);
	CHECK(parse("sysctl", &cr) != NULL);
	CHECK(parse("sysctl a b", &cr) != NULL);
	CHECK(parse("sysctl =1", &cr) != NULL);
	CHECK(parse("netstat \033[2J", &cr) != NULL);
}

int
main(int argc, char **argv)
{
	return (check_main(argc, argv));
}
