"""Ringside beside other proxies, on one machine, in one run. perf/compare is the command."""
