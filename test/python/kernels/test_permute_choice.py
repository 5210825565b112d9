"""The choice of a permutation's config: what is not worked out would not have been chosen."""

from __future__ import annotations

import random
from math import prod

import pytest

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.kernels.permute.by_squares.heuristic import square_candidates
from lego_mlir.kernels.permute.by_words.heuristic import word_candidates
from lego_mlir.kernels.permute.candidates import cheapest, ranked
from lego_mlir.kernels.permute.config import TileConfig
from lego_mlir.kernels.permute.costs.tiles import TileRows, Tiles
from lego_mlir.kernels.permute.heuristic import choose_config
from lego_mlir.kernels.permute.heuristic import ranked as configs_to_time
from lego_mlir.kernels.permute.problem import PermuteProblem, find_problem
from lego_mlir.kernels.permute.runs import Side, raster_order


def random_problem(seed: int) -> PermuteProblem:
    generator = random.Random(seed)
    rank = generator.randint(2, 5)
    shape = [round(2000 ** generator.random()) for _ in range(rank)]
    axes = generator.sample(range(rank), rank)
    source, target = OrderBy(Row(*shape)), OrderBy(Row(*(shape[k] for k in axes)))
    problem = find_problem(shape, axes, source, target)
    assert problem is not None
    return problem


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("size", [1, 4])
def test_what_costs_more_at_least_is_not_chosen(seed: int, size: int) -> None:
    problem = random_problem(seed)
    if problem.is_copy:
        return
    for found in (
        square_candidates(problem, 1, size, 16),
        word_candidates(problem, 1, size, 16, 2),
    ):
        for candidate in found:
            _, accesses = candidate.work_out()
            assert candidate.least <= accesses.cycles * (1 + 1e-9)
        in_order = ranked(found)
        best = cheapest(found)
        assert (best is None) == (not in_order)
        if best is not None:
            assert best == in_order[0]
            assert cheapest(found, below=best[1].cycles * 0.999) is None


def test_tuning_times_tiles_that_store_whole_words_too() -> None:
    """They are 1.16 times as fast as others on an H200; their estimates do not say so."""
    found = find_problem((5613, 933), (1, 0), OrderBy(Row(5613, 933)), OrderBy(Row(933, 5613)))
    assert found is not None
    configs = configs_to_time(found, 1, 16)
    assert {1, 4, 32} <= {getattr(config, "sector", 1) for config in configs}
    assert len(configs) <= 16


@pytest.mark.parametrize(("m", "n"), [(1073, 176), (1397, 159), (1873, 75), (362, 807)])
def test_small_matrices_are_transposed_by_ctas_of_few_threads(m: int, n: int) -> None:
    """They take 0.76 to 0.90 of the time of tiles of two modes with 256 threads, on an H200."""
    found = find_problem((m, n), (1, 0), OrderBy(Row(m, n)), OrderBy(Row(n, m)))
    assert found is not None
    config = choose_config(found, 4, 4)
    assert not isinstance(config, TileConfig)
    assert getattr(config, "threads", 256) <= 128


@pytest.mark.parametrize("seed", range(20))
def test_rows_and_counts_of_many_tiles(seed: int) -> None:
    problem = random_problem(seed)
    generator = random.Random(seed)
    sizes = [mode.size for mode in problem.modes]
    tiles = [tuple(generator.choice([1, n, -(-n // 2)]) for n in sizes) for _ in range(10)]
    for is_source in (True, False):
        rows = TileRows.of(problem, Tiles.of(problem, tiles, 1, 2).tile, is_source=is_source)
        for n, tile in enumerate(tiles):
            side = Side.of(problem, tile, is_source=is_source)
            assert rows.first[n] == side.run[0]
            assert rows.units[n] == side.extents[-1]
            assert all(stride % max(1, rows.apart[n]) == 0 for stride in side.strides_of_rows)
    many = Tiles.of(problem, tiles, 1, 2)
    for n, tile in enumerate(tiles):
        one = Tiles.of(problem, tile, 1, 2)
        assert one.counts.tolist() == many.counts[n].tolist()
        assert one.counts.prod() * prod(tile) >= prod(sizes)
        assert one.apart == many.apart[n]


@pytest.mark.parametrize(
    ("shape", "axes", "tile", "is_along_input"),
    [
        ((1282 * 123, 166), (1, 0), (83, 128), True),
        ((39, 1975, 442), (2, 1, 0), (32, 9, 39), True),
        ((579, 58410), (1, 0), (128, 193), False),
        ((973, 221, 148), (2, 1, 0), (148, 1, 287), False),
    ],
)
def test_consecutive_ctas_go_along_the_side_whose_runs_have_fewer_tiles(
    shape: tuple[int, ...], axes: tuple[int, ...], tile: tuple[int, ...], *, is_along_input: bool
) -> None:
    """The other order takes 7 to 40 % longer on an H200."""
    found = find_problem(shape, axes, OrderBy(Row(*shape)), OrderBy(Row(*(shape[k] for k in axes))))
    assert found is not None
    counts = [-(-mode.size // t) for mode, t in zip(found.modes, tile, strict=True)]
    first, last = (Side.of(found, tile, is_source=s).run[0] for s in (True, False))
    order = raster_order(found, tile, counts, 4)
    assert sorted(order) == list(range(len(tile)))
    assert order[-1] == (first if is_along_input else last)
    assert (Tiles.of(found, tile, 1, 4).apart == 1) == is_along_input
