"""Small PTX programs, and exact references for their results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lego_mlir import sim

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
LOAD = {"u": "u", "i": "s", "f": "f"}

PROGRAMS: dict[str, str] = {}
"""Every program that a test has run, text → name of the test; the last test assembles them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("run_last") is not None)


def pytest_configure(config: pytest.MmaConfig) -> None:
    config.addinivalue_line("markers", "run_last: needs what the other tests have recorded")


@pytest.fixture
def programs() -> dict[str, str]:
    return PROGRAMS


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Callable[..., sim.Costs | None]:
    """`sim.machine.launch` on a whole module or on the body of a kernel `k`, which is recorded.

    A body is given its parameters as `(name, type)` in `parameters`.
    """

    def launch(
        text: str,
        arguments: list[Any],
        *,
        parameters: tuple[tuple[str, str], ...] = (),
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (32, 1, 1),
        kernel: str = "k",
        record: bool = True,
        **options: Any,
    ) -> sim.Costs | None:
        if ".entry" not in text:
            listed = ", ".join(f".param .{kind} {name}" for name, kind in parameters)
            text = f".visible .entry k({listed})\n{{\n{text}\nret;\n}}\n"
        if ".version" not in text:
            text = HEADER + text
        options.setdefault("checks", False)  # they have tests of their own, and many look at poison
        if record:
            PROGRAMS.setdefault(text, request.node.name)
        return sim.launch(text, kernel, grid, block, arguments, **options)

    return launch


@pytest.fixture
def lanewise(run: Callable[..., None]) -> Callable[..., np.ndarray]:
    """Run lines of PTX once for each element: `lanewise("add.s32 %d, %a, %b;", "i4", a=…, b=…)`.

    Each input is in the register of its name; the result is taken from `%d`. Free to use are the
    predicates `%p`, `%q`, the words `%x`, `%y` and the double words `%u`, `%v`.
    """

    def apply(lines: str, result: str, **inputs: np.ndarray) -> np.ndarray:
        count = len(next(iter(inputs.values())))
        threads = next(n for n in range(256, 0, -1) if count % n == 0)
        out = np.zeros(count, result)
        sizes = {name: array.dtype.itemsize for name, array in inputs.items()}
        sizes["d"] = out.dtype.itemsize
        declared = "".join(f".reg .b{max(16, 8 * n)} %{name};\n" for name, n in sizes.items())
        loads = "".join(_load(name, array) for name, array in inputs.items())
        body = f"""
            .reg .pred %p, %q;
            .reg .b32 %x, %y, %thread, %group, %extent, %index;
            .reg .b64 %u, %v, %base, %at;
            {declared}
            mov.u32 %thread, %tid.x;
            mov.u32 %group, %ctaid.x;
            mov.u32 %extent, %ntid.x;
            mad.lo.u32 %index, %group, %extent, %thread;
            {loads}
            {lines}
            ld.param.u64 %base, [out];
            mad.wide.u32 %at, %index, {sizes["d"]}, %base;
            st.global.b{8 * sizes["d"]} [%at], %d;
        """
        parameters = (("out", "u64"), *((f"in_{name}", "u64") for name in inputs))
        run(
            body,
            [out, *inputs.values()],
            parameters=parameters,
            grid=(count // threads, 1, 1),
            block=(threads, 1, 1),
        )
        return out

    return apply


def _load(name: str, array: np.ndarray) -> str:
    size = array.dtype.itemsize
    kind = LOAD[array.dtype.kind] if size > 2 or array.dtype.kind != "f" else "b"
    return f"""
        ld.param.u64 %base, [in_{name}];
        mad.wide.u32 %at, %index, {size}, %base;
        ld.global.{kind}{8 * size} %{name}, [%at];
    """


@pytest.fixture(params=["late", "early", *(f"random {seed}" for seed in range(4))])
def order(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of `sim.machine.launch`: every order, the random one with a few seeds."""
    kind, _, seed = request.param.partition(" ")
    return {"order": kind, "seed": int(seed or 0)}


EDGES = (0, 1, 2, 3, 7, 31, 32, 0x55, 0x80, 0xFF)


@pytest.fixture
def pairs() -> Callable[..., tuple[np.ndarray, ...]]:
    """All combinations of edge values and a few random ones of integer types."""

    def make(*kinds: str) -> tuple[np.ndarray, ...]:
        rng = np.random.default_rng(7)
        columns = []
        for kind in kinds:
            info = np.iinfo(kind)
            edges = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, info.max // 3]
            edges += [e for e in EDGES if e <= info.max] + ([-1, -2, -7] if info.min else [])
            drawn = rng.integers(info.min, info.max, 6, kind, endpoint=True).tolist()
            columns.append(
                edges[: 22 if len(kinds) < 3 else 12] + drawn[: 6 if len(kinds) < 3 else 3]
            )
        rows = list(itertools.product(*columns))
        rows += rows[: -len(rows) % 32]
        return tuple(
            np.array(column, kind)
            for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
        )

    return make


FORMATS = {
    "f2": (11, -14, 15),
    "bf": (8, -126, 127),
    "f4": (24, -126, 127),
    "f8": (53, -1022, 1023),
}


def exactly_rounded(x: Fraction, form: str, mode: str = "rn") -> float:
    """A rational number rounded once to a format: precision and exponents as in IEEE 754."""
    digits, least, most = FORMATS[form]
    if x == 0:
        return 0.0
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    exponent = max(exponent, least)
    unit = Fraction(2) ** (exponent - digits + 1)
    quotient, rest = divmod(size, unit)
    negative = x < 0
    if mode == "rn":
        up = rest * 2 > unit or (rest * 2 == unit and quotient % 2 == 1)
    else:
        up = rest != 0 and mode == ("rm" if negative else "rp")
    total = (quotient + up) * unit
    largest = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** most
    if total > largest:
        outwards = mode in ("rn", "rm" if negative else "rp")
        total_value = float("inf") if outwards else float(largest)
    else:
        total_value = float(total)
    return -total_value if negative else total_value


@pytest.fixture
def rounded() -> Callable[..., float]:
    return exactly_rounded


@pytest.fixture
def floats() -> Callable[..., np.ndarray]:
    """Finite numbers of a format, random in all their bits, small ones and edges among them."""

    def make(form: str, count: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        bits = {"f2": 16, "bf": 16, "f4": 32, "f8": 64}[form]
        word = rng.integers(0, 2**bits, count, np.uint64)
        fraction = {"f2": 10, "bf": 7, "f4": 23, "f8": 52}[form]
        top = (1 << bits - 1 - fraction) - 1
        # Half of the numbers near 1, so that sums and products meet.
        near = (top // 2 + rng.integers(-12, 12, count)).astype(np.uint64) << np.uint64(fraction)
        keep = np.uint64((1 << fraction) - 1 | 1 << bits - 1)
        word = np.where(rng.random(count) < 0.6, near | (word & keep), word)
        word = np.where(rng.random(count) < 0.05, word & keep, word)
        special = (word >> np.uint64(fraction) & np.uint64(top)) == np.uint64(top)
        word = np.where(special, word & keep, word)
        if form == "bf":
            return word.astype(np.uint16)
        return word.astype(f"u{bits // 8}").view(form)

    return make


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    """NumPy's warnings are errors: the simulator means what it computes."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield
