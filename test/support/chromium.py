"""Loads a page in Chromium, with a profile of its own."""

from __future__ import annotations

import pathlib
import subprocess
import tempfile


def load(chromium: str, url: str, *options: str, authority: pathlib.Path | None = None,
         certutil: str = '') -> tuple[str, str]:
    """The page as it is in the end, and what Chromium said. It trusts `authority` (by means of `certutil`)."""
    with tempfile.TemporaryDirectory(prefix='ringside-chromium-') as home:
        if authority is not None:
            _trust(certutil, home, authority)
        done = subprocess.run(
            [chromium, '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
             '--disable-background-networking', '--disable-component-update', '--disable-sync',
             '--disable-dev-shm-usage', f'--user-data-dir={home}/profile', '--virtual-time-budget=15000',
             '--timeout=60000', *options, '--dump-dom', url],
            check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
            env={'HOME': home, 'PATH': '/usr/bin:/bin', 'XDG_RUNTIME_DIR': home})
    return done.stdout, done.stderr[-2000:]


def _trust(certutil: str, home: str, authority: pathlib.Path) -> None:
    """Its user's certificate store gets the CA."""
    store = pathlib.Path(home) / '.pki' / 'nssdb'
    store.mkdir(parents=True)
    for options in (['-N', '--empty-password'], ['-A', '-n', 'test', '-t', 'C,,', '-i', str(authority)]):
        subprocess.run([certutil, '-d', f'sql:{store}', *options], check=True, timeout=60,
                       stdin=subprocess.DEVNULL, capture_output=True)
