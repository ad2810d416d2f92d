# SPDX-License-Identifier: BSD-2-Clause
"""The allowed values of each parameter of each module of the playbooks: one table for the guard and the modules.

The guard (playbooks/guard.py) knows the policy of its host: the links, users and directories of the service. A module
knows no policy and checks the form alone, with `checked`, so hosts without a guard are checked, too. A module or a
parameter without an entry is refused. Values get their normal form here, before any other code reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from . import beneath, command_line, gates, linux, tunnels
from .grammar import (
    Grammar,
    GrammarError,
    address,
    choice,
    either,
    flag,
    integer,
    interface_address,
    listed,
    mapping,
    number,
    printable,
    record,
    text,
)


class Policy(NamedTuple):
    """What belongs to the service on a host, by the names of the inventory; `uids` are the lowest and the highest."""

    lab_root: str
    builds_root: str
    links: list[str]
    uids: list[int]
    meson: str
    machine_network: str
    command_line_words: list[str] = list(command_line.ALLOWED)


# A part of a path never begins with two dots.
_PART = r"\.?[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,127}"
PATH = rf"(/{_PART}){{1,24}}"
_NAME, _FILE = r"[A-Za-z0-9_-]{1,64}", r"[A-Za-z0-9_-][A-Za-z0-9_.:-]{0,127}"
BUILD_OPTION = r"-D[a-z][a-z0-9_]{0,63}=[A-Za-z0-9_.,+-]{0,128}"
DAY = 24 * 3600.0


def same(name: str) -> Grammar:
    """The policy's value of that name; without a policy a path, or nothing."""

    def check(value: Any, policy: Policy | None) -> str:
        if policy is None:
            return _form(value, rf"({PATH}|{_NAME})?", "a path")
        if type(value) is not str or value != getattr(policy, name):
            raise GrammarError(f"expected the {name} of this host")
        return value

    return check


def _form(value: Any, pattern: str, what: str) -> str:
    found: str = text(pattern, what, 1024)(value, None)
    return found


def _below(value: Any, policy: Policy | None, rest: str, what: str) -> str:
    """A path that is `rest` below the directory of all runs; without a policy below any directory."""
    root = PATH if policy is None else re.escape(policy.lab_root)
    return _form(value, root + rest, what)


def place(levels: int) -> Grammar:
    """A directory at that depth below the directory of all runs, where only root makes files, because builds are
    untrusted.
    """

    def check(value: Any, policy: Policy | None) -> str:
        path = _below(value, policy, rf"(/{_NAME}){{{levels}}}", "a directory of a run")
        if policy is not None and f"{path}/".startswith(f"{policy.builds_root}/"):
            raise GrammarError("expected a directory of a run, and not one of builds")
        return path

    return check


def kept(ending: str) -> Grammar:
    """A file that a module keeps beside the runs; each kind has its own suffix, so that none is mistaken for
    another.
    """
    return lambda value, policy: _below(value, policy, rf"/{_FILE}\.{ending}", f"a file of the service's in .{ending}")


def uid(value: Any, policy: Policy | None) -> int:
    """A user id without an account."""
    lowest, highest = (1, 2**32 - 2) if policy is None else policy.uids
    found: int = integer(lowest, highest)(value, policy)
    return found


def link(value: Any, policy: Policy | None) -> str:
    """The name of a data link."""
    name = _form(value, linux.INTERFACE, "the name of a data link")
    if policy is not None and name not in policy.links:
        raise GrammarError("expected a data link of this host")
    return name


def watched(value: Any, policy: Policy | None) -> str:
    """An interface whose counters are read: a data link, or the tunnel."""
    return tunnels.INTERFACE if value == tunnels.INTERFACE else link(value, policy)


def shown(value: Any, policy: Policy | None) -> str:
    """A directory that a program in a sandbox may see; none that another such program could write to."""
    path = _form(value, PATH, "a directory")
    ours = () if policy is None else (policy.lab_root, policy.builds_root)
    if ".own/" in path or (policy and path != "/usr" and not any(f"{path}/".startswith(f"{top}/") for top in ours)):
        raise GrammarError("expected /usr, or a directory of runs or builds")
    return path


def own(value: Any, policy: Policy | None) -> str:
    """The pattern of the pid files of a boot; without a policy it may be empty, which is the default."""
    if policy is None and value == "":
        return ""
    return _below(value, policy, rf"/{_NAME}-\*/{_NAME}/\*\.pid", "the pattern of the pid files of a boot")


