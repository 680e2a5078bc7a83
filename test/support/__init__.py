"""What the end-to-end and conformance tests stand on. Python 3.11, standard library only."""
