#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# compare.sh PRIVATE PROGRAM CONF UNLIKE: runs a program on the kernel, in a
# network of its own, and on the stack.  The lines that differ, "<" the kernel's
# and ">" the stack's, must be those of the file UNLIKE, in any order and with
# comments ("#"); prints which are not.
set -eu
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
env -u STACK_CONF "$1" "$2" >"$out/kernel"
STACK_CONF=$3 "$2" >"$out/stack"
diff "$out/kernel" "$out/stack" | grep '^[<>]' | sort >"$out/unlike" || true
grep '^[<>]' "$4" | sort >"$out/known" || true
diff -U0 "$out/known" "$out/unlike"
