"""Persistent kernels with stores by TMA and multicast: the verifier refuses what is not proven."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source

INPUTS = Path(__file__).resolve().parents[3] / "tile_steps" / "Inputs"
GRID = INPUTS / "grid.mlir"
PARAMETERS = {
    "ctas": 2,
    "cluster": 2,
    "raster_group": 2,
    "store_stages": 1,
    "producer_registers": 24,
    "consumer_registers": 240,
}


def _compilation(text: str, **options: object) -> Compilation:
    return Compilation(Source("kernel.mlir", text), Options(Target.parse("sm_90a"), **options))


@pytest.fixture(scope="module")
def text() -> str:
    """The kernel with its roles, as text."""
    made = _compilation(GRID.read_text(), schedule="persistent", parameters=PARAMETERS)
    found: str = made.text("placed")
    return found


def test_the_kernel_is_right_as_text(text: str) -> None:
    assert "lego.put" in text
    assert "multicast" in text
    assert "lego.put" in _compilation(text).text("placed")


MUTANTS = {
    "operand A by multicast": (
        r'(Row\(128, 128\)\)">), slice',
        r"\1, multicast = array<i64: 3, 3>, slice",
        "'lego.copy_async' of a tile that is not known to be the same in the CTAs of a cluster",
    ),
    "a CTA that loads for another, which does not": (
        r"multicast = array<i64: 3, 3>",
        "multicast = array<i64: 3, 2>",
        "'lego.copy_async' of a tile that is not known to be the same in the CTAs of a cluster",
    ),
    "multicast by threads": (
        r'engine = "tma"(, layout = [^ ]+ [^ ]+ multicast)',
        r'engine = "plain"\1',
        "'lego.copy_async' by 'plain'",
    ),
    "no cluster": (
        r"lego\.cluster = 2 : i64, ",
        "",
        "in a kernel without clusters whose CTAs run programs of their own",
    ),
    "tiles of the whole cluster": (
        r", lego\.own_programs",
        "",
        "is by 1 CTAs of 4 warps, the kernel has 2 CTAs of 4",
    ),
    "nothing is put": (r'"lego\.put"[^\n]*\n', "", "has no 'lego.copy_async'"),
    "put after the commit": (
        r'("lego\.put"[^\n]*\n)(\s*"lego\.commit"[^\n]*\n)',
        r"\2\1",
        "is not followed by one copy and one commit",
    ),
    "another type is put": (
        r'"lego\.put"\((%\d+), (%\d+), %\w+\) : \((.*), index, tensor<64x64xf16, .*\) ->',
        r'"lego.put"(\1, \2, %cst) : (\3, index, tensor<64x64xf32, LAYOUT) ->',
        "'lego.put' of tensor<64x64xf32",
    ),
    "released before it is stored": (
        r'("lego\.store"[^\n]*\n)(\s*"lego\.release"[^\n]*\n)',
        r"\2\1",
        "'lego.store' reads a tile behind its release",
    ),
    "the storer's registers": (
        r'name = "storer", registers = 24',
        'name = "storer", registers = 40',
        "sets their registers to 24",
    ),
    "the storer has a warp of the consumers": (
        r"first_warp = 7 : i64",
        "first_warp = 3 : i64",
        "'storer' has warp 3, as 'consumer' has",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_verifier_refuses(text: str, name: str) -> None:
    pattern, new, said = MUTANTS[name]
    if "LAYOUT" in new:
        layout = re.search(r"%cst = arith\.constant .* : tensor<64x64xf32, (#lego\S+ .*>)", text)
        assert layout is not None
        new = new.replace("LAYOUT", layout[1].replace("\\", r"\\"))
    broken, count = re.subn(pattern, new, text)
    assert count
    with pytest.raises(LegoError) as caught:
        _ = _compilation(broken).placed
    assert said in caught.value.message
    assert caught.value.location is not None


def test_each_part_is_put_once() -> None:
    parameters = {"ctas": 2, "store_stages": 2, "store_parts": 4}
    text = (INPUTS / "deep_grid.mlir").read_text()
    made = _compilation(text, schedule="persistent", parameters=parameters).text("placed")
    (guard,) = re.findall(r"%\d+ = arith\.cmpi ult, %\d+, %c4\w* : index", made)
    few = f"%few = arith.constant 3 : index\n{re.sub('%c4.*', '%few : index', guard)}"
    for wrong, said in (
        (few, "in the next iteration, where tile"),
        (guard.replace("ult", "ule"), "'scf.if' whose two ways use rings differently"),
    ):
        with pytest.raises(LegoError) as caught:
            _ = _compilation(made.replace(guard, wrong)).placed
        assert said in caught.value.message


def test_ctas_of_a_cluster_have_as_many_tiles() -> None:
    parameters = PARAMETERS | {"store_stages": 0}
    made = _compilation(GRID.read_text(), schedule="persistent", parameters=parameters)
    text = made.text("placed")
    rank = re.search(r"(%\d+) = arith\.remui %arg3", text)
    assert rank is not None
    broken, count = re.subn(r"to %c3\w* step", f"to {rank[1]} step", text)
    assert count == 2  # of the consumer, and of the producer
    with pytest.raises(
        LegoError, match=r"'scf.for' around 'lego\.\w+' of a ring that is filled by"
    ):
        _ = _compilation(broken).placed
