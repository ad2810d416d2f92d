#!/usr/bin/env -S python3 -IS
# SPDX-License-Identifier: BSD-2-Clause
"""What the service's key does on a host, whatever it asks for: only what the playbooks need.

It is the forced command of that key in `authorized_keys` (sshd(8)).  Ansible sends a module as a program on standard
input.  Of that program nothing is executed: its name and its parameters are read, the parameters are held against what
is the service's on this host, and then the module runs that is installed beside this file, in `modules.zip`.  So who
has the key can call these modules and nothing else, and none with a directory, a link or a user that is not the
service's.  The program is compared with what is installed, so that a controller of another version gets to know.

`policy.json`, beside it too, says what is the service's here (runners/guard.py makes both).  A refusal is a sentence on
standard error, the status 126 and a line in the system's log.  All that this needs is Python 3.9.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import re
import sys
import syslog
import zipfile
from collections.abc import Callable
from typing import IO, Any, NamedTuple, NoReturn

REFUSED = 126
"""What a shell ends with where something is there and may not be executed."""
LIMIT = 96 * 1024 * 1024
"""Bytes of a module with its parameters, one of which can be the packed sources of a build."""

# A module is for a Python that reads its program from standard input; of these words only the pattern matters.
CALL = re.compile(r"/bin/sh -c '/[\w./-]+ && sleep 0'", re.ASCII)
PLAIN = {"true": "/dev/null", "cat /proc/cmdline": "/proc/cmdline"}
"""What else is asked for, and the file that answers it."""
PARAMETERS = b"\n    _ansiballz_main(\n"
KEPT = ("check_mode", "diff", "no_log", "verbosity", "version")
"""Of Ansible's own parameters, those that a module gets; others name files, sockets and shells."""


class Refused(Exception):  # noqa: N818  # no error of this program
    """Why something is not done."""


class Policy(NamedTuple):
    """What is the service's on this host, by the names of the inventory; `uids` are the lowest and the highest."""

    lab_root: str
    builds_root: str
    links: list[str]
    uids: list[int]
    meson: str
    machine_network: str


class Call(NamedTuple):
    """A module by its plain name, what it gets, and Ansible's own parameters."""

    module: str
    parameters: dict[str, Any]
    internal: dict[str, Any]


Check = Callable[[Policy, Any], bool]


def anything(_policy: Policy, _value: object) -> bool:
    """For what a module judges itself, and for what only a program in a sandbox gets."""
    return True


def text(pattern: str) -> Check:
    """A text that is so."""
    return lambda _policy, value: isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None


def every(check: Check) -> Check:
    """A list whose items are so; Ansible would make one of other things, too."""
    return lambda policy, value: isinstance(value, list) and all(check(policy, item) for item in value)


def is_name(policy: Policy, value: object) -> bool:
    """A name, or several."""
    return NAME(policy, value) or every(NAME)(policy, value)


def same(name: str) -> Check:
    """What the policy has under that name."""
    return lambda policy, value: isinstance(value, str) and value == getattr(policy, name)


def place(levels: int) -> Check:
    """A directory so far below that of all runs: in those only root makes files.  Builds are a stranger's work."""

    def check(policy: Policy, value: object) -> bool:
        inside = text(re.escape(policy.lab_root) + r"(/[\w-]+)" * levels)(policy, value)
        return inside and not f"{value}/".startswith(f"{policy.builds_root}/")

    return check


def kept(ending: str) -> Check:
    """A file that a module keeps beside the runs; each kind has its ending, so that none is taken for another."""
    return lambda policy, value: text(re.escape(policy.lab_root) + r"/[\w-][\w.:-]*\." + ending)(policy, value)


def is_uid(policy: Policy, value: object) -> bool:
    """A user that no account has."""
    digits = text("[0-9]{1,10}")(policy, str(value)) and not isinstance(value, bool)
    return digits and policy.uids[0] <= int(str(value)) <= policy.uids[1]


def is_link(policy: Policy, value: object) -> bool:
    """The name of a data link."""
    return isinstance(value, str) and value in policy.links


def is_watched(policy: Policy, value: object) -> bool:
    """An interface whose counters are looked at: a data link, or the tunnel (module_utils/tunnels.py)."""
    return value == "perfweb0" or is_link(policy, value)


def is_wired(policy: Policy, value: object) -> bool:
    """A data link with its addresses."""
    if not isinstance(value, dict) or not is_link(policy, value.get("interface")):
        return False
    address = text(r"[0-9a-fA-F.:]+(/[0-9]+)?")
    return all(key in {"address", "address6"} and address(policy, value[key]) for key in value if key != "interface")


