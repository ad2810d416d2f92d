# SPDX-License-Identifier: BSD-2-Clause
"""The filter of a host's guard: modules, their parameters, and bytes that are no module."""

from __future__ import annotations

import ast
import contextlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from playbooks.guard import CALL, MODULES, Call, Policy, Refused, judge, listen
from playbooks.module_utils import tunnels
from runners.ansible import guard
from runners.ansible.packing import Listed, Packed
from tests import guarded

RUNS, BUILDS = "/var/tmp/perfweb/lab", "/var/tmp/perfweb/lab/builds"  # noqa: S108  # names only
POLICY = Policy(RUNS, BUILDS, ["data0", "data1"], [1879048192, 2147483647], "/opt/meson", "/run/machine")
UID = 1879048200
ESCAPES = (
    "net.//.//.//.tmp.x", "net.//", "net..", "net/../../tmp/x", "net.ipv4.//.tmp", "net.ipv4./tmp", "net.ipv4.tmp/",
    "net.ipv4.a/b", "net.\uff0f\uff0f.tmp", "net.ipv4.\u2024\u2024", "net.ipv4.x\0", "net.ipv4.x\n", "net", "net.",
    "kernel.x", "left.net.//.//.tmp.x", "right.net.//.x", "net.ipv4.conf.mgmt0.rp_filter", "net.ipv6.neigh.mgmt0.x",
    "net.ipv4.tcp_fastopen_key", "net.ipv6.conf.all.stable_secret", "net.ipv4.route.flush", "net." + "a." * 20 + "b",
)  # fmt: skip
"""Names that are no sysctl of a plan: they lead to another file, to another interface, to a secret or to an action."""
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


def tasks_in(node: object) -> Iterator[dict[str, Any]]:
    """The tasks in a file of a playbook, those of blocks, too."""
    for item in node if isinstance(node, list) else []:
        yield item
        for nested in ("block", "rescue", "always", "tasks"):
            yield from tasks_in(item.get(nested))


def test_modules_on_the_controller_are_sent_whole() -> None:
    """An inventory's compression is for hosts with a guard, and Ansible takes it for delegated tasks, too."""
    files = [path for path in guard.PLAYBOOKS.rglob("*.yml") if "argument_specs" not in path.name]
    delegated = [
        (path.name, task)
        for path in files
        for task in tasks_in(yaml.safe_load(path.read_text(encoding="utf-8")))
        if task.get("delegate_to") == "localhost"
    ]
    assert delegated
    for name, task in delegated:
        assert task.get("vars", {}).get("ansible_module_compression") == "ZIP_DEFLATED", f"{name}: {task['name']}"


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
def test_requests_of_the_playbooks_are_allowed(module: str, values: dict[str, Any]) -> None:
    judge(Call(module, values, {}), POLICY)


@pytest.mark.parametrize("kind", [Packed, Listed])
def test_a_module_is_compared_with_the_installed_one(modules: str, kind: type[zipfile.ZipFile]) -> None:
    def called(**changed: bytes) -> Call:
        files = {f"ansible/module_utils/{name}.py": content for name, content in changed.items()}
        sent = guarded.program("reachable", {"address": "10.77.1.2"}, changed=files, kind=kind)
        return listen(guarded.CALL, io.BytesIO(sent), modules)

    with zipfile.ZipFile(modules) as installed:
        same = installed.read("ansible/module_utils/gauges.py")
    assert called(gauges=same).parameters == {"address": "10.77.1.2"}
    for other in (same[:-1] + b" ", same + b"\n", b""):
        with pytest.raises(Refused, match="install the guard anew"):
            called(gauges=other)


def test_what_a_guarded_host_gets_has_no_content() -> None:
    content = "x = 1\n" * 1000
    with Listed(packed := io.BytesIO(), "w") as archive:
        archive.writestr("a.py", content)
        archive.writestr("b.py", content.encode())
    with zipfile.ZipFile(packed) as archive:
        first, second = archive.infolist()
    assert first.file_size == second.file_size == len(content)
    assert first.CRC == second.CRC != 0
    assert len(packed.getvalue()) < 300


