"""What is read from /proc, from the load's counters and from the upstream."""

import os
import pathlib
import time
import unittest

from suite import loads, machine, profile, syscalls, upstream, usage

ROLLUP = '''55d0c0000000-7ffd00000000 ---p 00000000 00:00 0                          [rollup]
Rss:                9000 kB
Private_Clean:        12 kB
Private_Dirty:      1500 kB
'''
STRACE = '''% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000600           6       100           io_uring_enter
 40.00    0.000400           4       100         7 read
------ ----------- ----------- --------- --------- ----------------
100.00    0.001000           5       200         7 total
'''


class Usage(unittest.TestCase):
    def test_rollup(self) -> None:
        sizes = usage.parse_rollup(ROLLUP)
        self.assertEqual((sizes['Private_Dirty'], sizes['Private_Clean']), (1500 * 1024, 12 * 1024))

    def test_own_cpu_clock(self) -> None:
        before, process = usage.process_cpu(os.getpid()), time.process_time()
        sum(range(300_000))
        self.assertAlmostEqual(usage.process_cpu(os.getpid()) - before, time.process_time() - process, delta=0.01)

    def test_tree_has_the_children(self) -> None:
        self.assertEqual(usage.tree(os.getpid())[0], os.getpid())
        self.assertIn(os.getpid(), usage.tree(os.getppid()))

    def test_a_process_that_ended(self) -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        self.assertEqual(usage.tree_cpu(pid), 0.0)
        self.assertEqual(usage.private_memory(pid), {'dirty': 0, 'clean': 0})


class Machine(unittest.TestCase):
    def test_cpu_line(self) -> None:
        busy, stolen = machine.parse_cpu_line('cpu  10 20 30 1000 50 1 2 7 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n')
        self.assertAlmostEqual(busy, 63 * machine.TICK)
        self.assertAlmostEqual(stolen, 7 * machine.TICK)

    def test_busy(self) -> None:
        self.assertEqual(machine.why_busy(0.02, 0.3, 2), '')
        self.assertIn('50% busy', machine.why_busy(0.5, 0.3, 2))
        self.assertIn('load average is 3.00', machine.why_busy(0.02, 3.0, 2))


class Counts(unittest.TestCase):
    def test_strace(self) -> None:
        self.assertEqual(syscalls.parse(STRACE), 200)
        self.assertEqual(syscalls.parse(STRACE.replace('         7 total', '           total')), 200)

    def test_perf(self) -> None:
        self.assertEqual(syscalls.parse('# started on x\n\n12345,,raw_syscalls:sys_enter,10,100.00,,\n'), 12345)
        self.assertIsNone(syscalls.parse('<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n'))

    def test_upstream_status(self) -> None:
        text = ('Active connections: 1 \nserver accepts handled requests\n 12 12 3456 \n'
                'Reading: 0 Writing: 1 Waiting: 0 \n')
        self.assertEqual(upstream.parse_status(text), (12, 3456))
        with self.assertRaises(SystemExit):
            upstream.parse_status('404')


class Profile(unittest.TestCase):
    def test_parts(self) -> None:
        text = (' 25.25% ,  7:proxy    ,[kernel.kallsyms]   \n  4.75% ,  7:proxy  ,[nf_tables]\n 15.00% ,  7:proxy,proxy\n'
                ' 40.00% ,  9:other    ,proxy\n  3.50% ,  8:proxy  ,libc.so.6\n  1.50% ,  8:proxy  ,[vdso]\n')
        shares = profile.parse(text, [7, 8], 'proxy')
        for part, share in (('kernel', 0.6), ('own', 0.3), ('libraries', 0.1)):
            self.assertAlmostEqual(shares[part], share)

    def test_nothing(self) -> None:
        self.assertEqual(profile.parse(' 40.00% ,  9:other  ,proxy\n', [7], 'proxy'), {})


class Loads(unittest.TestCase):
    def test_a_tool_that_cannot_do_the_job_is_not_taken(self) -> None:
        fresh = loads.Job('/', 1, 1, fresh=True)
        self.assertEqual(loads.choose(fresh, 'h2load', 'wrk').name, 'wrk')
        self.assertEqual(loads.choose(loads.Job('/', 1, 1), 'h2load', 'wrk').name, 'h2load')
        self.assertEqual(loads.choose(loads.Job('/', 1, 1, rate=10), 'wrk', 'oha').name, 'oha')
        for other in ('wrk', 'oha'):
            self.assertEqual(loads.choose(loads.Job('/', 1, 1, streams=2), other, 'h2load').name, 'h2load')

    def test_streams_are_http_2(self) -> None:
        folder = pathlib.Path('/tmp')
        command = loads.h2load_command('h2load', loads.Job('/x', 7, 2, streams=9), 'https://h/x', folder)
        self.assertEqual(command[command.index('-m') + 1], '9')
        self.assertNotIn('--h1', command)
        self.assertIn('--h1', loads.h2load_command('h2load', loads.Job('/x', 7, 2), 'http://h/x', folder))

    def test_commands(self) -> None:
        job = loads.Job('/x', 7, 2, fresh=True, rate=100, upload=pathlib.Path('/tmp/body'))
        command = loads.oha_command('oha', job, 'http://h/x', pathlib.Path('/tmp'))
        for word in ('--latency-correction', '--disable-keepalive', '/tmp/body', 'POST', '2s'):
            self.assertIn(word, command)
        self.assertEqual(command[-1], 'http://h/x')


if __name__ == '__main__':
    unittest.main()
