"""The schedules of one compilation: that of the module, and those that single launches name.

A `gpu.launch` may have a schedule of its own, so that kernels of one host function are mapped to
the hardware in different ways:

    gpu.launch blocks(...) threads(...) {
      ...
    } {lego.schedule = "persistent", lego.params = {stages = 3 : i64}}

The module's schedule is then that of the other launches; if no launch names one, it gets the whole
module.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from lego_mlir.compiler import schedules
from lego_mlir.compiler.schedules import Schedule
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.modules import operations_in

_LAUNCH = "gpu.launch"


@dataclass(frozen=True)
class ModuleSchedules:
    """The schedules of a module's launches.

    Args:
        common: a schedule without a name of its own: its source, target and options are those of
            every launch's schedule.
        own: the schedule of the module, if it has one.

    Attributes:
        own_of_launches: by the number of a launch, the schedule that it names itself.
    """

    common: Schedule
    own: Schedule | None
    own_of_launches: dict[int, Schedule] = field(default_factory=dict)
    _named: dict[tuple[Any, ...], Schedule] = field(default_factory=dict)

    def of(self, launch: Any) -> Schedule | None:
        """Return the schedule of a launch: the one that it names, else the module's.

        Args:
            launch: a gpu.launch; None outside of one.

        Raises:
            LegoError: it names a schedule that does not ship with the package, or its parameters
                are no integers.
        """
        if launch is None or dialect.SCHEDULE not in launch.attributes:
            return self.own
        source = self.common.source
        name = schedules.name_in(launch, source) or ""
        params = _params(launch, source)
        key = (name, *sorted(params.items()))
        if key not in self._named:
            made = replace(self.common, name=name, parameters=params, kept=[], used_parameters={})
            self._named[key] = made
        return self._named[key]

    def apply(self, module: Any, entry: str, layouts: Layouts) -> bool:
        """Run the named sequence `entry` of every schedule, in place; return whether one ran.

        Args:
            module: the module.
            entry: `schedules.TILES` or `schedules.MAIN`.
            layouts: reads the layouts of the module.

        Raises:
            LegoError: a schedule is wrong, or a step of it fails.
        """
        launches = list(launches_in(module))
        if not any(dialect.SCHEDULE in launch.attributes for launch in launches):
            return self.own is not None and self.own.apply(module, entry, layouts)
        found = [(self.of(launch), launch) for launch in launches]
        for number, (schedule, launch) in enumerate(found):
            if schedule is not None and dialect.SCHEDULE in launch.attributes:
                self.own_of_launches[number] = schedule
        applied = [s.apply(launch, entry, layouts) for s, launch in found if s is not None]
        return any(applied)

    def is_any(self, module: Any) -> bool:
        """Return whether the module or one of its launches has a schedule."""
        return any(self.of(launch) is not None for launch in (None, *launches_in(module)))

    @property
    def kept(self) -> list[tuple[str, str]]:
        """Names and texts of what the schedules kept, in order."""
        own = [] if self.own is None else self.own.kept
        return own + [step for schedule in self._named.values() for step in schedule.kept]


def launches_in(module: Any) -> Iterator[Any]:
    """Return the gpu.launch operations of a module, in order."""
    return (op for op in operations_in(module.operation, (_LAUNCH,)) if op.name == _LAUNCH)


def _params(launch: Any, source: Source) -> dict[str, int]:
    """Return the parameters of a launch's schedule, from `dialect.PARAMS`."""
    if dialect.PARAMS not in launch.attributes:
        return {}
    given = launch.attributes[dialect.PARAMS]
    entries = {e.name: e.attr for e in ir.DictAttr(given)} if isinstance(given, ir.DictAttr) else {}
    if not entries or not all(isinstance(a, ir.IntegerAttr) for a in entries.values()):
        raise source.error(
            f"{dialect.PARAMS} is a dictionary of integers, not '{given}'",
            launch.location,
            hint=f"{dialect.PARAMS} = {{stages = 3 : i64}}",
        )
    return {name: ir.IntegerAttr(a).value for name, a in entries.items()}
