/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A minimal test harness.  A test is a function; a check that fails prints its
 * place and values and ends the process.
 *
 *	TEST(mbuf_shares_storage) { CHECK(m != NULL); CHECK_EQ(m->m_len, 5); }
 *	int main(int argc, char **argv) { return (check_main(argc, argv)); }
 *
 * Arguments select tests by name; without arguments all run.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check_test {
	const char	*name;
	void		(*fn)(void);
	struct check_test *next;
};
static struct check_test *check_tests;
static void (*check_after)(void);	/* runs after each test, to clean up */

#define	TEST(tname)							\
static void test_##tname(void);						\
__attribute__((constructor)) static void				\
register_##tname(void)							\
{									\
	static struct check_test t = { #tname, test_##tname, NULL };	\
	struct check_test **p = &check_tests;				\
									\
	while (*p != NULL)						\
		p = &(*p)->next;					\
	*p = &t;							\
}									\
static void								\
test_##tname(void)

#define	CHECK(cond) do {						\
	if (!(cond)) {							\
		fprintf(stderr, "%s:%d: %s: failed: %s\n", __FILE__,	\
		    __LINE__, __func__, #cond);				\
		abort();						\
	}								\
} while (0)

#define	CHECK_EQ(a, b) do {						\
	long long check_a = (long long)(a), check_b = (long long)(b);	\
									\
	if (check_a != check_b) {					\
		fprintf(stderr, "%s:%d: %s: %s is %lld, not %lld\n",	\
		    __FILE__, __LINE__, __func__, #a, check_a, check_b); \
		abort();						\
	}								\
} while (0)

#define	CHECK_STREQ(a, b) do {						\
	const char *check_a = (a), *check_b = (b);			\
									\
	if (strcmp(check_a, check_b) != 0) {				\
		fprintf(stderr, "%s:%d: %s: %s is \"%s\", not \"%s\"\n", \
		    __FILE__, __LINE__, __func__, #a, check_a, check_b); \
		abort();						\
	}								\
} while (0)

static inline int
check_main(int argc, char **argv)
{
	struct check_test *t;
	int run = 0;

	for (t = check_tests; t != NULL; t = t->next) {
		int wanted = argc < 2;

		for (int i = 1; i < argc; i++)
			wanted |= strcmp(argv[i], t->name) == 0;
		if (!wanted)
			continue;
		printf("%s\n", t->name);
		fflush(stdout);
		t->fn();
		if (check_after != NULL)
			check_after();
		run++;
	}
	printf("%d tests\n", run);
	return (run > 0 ? 0 : 2);
}

#endif /* TESTS_CHECK_H */