def pid_file(value: Any, policy: Policy | None) -> str:
    """The control socket of a stack."""
    above, _, name = _form(value, PATH, "a pid file").rpartition("/")
    if name != "stack.pid":
        raise GrammarError("expected the pid file of a stack")
    return f"{place(2)(above, policy)}/{name}"


def control_socket(value: Any, policy: Policy | None) -> str:
    """The control socket of a stack of a boot, in the one directory where the stack may write."""
    return _below(value, policy, rf"/{_NAME}/{_NAME}/stack\.own/ctl\.sock", "the control socket of a stack")


def knobs(value: Any, _policy: Policy | None) -> dict[str, str]:
    """Knobs of Linux hosts, as in a plan, with their values; integers stay integers.

    A call has the knobs of all hosts. `_knobs_problem` checks those of this host more strictly.
    """
    if type(value) is not dict or len(value) > 128:
        raise GrammarError("expected a dictionary of at most 128 knobs")
    found = {KNOB(name, None): str(text) if type(text) is int else text for name, text in value.items()}
    return {name: KNOB_VALUE(text, None) for name, text in found.items()}


def words(value: Any, policy: Policy | None) -> str:
    """Words for the command line of a kernel."""
    allowed = None if policy is None else policy.command_line_words
    if why := command_line.problem(value, allowed):
        raise GrammarError(why)
    found: str = value
    return found


KNOB = text(
    r"((left|right)\.)?(net|link)(\.[A-Za-z0-9_]{1,64}){1,8}",
    "a name that is no knob of Linux only by its spelling: net. or link. and letters, digits, _ and dots",
)
KNOB_VALUE = text(r"[A-Za-z0-9_.,:/+=% -]{0,128}", "the value of a knob: letters, digits, spaces and _ . , : / + = % -")
NAME = text(_NAME, "a name: letters, digits, - and _, at most 64")
SECONDS = number(0, DAY)
FREE_TEXT = printable(16_384, "\n\t")
PROGRAM = text(rf"{PATH}|[A-Za-z0-9_][A-Za-z0-9_.+-]{{0,127}}", "the name or the path of a program", 1024)
ARGUMENTS = listed(FREE_TEXT, 512, 1, "an empty command: name a program")
CPUS = listed(integer(0, 8191), 8192)


def argv(value: Any, policy: Policy | None) -> list[str]:
    """A command for a program in a sandbox: a program's name, and arguments that no shell interprets."""
    if type(value) is list:
        value = [str(word) if type(word) is int else word for word in value]
    found: list[str] = ARGUMENTS(value, policy)
    return [PROGRAM(found[0], policy), *found[1:]]


def about_kernel(command: Any, policy: Policy | None) -> bool:
    """Returns whether a command only reads the kernel's counters, which root does."""
    if command in ABOUT_KERNEL:
        return True
    if type(command) is not list or len(command) != 3 or command[:2] != ["ethtool", "-S"]:
        return False
    try:
        link(command[2], policy)
    except GrammarError:
        return False
    return True


ABOUT_KERNEL = (
    ["nstat", "-az"], ["ip", "-s", "link"], ["ip", "route"], ["ss", "-s"], ["tc", "-s", "qdisc"],
)  # fmt: skip
"""Returns whether a command is `ethtool -S` of a data link."""

COMMANDS = listed(argv, 64)
READS = listed(shown, 64)
WIRED = record({"interface": link, "address": interface_address(4), "address6": interface_address(6)}, ("interface",))
LINKS, WIRES = listed(link, 16), listed(WIRED, 16)
NETWORK = either(choice("none", "host"), kept("net"))
ROLE = choice("left", "dut", "right")
KIND = choice(*tunnels.TUNNELS)
MEASUREMENT = record(
    {
        "test": text(r"[A-Za-z0-9_./-]{1,128}", "the name of a test"), "argv": argv, "samples": integer(0, 100_000),
        "discard": integer(0, 1000), "voids_allowed": integer(0, 100_000),
        "busy": listed(printable(256), 8), "patience": SECONDS,
    },
    ("test", "argv", "samples"),
)  # fmt: skip
_SANDBOX: dict[str, Grammar] = {"uid": uid, "reads": READS, "network": NETWORK}

