"""Random programs on tiles, as text, for tests of the passes over tile IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from hypothesis import strategies as st
from support.tile_modules import load, memref, store, tile_module

from lego_mlir.analysis.distributed import coalesced

Draw = Callable[[st.SearchStrategy[object]], object]
Shape = tuple[int, ...]

SHAPES: tuple[Shape, ...] = ((32, 64), (64, 32), (16, 16), (48, 20), (128,), (1, 64), (8, 1))
STEPS = ("scale", "load", "reduce", "transpose", "reshape", "scan", "mask", "loop", "given")
WARPS = (1, 2, 3, 4, 8)


@dataclass(frozen=True)
class Value:
    """A tile: its name, its shape and its element type."""

    name: str
    shape: Shape
    element: str = "f32"

    @property
    def type(self) -> str:
        """The type, without a layout."""
        return tile_type(self.shape, self.element)


def tile_type(shape: Shape, element: str, layout: str | None = None) -> str:
    """Return the type of a tile."""
    encoding = "" if layout is None else f', #lego.layout<"{layout}">'
    return f"tensor<{'x'.join(map(str, shape))}x{element}{encoding}>"


@dataclass
class Program:
    """A program that is being drawn.

    Attributes:
        draw: draws from a strategy.
        warps: of a CTA.
        lines: the operations so far.
        tensors: element type and shape of each argument.
        layouts: those of the arguments that are not row-major.
    """

    draw: Draw
    warps: int
    lines: list[str] = field(default_factory=list)
    tensors: dict[str, tuple[str, Shape]] = field(default_factory=dict)
    layouts: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def pick(self, *choices: object) -> object:
        """Return one of some choices."""
        return self.draw(st.sampled_from(choices))

    def emit(self, text: str, shape: Shape, element: str = "f32") -> Value:
        """Add an operation; return its result. `{}` is the result's name."""
        self.count += 1
        name = f"v{self.count}"
        self.lines.append("      " + text.replace("$", f"%{name}") + "\n")
        return Value(name, shape, element)

    def tensor(self, shape: Shape, element: str = "f32") -> str:
        """Add an argument; return its name."""
        name = f"x{len(self.tensors)}"
        self.tensors[name] = (element, shape)
        if len(shape) == 2 and self.pick(False, True):
            self.layouts[name] = f"OrderBy(Col({', '.join(map(str, shape))}))"
        return name

    def loaded(self, shape: Shape) -> Value:
        """Add a load of a whole new argument."""
        name = self.tensor(shape)
        self.count += 1
        value = Value(f"v{self.count}", shape)
        zeros = ", ".join(["%c0"] * len(shape))
        self.lines.append(load(value.name, name, memref("f32", shape), value.type, zeros))
        return value

    def stored(self, value: Value) -> None:
        """Add a store to a new argument."""
        name = self.tensor(value.shape, value.element)
        zeros = ", ".join(["%c0"] * len(value.shape))
        buffer = memref(value.element, value.shape)
        self.lines.append(store(value.name, name, buffer, value.type, zeros))

    def text(self) -> str:
        """Return the module."""
        body = "".join(self.lines)
        return tile_module(self.tensors, body, warps=self.warps, layouts=self.layouts)


