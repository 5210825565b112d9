"""How an attention kernel divides queries and keys among CTAs."""

from __future__ import annotations

from dataclasses import dataclass

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int

_TILE_UNIT = 16
"""Rows and columns that one mma.sync of 16-bit elements takes of operands."""

_SKEWED, _ROLES = ("attention",), ("attention", "pipelined")
"""Schedules that want one iteration of a loop at least, and those whose producer warps are others
than the ones that compute."""

_REGISTERS = {
    (8, 0): (24, 240),
    (8, 2): (40, 232),
    (8, 4): (40, 216),
    (12, 0): (32, 160),
    (12, 2): (56, 152),
    (12, 4): (24, 144),
}
"""Registers of a thread that copies, and of one that computes, by the warps that compute and those
that transpose; kernels of other warps have no setmaxnreg."""

_GROUP, _COPYING = 4, 2
"""Warps of a warpgroup, which sets its registers together; and those that copy to rings, and store
from them."""


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """A choice of tiles.

    Attributes:
        rows: queries of a CTA.
        columns: keys of an iteration.
        warps: of a CTA; they divide the rows.
        packed: the rows of a CTA are queries of all heads that share a head of keys, so that keys
            are read once for them.
        splits: CTAs that divide the keys of a tile of queries; a second kernel combines them. An
            expression of sizes that only the launch knows, where it depends on them.
        schedule: the schedule of the kernel, such as `attention` for sm_90a: keys and values in
            rings that warps of their own fill; `cp_async`, where all warps do so; `None` for loads
            in the loop.
        stages: of each ring of a schedule.
        query_stages: of the ring of queries that persistent CTAs have.
        store_stages: of the ring that results wait in to be stored by TMA; 0 if the threads that
            hold them store them.
        store_parts: of a tile of results, of which one is a stage.
        ctas: persistent ones that a schedule makes; 0 for a CTA for each tile of queries.
        operand_registers: of a thread, in which a schedule may keep queries.
        speculated: registers of exponentials that a schedule begins before it is known whether they
            need another base.
        turns: 1 if warpgroups begin their dots in turns; 0 if each begins when it can.
        converters: warps that transpose values of 8 bits, for exponentials of 8 bits; 0 if those do
            it that compute, which is slow.
        reason: why it was chosen.
    """

    rows: int = 64
    columns: int = 64
    warps: int = 4
    packed: bool = False
    splits: Int = 1
    schedule: str | None = None
    stages: int = 2
    query_stages: int = 2
    store_stages: int = 0
    store_parts: int = 1
    ctas: int = 0
    operand_registers: int = 0
    speculated: int = 0
    converters: int = 0
    turns: int = 1
    reason: str = "given"

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            n = getattr(self, name)
            if type(n) is not int or n < _TILE_UNIT or n % _TILE_UNIT:
                raise LegoError(f"AttentionConfig: {name} is a multiple of {_TILE_UNIT}, not {n!r}")
        for name in ("warps", "splits", "stages", "query_stages", "store_parts"):
            n = getattr(self, name)
            if isinstance(n, Expr) and name == "splits":
                continue
            if type(n) is not int or n < 1:
                raise LegoError(f"AttentionConfig: {name} is at least 1, not {n!r}")

        if self.turns not in (0, 1):
            raise LegoError(f"AttentionConfig: turns is 0 or 1, not {self.turns!r}")
        for name in ("ctas", "store_stages", "operand_registers", "speculated", "converters"):
            n = getattr(self, name)
            if type(n) is not int or n < 0:
                raise LegoError(f"AttentionConfig: {name} is at least 0, not {n!r}")

    @property
    def is_split(self) -> bool:
        """Whether CTAs divide the keys of a tile of queries."""
        return isinstance(self.splits, Expr) or self.splits > 1

    @property
    def is_open(self) -> bool:
        """Whether only the launch knows how many splits there are."""
        return isinstance(self.splits, Expr)

    @property
    def needs_block(self) -> bool:
        """Whether the schedule wants one tile of keys at least."""
        return self.schedule in _SKEWED

    @property
    def params(self) -> dict[str, int]:
        """The values of the schedule's parameters."""
        if self.schedule is None:
            return {}
        params = {"stages": self.stages}
        if self.schedule in _ROLES:
            copying, computing = _REGISTERS.get((self.warps, self.converters), (0, 0))
            if copying:
                params |= {"producer_registers": copying, "consumer_registers": computing}
        if self.schedule in _SKEWED:
            names = (
                "ctas",
                "store_stages",
                "store_parts",
                "operand_registers",
                "speculated",
                "turns",
            )
            params |= {name: getattr(self, name) for name in names}
            params["outer_stages"] = self.query_stages
            if self.converters:
                others = -(-(self.converters + _COPYING) // _GROUP) * _GROUP
                params |= {"converter_warps": self.converters, "producer_warps": others}
        return params

    def describe(self, computed: str) -> str:
        """Return a line for `explain`.

        Args:
            computed: the element type of exponentials.
        """
        what = "queries of all heads of a group" if self.packed else "queries"
        split = f"; keys divided among {self.splits} CTAs" if self.is_split else ""
        tiles = f"{self.rows} {what} × {self.columns} keys an iteration, {self.warps} warps"
        schedule = f", schedule '{self.schedule}', {self.stages} stages" if self.schedule else ""
        schedule += f", {self.ctas} persistent CTAs" if self.ctas else ""
        return f"{tiles}{schedule}{split}, exponentials of {computed} ({self.reason})"
