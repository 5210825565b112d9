"""How a kernel on rows divides them among CTAs and threads."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, WARP_THREADS
from lego_mlir.kernels.rows.problem import RowsProblem


@dataclass(frozen=True, slots=True)
class RowsConfig:
    """A choice of tile and threads.

    Attributes:
        rows: rows that a CTA holds in registers at once.
        warps: of the CTA; they divide the rows first, then the columns.
        piece: vectors of a thread in each piece of a row; 0 where a CTA works on whole rows.
        vector: elements of such a vector.
        held: whether the pieces of a row stay in registers, or are read again.
        cluster: CTAs that have a row together, each of them a part of it.
        ctas: CTAs, or clusters, each of which works on rows until none are left; 0 for one that
            has its rows only. A kernel that adds up columns has such CTAs.
        ahead: iterations whose rows such a CTA loads before it works on those of one. In other CTAs
            with whole rows, whether what belongs to columns is loaded before statistics are
            computed.
        together: iterations whose rows have their statistics in one round trip.
        stages: iterations whose rows a persistent CTA has in shared memory, where cp.async copies
            them ahead, and from where each pass over a row reads it; 0 for rows in registers.
        masked: whether all CTAs with stages have the same number of iterations, and rows past the
            last are masked; otherwise each has the iterations of its own rows.
        ring_bytes: bytes of shared memory in which each piece has stages of its own, `stages` at
            most, the last ones fewer if need be; each is filled again as soon as it has been read.
            0 where all pieces have equally many, and those of a row are copied together.
        short: whether what belongs to columns stays as short as it is stored from row to row, where
            rows pass through stages: it takes half the registers if it is bf16, and instructions.
        ctas_per_sm: CTAs for which a multiprocessor is to have registers.
        reason: why it was chosen.
    """

    rows: int
    warps: int
    piece: int = 0
    vector: int = 1
    held: bool = False
    cluster: int = 1
    ctas: int = 0
    ahead: int = 0
    together: int = 1
    stages: int = 0
    masked: bool = False
    ring_bytes: int = 0
    short: bool = False
    ctas_per_sm: int = 1
    reason: str = "given"

    def __post_init__(self) -> None:
        for name in ("rows", "vector", "cluster"):
            n = getattr(self, name)
            if type(n) is not int or n < 1 or n & (n - 1):
                raise LegoError(f"RowsConfig: {name} is a power of two, not {n!r}")
        least_of = {"warps": 1, "ctas": 0, "ahead": 0, "together": 1, "stages": 0, "ring_bytes": 0}
        least_of["ctas_per_sm"] = 1
        for name, least in least_of.items():
            n = getattr(self, name)
            if type(n) is not int or n < least:
                raise LegoError(f"RowsConfig: {name} is an integer from {least} on, not {n!r}")
        if type(self.piece) is not int or self.piece < 0 or self.piece & (self.piece - 1):
            raise LegoError(f"RowsConfig: piece is 0 or a power of two, not {self.piece!r}")

        if self.stages == 1 or (self.stages and not (self.ctas and self.piece)):
            raise LegoError(
                "RowsConfig: rows pass in pieces through 2 stages or more, of persistent CTAs",
                hint="RowsConfig(rows=1, warps=8, piece=2, vector=8, ctas=132, stages=2)",
            )
        if self.ring_bytes and not self.stages:
            raise LegoError(
                "RowsConfig: ring_bytes is for rows that pass through stages, and stages is 0",
                hint="RowsConfig(rows=1, warps=8, piece=2, ctas=132, stages=2, ring_bytes=200000)",
            )
        if self.masked and not self.stages:
            raise LegoError(
                "RowsConfig: masked is for rows that pass through stages, and stages is 0",
                hint="RowsConfig(rows=1, warps=8, piece=2, ctas=132, stages=2, masked=True)",
            )
        if self.cluster > 1 and self.rows > 1:
            raise LegoError(
                "RowsConfig: a cluster has one row",
                hint="RowsConfig(rows=1, warps=8, cluster=4)",
            )

    @property
    def of_several_rows(self) -> tuple[str, ...]:
        """What it says of statistics and of CTAs that have several rows, as it was written."""
        given = {
            name: getattr(self, name)
            for name in ("ctas", "ahead", "together", "stages", "ring_bytes", "masked")
        }
        plain = {field.name: field.default for field in fields(self)}
        return tuple(f"{name}={n}" for name, n in given.items() if n != plain[name])

    @property
    def threads(self) -> int:
        """The threads of a CTA."""
        return self.warps * WARP_THREADS

    @property
    def is_resident(self) -> bool:
        """Whether the pieces of a row stay where they are, in registers or shared memory."""
        return self.held or self.stages > 0

    @property
    def columns(self) -> int:
        """The columns of a piece."""
        return self.piece * self.vector * self.cluster * self.threads // self.rows

    def count(self, columns: int) -> int:
        """Return the number of pieces of a row."""
        return -(-columns // self.columns)

    def fills(self, columns: int, one_in: int) -> bool:
        """Return whether at most one in so many columns of pieces is past the end of a row."""
        return -columns % self.columns * one_in <= columns

    def has_fixed_starts(self, rows: int | None, starts: int) -> bool:
        """Return whether all rows of each persistent CTA begin at the same place of a vector.

        Args:
            rows: of the matrix; `None` if each launch has its own number.
            starts: at how many places rows begin; that of every so many is the same.
        """
        return self.ctas % starts == 0 or (rows is not None and rows <= self.ctas)

    def has_runs(self, problem: RowsProblem) -> bool:
        """Return whether persistent CTAs have runs of rows that begin at one place of a vector.

        Otherwise their rows are as many apart as there are CTAs.
        """
        is_apart = self.stages > 0 and not self.has_fixed_starts(problem.rows, problem.starts)
        return is_apart and problem.is_in_words and bool(problem.column_sums)

    def elements(self, columns: int) -> int:
        """Return how many columns each thread has of a row in pieces; 0 if not equally many."""
        threads = self.cluster * self.threads
        is_equal = columns % self.columns == 0 and threads & (threads - 1) == 0
        return columns // threads if is_equal else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a piece: vectors of a thread, threads, and elements of a vector.

        That of the CTAs of a cluster has the CTAs before them.
        """
        ctas = (self.cluster,) if self.cluster > 1 else ()
        return *ctas, self.piece, self.threads, self.vector

    @property
    def layout(self) -> Layout:
        """The layout of a piece among the threads: each has whole vectors."""
        *ctas, pieces, _, vector = self.shape
        *order, piece = range(len(ctas) + 1)
        places = Row(*ctas, self.warps, WARP_THREADS, pieces * vector)
        vectors = RegP(self.shape, [*order, piece + 1, piece, piece + 2])
        return OrderBy(places).OrderBy(vectors).GroupBy(self.shape)

    @property
    def layout_by_element(self) -> Layout:
        """The layout of a piece in which the lanes of a warp have neighbouring elements."""
        *ctas, pieces, _, vector = self.shape
        shape = *ctas, pieces * vector, self.threads
        *order, last = range(len(shape))
        order.insert(len(order) - 1, last)
        places = Row(*ctas, self.warps, WARP_THREADS, pieces * vector)
        return OrderBy(places).OrderBy(RegP(shape, order)).GroupBy(self.shape)

    def describe(self, columns: int, *, is_elementwise: bool = False) -> str:
        """Return a line for `explain`."""
        if is_elementwise:
            held = f"a tile of {self.rows} × {self.columns} a CTA"
        elif self.piece:
            count, rest = divmod(columns, self.columns)
            pieces = [f"{count} piece{'s' * (count > 1)} of {self.columns} columns"] * (count > 0)
            pieces += [f"one of {rest}"] * (rest > 0)
            where = "in registers" if self.is_resident else "read for each pass"
            who = f"cluster of {self.cluster} CTAs" if self.cluster > 1 else "CTA"
            held = f"1 row a {who}, in {' and '.join(pieces)}, {where}"
        elif self.cluster > 1:
            held = f"1 row a cluster of {self.cluster} CTAs, in registers"
        else:
            held = f"{self.rows} row{'s' * (self.rows > 1)} a CTA, in registers"
        if self.stages:
            most = f" of {self.ring_bytes >> 10} KiB, filled one by one" * (self.ring_bytes > 0)
            held = held.replace("in registers", f"{self.stages} stages in shared memory{most}")
        if self.ctas and (self.stages or not self.piece):
            what = "cluster" if self.cluster > 1 else "CTA"
            held += f", {self.ctas} persistent {what}s" + f", {self.ahead} ahead" * (self.ahead > 0)
            held += ", rows past the last masked" * self.masked
        return f"{held}; {self.warps} warps ({self.reason})"


