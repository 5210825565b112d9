"""Persistent kernels with stores by TMA and multicast: the verifier refuses what is not proven."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from ptx_mutants import is_caught

from lego_mlir import runtime
from lego_mlir.artifact import Artifact
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
        "%zeros = arith.constant dense<0.0> : tensor<64x64xf32, LAYOUT\n"
        r'"lego.put"(\1, \2, %zeros) : (\3, index, tensor<64x64xf32, LAYOUT) ->',
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
        layout = re.search(r"%cst\w* = arith\.constant .* : tensor<64x64xf32, (#lego\S+ .*>)", text)
        assert layout is not None
        new = new.replace("LAYOUT", layout[1].replace("\\", r"\\"))
    broken, count = re.subn(pattern, new, text)
    assert count
    with pytest.raises(LegoError) as caught:
        _ = _compilation(broken).placed
    assert said in caught.value.message
    assert caught.value.location is not None


TURNS = PARAMETERS | {"ctas": 1, "cluster": 1, "overlap_epilogue": 0, "ping_pong": 1}


@pytest.fixture(scope="module")
def in_turns() -> str:
    """The kernel whose tiles two warpgroups compute in turns, as text."""
    made = _compilation(GRID.read_text(), schedule="persistent", parameters=TURNS)
    found: str = made.text("placed")
    return found


def _turn(order: str) -> str:
    return rf'"lego\.turn_(begin|end)"\(\) {{groups = 2 : i64{order}}}[^\n]*\n'


TURN_MUTANTS = {
    "operands without turns": (
        _turn(""),
        "",
        "'lego.wait' of a role with teams, outside of a turn",
    ),
    "tiles are put without turns": (
        _turn(", order = 1 : i64"),
        "",
        "'lego.acquire' of a role with teams, outside of a turn",
    ),
    "a turn that does not end": (_turn("").replace("begin|", ""), "", "without an end in its"),
    "three teams": ("(teams = )2", r"\g<1>3", "of 8 warps has 3 teams, and tiles have 4"),
}


@pytest.mark.parametrize("name", TURN_MUTANTS)
def test_the_verifier_refuses_teams(in_turns: str, name: str) -> None:
    pattern, new, said = TURN_MUTANTS[name]
    broken, count = re.subn(pattern, new, in_turns)
    assert count
    with pytest.raises(LegoError) as caught:
        _ = _compilation(broken).placed
    assert said in caught.value.message


PTX_MUTANTS = {
    "no first turn": (r"bar\.arrive 2, 256;", ""),
    "nobody gives turns": (r"bar\.arrive %r\d+, 256;", ""),
    "nobody waits for turns": (r"bar\.sync \t%r\d+, 256;", ""),
    "the second warpgroup begins": (r"bar\.arrive 4, 256;", "bar.arrive 5, 256;"),
    "stages are empty after two releases": (r"(mbarrier\.init[^;]*, )(%r\d+);", r"\g<1>2;"),
}


def _is_right(artifact: Artifact, order: str) -> bool:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((128, 128), (128, 192)))
    c = np.full((128, 192), np.nan, np.float16)
    done = runtime.run(artifact, [a, b, c], device=runtime.select("sim", order=order))
    found = np.asarray(done.outputs["arg2"]).view(np.float16).reshape(c.shape)
    return bool(np.allclose(found, a.astype("f4") @ b.astype("f4"), atol=5e-2))


@pytest.fixture(scope="module")
def artifact(in_turns: str) -> Artifact:
    return _compilation(in_turns).artifact(assemble=False)


@pytest.mark.parametrize("name", PTX_MUTANTS)
def test_the_simulator_finds(artifact: Artifact, name: str) -> None:
    assert is_caught(artifact, PTX_MUTANTS[name], _is_right, ("late", "early", "random"))


def test_the_simulator_finds_stages_that_are_released_early() -> None:
    """Tiles are put into two stages while TMA reads them."""
    parameters = PARAMETERS | {"ctas": 1, "cluster": 1, "store_stages": 2}
    made = _compilation(GRID.read_text(), schedule="persistent", parameters=parameters)
    early = (r"(bulk\.wait_group\.read\s*)1;", r"\g<1>2;")
    assert is_caught(made.artifact(assemble=False), early, _is_right, ("late", "early", "random"))


def test_each_part_is_put_once() -> None:
    parameters = {"ctas": 2, "store_stages": 2, "store_parts": 4}
    text = (INPUTS / "deep_grid.mlir").read_text()
    made = _compilation(text, schedule="persistent", parameters=parameters).text("placed")
    (due,) = re.findall(r"%\d+ = arith\.cmpi ult, %\d+, %c4\w* : index", made)
    (later,) = re.findall(r"%\d+ = arith\.cmpi ult, %arg3, %arg\d+ : index", made)
    few = f"%few = arith.constant 3 : index\n{re.sub('%c4.*', '%few : index', due)}"
    (tiles,) = re.findall(r"scf\.for %arg\d+ = %arg3 to %c6\w* .* iter_args", made)
    differs, first = "whose two ways use rings differently", "tile -4 in the loop's first iteration"
    for guard, wrong, said in (
        (due, few, "in the loop's second iteration, where tile"),
        (due, due.replace("ult", "ule"), differs),
        (later, later.replace("ult", "ule"), first),
        (later, later.replace("ult", "ne"), first),
        (tiles, re.sub(r"to %c6\w*", "to %arg3", tiles), "of a loop that may have none"),
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
