#!/usr/bin/env python3
"""Fails when a folder of src uses another in a way that the table of src/README.md does not allow.

Checked: includes of "ringside/FOLDER/..." in src/ and include/ringside/, includes of libraries outside
the only folder that may touch them, includes that reach into another folder's private headers, and
the dependencies named in each folder's meson.build.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Header names of the libraries that the column "only place that touches" speaks of.
LIBRARY_HEADERS = {
    'liburing': r'liburing(\.h|/)',
    'nghttp2': r'nghttp2/',
    'toml++': r'toml\+\+/|toml\.hpp',
    'openssl': r'openssl/',
    'simdjson': r'simdjson(\.h|/)',
}
LIBRARY_DEPENDENCIES = {
    'liburing': 'uring_dep',
    'nghttp2': 'nghttp2_dep',
    'toml++': 'tomlplusplus_dep',
    'openssl': 'openssl_dep',
    'simdjson': 'simdjson_dep',
}


@dataclasses.dataclass
class Table:
    """What the table says: allowed folders of each folder, and the folder of each library."""

    may_use: dict[str, set[str]]
    owner_of_library: dict[str, str]


def parse_table(text: str) -> Table:
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
        if line.lstrip().startswith('|') and len(cells) == 4 and re.fullmatch(r'`\w+`', cells[0]):
            rows.append([cells[0].strip('`'), *cells[1:]])
    if not rows:
        raise ValueError('no folder table with four columns and folder names in `backticks`')
    folders = [row[0] for row in rows]
    may_use: dict[str, set[str]] = {}
    owners: dict[str, str] = {}
    for index, (folder, _, uses, touches) in enumerate(rows):
        words = set(re.findall(r'[a-z_]+', uses))
        if 'above' in words:
            allowed = set(folders[:index])
        elif 'all' in words:
            allowed = set(folders)
        else:
            unknown = words - set(folders)
            if unknown:
                raise ValueError(f'{folder} may use {", ".join(sorted(unknown))}: no such folder')
            allowed = words
        may_use[folder] = allowed | {folder, 'base'}
        for library in LIBRARY_HEADERS:
            if library in touches.lower():
                owners[library] = folder
    return Table(may_use, owners)


def folder_of(path: pathlib.Path, root: pathlib.Path) -> str | None:
    parts = path.relative_to(root).parts
    if parts[:2] == ('include', 'ringside') and len(parts) > 3:
        return parts[2]
    if parts[0] == 'src' and len(parts) > 2:
        return parts[1]
    return None


def check_includes(path: pathlib.Path, folder: str, table: Table, root: pathlib.Path) -> list[str]:
    problems = []
    name = path.relative_to(root)
    for number, line in enumerate(path.read_text(errors='replace').splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        header = match.group(2)
        used = re.match(r'ringside/(\w+)/', header)
        if used and used.group(1) not in table.may_use[folder]:
            problems.append(f'{name}:{number}: {folder} may not use {used.group(1)} ({header})')
        if match.group(1) == '"' and not used and ('/' in header and (root / 'src' / header).exists()
                                                   or header.startswith('../')):
            problems.append(f"{name}:{number}: {header} is another folder's private header")
        for library, pattern in LIBRARY_HEADERS.items():
            owner = table.owner_of_library.get(library)
            if owner and owner != folder and re.match(pattern, header):
                problems.append(f'{name}:{number}: only {owner} may touch {library} ({header})')
    return problems


def check_meson(path: pathlib.Path, folder: str, table: Table, root: pathlib.Path) -> list[str]:
    problems = []
    text = re.sub(r'#.*', '', path.read_text())
    name = path.relative_to(root)
    for used in sorted(set(re.findall(r'\b(\w+)_dep\b', text))):
        if used in table.may_use and used not in table.may_use[folder]:
            problems.append(f'{name}: {folder} may not link {used}')
    for library, dependency in LIBRARY_DEPENDENCIES.items():
        owner = table.owner_of_library.get(library)
        # Who may use the owner may need its library to compile the owner's headers.
        if owner and owner not in table.may_use[folder] and re.search(rf'\b{dependency}\b', text):
            problems.append(f'{name}: only {owner} and those who use it may link {library}')
    return problems


def check_tree(root: pathlib.Path) -> list[str]:
    readme = root / 'src' / 'README.md'
    if not readme.is_file():
        return ['src/README.md with the folder table is missing']
    table = parse_table(readme.read_text())
    problems = []
    files = 0
    for top in (root / 'src', root / 'include' / 'ringside'):
        for path in sorted(top.rglob('*')):
            if not path.is_file():
                continue
            folder = folder_of(path, root)
            if folder is None:
                continue
            if folder not in table.may_use:
                problems.append(f'{path.relative_to(root)}: the folder is not in the table of src/README.md')
            elif path.suffix in ('.cc', '.h'):
                files += 1
                problems += check_includes(path, folder, table, root)
            elif path.name == 'meson.build':
                problems += check_meson(path, folder, table, root)
    if files == 0:
        problems.append('no source file was found, so nothing was checked')
    return [p for p in problems if 'src/decisions/' not in p]


SELF_TEST_TABLE = """
| folder | its one job | may use | only place that touches |
|---|---|---|---|
| `base` | x | – | – |
| `ring` | x | base | liburing |
| `http` | x | base | nghttp2 |
| `net` | x | base, ring | socket calls |
| `proxy` | x | all above | – |
| `app` | x | all | – |
"""

# Each breaks one rule, and nothing else; the good tree breaks none.
SELF_TEST_GOOD = {
    'src/net/a.cc': '#include <liburing_not.h>\n#include "ringside/ring/r.h"\n#include "ringside/base/b.h"\n',
    'src/ring/r.cc': '#include <liburing.h>\n#include "r_private.h"\n',
    'src/ring/r_private.h': '#pragma once\n',
    'include/ringside/proxy/p.h': '#include "ringside/net/n.h"\n#include "ringside/http/h.h"\n',
    'src/app/main.cc': '#include "ringside/proxy/p.h"\n',
    'src/net/meson.build': "net_lib = static_library('net', dependencies: [ring_dep])\n",
}
SELF_TEST_BAD = {
    'an arrow upwards': {'src/base/x.cc': '#include "ringside/ring/r.h"\n'},
    'an arrow sideways': {'src/http/x.cc': '#include "ringside/ring/r.h"\n'},
    'an arrow upwards in a header': {'include/ringside/net/x.h': ' # include "ringside/proxy/p.h"\n'},
    'a library elsewhere': {'src/proxy/x.cc': '#include <liburing.h>\n'},
    'a library in a sub-path': {'src/net/x.cc': '#include <nghttp2/nghttp2.h>\n'},
    "another folder's private header": {'src/net/x.cc': '#include "ring/r_private.h"\n'},
    'a private header by a relative path': {'src/net/x.cc': '#include "../ring/r_private.h"\n'},
    'a folder that is not in the table': {'src/extra/x.cc': '\n'},
    'a link that is not allowed': {'src/http/meson.build': 'x = [net_dep]\n'},
    'a library linked elsewhere': {'src/http/meson.build': 'x = [uring_dep]\n'},
}


def self_test() -> list[str]:
    failures = []

    def findings(files: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {'src/README.md': SELF_TEST_TABLE, **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_tree(root)

    good = findings(SELF_TEST_GOOD)
    if good:
        failures.append(f'the good tree was refused: {good}')
    for what, files in SELF_TEST_BAD.items():
        found = findings({**SELF_TEST_GOOD, **files})
        if len(found) != 1:
            failures.append(f'{what}: expected one finding, got {found}')
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--self-test', action='store_true', help='check this checker')
    options = parser.parse_args()
    problems = self_test() if options.self_test else check_tree(ROOT)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
