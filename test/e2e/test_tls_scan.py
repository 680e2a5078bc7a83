"""What testssl.sh finds at a TLS listener with the default policy, beside what it finds at nginx with its defaults."""

import json
import subprocess

from support import nginx, testcase
from support.limits import limit

# The rest of its checks are of HTTP headers, or simulate clients from what these find.
CHECKS = ('--protocols', '--std', '--fs', '--server-preference', '--server-defaults', '--vulnerable')
# testssl.sh calls whatever is not a finding so, and those that are LOW are no matter.
HARMLESS = {'OK', 'INFO', 'DEBUG', 'LOW'}
# Its s_client leaves at once, often before TLS 1.3's tickets have come, whatever the server; then it cannot tell, and says
# WARN. test_tls.py looks at resumption.
UNDECIDED = {'sessionresumption_ticket', 'sessionresumption_ID'}
# Each group of checks leaves findings of these names, so that a scan which was cut short is noticed.
EXPECTED = {'TLS1_2', 'TLS1_3', 'cipherlist_STRONG', 'PFS', 'protocol_negotiated', 'cert_chain_of_trust', 'heartbleed',
            'LOGJAM', 'RC4'}


class Scan(testcase.AuthorityTest):
    """nginx has the same certificate, and is scanned in the same way."""

    def scan(self, name: str, port: int) -> dict[str, dict[str, str]]:
        """Its findings by their names."""
        report = self.folder / f'{name}.json'
        done = subprocess.run(
            [self.need_program('testssl'), '--quiet', '--color', '0', '--warnings', 'off', '--nodns', 'min', '--ip',
             '127.0.0.1', '--add-ca', str(self.authority.ca), '--jsonfile', str(report), *CHECKS, f'a.test:{port}'],
            check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
        said = done.stdout.decode(errors='backslashreplace')
        self.assertTrue(report.exists(), said)
        found = {finding['id']: finding for finding in json.loads(report.read_text())}
        self.assertLessEqual(EXPECTED, found.keys(), f'{name}: the scan is not whole\n{said}')
        return found

    @limit(300)
    def test_nothing_that_nginx_does_not_have(self) -> None:
        pair = self.authority.issue('main')
        peer = nginx.Nginx(tls=pair)
        self.addCleanup(peer.close)
        ringside, _ = self.start_pair(tls=f'certificates = [{{ {pair.toml()} }}]\n')
        theirs = self.scan('nginx', peer.port)
        ours = self.scan('ringside', ringside.port)
        worse = {name: f'{finding["severity"]}: {finding["finding"]}' for name, finding in ours.items()
                 if finding['severity'] not in HARMLESS and
                 not (name in UNDECIDED and finding['severity'] == 'WARN') and
                 theirs.get(name, {}).get('severity') != finding['severity']}
        self.assertEqual(worse, {})
        self.assertEqual(ours['cert_chain_of_trust']['severity'], 'OK', ours['cert_chain_of_trust'])
        # Debian 12's testssl.sh (3.0) gives no grade; these would cap one below A.
        for name in ('SSLv2', 'SSLv3', 'TLS1', 'TLS1_1'):
            self.assertEqual(ours[name]['finding'], 'not offered', name)