def threads_of(elements: int, held: int) -> int:
    """Return how many threads, a power of two, have a row if each has so many elements of it."""
    return 1 << (-(-elements // held) - 1).bit_length()


def has_vectors(problem: RowsProblem) -> bool:
    """Return whether threads access whole vectors of the widest elements."""
    return problem.vector * problem.element_bytes >= MAX_ACCESS_BYTES


def check_config(problem: RowsProblem, chosen: RowsConfig) -> None:
    """Raise LegoError if a kernel cannot have a config."""
    if chosen.piece and chosen.rows > 1 and not problem.is_elementwise:
        raise LegoError(
            f"{problem.name}: a CTA reads one row in pieces, not {chosen.rows}",
            hint="RowsConfig(rows=1, warps=8, piece=4, vector=4)",
        )
    if problem.is_elementwise and chosen.of_several_rows:
        raise LegoError(
            f"{problem.name}: each element is computed by itself, in tiles that a CTA has one of; "
            f"the config has {', '.join(chosen.of_several_rows)}",
            hint="RowsConfig(rows=1, warps=4, piece=2, vector=4)",
        )
    if problem.is_elementwise and chosen.cluster > 1:
        raise LegoError(
            f"{problem.name}: each element is computed by itself, in tiles that a CTA has alone; "
            f"the config has cluster={chosen.cluster}",
            hint="RowsConfig(rows=1, warps=4, piece=2, vector=4)",
        )
    if chosen.ctas and chosen.piece and not (chosen.stages or problem.column_sums):
        raise LegoError(
            f"{problem.name}: persistent CTAs have whole rows, or rows that pass through stages; "
            f"the config has ctas={chosen.ctas}, piece={chosen.piece} and no stages",
            hint=f"RowsConfig(rows=1, warps=8, ctas={chosen.ctas}) or stages=2",
        )
    if problem.is_elementwise and not chosen.columns:
        raise LegoError(
            f"{problem.name}: the tile of a CTA has no columns; it has rows={chosen.rows}, and "
            f"piece={chosen.piece} vectors for each of {chosen.threads} threads",
            hint="RowsConfig(rows=1, warps=4, piece=2, vector=4)",
        )
