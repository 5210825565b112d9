"""The recording of one kernel: its module, where operations go, and which line they come from."""

from __future__ import annotations

import contextlib
import functools
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal

from lego_mlir.algebra import GenP, Layout
from lego_mlir.algebra.sizes import size_symbol
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.frontend.tiles.sizes import TILE_MULTIPLES
from lego_mlir.index import Sym
from lego_mlir.mlir.bindings import func, ir
from lego_mlir.mlir.context import Source

_HOME = Path(__file__).resolve().parents[1]
# Frames name files by the path that they were imported by, which may lead through a symbolic link.
_HOMES = (_HOME, Path(__file__).parents[1])
_OURS = (*map(str, _HOMES), functools.__file__, contextlib.__file__)
_KERNELS = tuple(
    str(home / "kernels") for home in _HOMES
)  # ours, but written as users write theirs
_COMPUTING = ("arith.", "math.")
"""Operations that do nothing but compute."""

_current: ContextVar[Trace] = ContextVar("trace")


class Trace:
    """What is known while a kernel function runs.

    Attributes:
        module: the module being built.
        kernel: the kernel's name, which is that of the host function.
        source: the text of the Python file, for errors.
        launch: the gpu.launch, once it is there.
        warps: of a CTA, if its kernel is one on tiles; `None` in kernels of threads.
        sizes: the values of sizes that only the launch knows.
        bounds: what such a size is at most, by its name.
        cluster: the CTAs that hold tiles together.
        programs: the CTAs of a cluster, if each runs a program of its own; else 1.
        tile_multiple: what divides the sizes that tiles have in registers as the program says.
        pdl: whether the kernel waits for the launch ahead of it, and when the next one begins.
        texts: the Python files that operations come from, by the names in their locations.
    """

    def __init__(self, module: Any, kernel: str, source: Source) -> None:
        self.module = module
        self.kernel = kernel
        self.source = source
        self.launch: Any = None
        self.warps: int | None = None
        self.sizes: Mapping[Sym, Any] = {}
        self.bounds: Mapping[str, int] = {}
        self.cluster = 1
        self.programs = 1
        self.tile_multiple = TILE_MULTIPLES[0]
        self.pdl: bool | Literal["wait"] = False
        self.texts = {source.file: source.text}
        self.left_loop: Location | None = None
        self._functions: dict[str, Callable[..., Any]] = {}
        self._locations: dict[tuple[CodeType, int], Any] = {}
        self._computed: dict[tuple[Any, ...], list[Any]] = {}
        self._repeated: set[Any] = set()
        self._own: set[Any] = set()

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make this the trace that operations are recorded in."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def create(
        self, name: str, results: list[Any], operands: list[Any], **attributes: Any
    ) -> list[Any]:
        """Record an operation at the caller's line and return its results.

        Raises:
            LegoError: the kernel of these operands has been traced.
        """

        def build() -> list[Any]:
            op = ir.Operation.create(
                name, results=results, operands=operands, attributes=attributes, loc=self.here()
            )
            return list(op.results)

        if self.warps is None or not name.startswith(_COMPUTING):
            return build()
        return self.once((name, *results, *operands, *attributes.items()), build)

    def once(self, key: tuple[Any, ...], build: Callable[[], list[Any]]) -> list[Any]:
        """Return the results of an operation, which is recorded unless an equal one is known.

        Args:
            key: what equal operations have in common, which do nothing but compute.
            build: records it.

        Raises:
            LegoError: the kernel of this trace has been traced.
        """
        found = self._computed.get(key)
        if found is None or found[0] in self._own:
            found = self._computed[key] = build()
        else:
            self.check_active()
            self._repeated.add(found[0])
        return found

    def own(self, value: Any) -> Any:
        """Return an SSA value whose operation stands for no equal ones, so that it may change.

        Args:
            value: the result of an operation; a copy of it, if that stands for several.
        """
        if value in self._repeated:
            return value.owner.operation.clone().results[0]
        self._own.add(value)
        return value

    @contextlib.contextmanager
    def inside(self, block: Any, *, is_isolated: bool = False) -> Iterator[None]:
        """Record what follows at the end of a block.

        Args:
            block: inside of the block of what has been recorded last.
            is_isolated: it uses nothing that is computed outside.
        """
        around = self._computed
        self._computed = {} if is_isolated else dict(around)
        try:
            with ir.InsertionPoint(block):
                yield
        finally:
            self._computed = around

    def here(self) -> Any:
        """Return the MLIR location of the caller's line, for an operation of this trace.

        Raises:
            LegoError: the kernel of this trace has been traced.
        """
        self.check_active()
        return self.location()

    def layout(self, layout: Layout, *, is_bound: bool = False) -> Any:
        """Return the attribute of a layout, and define its permutation functions in the module.

        Args:
            layout: what the attribute is of.
            is_bound: its symbolic sizes have values, which the operation takes as operands.

        Raises:
            LegoError: it is no layout, it has symbolic sizes, or a function's name stands for
                something else.
        """
        from lego_mlir.mlir.layouts import layout_attribute

        self.check_layout(layout)
        if layout.symbols and not is_bound:
            names = ", ".join(s.name for s in layout.symbols)
            raise self.error(
                f"the layout '{layout}' has symbolic sizes ({names})",
                hint="give them values: layout.bind(...)",
            )
        for order in layout.base.orders:
            for block in order.blocks:
                if isinstance(block, GenP) and block.permutation.functions is not None:
                    self._define(block)
        return layout_attribute(layout)

    def sized(self, layout: Layout) -> tuple[Layout, tuple[Any, ...]]:
        """Return a layout and the values of its symbolic sizes, in the order of its text.

        They are sizes of the kernel's tensors; the layout knows what divides these.

        Raises:
            LegoError: it is no layout, or no tensor has a size of some name.
        """
        from lego_mlir.mlir.layouts import layout_attribute, symbols_of

        self.check_layout(layout)
        if not layout.symbols:
            return layout, ()
        known = {s.name: s for s in self.sizes}
        unknown = [s.name for s in layout.symbols if s.name not in known]
        if unknown:
            raise self.error(
                f"the layout '{layout}' has symbolic sizes ({', '.join(unknown)})",
                hint="give them values: layout.bind(...), or lg.sized(layout, ...) of kernel "
                "values; sizes of the kernel's tensors are known by their names: "
                + (", ".join(known) or "there are none"),
            )
        same = {s: size_symbol(s.name, s.divisors | known[s.name].divisors) for s in layout.symbols}
        if any(s is not other for s, other in same.items()):
            layout = layout.substitute(same)
        names = [s.name for s in symbols_of(layout, layout_attribute(layout))]
        return layout, tuple(self.sizes[known[name]] for name in names)

    def check_active(self) -> None:
        """Raise LegoError unless this is the kernel that is being traced."""
        if _current.get(None) is not self:
            raise LegoError(
                f"a value of kernel '{self.kernel}' is used outside of it",
                location=user_location(),
                hint="a kernel's values are known only while it is traced",
            )

    def check_layout(self, layout: object) -> None:
        """Raise LegoError for what is no layout."""
        if not isinstance(layout, Layout):
            raise self.error(f"{layout!r} is no layout", hint="OrderBy(Row(32, 32)) is one")

    def _define(self, block: GenP) -> None:
        """Define the two functions of a user's permutation in the module."""
        assert block.permutation.functions is not None
        forward, inverse = block.permutation.functions
        own = GenP(block.dims, forward, inverse)  # `block` may be their inverse
        n = own.rank
        if self._is_new(forward):
            self._define_function(forward.__name__, n, 1, lambda *xs: (own.apply(xs),))
        if self._is_new(inverse):
            self._define_function(inverse.__name__, 1, n, own.inv)

    def _is_new(self, function: Callable[..., Any]) -> bool:
        """Return whether a function is not yet in the module; its name must be unique there."""
        name = function.__name__
        known = self._functions.get(name)
        if known is function:
            return False
        if known is not None or name == self.kernel:
            what = "the kernel" if name == self.kernel else "another permutation function"
            raise self.error(
                f"the permutation function '{name}' has the name of {what}",
                hint="layouts know their functions by name: give each its own",
            )
        self._functions[name] = function
        return True

    def _define_function(self, name: str, arguments: int, results: int, compute: Any) -> None:
        from lego_mlir.mlir.emit.arith import Printer

        index = ir.IndexType.get()
        with ir.InsertionPoint.at_block_begin(self.module.body), self.location():
            op = func.FuncOp(name, ir.FunctionType.get([index] * arguments, [index] * results))
            op.attributes["sym_visibility"] = ir.StringAttr.get("private")
            entry = op.add_entry_block()
            symbols = [Sym(f"x{k}", 0) for k in range(arguments)]
            with ir.InsertionPoint(entry):
                printer = Printer(dict(zip(symbols, entry.arguments, strict=True)))
                func.ReturnOp([printer.print(x) for x in compute(*symbols)])

    def location(self) -> Any:
        """Return the user's line that is running, as an MLIR location."""
        frame = user_frame()
        at = frame.f_code, frame.f_lasti
        if at not in self._locations:
            location = _location_in(frame)
            name = relative_name(location.file)
            if name not in self.texts:
                self.texts[name] = source_text(location.file)
            found = ir.Location.file(name, location.line, max(location.column, 1))
            self._locations[at] = found
        return self._locations[at]

    def error(self, message: str, hint: str | None = None) -> LegoError:
        """Return an error at the user's line that is running."""
        location = user_location()
        text = self.source.text if relative_name(location.file) == self.source.file else None
        return LegoError(message, location=location, hint=hint, source=text)


