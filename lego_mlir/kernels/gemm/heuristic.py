"""What a heuristic offers: `mma`, `wgmma` and `gemv` have one each.

A heuristic enumerates the configs that fit a GEMM and a target, estimates the time of each by a
cost model, and chooses: the config that the tuned table has, else the one with the best estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.specs import GpuSpec
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.problem import Problem


class Estimate(Protocol):
    """The time that a cost model gives a config; its text is a line of an explanation.

    Attributes:
        config: the config.
        microseconds: the time of the whole launch.
        limit: the resource that takes longest, such as `tensor cores` or `memory`.
        model_us: the time by the model alone, without the card's correction.
    """

    @property
    def config(self) -> GemmConfig: ...

    @property
    def microseconds(self) -> float: ...

    @property
    def limit(self) -> str: ...

    @property
    def model_us(self) -> float: ...


class Heuristic(Protocol):
    """A module with these functions; in all of them `problem` has a row-major C."""

    def enumerate_configs(self, problem: Problem, target: Target) -> Iterator[GemmConfig]:
        """Yield the configs that fit a GEMM and a target."""
        ...

    def rank(
        self, problem: Problem, target: Target, gpu: GpuSpec | None = None
    ) -> Sequence[Estimate]:
        """Return the estimates of the best configs, the fastest first.

        Args:
            problem: the GEMM.
            target: the GPU architecture.
            gpu: the card; the target's default card if `None`.
        """
        ...

    def microseconds(
        self, problem: Problem, configs: Sequence[Any], gpu: GpuSpec
    ) -> Sequence[float]:
        """Return the estimated times of configs of the heuristic's kind.

        Args:
            problem: the GEMM.
            configs: the configs.
            gpu: the card.
        """
        ...

    def choose(self, problem: Problem, target: Target, promote: int = 0) -> GemmConfig:
        """Return the tuned config of a GEMM if there is one, else the one that ranks first.

        Args:
            problem: the GEMM.
            target: the GPU architecture.
            promote: iterations after which accumulators are promoted; 0 for none.

        Raises:
            LegoError: no config fits.
        """
        ...

    def choose_grouped(
        self,
        problems: Sequence[Problem],
        target: Target,
        promote: int,
        count_tiles: Callable[[GemmConfig], int],
        check: Callable[[GemmConfig], None],
    ) -> GemmConfig | None:
        """Return the config for several GEMMs in one launch; `None` if none fits all of them.

        Args:
            problems: the GEMMs.
            target: the GPU architecture.
            promote: iterations after which accumulators are promoted; 0 for none.
            count_tiles: gives the tiles of all GEMMs in a config.
            check: raises `LegoError` if a config does not fit.
        """
        ...


def fits(config: GemmConfig, check: Callable[[GemmConfig], None]) -> bool:
    """Return whether `check` accepts a config."""
    try:
        check(config)
    except LegoError:
        return False
    return True