def step(p: Program, v: Value) -> Value:
    """Add a random operation on a tile; return its result."""
    shape, kind = v.shape, v.type
    dim = int(p.draw(st.integers(0, len(shape) - 1)))  # type: ignore[call-overload]
    quotient = tuple(1 if d == dim else n for d, n in enumerate(shape))
    match p.pick(
        "scale", "load", "reduce", "transpose", "reshape", "scan", "mask", "loop", "given"
    ):
        case "scale":
            c = p.emit(f"$ = arith.constant dense<0.5> : {kind}", shape)
            return p.emit(f"$ = arith.mulf %{v.name}, %{c.name} : {kind}", shape)
        case "load":
            other = p.loaded(shape)
            return p.emit(f"$ = arith.addf %{v.name}, %{other.name} : {kind}", shape)
        case "reduce":
            by = p.pick("add", "max")
            attributes = f'{{kind = "{by}", dim = {dim} : i64}}'
            small = Value("", quotient).type
            m = p.emit(f'$ = "lego.reduce"(%{v.name}) {attributes} : ({kind}) -> {small}', quotient)
            if p.pick(False, True):
                return m
            b = p.emit(f'$ = "lego.broadcast"(%{m.name}) : ({small}) -> {kind}', shape)
            return p.emit(f"$ = arith.subf %{v.name}, %{b.name} : {kind}", shape)
        case "transpose" if len(shape) == 2:
            result = Value("", shape[::-1])
            order = "{order = array<i64: 1, 0>}"
            text = f'$ = "lego.transpose"(%{v.name}) {order} : ({kind}) -> {result.type}'
            return p.emit(text, result.shape)
        case "reshape":
            rows = 4 if prod(shape) % 4 == 0 and len(shape) == 1 else 1
            flat = (prod(shape),) if rows == 1 else (prod(shape) // rows, rows)
            result = Value("", flat)
            return p.emit(f'$ = "lego.reshape"(%{v.name}) : ({kind}) -> {result.type}', flat)
        case "scan":
            attributes = f'{{kind = "add", dim = {dim} : i64}}'
            return p.emit(f'$ = "lego.scan"(%{v.name}) {attributes} : ({kind}) -> {kind}', shape)
        case "mask":
            numbers = Value("", shape, "i32").type
            i = p.emit(f'$ = "lego.iota"() {{dim = {dim} : i64}} : () -> {numbers}', shape)
            c = p.emit(f"$ = arith.constant dense<7> : {numbers}", shape)
            m = p.emit(f"$ = arith.cmpi sle, %{i.name}, %{c.name} : {numbers}", shape)
            z = p.emit(f"$ = arith.constant dense<1.0> : {kind}", shape)
            mask = Value("", shape, "i1").type
            operands = f"%{m.name}, %{v.name}, %{z.name}"
            return p.emit(f"$ = arith.select {operands} : {mask}, {kind}", shape)
        case "loop":
            n = p.emit("$ = arith.constant 3 : index", ())
            start, end = f"%c0 to %{n.name}", f"iter_args(%a{p.count} = %{v.name})"
            carried = Value(f"a{p.count}", shape)
            result = p.emit(
                f"$ = scf.for %k{p.count} = {start} step %c1 {end} -> ({kind}) {{", shape
            )
            inner = p.loaded(shape)
            s = p.emit(f"$ = arith.addf %{carried.name}, %{inner.name} : {kind}", shape)
            p.lines.append(f"      scf.yield %{s.name} : {kind}\n      }}\n")
            return result
        case "given":
            order = list(range(len(shape)))[:: int(p.pick(1, -1))]  # type: ignore[call-overload]
            layout = coalesced(shape, 4, p.warps, order=order).text
            there = tile_type(shape, "f32", layout)
            g = p.emit(f'$ = "lego.convert"(%{v.name}) : ({kind}) -> {there}', shape)
            e = p.emit(f"$ = arith.negf %{g.name} : {there}", shape)
            return p.emit(f'$ = "lego.convert"(%{e.name}) : ({there}) -> {kind}', shape)
    return v


@st.composite
def programs(draw: Draw, most: int = 8) -> Program:
    """Draw a program that loads a tile, does some operations, and stores the result."""
    warps = int(draw(st.sampled_from(WARPS)))  # type: ignore[call-overload]
    p = Program(draw, warps)
    shape: Shape = draw(st.sampled_from(SHAPES))  # type: ignore[assignment]
    v = p.loaded(shape)
    for _ in range(int(draw(st.integers(0, most)))):  # type: ignore[call-overload]
        v = step(p, v)
    p.stored(v)
    return p
