"""Builds the Go programs of test/support."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess


def build(go: str, name: str, folder: pathlib.Path) -> pathlib.Path:
    """test/support/NAME/main.go, which needs the standard library alone, as a program in `folder`."""
    source = pathlib.Path(__file__).resolve().parent / name / 'main.go'
    copy = folder / 'main.go'  # away from whatever the folders above say about modules
    shutil.copy(source, copy)
    program = folder / name
    done = subprocess.run(
        [go, 'build', '-o', str(program), str(copy)], check=False, timeout=240, cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, 'HOME': os.environ.get('HOME') or str(folder), 'CGO_ENABLED': '0',
             'GO111MODULE': 'off', 'GOFLAGS': '', 'GOTOOLCHAIN': 'local', 'GOPROXY': 'off'})
    if done.returncode != 0:
        raise AssertionError(f'go cannot build {source}:\n' + done.stdout.decode(errors='backslashreplace'))
    return program
