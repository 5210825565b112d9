"""The GPU architectures that code is generated for.

    >>> target = Target.parse("sm_90a")
    >>> target.capability, target.feature, target.optin_shared_bytes
    ((9, 0), '+ptx84', 232448)

The table holds a target only if two tools accept it: LLVM's NVPTX back end with the feature in the
table, and nvJitLink 13. If the PTX version is older than the chip's first, the back end *aborts the
process*, so callers cannot choose `feature`. The version is the larger of the chip's first and 8.3
(CUDA 12.3). It is at most 9.0, so that drivers of CUDA 13.0 can compile the PTX. From sm_89 on it
is at least 8.4 (CUDA 12.4), which has `mma` of 8-bit floats.

Shared memory: the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from dataclasses import dataclass

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import KIB, STATIC_SHARED_BYTES


@dataclass(frozen=True, slots=True)
class Target:
    """One GPU architecture.

    Attributes:
        name: the name in LLVM, ptxas and the `.target` directive, such as `sm_90a`.
        capability: the compute capability, major and minor.
        ptx: the PTX ISA version times ten: 83 is 8.3.
        optin_shared_bytes: shared memory, in bytes, that a CTA may have if its kernel opts in.
        static_shared_bytes: shared memory, in bytes, that a CTA may have otherwise, and that a
            kernel may declare statically.
    """

    name: str
    capability: tuple[int, int]
    ptx: int
    optin_shared_bytes: int
    static_shared_bytes: int = STATIC_SHARED_BYTES

    @property
    def exact(self) -> bool:
        """Whether code runs on this capability only (`sm_90a`), not on later ones."""
        return self.name.endswith("a")

    @property
    def has_clusters(self) -> bool:
        """Whether CTAs form clusters."""
        return self.capability >= (9, 0)

    @property
    def has_wgmma(self) -> bool:
        """Whether warpgroups multiply tiles from shared memory (`wgmma`), and TMA fills it."""
        return self.name == "sm_90a"

    @property
    def feature(self) -> str:
        """The feature string that LLVM's NVPTX back end needs: `+ptx83`."""
        return f"+ptx{self.ptx}"

    @property
    def ptx_version(self) -> str:
        """The PTX ISA version, such as `8.3`."""
        return f"{self.ptx // 10}.{self.ptx % 10}"

    @staticmethod
    def parse(text: str) -> Target:
        """Return the target with this name.

        Raises:
            LegoError: there is none; the hint lists all targets.
        """
        found = next((target for name, target in TARGETS.items() if name == text), None)
        if found is not None:
            return found
        raise LegoError(f"unknown target '{text}'", hint=f"known targets: {', '.join(TARGETS)}")

    def __str__(self) -> str:
        return self.name


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("sm_75", (7, 5), 83, 64 * KIB),
        Target("sm_80", (8, 0), 83, 163 * KIB),
        Target("sm_86", (8, 6), 83, 99 * KIB),
        Target("sm_87", (8, 7), 83, 163 * KIB),
        Target("sm_89", (8, 9), 84, 99 * KIB),
        Target("sm_90", (9, 0), 84, 227 * KIB),
        Target("sm_90a", (9, 0), 84, 227 * KIB),
        Target("sm_100", (10, 0), 86, 227 * KIB),
        Target("sm_100a", (10, 0), 86, 227 * KIB),
        Target("sm_103", (10, 3), 88, 227 * KIB),
        Target("sm_103a", (10, 3), 88, 227 * KIB),
        Target("sm_110", (11, 0), 90, 227 * KIB),
        Target("sm_110a", (11, 0), 90, 227 * KIB),
        Target("sm_120", (12, 0), 87, 99 * KIB),
        Target("sm_120a", (12, 0), 87, 99 * KIB),
        Target("sm_121", (12, 1), 88, 99 * KIB),
        Target("sm_121a", (12, 1), 88, 99 * KIB),
    )
}
