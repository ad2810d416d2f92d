# SPDX-License-Identifier: BSD-2-Clause
"""Warnings and errors of a kernel's build, with lines as make, gcc, ld and objtool print them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.counted import diagnostics

ERROR = """\
In file included from ../include/net/tcp.h:20,
                 from ../net/ipv4/tcp_ipv4.c:53:
../net/ipv4/tcp_ipv4.c: In function 'tcp_v4_rcv':
../net/ipv4/tcp_ipv4.c:1990:9: error: 'undeclared' undeclared (first use in this function)
 1990 |         undeclared++;
      |         ^~~~~~~~~~
../net/ipv4/tcp_ipv4.c:1990:9: note: each undeclared identifier is reported only once for each function it appears in
make[4]: *** [../scripts/Makefile.build:250: net/ipv4/tcp_ipv4.o] Error 1
make[3]: *** [../scripts/Makefile.build:500: net/ipv4] Error 2
make[2]: *** [../scripts/Makefile.build:500: net] Error 2
make: *** [Makefile:219: __sub-make] Error 2
"""
WARNING = """\
/x/var/counted/trees/ab/source/net/ipv4/tcp.c: In function 'tcp_push':
/x/var/counted/trees/ab/source/net/ipv4/tcp.c:700:13: warning: unused variable 'z' [-Wunused-variable]
  700 |         int z;
      |             ^
net/ipv4/tcp_input.o: warning: objtool: tcp_ack()+0x123: unreachable instruction
"""
UNDEFINED = """\
ld: net/ipv4/tcp_ipv4.o: in function `tcp_v4_rcv':
tcp_ipv4.c:(.text+0x1f3): undefined reference to `no_such_function'
make[1]: *** [../scripts/Makefile.vmlinux:35: vmlinux] Error 1
make: *** [Makefile:219: __sub-make] Error 2
"""
FATAL = "../net/ipv4/x.c:1:10: fatal error: net/no.h: No such file or directory\n    1 | #include <net/no.h>\n"
NO_RULE = "make[4]: *** No rule to make target 'net/ipv4/new.o', needed by 'net/ipv4/built-in.a'.  Stop.\n"


def test_the_reason_is_the_compilers_error_with_its_source_line() -> None:
    assert diagnostics.reason(WARNING + ERROR) == (
        "net/ipv4/tcp_ipv4.c:1990: error: 'undeclared' undeclared (first use in this function)\n"
        " 1990 |         undeclared++;\n"
        "      |         ^~~~~~~~~~"
    )


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (UNDEFINED, "tcp_ipv4.c:(.text+0x1f3): undefined reference to `no_such_function'"),
        (FATAL, "net/ipv4/x.c:1: fatal error: net/no.h: No such file or directory"),
        (NO_RULE, "make[4]: *** No rule to make target 'net/ipv4/new.o'"),
        ("ERROR: modpost: \"f\" [net/x.ko] undefined!\n", "ERROR: modpost: "),
        ("scripts/kconfig/conf: not found\n", "scripts/kconfig/conf: not found"),
        ("", ""),
    ],
)  # fmt: skip
def test_other_reasons(text: str, start: str) -> None:
    assert diagnostics.reason(text).startswith(start)


def test_warnings_name_the_file_of_the_tree() -> None:
    found = diagnostics.warnings(WARNING + WARNING)
    assert [one.identity for one in found] == [
        "net/ipv4/tcp.c: unused variable 'z' [-Wunused-variable]",
        "net/ipv4/tcp_input.o: objtool: tcp_ack()+0x123: unreachable instruction",
    ]
    assert str(found[0]).splitlines()[1:] == ["  700 |         int z;", "      |             ^"]


def test_a_warning_that_has_moved_is_not_new() -> None:
    known = [one.identity for one in diagnostics.warnings(WARNING)]
    assert diagnostics.new_warnings(known, WARNING.replace(":700:", ":712:")) == []
    new = diagnostics.new_warnings(known, WARNING.replace("'z'", "'y'"))
    assert [one.text for one in new] == ["unused variable 'y' [-Wunused-variable]"]


@given(st.text(alphabet=st.sampled_from("ab/.:0123456789 \nerowning|^")))
def test_any_text_is_read(text: str) -> None:
    assert diagnostics.new_warnings([one.identity for one in diagnostics.warnings(text)], text) == []
    diagnostics.reason(text)
