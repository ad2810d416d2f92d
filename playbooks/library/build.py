#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the stack, or a Linux kernel that counts, from an archive once for each compiler; the name of the result
identifies sources and options.

The archive of a kernel has the folders `linux` and `lane`, with the programs that build and boot it.

The sources are untrusted, so they are unpacked, configured, compiled and installed in a sandbox without a network. The
build installs into an in-memory directory of limited size. Root copies that directory when all processes of the sandbox
have ended (module_utils/untrusted_tree.py). The only other output of the sandbox is its log.

The tree gets its name only when it is complete: it is copied to a temporary directory in the same place, which is
renamed at the end. So an interrupted build never looks like a complete one.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.sandbox import MIB, Sandbox, confined, mounted_scratch, unmount_scratch
from ansible.module_utils.supervision import FAILURE_LIMIT, ControllerGoneError, last_words, run_once
from ansible.module_utils.untrusted_tree import BYTES_LIMIT, ENTRY_LIMIT, UntrustedTreeError, copy_tree

DOCUMENTATION = """
module: build
short_description: build and install the stack once
options:
  root:
    description: The directory of all builds on this host.
    type: path
    required: true
  key:
    description: The name of this build; a hash of its sources and options.
    type: str
    required: true
  sources:
    description: A tar.gz of the sources in Base64. Without it nothing is built, and C(wanted) is whether it is
      needed. The action of this name (action_plugins/build.py) calls the module without it first.
    type: str
  meson:
    description: The meson to use.
    type: str
    required: true
  options:
    description: Options of meson setup; of a kernel, the names of configurations and single options.
    type: list
    elements: str
    default: []
  base:
    description: The installed build of the base of a patch, whose compiled files are used again.
    type: path
  timeout:
    description: Seconds that it may take.
    type: float
    required: true
  uid:
    description: User and group id to build as.
    type: int
    required: true
"""

RETURN = """
prefix:
  description: Where it is installed.
  type: str
wanted:
  description: Whether it is not built and the sources are needed; nothing else is returned then.
  type: bool
cached:
  description: Whether it had been built before, by the same versions of compiler, linker and C library.
  type: bool
build_log:
  description: What the build printed, also when it was made before.
  type: str
seconds:
  description: How long it took.
  type: float
"""

BUILD = """\
set -eu
exec >&2
archive=$1 meson=$2 prefix=$3
shift 3
say()
{
	printf '$ %s\\n' "$*"
	"$@"
}
mkdir source
tar --extract --gzip --ignore-zeros --no-same-owner --directory source --file "$archive"
if [ -e source/lane ]; then
	PYTHONPATH=$PWD/source/lane exec python3 -B -m runners.counted.make source/linux out "$prefix" "$@"
fi
tree=source
[ -e source/meson.build ] || tree=source/stack
[ -e "$tree/meson.build" ] || {
	echo 'the archive has neither meson.build nor stack/meson.build: make it of the directory stack/'
	exit 65
}
case " $*" in
*' -Dbuildtype='* | *' --buildtype'*) ;;
*) set -- "$@" -Dbuildtype=release ;;
esac
say "$meson" setup build "$tree" --prefix "$prefix" --libdir lib "$@"
say "$meson" compile -C build
say "$meson" install -C build
"""
TOOLCHAIN = "build.toolchain"
"""The file of a build that records its compiler and tools. A host with another compiler builds anew."""
CACHE = "ccache"
"""The cache of a build's compiled files, below its prefix."""
ROOM = "/build"
ROOM_LIMIT = 2048 * MIB
"""Max bytes of the sources, of everything built from them, and of the compiler's temporary files."""


def sandbox(params: dict[str, Any], prefix: Path, archive: Path, output: Path) -> Sandbox:
    """The sandbox of a build: it sees the archive and meson, and installs into `output`."""
    folder = Path(params["meson"]).parent
    # Meson needs the whole virtual environment that it is installed in.
    tools = folder.parent if (folder.parent / "pyvenv.cfg").exists() else folder
    trusted = [str(archive), *([str(tools)] if tools.is_absolute() else [])]
    writes = {str(output): str(prefix)}
    return Sandbox(
        params["uid"],
        reads=[params["base"]] if params["base"] else [],
        trusted=trusted,
        writes=writes,
        scratch={ROOM: ROOM_LIMIT},
        directory=ROOM,
        environment=compiler_cache(prefix, params["base"]),
    )


def compiler_cache(prefix: Path, base: str | None) -> dict[str, str]:
    """The variables of ccache, which meson and the builds of kernels use if a host has it.

    A build takes compiled files from that of its base, and cannot change them, or else leaves its own with its result.
    The compiler lists the headers of a file (CCACHE_DEPEND), because to preprocess it once more takes almost
    half as long as to compile it without optimisation.
    """
    variables = {"CCACHE_DIR": f"{base or prefix}/{CACHE}", "CCACHE_TEMPDIR": f"{ROOM}/{CACHE}", "CCACHE_DEPEND": "1"}
    return {**variables, "CCACHE_READONLY": "1"} if base else variables