MODULES: dict[str, dict[str, Grammar]] = {
    "thread_states": {
        "commands": COMMANDS, "timeout": SECONDS, "uid": uid, "reads": READS, "pid_file": pid_file,
        "pid_directory": place(1),
    },
    "boot_words": {"words": words},
    "build": {
        "root": same("builds_root"), "key": NAME, "meson": same("meson"), "uid": uid, "timeout": SECONDS,
        "sources": text(r"[A-Za-z0-9+/]*={0,2}", "Base64", 96 * 1024 * 1024),
        "options": listed(text(BUILD_OPTION, "an option of meson such as -Dbuildtype=release"), 64), "base": shown,
    },
    "daemon": {
        **_SANDBOX, "name": either(NAME, listed(NAME, 8, 1)), "directory": place(2),
        # No value whose name would mean something else to another module.
        "files": record({"loader.conf": printable(256 * 1024, "\n")}),
        "devices": listed(choice("/dev/net/tun"), 1), "state": choice("started", "stopped"), "argv": argv,
        "cpus": CPUS, "timeout": SECONDS,
        # A regular expression of plain characters: root searches a program's output for it.
        "ready": text(r"\^?[A-Za-z0-9_: -]{1,64}", "the beginning of a line"),
    },
    "data_path": {
        "owner": choice("stack", "kernel", "nobody"), "links": WIRES, "uid": uid, "memory": kept("data_path"),
        "namespace": kept("net"),
    },
    "host_environment": {
        "tools": listed(text(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}", "the name of a program"), 64), "links": WIRES,
        "uid": uid, "addressed": flag, "tunnels": listed(KIND, 2),
    },
    "host_health": {
        "root": same("lab_root"), "builds": same("builds_root"), "group": NAME, "links": LINKS,
        "namespace": kept("net"), "min_free_mb": integer(0, 2**40),
    },
    "host_state": {
        "state": choice("recorded", "proven"), "links": LINKS, "namespace": kept("net"), "record": kept("before"),
    },
    "linux_knobs": {
        "knobs": knobs, "roles": listed(ROLE, 3), "links": LINKS, "machine": same("machine_network"),
        "memory": kept("knobs"),
    },
    "measure": {
        "measurements": listed(MEASUREMENT, 256), "timeout": SECONDS, "uid": uid, "reads": READS, "cpus": CPUS,
        "limits": mapping(choice(*gates.BY_NAME), number(0, 999_999), len(gates.BY_NAME)),
        # No other variables: PATH or LD_PRELOAD would choose what root runs before the sandbox.
        "environment": record({"STACK_CTL": control_socket}), "pid_directory": place(1), "own": own,
        "interfaces": listed(watched, 17),
    },
    "reachable": {"address": address(4, 6), "port": integer(1, 65535), "interface": link, "timeout": SECONDS},
    "run_directory": {"root": text(PATH, "a path", 1024), "name": NAME, "state": choice("present", "absent")},
    "supervised_command": {**_SANDBOX, "commands": COMMANDS, "timeout": SECONDS, "pid_directory": place(1)},
    "tunnel": {
        "kind": choice(*tunnels.TUNNELS, "none"), "role": choice("left", "dut"), "link": link, "ours": address(4),
        "theirs": address(4),
    },
}  # fmt: skip
"""The modules that may be called, with the grammar of each parameter."""

INTERNAL: dict[str, Grammar] = {
    "check_mode": flag, "diff": flag, "no_log": flag, "verbosity": integer(0, 7),
    "version": text(r"[0-9][0-9A-Za-z.+-]{0,31}", "a version"),
}  # fmt: skip
"""Ansible's own parameters that a module gets from the guard."""
DROPPED = frozenset(
    {
        "debug", "ignore_unknown_opts", "keep_remote_files", "module_name", "remote_tmp", "selinux_special_fs",
        "shell_executable", "socket", "string_conversion_action", "syslog_facility", "target_log_info", "tmpdir",
        "tracebacks_for",
    }
)  # fmt: skip
"""Ansible's parameters that no module gets, because they name files, sockets and shells. Others are refused."""


def _directory_problem(policy: Policy | None, values: Mapping[str, Any]) -> str:
    """The directory of a run, or the permanent one of builds."""
    if policy is None:
        return ""
    root, name = values.get("root"), values.get("name")
    path = f"{root}/{name}" if type(root) is str and type(name) is str else ""
    if path == policy.builds_root and values.get("state", "present") == "present":
        return ""
    try:
        place(1)(path, policy)
    except GrammarError:
        return "the module run_directory may only make and remove what is below the directory of all runs"
    return ""


def _command_problem(policy: Policy | None, values: Mapping[str, Any]) -> str:
    """Without a user of runs, root runs the commands."""
    commands = values.get("commands")
    if values.get("uid") is not None or type(commands) is not list:
        return ""
    fine = all(about_kernel(command, policy) for command in commands)
    return "" if fine else "root runs only fixed commands that read kernel counters: set a uid"


def _knobs_problem(policy: Policy | None, values: Mapping[str, Any]) -> str:
    """A knob set on this host is a Linux knob, and a sysctl of an interface belongs to a data link."""
    wanted, roles = values.get("knobs"), values.get("roles")
    if type(wanted) is not dict or type(roles) is not list or not all(map(_is_text, [*wanted, *roles])):
        return ""  # their own grammars refuse them
    for name, bare in linux.own(wanted, roles).items():
        try:
            linux.require_knob(bare, str(wanted[name]))
        except linux.SettingError as error:
            return f"the module linux_knobs may not be called with knobs={name!r:.80}: {error}"
        if policy is not None and linux.interface_of(bare) not in {None, "all", "default", *policy.links}:
            return f"the module linux_knobs may not be called with knobs={name!r:.80}: no data link of this host has it"
    return ""


def _is_text(value: object) -> bool:
    return type(value) is str


RULES: dict[str, Callable[[Policy | None, Mapping[str, Any]], str]] = {
    "run_directory": _directory_problem, "supervised_command": _command_problem, "linux_knobs": _knobs_problem,
}  # fmt: skip
"""Returns which rule between the parameters of a module is broken, or an empty text."""


def normal(module: str, values: Mapping[str, Any], policy: Policy | None) -> dict[str, Any]:
    """Returns the parameters of a module in their normal form.

    Raises GrammarError, which names module and parameter.
    """
    if module not in MODULES:
        raise GrammarError(f"there is no module {module!r:.80} of this service")
    if why := RULES.get(module, _no_rule)(policy, values):
        raise GrammarError(why)
    return _normal(module, MODULES[module], values, policy)


def _no_rule(_policy: Policy | None, _values: Mapping[str, Any]) -> str:
    return ""


def _normal(
    module: str, grammars: Mapping[str, Grammar], values: Mapping[str, Any], policy: Policy | None
) -> dict[str, Any]:
    found = {}
    for name, value in values.items():
        if name not in grammars:
            raise GrammarError(f"the module {module} has no parameter {name!s:.80}")
        try:
            found[name] = grammars[name](value, policy)
        except GrammarError as error:
            where = "" if policy is None else " on this host"
            raise GrammarError(
                f"the module {module} may not be called with {name}={value!r:.200}{where}: {error}"
            ) from None
    return found


def internal(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of Ansible's own parameters, without `_ansible_`, that a module gets. Raises GrammarError."""
    found = {}
    for name, value in values.items():
        if name in INTERNAL:
            try:
                found[name] = INTERNAL[name](value, None)
            except GrammarError as error:
                raise GrammarError(f"_ansible_{name}={value!r:.80}: {error}") from None
        elif name not in DROPPED:
            raise GrammarError(f"_ansible_{name:.80} is no parameter of a module")
    return found


LINKLESS = ("directory", "memory", "namespace", "network", "pid_directory", "pid_file", "reads", "record")
"""Parameters that name files to which no symbolic link may lead."""


def require_no_links(values: Mapping[str, Any]) -> None:
    """Raises OSError if a path of these parameters contains a symbolic link.

    Only root can make links in these directories, so the check still holds when the path is used.
    """
    for name in LINKLESS:
        found = values.get(name) or []
        paths: list[str] = found if isinstance(found, list) else [found]
        for path in filter(lambda path: path.startswith("/"), paths):
            beneath.require_no_links(path)


def checked(module: Any, name: str) -> dict[str, Any]:
    """Returns the parameters of a Module in their normal form, None for missing ones. May end the module."""
    given = {key: value for key, value in module.params.items() if value is not None}
    try:
        module.params.update(normal(name, given, None))
        require_no_links(module.params)
    except (GrammarError, OSError) as error:
        module.fail_json(msg=str(error))
    found: dict[str, Any] = module.params
    return found
