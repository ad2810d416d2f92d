/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target on files instead of a fuzzer: the corpus, which holds
 * what once went wrong too, is a test in every build.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

#define	INPUT_MAX	(1 << 20)

static void
replay(const char *dir, const char *name)
{
	static uint8_t buf[INPUT_MAX];
	char path[4096];
	FILE *f;
	size_t n;
	uint8_t *copy;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if ((f = fopen(path, "rb")) == NULL) {
		perror(path);
		exit(1);
	}
	n = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	/* Exactly as long as the input, so that a sanitizer sees overruns. */
	copy = malloc(n > 0 ? n : 1);
	for (size_t i = 0; i < n; i++)
		copy[i] = buf[i];
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

int
main(int argc, char **argv)
{
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir;

	if (argc != 2 || (dir = opendir(argv[1])) == NULL) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return (64);
	}
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.') {
			replay(argv[1], entry->d_name);
			count++;
		}
	closedir(dir);
	printf("%u inputs\n", count);
	return (count > 0 ? 0 : 1);
}