def command(params: dict[str, Any], prefix: Path, archive: Path, output: Path) -> list[str]:
    """The command that builds the archive and installs the result into `output`."""
    script = ["sh", "-c", BUILD, "build", str(archive), params["meson"], str(prefix), *params["options"]]
    words: list[str] = confined(script, sandbox(params, prefix, archive, output))
    return words


def make(module: Module, prefix: Path) -> str:
    """Builds, copies the result to a temporary directory beside the prefix, and renames that; returns the log."""
    params = module.params
    work = prefix.with_name(prefix.name + ".new")
    archive, output, installed = work / "sources.tar.gz", work / "output", work / "installed"
    unmount_scratch(output)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        archive.write_bytes(base64.b64decode(params["sources"], validate=True))
        with mounted_scratch(output, params["uid"], BYTES_LIMIT, ENTRY_LIMIT):
            log = build(module, prefix, archive, output)
            copy_tree(output, installed)
        if not any(path.name != CACHE for path in installed.iterdir()):
            raise UntrustedTreeError("it is empty: meson.build installs nothing below the prefix")
        (work / "build.log").write_text(log, encoding="utf-8")
        (work / "build.log").replace(installed / "build.log")
        (work / TOOLCHAIN).write_text(toolchain(), encoding="utf-8")
        (work / TOOLCHAIN).replace(installed / TOOLCHAIN)
        os.sync()  # after a crash, a name whose files were not on the disk would pass for a complete build
        _take_place(installed, prefix)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return log


def _take_place(installed: Path, prefix: Path) -> None:
    """Gives a tree its final name; removes the tree of another compiler."""
    old = prefix.with_name(prefix.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if prefix.exists():
        prefix.rename(old)
    installed.rename(prefix)
    shutil.rmtree(old, ignore_errors=True)


def toolchain() -> str:
    """Returns the versions of the tools and libraries of a build: compiler, linker, C library."""
    lines = []
    for tool in ("cc", "ld", "ldd"):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}  # the C library of the sandbox
        try:
            printed = subprocess.run([tool, "--version"], env=environment, capture_output=True, text=True, check=False)
            lines.append(printed.stdout.partition("\n")[0])
        except FileNotFoundError:
            lines.append(f"no {tool}")
    return "\n".join(lines) + "\n"


def is_made(prefix: Path) -> bool:
    """Returns whether a build made with the host's present tools exists."""
    try:
        return (prefix / TOOLCHAIN).read_text(encoding="utf-8") == toolchain()
    except OSError:
        return False


def build(module: Module, prefix: Path, archive: Path, output: Path) -> str:
    """Runs the build until all its processes have ended; returns the log, and fails the module if the build fails."""
    argv, limit = command(module.params, prefix, archive, output), module.params["timeout"]
    done = run_once(argv, timeout=limit, directory="/", pid_directory=str(archive.parent))
    log: str = done["stderr"]
    if done["rc"] != 0 or done["timed_out"]:
        why = f"after {limit:g} s" if done["timed_out"] else f"with status {done['rc']}"
        module.fail_json(msg=f"the build ended {why}:\n{last_words(log)}", build_log=log[-FAILURE_LIMIT:])
    return log


@contextmanager
def only_one(prefix: Path) -> Iterator[None]:
    """Excludes other builds of the same sources on this machine; the hosts of a lab share the directory.

    Each build locks its own byte of one file, so that different builds do not wait for each other and no lock file
    remains.
    """
    byte = int.from_bytes(hashlib.sha256(prefix.name.encode()).digest()[:7], "big")
    with (prefix.parent / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX, 1, byte)
        yield


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "root": {"required": True},
            "key": {"required": True},
            "sources": {},
            "meson": {"required": True},
            "options": {"default": []},
            "base": {},
            "timeout": {"required": True},
            "uid": {"required": True},
        },
    )
    begin = time.monotonic()
    params = checked(module, "build")
    prefix = Path(params["root"]) / params["key"]
    try:
        cached, log = is_made(prefix), ""
        if not cached and params["sources"] is None:
            module.exit_json(changed=False, wanted=True)
        if not cached:
            with only_one(prefix):
                cached = is_made(prefix)
                log = "" if cached else make(module, prefix)
        if cached:
            log = (prefix / "build.log").read_text(encoding="utf-8")
    except UntrustedTreeError as error:
        module.fail_json(msg=f"what the build has installed is refused: {error}")
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"the build could not be made: {error}")
    except ControllerGoneError:
        raise SystemExit(1) from None
    module.exit_json(
        changed=not cached, prefix=str(prefix), cached=cached, build_log=log, seconds=time.monotonic() - begin
    )


if __name__ == "__main__":
    main()
