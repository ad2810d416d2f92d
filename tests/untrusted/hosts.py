# SPDX-License-Identifier: BSD-2-Clause
"""The parsers of data from hosts, archives, git and Redis."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from celery import current_app
from kombu import serialization
from kombu.exceptions import DecodeError
from perfctl import download

from perfweb.builds import repositories
from perfweb.builds.patches import PatchError
from perfweb.jsontext import JsonError, read_json
from perfweb.operations import backups
from perfweb.rawdata.replay import bundle
from perfweb.rawdata.replay.tarwalk import BundleError
from perfweb.reports import contention
from perfweb.runs import progress
from perfweb.verdicts import lockprofiles
from playbooks.module_utils import linux
from runners.ansible import driver
from runners.labs import power
from tests.untrusted.hostile import Generator, Parser, repeated, within


def _in_file(read: Callable[[Path], object], name: str = "a.tar") -> Callable[[str], object]:
    """A parser of a file: the text's characters are its bytes."""

    def parse(text: str) -> object:
        with tempfile.TemporaryDirectory(prefix="perfweb-test-") as folder:
            path = Path(folder) / name
            path.write_bytes(text.encode("latin-1", "replace"))
            return read(path if name.endswith(".tar") else Path(folder))

    return parse


def _tar(members: Iterable[tuple[str, str]]) -> str:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members:
            member = tarfile.TarInfo(f"run/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode("latin-1", "replace")))
    return file.getvalue().decode("latin-1")


_HEADER = _tar([("a", "")])[:512]
_ARCHIVES: dict[str, Generator] = {
    "many members": lambda length: _tar((f"a{number}", "") for number in range(length // 512 + 1)),
    "the same member": lambda length: _tar([("a", "")] * (length // 512 + 1)),
    "a long list of hashes": lambda length: _tar([("SHA256SUMS", f"{'0' * 64}  a\n" * (length // 67))]),
    "a list of one line": lambda length: _tar([("SHA256SUMS", "a" * length)]),
    "a large bundle.json": lambda length: _tar([("bundle.json", "[" * length)]),
    "headers of a negative size": lambda length: (_HEADER[:124] + "\xff" * 12 + _HEADER[136:]) * (length // 512 + 1),
    "no end": lambda length: _HEADER * (length // 512 + 1),
    **within(_HEADER, ""),
}


def _changed(output: str) -> object:
    return repositories.changed_files(output.encode("utf-8", "surrogatepass"), "It")


def _event(text: str) -> object:
    with tempfile.TemporaryDirectory(prefix="perfweb-test-") as folder:
        journal = driver._Journal(Path(folder) / "events")
        content = json.dumps({"res": {"msg": text, "stdout": text, "results": [{"failed": True, "msg": text}] * 3}})
        journal.path.write_text(f"{content}\n" * 3, encoding="utf-8")
        return [driver._failure(event) for event in journal.new()]


def _contention(text: str) -> object:
    return contention.failed(contention.counted(text, {"a": "a[0-9]*"}))


def _redfish(text: str) -> object:
    answer = read_json(text)
    found = power._object(answer)
    return power._system_paths(found), power._reset(found), power._complaint(answer)


def _task(text: str) -> object:
    """The body of a message of Celery."""
    body = text.encode("utf-8", "surrogatepass")
    accepted = serialization.prepare_accept_content(current_app.conf.accept_content)
    return serialization.loads(body, "application/json", "utf-8", accept=accepted)


PARSERS = [
    Parser(
        "answer of a BMC",
        _redfish,
        (JsonError,),
        {
            **repeated('{"Members": [', '{"@odata.id": "/a{0}"}, ', "1]}"),
            **repeated('{"error": {"@Message.ExtendedInfo": [', '{"Message": "a{0}"}, ', "1]}}"),
        },
    ),
    Parser(
        "message of Celery",
        _task,
        (DecodeError,),
        {
            **within("[[", "], {}, {}]", "nested", "run of '9"),
            **within('[[{"__type__": "decimal", "__value__": "', '"}], {}, {}]', "run of '9", "run of '1"),
            **repeated("[[", '{"__type__": "uuid", "__value__": {"hex": "{0}"}}, ', "1], {}, {}]"),
        },
    ),
    Parser("bundle of a run", _in_file(bundle.read_bundle), (BundleError,), _ARCHIVES),
    Parser(
        "archive that perfctl has downloaded", _in_file(download.check_archive), (download.DamagedError,), _ARCHIVES
    ),
    Parser(
        "manifest of a back-up",
        _in_file(backups.read_manifest, backups.MANIFEST),
        (backups.BackupError,),
        {**within('{"format": ', "}", "nested", "run of '9"), **repeated("{", '"a{0}": 1, ', '"a": 1}')},
    ),
    Parser("progress in Redis", lambda text: progress.read_entry("1-0", {"name": "a", "values": json.dumps(text)})),
    Parser(
        "output of git diff-tree",
        _changed,
        (PatchError, ValueError, StopIteration, IndexError),
        repeated("", "1\t1\tstack/a{0}\0"),
    ),
    Parser("output of git ls-tree", repositories._entry, (ValueError,), within("100644 blob a 1\t", "")),
    Parser("time of a commit", lambda text: repositories.read_time(text, "a"), (repositories.RepositoryError,)),
    Parser("event of a play", _event),
    Parser("contention of locks", _contention, (), repeated("count cnt_lock name\n", "1 2 a{0}\n")),
    Parser("columns of a profile of locks", lockprofiles.read_profile, (), repeated("", "a{0} ", "\n1 2 3")),
    Parser("offloads of an interface", linux.parse_offloads, (), repeated("", "a{0}: on\n")),
    Parser("list of CPUs", linux.parse_cpus, (linux.SettingError,)),
]
