#!/usr/bin/env python3
"""Prints the executables of a meson build folder whose names match a pattern."""

import argparse
import fnmatch
import json
import os
import subprocess
import sys


def executables(folder: str) -> dict[str, str]:
    """Name to path of every executable that meson knows of in a build folder."""
    output = subprocess.run(['meson', 'introspect', '--targets', folder], check=True,
                            capture_output=True, text=True).stdout
    return {t['name']: t['filename'][0] for t in json.loads(output) if t['type'] == 'executable'}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--files', action='store_true', help='print paths below the folder instead of names')
    parser.add_argument('folder')
    parser.add_argument('pattern', nargs='?', default='*')
    options = parser.parse_args()
    found = {name: path for name, path in executables(options.folder).items()
             if fnmatch.fnmatch(name, options.pattern)}
    for name, path in sorted(found.items()):
        print(os.path.relpath(path, options.folder) if options.files else name)
    return 0 if found else 1


if __name__ == '__main__':
    sys.exit(main())