def is_shown(policy: Policy, value: object) -> bool:
    """A directory that a program in a sandbox may see; nothing in one that another such program could write to."""
    ours = "|".join(map(re.escape, (policy.lab_root, policy.builds_root)))
    return text(rf"/usr|({ours})(/[\w-][\w.-]*)*")(policy, value) and ".own/" not in str(value)


def is_network(policy: Policy, value: object) -> bool:
    """None, the host's, or that which the stack has."""
    return value in ("none", "host") or kept("net")(policy, value)


def is_own(policy: Policy, value: object) -> bool:
    """The pattern of the pid files of a boot."""
    return text(re.escape(policy.lab_root) + r"/[\w-]+-\*/[\w-]+/\*\.pid")(policy, value)


def is_pid_file(policy: Policy, value: object) -> bool:
    """That of a stack."""
    above, _, name = str(value).rpartition("/")
    return isinstance(value, str) and name == "stack.pid" and place(2)(policy, above)


def is_configured(_policy: Policy, value: object) -> bool:
    """Files of a stack: none whose name would make it something else for another module."""
    return isinstance(value, dict) and set(value) <= {"loader.conf"}


NAME = text(r"[\w-]{1,64}")
WORD = text(r"[\w.-]+")
WORDS = every(WORD)
ADDRESS = text("[0-9a-fA-F.:]+")
_SANDBOX: dict[str, Check] = {"uid": is_uid, "reads": every(is_shown), "network": is_network}
MODULES: dict[str, dict[str, Check]] = {
    "ask_debugger": {
        "uid": is_uid, "reads": every(is_shown), "pid_file": is_pid_file, "pid_directory": place(1),
        **dict.fromkeys(("commands", "timeout"), anything),
    },
    "build": {
        "root": same("builds_root"), "key": NAME, "meson": same("meson"), "uid": is_uid,
        **dict.fromkeys(("sources", "options", "timeout"), anything),
    },
    "daemon": {
        **_SANDBOX, "name": is_name, "directory": place(2), "files": is_configured,
        "devices": every(text("/dev/net/tun")),
        **dict.fromkeys(("state", "argv", "cpus", "ready", "timeout"), anything),
    },
    "data_path": {
        "owner": anything, "links": every(is_wired), "uid": is_uid, "memory": kept("data_path"),
        "namespace": kept("net"),
    },
    "host_environment": {
        "tools": WORDS, "links": every(is_wired), "uid": is_uid, "addressed": anything, "tunnels": WORDS,
    },
    "host_health": {
        "root": same("lab_root"), "builds": same("builds_root"), "group": NAME, "links": every(is_link),
        "namespace": kept("net"), "least_free_mb": anything,
    },
    "host_state": {"state": anything, "links": every(is_link), "namespace": kept("net"), "record": kept("before")},
    "linux_knobs": {
        "knobs": anything, "roles": WORDS, "links": every(is_link), "machine": same("machine_network"),
        "memory": kept("knobs"),
    },
    "measure": {
        "uid": is_uid, "reads": every(is_shown), "pid_directory": place(1), "own": is_own,
        "interfaces": every(is_watched),
        **dict.fromkeys(("measurements", "timeout", "limits", "cpus", "environment"), anything),
    },
    "reachable": {"address": ADDRESS, "port": anything, "interface": is_link, "timeout": anything},
    "run_directory": dict.fromkeys(("root", "name", "state"), anything),  # see is_directory
    "supervised_command": {**_SANDBOX, "commands": anything, "timeout": anything, "pid_directory": place(1)},
    "tunnel": {"kind": WORD, "role": WORD, "link": is_link, "ours": ADDRESS, "theirs": ADDRESS},
}  # fmt: skip
"""The modules that may be called, and what each of their parameters has to be; one that is not here is refused."""


def is_directory(policy: Policy, parameters: dict[str, Any]) -> bool:
    """The directory of a run, or that of builds, which stays."""
    path = f"{parameters.get('root')}/{parameters.get('name')}"
    if path == policy.builds_root:
        return bool(parameters.get("state", "present") == "present")
    return place(1)(policy, path)


def judge(call: Call, policy: Policy) -> None:
    """Raises Refused unless this host allows the call."""
    if call.module not in MODULES:
        raise Refused(f"there is no module {call.module} of this service")
    checks = MODULES[call.module]
    for name, value in call.parameters.items():
        if name not in checks:
            raise Refused(f"the module {call.module} has no parameter {name}")
        if not checks[name](policy, value):
            raise Refused(f"the module {call.module} may not be called with {name}={repr(value)[:200]} on this host")
    if call.module == "run_directory" and not is_directory(policy, call.parameters):
        raise Refused("the module run_directory may only make and remove what is below the directory of all runs")


