# SPDX-License-Identifier: BSD-2-Clause
"""What the guard of a host lets through, of modules, of their parameters, and of bytes that are no module."""

from __future__ import annotations

import ast
import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playbooks.guard import CALL, MODULES, Call, Policy, Refused, judge, listen
from playbooks.module_utils import tunnels
from runners import guard
from tests import guarded

RUNS, BUILDS = "/var/tmp/perfweb/lab", "/var/tmp/perfweb/lab/builds"  # noqa: S108  # names only
POLICY = Policy(RUNS, BUILDS, ["data0", "data1"], [1879048192, 2147483647], "/opt/meson", "/run/machine")
UID = 1879048200
LINK = {"interface": "data0", "address": "10.77.1.2/24", "address6": "fd00::2/64"}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of the installed modules."""
    path = tmp_path_factory.mktemp("guard") / "modules.zip"
    path.write_bytes(guard.modules())
    return str(path)


def test_every_module_and_every_parameter_of_it_has_a_rule() -> None:
    library = guard.PLAYBOOKS / "library"
    assert set(MODULES) == {path.stem for path in library.glob("*.py")}
    for name, rules in MODULES.items():
        assert set(rules) == parameters_of(library / f"{name}.py")


def parameters_of(module: Path) -> set[str]:
    """The names in the `argument_spec` of a module."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "argument_spec":
            assert isinstance(node.value, ast.Dict)
            return {ast.literal_eval(key) for key in node.value.keys if key is not None}
    raise AssertionError(f"{module} has none")


@pytest.mark.parametrize(
    ("module", "values"),
    [
        ("run_directory", {"root": RUNS, "name": "demo-1-dut", "state": "absent"}),
        ("run_directory", {"root": RUNS, "name": "builds"}),
        ("daemon", {"name": "server", "directory": f"{RUNS}/demo-1-dut/b1", "uid": UID, "reads": [f"{BUILDS}/k3y"],
                    "files": {"loader.conf": ""}, "devices": ["/dev/net/tun"], "network": f"{RUNS}/lab-dut.net"}),
        ("daemon", {"name": ["server", "stack"], "directory": f"{RUNS}/demo-1-dut/b1", "state": "stopped"}),
        ("data_path", {"links": [LINK], "uid": str(UID), "memory": f"{RUNS}/dut.example.data_path"}),
        ("measure", {"own": f"{RUNS}/demo-1-*/b1/*.pid", "reads": [f"{RUNS}/demo-1-left/b1/stack.own", "/usr"]}),
        ("measure", {"interfaces": ["data0", tunnels.INTERFACE]}),
        ("tunnel", {"kind": "gif", "role": "left", "link": "data0", "ours": "10.77.1.1", "theirs": "10.77.1.2"}),
        ("tunnel", {"kind": "none"}),
        ("linux_knobs", {"links": ["data1"], "machine": "/run/machine", "memory": f"{RUNS}/dut.knobs"}),
    ],
)  # fmt: skip
def test_what_the_playbooks_ask_for_is_allowed(module: str, values: dict[str, Any]) -> None:
    judge(Call(module, values, {}), POLICY)


