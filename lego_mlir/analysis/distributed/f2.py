"""Distributed layouts of powers of two as linear layouts over F2, and back.

A digit of size 2^k is k bits, so where all sizes are powers of two, the table of factors is a
permutation matrix with zero columns for replicas (papers/linear_layouts, Definition 4.10). Swizzles
and shuffles need more than permutations; they start from here.
"""

from __future__ import annotations

from collections.abc import Iterable

from lego_mlir.analysis.distributed.factors import REPLICA, Factor, Place, Places, replicas
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.analysis.linear import LinearLayout, linear
from lego_mlir.diagnostics import LegoError

CTA = "cta"
_INPUTS = {Place.REGISTER: "register", Place.LANE: "lane", Place.WARP: "warp", Place.CTA: CTA}


def to_linear(layout: DistributedLayout) -> LinearLayout:
    """Return a layout as the linear map from `register, lane, warp, cta` to `dim0, dim1, ...`.

    The dimensions are listed fastest first, as linear layouts have them: the last one of the tile
    comes first.

    Raises:
        LegoError: a size is no power of two.
    """
    for place, given in zip(Place, layout.places, strict=True):
        for f in given:
            if f.size & (f.size - 1):
                raise LegoError(
                    f"a {place.word} factor of size {f.size} is no power of two, so the layout is "
                    "not linear over F2"
                )
    bases = {}
    for place, name in _INPUTS.items():
        columns = []
        for f in reversed(layout.places[place]):
            for bit in range(f.size.bit_length() - 1):
                image = [0] * layout.rank
                if f.dim != REPLICA:
                    image[f.dim] = f.stride << bit
                columns.append(image[::-1])
        bases[name] = columns
    outputs = {f"dim{k}": layout.shape[k] for k in reversed(range(layout.rank))}
    return linear(bases, outputs)


def from_linear(layout: LinearLayout) -> DistributedLayout:
    """Return a linear layout from `register`, `lane`, `warp` and `cta` as a distributed layout.

    Args:
        layout: its outputs, fastest first, are the dimensions of the tile.

    Raises:
        LegoError: it is no permutation of bits, as swizzles are not, or has other inputs.
    """
    shape = tuple(d.size for d in reversed(layout.outputs))
    places: list[list[Factor]] = [[], [], [], []]
    known = {name: place for place, name in _INPUTS.items()}
    for name, images in layout.bases.items():
        if name not in known:
            raise LegoError(f"a distributed layout has the inputs {', '.join(known)}, not {name}")
        for bit, image in enumerate(images):
            places[known[name]].insert(0, _factor(image[::-1], f"{name} bit {bit}"))
    found: Places = (tuple(places[0]), tuple(places[1]), tuple(places[2]), tuple(places[3]))
    return DistributedLayout(shape, found)


def _factor(image: Iterable[int], what: str) -> Factor:
    """Return the factor of a bit by the coordinates it maps to, dimension by dimension."""
    moved = [(dim, x) for dim, x in enumerate(image) if x]
    if not moved:
        return replicas(2)
    if len(moved) > 1 or moved[0][1].bit_count() > 1:
        raise LegoError(f"{what} changes several bits of the element's index, not one or none")
    dim, stride = moved[0]
    return Factor(dim, 2, stride)
