"""Marks for tests that need more than the usual time."""

from __future__ import annotations

from typing import Callable, TypeVar

F = TypeVar('F', bound=Callable)


def limit(seconds: float) -> Callable[[F], F]:
    """The runner ends the test after this time instead of its default."""

    def mark(function: F) -> F:
        function.limit_seconds = seconds  # type: ignore[attr-defined]
        return function

    return mark