@pytest.mark.parametrize(
    ("module", "name", "values"),
    [
        ("command", "", [{}]),
        ("thread_states", "pid_file", ["/run/x.pid", f"{RUNS}/a/b/x.pid"]),
        ("thread_states", "pid_file", [f"{BUILDS}/k/stack.pid", f"{RUNS}/stack.pid"]),
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
        ("reachable", "address", ["-W1", "example.com", "10.77.1.2%eth0", "\uff11.2.3.4", "1.2.3", 167772161]),
        ("reachable", "port", [0, 65536, True, 1.5, "0x50", 10**30, -1, "\u0661"]),
        ("linux_knobs", "knobs", [{name: "1"} for name in ESCAPES] + [{"net.ipv4.tcp_sack": value} for value in (
            "1\n2", "a;b", "\u0661", None, True, 1.5, ["1"], "x" * 5000)] + [[], "net.ipv4.tcp_sack=1", {1: "1"}]),
        ("linux_knobs", "knobs", [{"link.mtu": "1500 dev mgmt0"}, {"link.offload.gro": "off tso on"},
                                  {"link.qdisc": "-b x"},
                                  {"link.qdisc": "netem distribution ../../tmp/x"}, {"link.rps_cpus": "0x3"},
                                  {"link.qdisc": "a/b"}, {"left.link.qdisc": "fq\nfq"}]),
        ("linux_knobs", "roles", [["mgmt"], "dut", [["dut"]], ["dut"] * 4]),
        ("measure", "environment", [{"PATH": f"{BUILDS}/k/bin"}, {"LD_PRELOAD": f"{BUILDS}/k/x.so"},
                                    {"STACK_CTL": "/x"}]),
        ("measure", "limits", [{"steal": float("nan")}, {"steal": True}, {"nothing": 1}, {"steal": "0.5"}]),
        ("measure", "timeout", [float("inf"), float("nan"), -1, "5", True, 10**9]),
        ("measure", "cpus", [[-1], ["a"], [True], [10**9], "0", [[0]]]),
        ("measure", "measurements", [[{"test": "x", "argv": ["-x"], "samples": 1}], [{"test": "x", "argv": ["x"]}],
                                     [{"test": "../x\n", "argv": ["x"], "samples": 1}], {}, [{}], [[]]]),
        ("daemon", "ready", ["(a+)+$", "^x.*", "x\n", ""]),
        ("daemon", "argv", [[], ["-c"], ["../x"], ["x", "a\0b"], ["x", "\x1b[31m"], ["x", "\u202e"], "sh -c x",
                            [["x"]]]),
        ("daemon", "files", [{"loader.conf": "a\0b"}, {"loader.conf": ["x"]}, {"loader.conf": "x", "y": ""}]),
        ("build", "options", [["--prefix=/x"], ["-Dx=a b"], ["x"], "-Dx=1", ["-Dx=../y/z"]]),
        ("build", "sources", ["no base64!", "QUJD\n", b"QUJD", 1]),
        ("host_health", "min_free_mb", [True, 1.0, float("nan"), "1e9", 10**30]),
        ("host_environment", "addressed", [1, 0, "true", "no", None]),
        ("host_environment", "tunnels", [["sit"], "gif", [{"gif": 1}]]),
        ("data_path", "owner", ["root", 0, None, ["stack"]]),
        ("boot_words", "words", ["init=/x", "INIT=/x", "quiet -- sh", "a  b", "", 1, ["quiet"]]),
    ],
)  # fmt: skip
def test_what_is_not_the_services_is_refused(module: str, name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(Refused, match=rf"(?s){module}.* {name}"):
            judge(Call(module, {"roles": ["dut"], name: value} if name == "knobs" else {name: value}, {}), POLICY)


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


@pytest.mark.parametrize(
    "text",
    [
        '{"ANSIBLE_MODULE_ARGS": {"name": "x", "name": "y"}}', '{"ANSIBLE_MODULE_ARGS": {}, "ANSIBLE_MODULE_ARGS": {}}',
        '{"ANSIBLE_MODULE_ARGS": {"timeout": NaN}}', '{"ANSIBLE_MODULE_ARGS": {"timeout": -Infinity}}',
        '{"ANSIBLE_MODULE_ARGS": {"port": ' + "9" * 5000 + "}}", '{"ANSIBLE_MODULE_ARGS": ' + "[" * 100_000 + "}",
        '{"ANSIBLE_MODULE_ARGS": []}', "[]", '{"ANSIBLE_MODULE_ARGS": {}, "more": 1}',
    ],
    ids=["name", "object", "nan", "infinity", "huge", "deep", "list", "bare", "more"],
)  # fmt: skip
def test_parameters_that_two_parsers_could_read_differently_are_refused(text: str, modules: str) -> None:
    sent = guarded.program("reachable", {}).replace(repr('{"ANSIBLE_MODULE_ARGS": {}}').encode(), repr(text).encode())
    assert repr(text).encode() in sent
    with pytest.raises(Refused, match="what was sent is no module"):
        listen(guarded.CALL, io.BytesIO(sent), modules)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("check_mode", 1),
        ("check_mode", "yes"),
        ("verbosity", True),
        ("verbosity", 99),
        ("version", "2; x"),
        ("shell", "x"),
    ],
)
def test_ansibles_own_parameters_have_a_grammar_too(name: str, value: object, modules: str) -> None:
    with pytest.raises(Refused, match=f"run_directory may not be called with _ansible_{name}"):
        listen(guarded.CALL, io.BytesIO(guarded.program("run_directory", {f"_ansible_{name}": value})), modules)


def test_values_get_one_normal_form() -> None:
    sent = {"uid": str(UID), "links": [{"interface": "data0", "address6": "FD00:0::2/64"}]}
    assert judge(Call("data_path", sent, {}), POLICY).parameters == {
        "uid": UID, "links": [{"interface": "data0", "address6": "fd00::2/64"}],
    }  # fmt: skip


def test_root_runs_no_command_but_those_about_the_kernel() -> None:
    for argv in (
        ["id"],
        ["ip", "route", "add"],
        ["ethtool", "-S", "mgmt0"],
        ["ethtool", "-S", "--version"],
        [],
        "ss -s",
    ):
        with pytest.raises(Refused, match="root runs only fixed commands that read kernel counters"):
            judge(Call("supervised_command", {"commands": [argv], "timeout": 5}, {}), POLICY)
    judge(
        Call("supervised_command", {"commands": [["ethtool", "-S", "data1"], ["ss", "-s"]], "timeout": 5}, {}), POLICY
    )


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