def parse(program: bytes, installed: dict[str, tuple[int, int]]) -> Call:
    """The call that a module of Ansible's stands for, whose files have to be those that are installed.

    `installed` has sizes and check sums of files.  These do not prove that what was sent is the same, and need not.
    """
    rows = program.rpartition(PARAMETERS)[2].decode().splitlines()
    found = dict(row[:-1].split("=", 1) for row in rows if re.match(r"[a-z_]+=.*,$", row))
    name, packed = _literal(found["module_fqn"]), base64.b64decode(found["zip_data"].strip("'"), validate=True)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        sent = {entry.filename: (entry.file_size, entry.CRC) for entry in archive.infolist()}
    module = name.rpartition(".")[2]
    if name != f"ansible.legacy.{module}" or module not in MODULES:
        raise Refused(f"there is no module {name[:200]} of this service")
    for file in [f"{name.replace('.', '/')}.py", *sent]:
        if not file.endswith(".pyc") and (file not in sent or sent[file] != installed.get(file)):
            raise Refused(f"{file[:200]} of the module {module} is not as it is installed here: install the guard anew")
    values = json.loads(_literal(found["params"]))["ANSIBLE_MODULE_ARGS"]
    internal = {key: value for key, value in values.items() if key.startswith("_ansible_")}
    parameters = {key: value for key, value in values.items() if key not in internal}
    return Call(module, parameters, {key: internal[key] for key in map("_ansible_{}".format, KEPT) if key in internal})


def _literal(word: str) -> str:
    value = ast.literal_eval(word) if word[:1] in {"'", '"'} else None
    if not isinstance(value, str):
        raise ValueError("a text is missing")
    return value


def listen(order: str, stream: IO[bytes], modules: str) -> Call:
    """The call that a client wants.  Raises Refused."""
    if not CALL.fullmatch(order):
        raise Refused("this key only calls modules of the service" if order else "this key has no shell")
    program = stream.read(LIMIT + 1)
    if len(program) > LIMIT:
        raise Refused(f"a module of more than {LIMIT} bytes")
    with zipfile.ZipFile(modules) as archive:
        installed = {entry.filename: (entry.file_size, entry.CRC) for entry in archive.infolist()}
    try:
        return parse(program, installed)
    except Refused:
        raise
    except Exception as error:  # whatever it stumbles over, it is no module
        raise Refused(f"what was sent is no module of Ansible's ({type(error).__name__})") from None


def refuse(why: str, order: str) -> NoReturn:
    """Says so to the client, who may be Ansible, and to the system's log."""
    client = (os.environ.get("SSH_CONNECTION") or "nowhere").split()[0]
    syslog.openlog("perfweb-guard", syslog.LOG_PID, syslog.LOG_AUTH)
    syslog.syslog(syslog.LOG_WARNING, f"refused from {client}: {why}; asked for {order[:200]!r}")
    sys.stderr.write(f"refused: {why}\n")
    if CALL.fullmatch(order):
        sys.stdout.write(json.dumps({"failed": True, "msg": f"refused: {why}"}))
    sys.exit(REFUSED)


def run(call: Call, modules: str) -> None:
    """Becomes the installed module."""
    sys.path.insert(0, modules)
    from ansible.module_utils._internal._ansiballz import _loader

    values = {**call.parameters, **call.internal, "_ansible_module_name": call.module}
    _loader.run_module(
        json_params=json.dumps({"ANSIBLE_MODULE_ARGS": values}).encode(),
        profile="legacy",
        module_fqn=f"ansible.legacy.{call.module}",
        modlib_path=modules,
        extensions={},
    )


def main() -> None:
    """Does what the client of this SSH session wants, or refuses it."""
    order = os.environ.get("SSH_ORIGINAL_COMMAND", "")
    here = os.path.dirname(os.path.abspath(__file__))
    modules = os.path.join(here, "modules.zip")
    if order in PLAIN:
        with open(PLAIN[order], encoding="utf-8") as file:
            sys.stdout.write(file.read())
        return
    with open(os.path.join(here, "policy.json"), encoding="utf-8") as file:
        policy = Policy(**json.load(file))
    try:
        call = listen(order, sys.stdin.buffer, modules)
        judge(call, policy)
    except Refused as refusal:
        refuse(str(refusal), order)
    run(call, modules)


if __name__ == "__main__":
    main()
