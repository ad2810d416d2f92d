/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target is one function that accepts any bytes; libFuzzer or replay.c
 * has main().
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int	 LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* TESTS_FUZZ_H */