@pytest.mark.parametrize(
    ("module", "name", "values"),
    [
        ("command", "", [{}]),
        ("ask_debugger", "pid_file", ["/run/x.pid", f"{RUNS}/a/b/x.pid", f"{BUILDS}/k/stack.pid", f"{RUNS}/stack.pid"]),
        ("build", "root", ["/", RUNS, None, [BUILDS]]),
        ("build", "key", ["..", "a/b", "", "k\n", "x.new"]),
        ("build", "meson", ["meson", "/root/.ssh/id"]),
        ("build", "archive", ["/etc/shadow"]),
        ("daemon", "uid", [0, 1, 42, 1000, -1, 1.5, True, None, "root", "0", [UID], 2**32 - 1]),
        ("daemon", "name", ["../x", ["server", "/etc/x"], "a,b", 1]),
        ("daemon", "directory", ["/etc/cron.d", RUNS, f"{RUNS}/a", f"{RUNS}/a/../..", f"{RUNS}/a/b/c", f"{BUILDS}/key",
                                 f"{RUNS}/a/stack.own", f"{RUNS}x/a/b", f"~{RUNS}/a/b", f"$HOME{RUNS}/a/b"]),
        ("daemon", "files", [{"x.pid": "1"}, {"../loader.conf": ""}, "loader.conf=", [["loader.conf", ""]]]),
        ("daemon", "devices", [["/dev/sda"], "/dev/net/tun"]),
        ("daemon", "reads", [["/"], ["/etc"], ["/root"], "/usr", [f"{RUNS}/../.."], [f"{RUNS}/a/b.own/link"]]),
        ("daemon", "network", ["/proc/1/ns/net", f"{RUNS}/a/x.net", f"{RUNS}/../x.net"]),
        ("data_path", "memory", [f"{RUNS}/dut.before", f"{RUNS}/dut.knobs", f"{RUNS}/a/x.data_path", "/x.data_path",
                                 f"{RUNS}/a/b/loader.conf"]),
        ("data_path", "namespace", ["/run/netns/x", f"{RUNS}/dut.knobs"]),
        ("data_path", "links", [[{**LINK, "interface": "mgmt0"}], [{"address": "1.2.3.4"}], ["interface=data0"],
                                [{**LINK, "address": "1.2.3.4 dev mgmt0"}], [{**LINK, "more": "1"}]]),
        ("host_state", "record", [f"{RUNS}/dut.data_path", "/etc/passwd"]),
        ("host_environment", "tools", [["/bin/sh"], ["../x"], "ip"]),
        ("linux_knobs", "machine", ["/proc/1/ns/net", "", None]),
        ("linux_knobs", "links", [["mgmt0"], "data0"]),
        ("measure", "pid_directory", ["/run", RUNS, f"{RUNS}/a/b"]),
        ("measure", "own", ["/run/*.pid", f"{RUNS}/*/*.pid"]),
        ("measure", "interfaces", [["mgmt0"], ["perfweb1"], "perfweb0"]),
        ("tunnel", "link", ["mgmt0", "lo", None]),
        ("tunnel", "theirs", ["10.77.1.2 dev mgmt0", "example.com"]),
        ("tunnel", "kind", ["gif mode x", ["gif"]]),
        ("reachable", "interface", ["mgmt0", "data0 x"]),
        ("reachable", "address", ["-W1", "example.com"]),
    ],
)  # fmt: skip
def test_what_is_not_the_services_is_refused(module: str, name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(Refused, match=f"{module}.* {name}"):
            judge(Call(module, {name: value}, {}), POLICY)


@pytest.mark.parametrize(
    ("root", "name", "state"),
    [
        ("/", "etc", "absent"), ("/srv", "perfweb", "absent"), (RUNS, "..", "absent"), (RUNS, ".", "absent"),
        (RUNS, "builds", "absent"), (BUILDS, "key", "absent"), ("/srv", "x", "present"), (None, "x", "absent"),
    ],
)  # fmt: skip
def test_only_directories_of_runs_are_removed(root: object, name: str, state: str) -> None:
    with pytest.raises(Refused, match="what is below the directory of all runs"):
        judge(Call("run_directory", {"root": root, "name": name, "state": state}, {}), POLICY)


def test_parameters_arrive_and_those_of_ansible_that_name_files_do_not(modules: str) -> None:
    internal = {"_ansible_check_mode": True, "_ansible_tmpdir": "/etc", "_ansible_shell_executable": "/tmp/x"}  # noqa: S108
    values = {"root": RUNS, "name": 'it\'s "ü"\n),'}
    call = listen(guarded.CALL, io.BytesIO(guarded.program("run_directory", {**values, **internal})), modules)
    assert call == Call("run_directory", values, {"_ansible_check_mode": True})


@pytest.mark.parametrize("order", ["/bin/sh -c '/usr/bin/python3 -c 1 && sleep 0'", "/bin/sh -c '/x;id && sleep 0'",
                                   f"{guarded.CALL};id", f"{guarded.CALL}\n", "python3", ""])  # fmt: skip
def test_nothing_but_a_call_of_python_is_one_of_a_module(order: str, modules: str) -> None:
    with pytest.raises(Refused, match="this key"):
        listen(order, io.BytesIO(guarded.program("reachable", {})), modules)


@given(order=st.one_of(st.text(), st.from_regex(CALL)), content=st.binary())
def test_any_bytes_are_refused(order: str, content: bytes, modules: str) -> None:
    with pytest.raises(Refused):
        listen(order, io.BytesIO(content), modules)


@given(data=st.data())
def test_other_bytes_are_refused_or_another_call_of_an_installed_module(data: st.DataObject, modules: str) -> None:
    sent = guarded.program("reachable", {"address": "10.77.1.2", "interface": "data0"})
    begin = sent.index(b"ansible_module=") if data.draw(st.booleans()) else sent.index(b"params=")
    place = begin + data.draw(st.integers(0, 300))
    changed = sent[:place] + data.draw(st.binary(max_size=4)) + sent[place + data.draw(st.integers(0, 4)) :]
    with contextlib.suppress(Refused):
        assert listen(guarded.CALL, io.BytesIO(changed), modules).module in MODULES
