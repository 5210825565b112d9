"""Numbers of the pages that a cache of keys and values consists of."""

from __future__ import annotations

from typing import Any

from lego_mlir.index import minimum
from lego_mlir.kernels.attention.tensors import MOST_TOKENS


def page_number(table: Any, batch: Any, page: Any) -> Any:
    """Return the number of a page of a sequence; what is none of the cache's is not accessed.

    A negative number becomes one that is larger than any, so that there are no elements at it.
    """
    return minimum(table[batch, page].to("u32"), MOST_TOKENS - 1).below(MOST_TOKENS)
