# SPDX-License-Identifier: BSD-2-Clause
"""The stack's folders are layers: none includes or refers to one above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stack import layers
from tests.stack.layers import Reference
from tests.stack.topology import Installed


def references(tmp_path: Path, *pairs: str) -> list[Reference]:
    """The includes of files that each include one header: "net/a.c: kern/b.h"."""
    for pair in pairs:
        user, _, header = pair.partition(": ")
        path = tmp_path / user
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'# include "{header}"\n#include <net/if.h>\n#include "same.h"\n', encoding="ascii")
    return [*layers.includes(tmp_path)]


def test_no_folder_refers_to_one_above_it(installed: Installed, capsys: pytest.CaptureFixture[str]) -> None:
    assert layers.main([str(installed.build)]) == 0
    order, count = capsys.readouterr().out.splitlines()[-2:]
    above = [name.strip() for name in order.partition(":")[2].split(",")]
    assert sorted(above) == sorted(layers.FOLDERS)
    assert above[:4] == ["machine", "kern", "net", "netinet"], order
    assert above.index("netinet6") < above.index("boot") < above.index("api"), order
    found = int(count.split()[0])
    assert found > 1000, "the symbols of the build were read"
    assert count == f"{found} references to another folder, 0 of them upwards"


def test_every_object_of_the_build_is_checked(installed: Installed) -> None:
    tables = layers.symbol_tables(installed.build)
    sources = {str(path.relative_to(layers.STACK)).replace("/", "_") for path in layers.STACK.glob("*/*.c")}
    of_folders = {source.replace("/", "_") for source in tables}
    assert {"kern_lock.c", "net_if.c", "netinet_tcp_input.c", "netinet6_nd6.c", "boot_init.c"} <= of_folders & sources
    assert {layers.folder(source) for source in tables} == set(layers.FOLDERS)


def test_an_include_upwards_is_found_where_it_is(tmp_path: Path) -> None:
    found = references(tmp_path, "net/a.c: kern/a.h", "net/b.h: kern/a.h", "dev/c.c: net/b.h", "kern/d.h: net/b.h")
    assert len(found) == 4
    assert layers.upwards(found, layers.order(found)) == [Reference("kern/d.h", "net/b.h", "net/b.h")]


def test_a_call_upwards_is_found_where_it_is() -> None:
    tables = {
        "net/if.c": "0000 T if_input\n0010 t same\n     U lock\n     U arp_input\n     U malloc\n",
        "netinet/arp.c": "0000 T arp_input\n     U if_input\n     U lock\n0010 t same\n     U arp_count\n",
        "netinet/stat.c": "0000 B arp_count\n",
        "kern/lock.c": "0000 T lock\n     U pthread_create\n",
        "api/atfork.c": "0000 T pthread_create\n",
    }
    found = [*layers.calls(tables)]
    assert len(found) == 4, "neither the C library's, nor static functions, nor those of the same folder"
    assert layers.upwards(found, layers.order(found)) in (
        [Reference("net/if.c", "arp_input", "netinet/arp.c")],
        [Reference("netinet/arp.c", "if_input", "net/if.c")],
    )


def test_the_order_has_the_fewest_references_upwards(tmp_path: Path) -> None:
    down = ["netinet/a.c: net/a.h", "netinet/b.c: net/a.h", "net/c.c: kern/a.h", "kern/d.c: machine/a.h"]
    found = references(tmp_path, *down, "net/e.c: netinet/a.h")
    order = layers.order(found)
    assert [name for name in order if name in {"machine", "kern", "net", "netinet"}] == [
        "machine", "kern", "net", "netinet",
    ]  # fmt: skip
    assert [each.user for each in layers.upwards(found, order)] == ["net/e.c"]
