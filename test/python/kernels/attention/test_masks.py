"""What is proven of whole tiles of masks, compared with enumeration."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.kernels.attention.masks import NO_KEYS, Interval, hides_what_is_behind, keys_seen

KEYS = 24
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]

Mask = Callable[[Any, Any], Any]


def comparisons() -> st.SearchStrategy[Mask]:
    def made(compare: Any, a: int, b: int, c: int, d: int) -> Mask:
        return lambda i, j: compare(a * i + b * j, c * j + d)

    factor, number = st.integers(-3, 3), st.integers(-20, 20)
    return st.builds(made, st.sampled_from(COMPARISONS), factor, factor, factor, number)


def masks() -> st.SearchStrategy[Mask]:
    def together(inner: st.SearchStrategy[Mask]) -> st.SearchStrategy[Mask]:
        def both(a: Mask, b: Mask) -> Mask:
            return lambda i, j: a(i, j) & b(i, j)

        def either(a: Mask, b: Mask) -> Mask:
            return lambda i, j: a(i, j) | b(i, j)

        def inverse(a: Mask) -> Mask:
            # A plain truth value has the two's complement of an integer for its inverse.
            return lambda i, j: (not m) if isinstance(m := a(i, j), bool) else ~m

        return (
            st.builds(both, inner, inner)
            | st.builds(either, inner, inner)
            | st.builds(inverse, inner)
        )

    return st.recursive(comparisons(), together, max_leaves=5)


def has(interval: Interval, key: int) -> bool:
    low = interval.first is None or interval.first <= key
    return low and (interval.last is None or key <= interval.last)


@given(masks(), st.integers(0, 10), st.integers(1, 6))
def test_what_is_proven_is_true(mask: Mask, first: int, count: int) -> None:
    seen = keys_seen(mask, first, first + count - 1, {})
    for j in range(KEYS):
        meets = [bool(mask(i, j)) for i in range(first, first + count)]
        assert has(seen.some, j) or not any(meets)
        assert not has(seen.all, j) or all(meets)


def test_causal_masks_are_proven() -> None:
    seen = keys_seen(lambda i, j, keys: j <= i + (keys - 4), 8, 15, {"keys": 10})
    assert seen.some == Interval(None, 21)
    assert seen.all == Interval(None, 14)


def test_windows_are_proven() -> None:
    seen = keys_seen(lambda i, j: (j <= i) & (i - j < 5), 8, 10, {})
    assert (seen.some, seen.all) == (Interval(4, 10), Interval(6, 8))


def test_of_tensors_nothing_is_proven_and_of_the_rest_what_there_is() -> None:
    seen = keys_seen(lambda i, j, ids: (j <= i) & (ids[i] == ids[j]), 8, 15, {})
    assert seen.some == Interval(None, 15)
    assert seen.all == NO_KEYS.meet(Interval(None, 8))
    unknown = keys_seen(lambda i, j: abs(i - j) < 3, 8, 15, {})  # no index has an abs
    assert (unknown.some, unknown.all) == (Interval(), NO_KEYS)


def test_masks_that_hide_what_is_behind_the_last_key() -> None:
    """A causal mask does by itself, whatever the sizes; one that does not name them cannot."""

    def causal(i: Any, j: Any, keys: Any, queries: Any) -> Any:
        return j <= i + (keys - queries)

    def window(i: Any, j: Any, keys: Any, queries: Any) -> Any:
        return causal(i, j, keys, queries) & (j > i + (keys - queries) - 3)

    def next_one(i: Any, j: Any, keys: Any, queries: Any) -> Any:
        return j <= i + (keys - queries) + 1

    assert all(map(hides_what_is_behind, (causal, window)))
    others = next_one, lambda i, j: j <= i, lambda i, j: j > i, lambda batch, j: batch == j
    assert not any(map(hides_what_is_behind, others))
