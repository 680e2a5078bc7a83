"""Reads /big from a port as fast as it can and prints how much came. Run by latency_rows.py."""

import socket
import sys

STEP_BITS = 27  # a line for each 128 MiB


def main() -> None:
    room, total = bytearray(1 << 20), 0
    with socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10) as sock:
        sock.settimeout(60)
        sock.sendall(b'GET /big HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        while count := sock.recv_into(room):
            total += count
            if total >> STEP_BITS != (total - count) >> STEP_BITS:
                print(total, flush=True)


if __name__ == '__main__':
    main()
