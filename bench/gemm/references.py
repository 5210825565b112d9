"""References of products, as a manifest and a result tell them."""

from __future__ import annotations

from typing import Any

from bench.gemm.groups import Groups
from bench.gemm.product import Product


def product_of(data: dict[str, Any]) -> Product | Groups | None:
    """The reference of a product, or of several; `None` of anything else."""
    match data.get("kind"):
        case "product":
            return Product.from_json(data)
        case "groups":
            return Groups.from_json(data)
        case _:
            return None
