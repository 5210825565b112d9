"""Expressions in each language compute what Python's integers do, whatever the sign."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import printed
import pytest
import sympy

from lego_mlir import sim
from lego_mlir.algebra import GenP, OrderBy, Row, antidiagonal, parse_layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Sym, isqrt, maximum, minimum, where
from lego_mlir.printers import to_c, to_cuda, to_cute, to_numpy, to_python, to_triton
from lego_mlir.printers.c import c_helpers, validity
from lego_mlir.printers.layout_functions import functions_of
from lego_mlir.printers.python import helper_text

COUNT = int(os.environ.get("LEGO_TEST_PRINTED", "60"))
SYMBOLS = (Sym("a", 0, 63), Sym("b", -17, 40), Sym("c", 1, 9), Sym("d", -(1 << 40), 1 << 40))
POINTS = [
    (0, -17, 1, 0), (63, 40, 9, 1 << 40), (7, -1, 3, -(1 << 40)), (12, 5, 2, -7),
    (33, -8, 8, 12345678901), (1, 0, 4, -1),
]  # fmt: skip


def drawn(draw: random.Random, depth: int) -> Callable[..., Any]:
    """A random function that works on integers and on index expressions."""
    if depth == 0 or draw.random() < 0.1:
        leaf = draw.choice([*range(4), *range(3), None])
        number = draw.choice([0, 1, 2, 5, 8, 32, -3, -64])
        return lambda *v: number if leaf is None else v[leaf]
    f, g, h = (drawn(draw, depth - 1) for _ in range(3))
    n = draw.choice([2, 3, 4, 7, 8, 12, 64, -3])
    operations: list[Callable[..., Any]] = [
        lambda *v: f(*v) + g(*v),
        lambda *v: f(*v) - g(*v),
        lambda *v: f(*v) * n,
        lambda *v: f(*v) // n,
        lambda *v: f(*v) % n,
        lambda *v: f(*v) // v[2],
        lambda *v: f(*v) % v[2],
        lambda *v: f(*v) ^ g(*v),
        lambda *v: minimum(f(*v), g(*v)),
        lambda *v: maximum(f(*v), g(*v)),
        lambda *v: where(f(*v) < g(*v), g(*v), h(*v)),
        lambda *v: (f(*v) < g(*v)) * 1 + h(*v),
        lambda *v: isqrt(maximum(f(*v) % 100, 0)),
    ]
    return draw.choice(operations)


def expressions(seeds: range) -> tuple[list[Any], list[list[int]]]:
    """Index expressions, and the values of each at the points."""
    found, truths = [], []
    for seed in seeds:
        f = drawn(random.Random(seed), 3)
        x = f(*SYMBOLS)
        if isinstance(x, Expr):
            found.append(x)
            truths.append([int(f(*point)) for point in POINTS])
    return found, truths


NAMES = [s.name for s in SYMBOLS]


def by_python(xs: list[Any], folder: Path) -> list[list[int]]:
    import math

    texts = [to_python(x) for x in xs]
    return [
        [int(eval(t, {"math": math}, dict(zip(NAMES, p, strict=True)))) for p in POINTS]  # noqa: S307
        for t in texts
    ]


def by_numpy(xs: list[Any], folder: Path) -> list[list[int]]:
    names: dict[str, Any] = {"np": np}
    exec(helper_text("numpy", {"lego_isqrt"}), names)  # noqa: S102
    names |= dict(zip(NAMES, np.array(POINTS).T, strict=True))
    texts = [to_numpy(x) for x in xs]
    return [np.broadcast_to(eval(t, names), len(POINTS)).tolist() for t in texts]  # noqa: S307


def by_c(xs: list[Any], folder: Path) -> list[list[int]]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    text = "#include <stdio.h>\n" + c_helpers("c", {"lego_isqrt"})
    kinds = ["int", "int", "int", "long long"]
    declared = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, NAMES, strict=True))
    unused = "".join(f" (void){name};" for name in NAMES)
    calls = ""
    for k, x in enumerate(xs):
        text += f"static long long f{k}({declared}) {{{unused} return {to_c(x)}; }}\n"
        for point in POINTS:
            values = ", ".join(f"{v}LL" for v in point)
            calls += f'  printf("%lld\\n", f{k}({values}));\n'
    (folder / "f.c").write_text(f"{text}int main(void) {{\n{calls}}}\n")
    command = [compiler, "-std=c99", "-fsanitize=undefined", "-fno-sanitize-recover", "f.c"]
    subprocess.run([*command, "-o", "f", "-lm"], cwd=folder, check=True)
    out = subprocess.run([folder / "f"], capture_output=True, text=True, check=True).stdout
    return np.array(list(map(int, out.split()))).reshape(len(xs), len(POINTS)).tolist()


def by_cuda(xs: list[Any], folder: Path) -> list[list[int]]:
    text = c_helpers("cuda", {"lego_isqrt"})
    text += 'extern "C" __global__ void f(const long long* in, long long* out) {\n'
    text += "  const long long* p = in + 4 * threadIdx.x;\n"
    text += "  int a = p[0], b = p[1], c = p[2];\n  long long d = p[3];\n"
    for k, x in enumerate(xs):
        text += f"  out[threadIdx.x * {len(xs)} + {k}] = {to_cuda(x)};\n"
    out = np.zeros((len(POINTS), len(xs)), np.int64)
    arguments = [np.array(POINTS, np.int64), out]
    sim.launch(printed.ptx_of(text + "}\n"), "f", (1, 1, 1), (len(POINTS), 1, 1), arguments)
    return out.T.tolist()


def by_triton(xs: list[Any], folder: Path) -> list[list[int]]:
    text = "import triton\nimport triton.language as tl\n"
    text += helper_text("triton", {"lego_isqrt"}) + "\n\n@triton.jit\ndef f(p, out):\n"
    for k, name in enumerate(NAMES):
        text += f"    {name} = tl.load(p + {k}){'.to(tl.int32)' if name != 'd' else ''}\n"
    for k, x in enumerate(xs):
        text += f"    tl.store(out + {k}, {to_triton(x)})\n"
    module = printed.triton_module(text, folder)
    found = []
    for point in POINTS:
        out = np.zeros(len(xs), np.int64)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")
            module.f[(1,)](printed.Tensor(np.array(point, np.int64)), printed.Tensor(out))
        found.append(out)
    return np.array(found).T.tolist()


PRINTERS = {"c": by_c, "cuda": by_cuda, "numpy": by_numpy, "python": by_python, "triton": by_triton}


def compare(printer: str, seeds: range, folder: Path) -> None:
    xs, truths = expressions(seeds)
    for x, truth, got in zip(xs, truths, PRINTERS[printer](xs, folder), strict=True):
        assert got == truth, f"{printer}: {x}"


@pytest.mark.parametrize("printer", PRINTERS)
def test_random_expressions(printer: str, tmp_path: Path) -> None:
    for start in range(0, COUNT, 100):
        compare(printer, range(start, min(start + 100, COUNT)), tmp_path)


# ------------------------------------------------------------------------------------- the texts
A, B, C, D = SYMBOLS
M = Sym("M", 1)


@pytest.mark.parametrize(
    ("x", "c", "python", "triton"),
    [
        (A // 8, "a >> 3", "a // 8", "a // 8"),
        (A % 8, "a & 7", "a % 8", "a % 8"),
        (B // 8, "b >> 3", "b // 8", "b >> 3"),
        (B % 8, "b & 7", "b % 8", "b & 7"),
        (A // 6, "(int)((unsigned)a / 6u)", "a // 6", "a // 6"),
        (B // 6, "(b / 6 - (b % 6 < 0))", "b // 6", "(b // 6 - tl.where(b % 6 < 0, 1, 0))"),
        (-(A // 6) - 1, "-(int)((unsigned)a / 6u) - 1", "-(a // 6) - 1", "-(a // 6) - 1"),
        (A * M, "(long long)M * (long long)a", "M * a", "M * a"),
        (minimum(A, C), "(a < c ? a : c)", "min(a, c)", "tl.minimum(a, c)"),
        (where(A < C, A, 5), "(a < c ? a : 5)", "(a if a < c else 5)", "tl.where(a < c, a, 5)"),
        (A ^ C, "a ^ c", "a ^ c", "a ^ c"),
        (D + (1 << 35), "(long long)d + 34359738368LL", "d + 34359738368", "d + 34359738368"),
    ],
    ids=str,
)
def test_what_is_printed(x: Any, c: str, python: str, triton: str) -> None:
    assert to_c(x) == to_cuda(x) == c
    assert to_python(x) == to_numpy(x).replace("np.where", "where") or x in (
        minimum(A, C),
        where(A < C, A, 5),
    )
    assert to_python(x) == python
    assert to_triton(x) == triton


def test_several_values_and_values_of_sympys() -> None:
    i = sympy.Symbol("i", integer=True, nonnegative=True)
    assert to_c((A, 3, sympy.floor(i / 4))) == ("a", "3", "(long long)i >> 2")
    assert to_cuda(OrderBy(Row(8, 8))["threadIdx.y", "threadIdx.x"]) == (
        "(int)threadIdx.x + (int)threadIdx.y * 8"
    )
    assert to_cuda(A + B, names={"a": "x.y", "b": "f(1)"}) == "x.y + f(1)"
    assert to_cuda(A * M, bits=32) == "M * a"
    assert to_c(A + C, bits=64) == "(long long)a + (long long)c"


def test_functions_compute_what_is_shared_once() -> None:
    text = to_c(OrderBy(GenP([16, 16], antidiagonal)), "A")
    assert text.count("lego_isqrt(") == 2  # its definition and one call
    assert text.count("static inline") == 5


def test_names_of_sizes_meet_no_others(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    layout = parse_layout("OrderBy(GenP([result, result], antidiagonal), Row(i0, t0, A_inv))")
    (tmp_path / "f.c").write_text(to_c(layout, "A"))
    command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-c", "f.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with pytest.raises(LegoError, match="the name of the struct"):
        to_c(parse_layout("OrderBy(Row(A_index, 4))"), "A")
    with pytest.raises(LegoError, match="'lego_isqrt' is a word of c"):
        to_c(parse_layout("OrderBy(Row(lego_isqrt, 4))"), "A")
    valid = to_python(validity(functions_of(parse_layout("OrderBy(Row(M%5, 4))"), "A", "c")))
    assert [bool(eval(valid, {"M": m})) for m in (4, 5, 0, -1)] == [True, False, False, False]  # noqa: S307


def test_bits_are_moved_by_one_shift() -> None:
    """Bricks of bricks: each bit field of the inverse takes a shift and a mask."""
    f = Sym("f", 0, 4095)
    x = f // 8 % 2 + 2 * (f // 64 % 4) + 8 * (f // 512 % 8)
    assert to_c(x) == "(f >> 9) * 8 + ((f >> 3) & 1) + ((f >> 5) & 6)"


def test_symbolic_sizes_are_parameters_and_are_checked(tmp_path: Path) -> None:
    layout = parse_layout("OrderBy(Row(M, K)).TileBy([ceildiv(M, 8), K/16], [8, 16])")
    names: dict[str, Any] = {}
    exec(to_python(layout, "A"), names)  # noqa: S102
    sizes = {"M": 20, "K": 48}
    whole = layout.bind(**sizes)
    order = [sizes[s.name] for s in layout.symbols]
    assert names["A_dims"](*order) == whole.dims
    for index in np.ndindex(*whole.dims):
        inside = whole.mask(*index)
        assert int(names["A_mask"](*order, *index)) == inside
        if inside:
            assert names["A_apply"](*order, *index) == whole.apply(*index)
            assert names["A_inv"](*order, whole.apply(*index)) == index
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    checks = "".join(f"A_valid({m}, {k}), " for m, k in [(20, 48), (20, 47), (0, 48), (20, -16)])
    (tmp_path / "f.c").write_text(
        f"#include <stdio.h>\n{to_c(layout, 'A')}\nint main(void) {{\n"
        f'  printf("%d %d %d %d %lld\\n", {checks}A_apply(20, 48, 2, 1, 3, 5));\n}}\n'
    )
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "f.c", "-o", "f"]
    subprocess.run([compiler, *flags], cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "f"], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["1", "0", "0", "0", str(whole.apply(2, 1, 3, 5))]


# ----------------------------------------------------------------------------------------- errors
HUGE = OrderBy(Row(1 << 40, 1 << 40))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: to_c(Sym("int", 0)), "the symbol 'int' is a word of c"),
        (lambda: to_cuda(Sym("template", 0)), "'template' is a word of cuda"),
        (lambda: to_c(Sym("x; exit(1)", 0)), "'x; exit[(]1[)]' is no name in c"),
        (lambda: to_c(Sym("ä", 0)), "'ä' is no name in c"),
        (lambda: to_python(Sym("import", 0)), "'import' is a word of python"),
        (lambda: to_c(OrderBy(Row(4, 4)), "a b"), "the layout's name 'a b' is no name"),
        (lambda: to_c(parse_layout("OrderBy(Row(while, 4))")), "the size 'while' is a word of c"),
        (lambda: to_c(HUGE, "A"), "do not fit 64 bits"),
        (lambda: to_c(OrderBy(Row(4, 4))["i", :]), "is a tile of offsets, and c has an expression"),
        (lambda: to_c("x"), "'x' cannot be printed"),
        (lambda: to_c(True), "True cannot be printed"),
        (lambda: to_c(A, bits=8), "32 or 64 bits, not 8"),
        (lambda: to_c(Sym("a", 0) + Sym("a", 0, 5)), "two different symbols have the name 'a'"),
        (lambda: to_cute(OrderBy(GenP([8, 8], antidiagonal))), "CuTe has no such layout"),
        (lambda: to_cute(A), "is no layout"),
    ],
)
def test_mistakes_are_errors(make: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        make()


def test_python_has_no_limit() -> None:
    names: dict[str, Any] = {}
    exec(to_python(HUGE, "A"), names)  # noqa: S102
    assert names["A_apply"](3, 5) == 3 * 2**40 + 5
