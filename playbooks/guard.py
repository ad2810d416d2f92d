#!/usr/bin/env -S python3 -IS
# SPDX-License-Identifier: BSD-2-Clause
"""Limits what the service's key can do on a host to what the playbooks need.

This program is the forced command of that key in `authorized_keys` (sshd(8)). Ansible sends a module as a program on
standard input. Nothing of that program is executed: the guard reads its name and its parameters. It checks the
parameters against the grammar of each (module_utils/parameters.py) and against the policy of this host. Then it runs
the module that is installed beside this file, in `modules.zip`. So the key can call only these modules, and only with
directories, links and users that belong to the service. The program is compared with the installed one, so that a
controller of another version is refused.

`policy.json` is beside this file, too, and lists what belongs to the service on this host; runners/ansible/guard.py
makes both. A refusal is a sentence on standard error, exit status 126 and a line in the system log. The guard needs
nothing but Python 3.9.
"""

from __future__ import annotations

import ast
import base64
import importlib
import io
import json
import os
import re
import sys
import syslog
import zipfile
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

HERE = os.path.dirname(os.path.abspath(__file__))
INSTALLED = os.path.join(HERE, "modules.zip")
if TYPE_CHECKING or __name__ != "__main__":
    from playbooks.module_utils.grammar import GrammarError
    from playbooks.module_utils.parameters import MODULES, Policy, normal
    from playbooks.module_utils.parameters import internal as ansibles_own
else:  # on a host, where the table of parameters is that of the installed modules
    sys.path.insert(0, INSTALLED)
    from ansible.module_utils.grammar import GrammarError
    from ansible.module_utils.parameters import MODULES, Policy, normal
    from ansible.module_utils.parameters import internal as ansibles_own

__all__ = ["CALL", "LIMIT", "MODULES", "REFUSED", "Call", "Policy", "Refused", "judge", "listen"]

REFUSED = 126
"""The shell's exit status for a file that exists but may not be executed."""
LIMIT = 96 * 1024 * 1024
"""Max bytes of a module with its parameters, one of which can be the packed sources of a build."""

# A module reaches a Python that reads its program from standard input. Only the pattern of these words matters.
CALL = re.compile(r"/bin/sh -c '/[\w./-]+ && sleep 0'", re.ASCII)
PLAIN = {"true": "/dev/null", "cat /proc/cmdline": "/proc/cmdline"}
"""The other requests, and the file that answers each."""
PARAMETERS = b"\n    _ansiballz_main(\n"
INTERNAL = "_ansible_"
"""The prefix of Ansible's own parameters."""
LONGEST_NUMBER = 20
"""The digits of a 64-bit integer."""


class Refused(Exception):  # noqa: N818  # no error of this program
    """A request is refused; the message has the reason."""


class Call(NamedTuple):
    """A module's name, its parameters, and Ansible's own parameters."""

    module: str
    parameters: dict[str, Any]
    internal: dict[str, Any]


def judge(call: Call, policy: Policy) -> Call:
    """Returns the call with its parameters in their normal form. Raises Refused unless this host allows it."""
    try:
        return call._replace(parameters=normal(call.module, call.parameters, policy))
    except GrammarError as error:
        raise Refused(str(error)) from None


def parse(program: bytes, installed: dict[str, tuple[int, int]]) -> Call:
    """Returns the call that a module of Ansible's represents; its files must equal the installed ones.

    `installed` has sizes and checksums of files. They are compared only to find another version: they prove nothing
    about what was sent, and need not.
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
    sent_values = _document(_literal(found["params"]))
    if set(sent_values) != {"ANSIBLE_MODULE_ARGS"} or type(sent_values["ANSIBLE_MODULE_ARGS"]) is not dict:
        raise ValueError("not the parameters of a module")
    values = sent_values["ANSIBLE_MODULE_ARGS"]
    own = {key: value for key, value in values.items() if key.startswith(INTERNAL)}
    parameters = {key: value for key, value in values.items() if key not in own}
    try:
        internal = ansibles_own({key[len(INTERNAL) :]: value for key, value in own.items()})
    except GrammarError as error:
        raise Refused(f"the module {module} may not be called with {error}") from None
    return Call(module, parameters, {INTERNAL + key: value for key, value in internal.items()})


def _document(text: str) -> dict[str, Any]:
    """Parses a JSON object. Raises ValueError for what two parsers could read differently (RFC 8259, 4)."""
    found = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number, parse_int=_number)
    if type(found) is not dict:
        raise ValueError("not an object")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice in one object")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


def _number(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ValueError("a number that is too long")
    return int(text)


def _literal(word: str) -> str:
    value = ast.literal_eval(word) if word[:1] in {"'", '"'} else None
    if not isinstance(value, str):
        raise ValueError("a text is missing")
    return value


def listen(order: str, stream: IO[bytes], modules: str) -> Call:
    """Returns the call that a client requests. Raises Refused."""
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
    except Exception as error:  # any fault in reading it means that it is not a module
        raise Refused(f"what was sent is no module of Ansible's ({type(error).__name__})") from None


def refuse(why: str, order: str) -> NoReturn:
    """Reports a refusal to the client, which may be Ansible, and to the system log."""
    client = (os.environ.get("SSH_CONNECTION") or "nowhere").split()[0]
    syslog.openlog("perfweb-guard", syslog.LOG_PID, syslog.LOG_AUTH)
    syslog.syslog(syslog.LOG_WARNING, f"refused from {client}: {why}; request {order[:200]!r}")
    sys.stderr.write(f"refused: {why}\n")
    if CALL.fullmatch(order):
        sys.stdout.write(json.dumps({"failed": True, "msg": f"refused: {why}"}))
    sys.exit(REFUSED)


def run(call: Call) -> None:
    """Runs the installed module in this process, which ends with it."""
    from ansible.module_utils import module

    main = importlib.import_module(f"ansible.legacy.{call.module}").main
    module.call(main, {**call.parameters, **call.internal})


def main() -> None:
    """Handles the request of this SSH session, or refuses it."""
    order = os.environ.get("SSH_ORIGINAL_COMMAND", "")
    if order in PLAIN:
        with open(PLAIN[order], encoding="utf-8") as file:
            sys.stdout.write(file.read())
        return
    with open(os.path.join(HERE, "policy.json"), encoding="utf-8") as file:
        policy = Policy(**json.load(file))
    try:
        call = judge(listen(order, sys.stdin.buffer, INSTALLED), policy)
    except Refused as refusal:
        refuse(str(refusal), order)
    run(call)


if __name__ == "__main__":
    main()
