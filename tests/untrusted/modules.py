# SPDX-License-Identifier: BSD-2-Clause
"""The parsers of the guard and of the modules of the playbooks: calls, command lines, records of a host."""

from __future__ import annotations

import base64
import functools
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from playbooks import guard
from playbooks.module_utils import command_line, ethtool, remembered
from playbooks.module_utils.linux import SettingError
from tests.guarded import CALL
from tests.untrusted.hostile import Parser, repeated, within

_RUNS = "/var/tmp/perfweb/lab"  # noqa: S108  # a name only
_POLICY = guard.Policy(_RUNS, f"{_RUNS}/builds", ["data0"], [1879048192, 2147483647], "/opt/meson", "/run/machine")
_MODULES = ("linux_knobs", "daemon", "measure", "run_directory")


@functools.cache
def _installed() -> tuple[str, str]:
    """The path of a file with modules, and the same file as Ansible sends it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in _MODULES:
            archive.writestr(f"ansible/legacy/{name}.py", "")
    path = Path(tempfile.mkdtemp(prefix="perfweb-test-")) / "modules.zip"
    path.write_bytes(packed.getvalue())
    return str(path), base64.b64encode(packed.getvalue()).decode()


def _listen(program: str) -> guard.Call:
    stream = io.BytesIO(program.encode("utf-8", "surrogatepass"))
    return guard.judge(guard.listen(CALL, stream, _installed()[0]), _POLICY)


def _program(module: str, parameters: str) -> str:
    rows = {"module_fqn": f"ansible.legacy.{module}", "params": parameters, "zip_data": _installed()[1]}
    lines = "".join(f"{name}={value!r},\n" for name, value in rows.items())
    return f"{guard.PARAMETERS.decode()}{lines}"


def _parameters(text: str) -> list[object]:
    """The text as the parameters of a module, and as the value of each of its parameters."""
    found: list[object] = []
    for module in _MODULES:
        values: list[Any] = [text, *({name: text} for name in guard.MODULES[module])]
        for value in values:
            written = value if isinstance(value, str) else json.dumps({"ANSIBLE_MODULE_ARGS": value})
            try:
                found.append(_listen(_program(module, written)))
            except guard.Refused:
                continue
    return found


def _record(text: str) -> object:
    with tempfile.TemporaryDirectory(prefix="perfweb-test-") as folder:
        path = Path(folder) / "x.before"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        found = remembered.texts(path) or {}
    return [remembered.sysctl_of(name) for name in found]


PARSERS = [
    Parser("program that the guard gets", _listen, (guard.Refused,), within("\n    _ansiballz_main(\n", "", "run")),
    Parser(
        "parameters of a module",
        _parameters,
        (),
        {
            **within('{"ANSIBLE_MODULE_ARGS": ', "}", "nested", "lists"),
            **repeated('{"ANSIBLE_MODULE_ARGS": {"knobs": {', '"net.ipv4.a{0}": "1", ', '"a": "1"}}}'),
            **repeated('{"ANSIBLE_MODULE_ARGS": {', '"a": 1, ', '"b": 1}}'),
        },
    ),
    Parser("words for a kernel's command line", command_line.problem, (), repeated("", "a{0}=b ")),
    Parser("list of words for command lines", lambda text: command_line.list_problem(text.split(","))),
    Parser(
        "record of a host",
        _record,
        (ValueError, SettingError),
        {
            **repeated("{", '"/proc/sys/net/ipv4/a{0}": "1", ', '"/proc/sys/net/a": "1"}'),
            **within('{"a": ', "}", "nested"),
        },
    ),
    Parser("name of a counter of a driver", lambda text: ethtool._name(text.encode("utf-8", "surrogatepass"))),
]
