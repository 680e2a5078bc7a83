"""What may be skipped, and what a manifest may say."""

import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

from stages import manifest
from stages.manifest import Rule
from stages.outcome import Outcome

HERE = 'g++ 12.2.0, glibc 2.36, x86_64 avx2'
SKIP = ('budgets', 'counted elsewhere')


def on(machine: str) -> contextlib.AbstractContextManager:
    return mock.patch.object(manifest, 'machine', return_value=machine)


def expecting(text: str) -> contextlib.AbstractContextManager:
    folder = tempfile.TemporaryDirectory(prefix='ringside-manifest-')
    path = pathlib.Path(folder.name) / 'expected'
    path.write_text(text)
    stack = contextlib.ExitStack()
    stack.enter_context(folder)
    stack.enter_context(mock.patch.object(manifest, 'EXPECTED', path))
    stack.enter_context(mock.patch.object(manifest, 'SKIPS', path))
    stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
    return stack


class Skips(unittest.TestCase):
    def test_a_glob_allows_everywhere(self) -> None:
        rule = Rule.read('e2e.browser.*')
        self.assertTrue(rule.allows('e2e.browser.loads'))
        self.assertFalse(rule.allows('e2e.curl.loads'))

    def test_unless_allows_on_other_machines_only(self) -> None:
        rule = Rule.read(f'budgets unless {HERE}')
        for machine, allowed in ((HERE, False), (HERE.removesuffix(' avx2'), True),
                                 (HERE.replace('12.2.0', '13.1.0'), True)):
            with on(machine):
                self.assertEqual(rule.allows('budgets'), allowed)
                self.assertFalse(rule.allows('budgets.keep-alive'))

    def test_the_machine_is_described_in_the_words_of_the_rules(self) -> None:
        self.assertRegex(manifest.machine(), r'^g\+\+ \d+\.\d+\.\d+, glibc \d+\.\d+, \w+( avx2)?$')

    def test_a_skip_for_the_machine_does_not_count(self) -> None:
        total = Outcome(skipped=[SKIP, ('other', 'why')])
        with expecting(f'budgets unless {HERE}\nother\n'), on('another'):
            outcome = manifest.check_skips(total)
        self.assertEqual((outcome.failed, outcome.facts), ([], {'skipped': '1'}))

    def test_where_it_is_not_allowed_it_fails_with_its_reason(self) -> None:
        with expecting(f'budgets unless {HERE}\n'), on(HERE):
            outcome = manifest.check_skips(Outcome(skipped=[SKIP]))
        self.assertEqual(outcome.failed, ['skipped.budgets: counted elsewhere'])
        self.assertEqual(outcome.facts, {'skipped': '1'})

    def test_the_machine_of_the_budgets_may_not_skip_them(self) -> None:
        toolchain = next(line for line in (manifest.ROOT / 'perf' / 'budgets.toml').read_text().splitlines()
                         if line.startswith('toolchain = '))
        rule = next(rule for rule in manifest.skip_rules() if rule.pattern == 'budgets')
        compiler, libc, cpu = rule.unless.split(', ')
        self.assertEqual(toolchain, f'toolchain = "{compiler}, {libc}, optimised, {cpu}"')


class Manifest(unittest.TestCase):
    def failed(self, expected: str, facts: dict[str, str]) -> list[str]:
        with expecting(expected):
            return manifest.check_manifest(Outcome(facts=facts)).failed

    def test_equal_is_good(self) -> None:
        self.assertEqual(self.failed('asan=yes\n', {'asan': 'yes'}), [])

    def test_one_of_the_alternatives_is_good(self) -> None:
        for have, failed in (('yes', []), ('skipped', []), ('no', ['manifest.a']), ('yes|skipped', ['manifest.a'])):
            self.assertEqual(self.failed('a=yes|skipped\n', {'a': have}), failed)

    def test_what_either_side_lacks_fails(self) -> None:
        self.assertEqual(self.failed('a=yes\n', {'b': 'yes'}), ['manifest.a', 'manifest.b'])


if __name__ == '__main__':
    unittest.main()
