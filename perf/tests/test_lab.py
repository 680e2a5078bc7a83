"""Processes are ended, children too, and nothing is left behind."""

import os
import pathlib
import socket
import threading
import time
import unittest

from suite import usage
from suite.lab import Lab, free_port, wait_for_port
from suite.memory_rows import ask


def gone(pid: int) -> bool:
    fields = usage.stat_fields(pid)
    return fields is None or fields[0] == 'Z'


class Processes(unittest.TestCase):
    def test_everything_ends_with_the_block(self) -> None:
        with Lab(pin=False) as lab:
            process = lab.start(['sleep', '60'], None, lab.folder / 'log')
            self.assertFalse(gone(process.pid))
        self.assertIsNotNone(process.returncode)
        self.assertFalse(lab.folder.exists())

    def test_also_after_an_exception(self) -> None:
        with self.assertRaises(KeyboardInterrupt), Lab(pin=False) as lab:
            process = lab.start(['sleep', '60'], None, lab.folder / 'log')
            raise KeyboardInterrupt
        self.assertIsNotNone(process.returncode)

    def test_children_end_too(self) -> None:
        with Lab(pin=False) as lab:
            log = lab.folder / 'log'
            process = lab.start(['sh', '-c', 'sleep 60 & echo $!; wait'], None, log)
            while not (said := log.read_text()).endswith('\n'):
                self.assertIsNone(process.poll())
            lab.stop([process])
            deadline = time.monotonic() + 20
            while not gone(int(said)):  # it was killed, and somebody else collects it
                self.assertLess(time.monotonic(), deadline, 'a child was left')

    def test_a_program_that_does_not_listen_is_reported_with_its_words(self) -> None:
        with Lab(pin=False) as lab:
            log = lab.folder / 'log'
            process = lab.start(['sh', '-c', 'echo no such $((40 + 2)); exit 3'], None, log)
            process.wait(10)
            with self.assertRaises(SystemExit) as raised:
                wait_for_port(free_port(), process, log)
        self.assertIn('no such 42', str(raised.exception))

    def test_a_program_that_is_not_there(self) -> None:
        with Lab(pin=False) as lab, self.assertRaises(SystemExit):
            lab.start(['/no/such/program'], None, lab.folder / 'log')

    def test_folders_are_new(self) -> None:
        with Lab(pin=False) as lab:
            self.assertNotEqual(lab.new_folder('nginx'), lab.new_folder('nginx'))
            self.assertEqual(pathlib.Path(lab.folder).stat().st_uid, os.getuid())


class Ask(unittest.TestCase):
    def answered(self, *pieces: bytes) -> None:
        """Asks a server that sends the pieces and then closes."""
        ours, theirs = socket.socketpair()

        def serve() -> None:
            theirs.recv(1000)
            for piece in pieces:
                theirs.sendall(piece)
            theirs.close()

        server = threading.Thread(target=serve)
        server.start()
        try:
            ask(ours, '/')
        finally:
            ours.close()
            server.join()

    def test_reads_the_whole_body(self) -> None:
        self.answered(b'HTTP/1.1 200 OK\r\nContent-', b'Length: 5\r\n\r\nab', b'cde')

    def test_a_body_that_ends_early(self) -> None:
        with self.assertRaises(OSError):
            self.answered(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab')

    def test_another_status(self) -> None:
        with self.assertRaises(OSError):
            self.answered(b'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n')


if __name__ == '__main__':
    unittest.main()
