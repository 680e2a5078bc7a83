"""One test for each folder of `cases` that has bytes to send."""

import unittest

from support import testcase

from . import judge


class Cases(testcase.RingsideTest):
    """Raw bytes in; what client and upstream must see."""

    def play(self, case: judge.Case) -> None:
        server = judge.Server(case)
        self.addCleanup(server.close)
        ringside = self.start_proxy(server, timeouts='client_header = "5s"')
        seen = judge.play(case, ringside.port, server)
        reason = judge.verdict(case, seen)
        if reason:
            self.fail(f'{case.data["right"]} ({case.data["rfc"]})\n{reason}\n'
                      f'client got: {seen.data[:400]!r} closed={seen.closed}\n'
                      f'upstream got: {seen.upstream_raw[:600]!r}')
        self.assertEqual(server.errors, [], 'what the upstream could not read')


def _add_tests() -> None:
    for folder in sorted(judge.CASES.iterdir()):
        case = judge.Case(folder)
        if 'accept' not in case.data:
            continue
        test = lambda self, case=case: self.play(case)
        test.__doc__ = case.data['symptom']
        setattr(Cases, 'test_' + case.name.replace('-', '_'), test)


_add_tests()

if __name__ == '__main__':
    unittest.main()
