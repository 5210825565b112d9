"""A pytest fixture that runs kernels in the simulator, in every completion order.

    def test_add(simulator):
        simulator.triton(add)[(4,)](x, y, out, 1000, BLOCK=256)
        assert (out == x + y).all()

pytest loads it where lego-mlir is installed; nothing is imported before a test asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lego_mlir.sim.cost.counter import Costs
    from lego_mlir.sim.triton_kernels import TritonKernel

ORDERS = ("late", "early", "random:0", "random:1")


@dataclass(frozen=True, slots=True)
class Simulator:
    """The simulator in one completion order, with all checks.

    Attributes:
        order, seed: the completion order, and the seed of the random one.
    """

    order: str
    seed: int = 0

    def triton(self, kernel: Any, **options: Any) -> TritonKernel:
        """Return a launcher of a Triton kernel; `options` as of `lego_mlir.sim.triton`."""
        from lego_mlir import sim

        return sim.triton(kernel, **(self._options() | options))

    def launch(self, *args: Any, **options: Any) -> Costs | None:
        """Run a kernel of a PTX text, as `lego_mlir.sim.launch` does."""
        from lego_mlir import sim

        return sim.launch(*args, **(self._options() | options))

    def _options(self) -> dict[str, Any]:
        return {"order": self.order, "seed": self.seed, "global_checks": True}


@pytest.fixture(params=ORDERS)
def simulator(request: pytest.FixtureRequest) -> Simulator:
    """Return a simulator; the test runs once in each completion order."""
    kind, _, seed = request.param.partition(":")
    return Simulator(kind, int(seed or 0))