def is_tracing() -> bool:
    """Return whether a kernel is being traced."""
    return _current.get(None) is not None


def current(what: str) -> Trace:
    """Return the trace that is active.

    Raises:
        LegoError: no kernel is being traced.
    """
    try:
        return _current.get()
    except LookupError:
        raise LegoError(
            f"{what} works only inside a kernel", hint="call it in a function under @lg.kernel"
        ) from None


@functools.cache
def relative_name(file: str) -> str:
    """Return a Python file's path relative to the import path: `kernels/permute/transpose.py`.

    The PTX contains this name, and a kernel must give the same PTX on every machine.
    """
    path = Path(file)
    if not path.is_absolute():
        return file
    entries = [e for e in (*sys.path, str(_HOME.parent)) if e and path.is_relative_to(e)]
    return min((str(path.relative_to(entry)) for entry in entries), key=len, default=path.name)


def source_text(file: str) -> str:
    """Return the text of a Python file that runs, or of a cell of a notebook."""
    linecache.checkcache(file)
    return "".join(linecache.getlines(file))


def user_location() -> Location:
    """Return the position in the user's code that is running."""
    return _location_in(user_frame())


def _location_in(frame: FrameType) -> Location:
    """Return the position in a frame that is running."""
    column = _column(frame.f_code, frame.f_lasti)
    return Location(frame.f_code.co_filename, frame.f_lineno, column)


def user_frame() -> FrameType:
    """Return the innermost frame of the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_back is not None:
        if not _is_ours(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    assert frame is not None
    return frame


def location_of_traceback(error: BaseException) -> Location | None:
    """Return the innermost position in the user's code that an error passed through."""
    found = None
    step = error.__traceback__
    while step is not None:
        if not _is_ours(step.tb_frame.f_code.co_filename):
            code = step.tb_frame.f_code
            found = Location(code.co_filename, step.tb_lineno, _column(code, step.tb_lasti))
        step = step.tb_next
    return found


@functools.lru_cache(maxsize=1 << 12)
def _is_ours(file: str) -> bool:
    """Return whether a file is one of the compiler, and none that users could have written."""
    return file.startswith(_OURS) and not file.startswith(_KERNELS)


@functools.lru_cache(maxsize=1 << 12)
def _column(code: CodeType, instruction: int) -> int:
    """Return the 1-based column of the expression of a bytecode instruction; 0 if unknown."""
    positions = list(code.co_positions())
    number = instruction // 2
    column = positions[number][2] if 0 <= number < len(positions) else None
    return 0 if column is None else column + 1
