# SPDX-License-Identifier: BSD-2-Clause
"""Lock annotations: every field with a lock's letter has one, and clang-tidy rejects code that breaks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stack import locking
from tests.stack.locking import STACK

OWN = """
#include "kern/lock.h"

struct thing {
	struct mtx	 lock;
	int		 number GUARDED_BY(lock);	/* [l] */
};
int	 use(struct thing *t);
"""
SOCKET = """
#include "kern/socketvar.h"

int	 use(struct socket *so);
"""


def reported(tmp_path: Path, source: str) -> str:
    """The output of the linter for a source."""
    path = tmp_path / "planted.c"
    path.write_text(source, encoding="ascii")
    return locking.tidy(path, tmp_path, ("-std=c17", "-D_GNU_SOURCE", f"-I{STACK}"))


def test_a_prototype_has_the_lock_attributes_of_its_definition() -> None:
    assert [*locking.differing()] == []


@pytest.mark.parametrize(
    ("prototype", "missing"),
    [
        ("int\t f(struct a *y, int) REQUIRES(y->lock);", []),
        ("int\t f(struct a *x, int);", ["kern/f.c: f: REQUIRES($0->lock)"]),
        ("int\t f(struct a *x, int) ACQUIRES(x->lock);", ["kern/f.c: f: REQUIRES($0->lock)"]),
    ],
)
def test_a_prototype_without_an_attribute_is_found(tmp_path: Path, prototype: str, missing: list[str]) -> None:
    (tmp_path / "kern").mkdir()
    (tmp_path / "kern" / "f.h").write_text(f"{prototype}\n")
    (tmp_path / "kern" / "f.c").write_text(
        "int\nf(struct a *x, int n) REQUIRES(x->lock)\n{\n}\n\nstatic void\ng(void) REQUIRES(lock)\n{\n}\n"
    )
    assert [*locking.differing(tmp_path)] == missing


def test_statements_that_nothing_verifies_are_counted(tmp_path: Path) -> None:
    (tmp_path / "kern").mkdir()
    (tmp_path / "kern" / "f.h").write_text("void\t mtx_private(struct mtx *m);\n#define\trole_take(r)\t((void)0)\n")
    (tmp_path / "kern" / "f.c").write_text("\tmtx_private(&f->lock);\n\trole_assert(&role);\n\trole_assert(&other);\n")
    assert locking.unverified(tmp_path) == {"mtx_private": 1, "role_assert": 2}


def test_every_field_with_the_letter_of_a_lock_has_the_attribute(capsys: pytest.CaptureFixture[str]) -> None:
    missing = locking.unguarded()
    assert len(missing) <= locking.UNGUARDED_MAX, missing
    assert locking.guarded() >= locking.GUARDED_MIN
    assert len([*locking.exceptions()]) <= locking.EXCEPTIONS_MAX
    assert locking.unverified().total() <= locking.UNVERIFIED_MAX
    locking.main(["count"])
    assert f"guarded fields and variables: {locking.guarded()} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("declaration", "letter", "guarded"),
    [
        ("\tint\t f_number;\t/* [l] of bytes */", "l", 0),
        ("\t/* [l] of bytes */\n\tint\t f_number;", "l", 0),
        ("\t/*\n\t * [l] of bytes, which are counted when they\n\t * are sent\n\t */\n\tint\t f_number;", "", 0),
        ("\t/* [l] of bytes, which are counted when\n\t   they are sent */\n\tint\t f_number;", "l", 0),
        ("\tint\t a GUARDED_BY(l), b GUARDED_BY(l);\t/* [l] */", "l", 2),
        ("\tint\t a_very_long_name_of_a_field\n\t    GUARDED_BY(l);\t/* [l] */", "l", 1),
        ("/* [l] lock */\nstruct f {", "", 0),
        ("\tnumber = table[i];\t/* the last one */", "", 0),
    ],
)
def test_a_letter_belongs_to_the_declaration_beside_or_below(declaration: str, letter: str, guarded: int) -> None:
    found = [*locking.fields_of("kern/f.h", declaration + "\n")]
    assert [(field.letter, field.guarded) for field in found] == ([(letter, guarded)] if letter else [])


def test_letters_of_no_lock_need_no_attribute(tmp_path: Path) -> None:
    (tmp_path / "kern").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "kern" / "worker.h").write_text("\tint a; /* [I] */\n\tint b; /* [s] */\n\tint c; /* [w] */\n")
    (tmp_path / "tests" / "test_worker.c").write_text("\tint d; /* [w] */\n")
    assert [field.place for field in locking.unguarded(tmp_path)] == ["kern/worker.h:3"]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("mtx_lock(&t->lock); t->number = 1; mtx_unlock(&t->lock); return (0);", ""),
        ("t->number = 1; return (0);", "writing variable 'number' requires holding mutex 't->lock'"),
        ("return (t->number);", "reading variable 'number' requires holding mutex 't->lock'"),
        (
            "mtx_lock(&t->lock); if (t->number == 0) return (1); mtx_unlock(&t->lock); return (0);",
            "mutex 't->lock' is not held on every path",
        ),
        ("mtx_lock(&t->lock); return (t->number);", "mutex 't->lock' is still held at the end of function"),
        ("mtx_lock(&t->lock); mtx_lock(&t->lock); return (0);", "acquiring mutex 't->lock' that is already held"),
        ("mtx_unlock(&t->lock); return (0);", "releasing mutex 't->lock' that was not held"),
    ],
)
def test_a_planted_mistake_is_reported(tmp_path: Path, body: str, complaint: str) -> None:
    report = reported(tmp_path, f"{OWN}\nint\nuse(struct thing *t)\n{{\n\t{body}\n}}\n")
    assert complaint in report
    assert bool(report) == bool(complaint), report


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("solock(so); so->so_error = 0; sounlock(so); return (0);", ""),
        ("so->so_error = 0; return (0);", "writing variable 'so_error' requires holding mutex 'so->so_lock'"),
        ("return (soready(so));", "calling function 'soready' requires holding mutex 'so->so_lock'"),
        ("return (so->so_proto->pr_listen(so));", "calling function 'pr_listen' requires holding mutex 'so->so_lock'"),
        ("sbflush(so, &so->so_rcv); return (0);", "passing pointer to variable 'so_rcv' requires holding mutex"),
        ("so_enter(so); if (so->so_error != 0) return (1); so_leave(so); return (0);", "is not held on every path"),
    ],
)
def test_a_socket_is_locked_whatever_the_strategy(tmp_path: Path, body: str, complaint: str) -> None:
    report = reported(tmp_path, f"{SOCKET}\nint\nuse(struct socket *so)\n{{\n\t{body}\n}}\n")
    assert complaint in report
    assert bool(report) == bool(complaint), report
