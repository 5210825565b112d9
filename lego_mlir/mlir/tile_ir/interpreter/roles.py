"""Roles that run at the same time: each goes on until it has to wait for another one.

CTAs of a cluster that meet run in the same way, each as one that may have roles inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir


class _Cancelled(BaseException):
    """Ends a role's thread when another role has failed."""


def _closed() -> Lock:
    """Return a lock that is held: who acquires it waits until another thread releases it."""
    lock = Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class Role:
    """One role of a kernel, or the whole kernel if it has none.

    Attributes:
        name: of the role.
        waits: what it waits for, and for what in words; `None` while it can go on.
        is_alone: whether no other one can let it go on.
    """

    name: str
    waits: tuple[Callable[[], bool], str] | None = None
    _go: Lock = field(default_factory=_closed)
    _stopped: Lock = field(default_factory=_closed)
    is_alone: bool = True
    _is_done: bool = False
    _is_cancelled: bool = False
    _error: BaseException | None = None

    def wait(self, is_ready: Callable[[], bool], what: str) -> None:
        """Let the other roles run until a condition holds.

        Args:
            is_ready: the condition.
            what: what the role waits for, in words.

        Raises:
            LegoError: no other role can make it hold.
        """
        if is_ready():
            return
        self.waits = (is_ready, what)
        if self.is_alone:
            raise deadlock({self.name: what})
        self._stopped.release()
        self._go.acquire()
        self.waits = None
        if self._is_cancelled:
            raise _Cancelled


def deadlock(waiting: Mapping[str, str]) -> LegoError:
    """Return the error that no role can go on.

    Args:
        waiting: what each role waits for, in words.
    """
    roles = ", ".join(f"'{name}' waits {what}" for name, what in waiting.items())
    return LegoError(
        f"deadlock: {roles}",
        hint="a stage is filled again only when it has been released: more stages, or the "
        "releases before the waits that need them",
    )


def run_roles(
    bodies: Sequence[tuple[Role, Callable[[], Any]]], context: Any, outer: Role | None = None
) -> None:
    """Run roles, one at a time, each until it waits for another.

    Args:
        bodies: the roles, with what each of them does.
        context: of the module.
        outer: the CTA whose roles they are, if others of its cluster run beside it.

    Raises:
        LegoError: a role fails, or none of them can go on.
    """
    for role, body in bodies:
        role.is_alone = False
        Thread(target=copy_context().run, args=(_run, role, body, context), daemon=True).start()
    going = [role for role, _ in bodies]
    try:
        while going:
            ready = [role for role in going if role.waits is None or role.waits[0]()]
            if not ready:
                waiting = {role.name: role.waits for role in going if role.waits}
                words = {name: what for name, (_, what) in waiting.items()}
                if outer is None or outer.is_alone:
                    raise deadlock(words)
                shown = ", ".join(f"in '{name}' {what}" for name, what in words.items())
                outer.wait(lambda: any(can() for can, _ in waiting.values()), shown)  # noqa: B023
                continue
            for role in ready:
                role._go.release()
                role._stopped.acquire()
                if role._error is not None:
                    raise role._error
            going = [role for role in going if not role._is_done]
    finally:
        for role in going:
            if not role._is_done:
                role._is_cancelled = True
                role._go.release()
                role._stopped.acquire()


def _run(role: Role, body: Callable[[], Any], context: Any) -> None:
    """Run a role in its thread, when it is its turn."""
    role._go.acquire()
    try:
        if not role._is_cancelled:
            with context, ir.Location.unknown(), np.errstate(all="ignore"):
                body()
    except _Cancelled:
        pass
    except BaseException as e:
        role._error = e
    finally:
        role._is_done = True
        role._stopped.release()
