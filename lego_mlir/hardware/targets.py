"""The GPU targets we generate code for.

    >>> target = Target.parse("sm_90a")
    >>> target.capability, target.feature, target.optin_shared_bytes
    ((9, 0), '+ptx84', 232448)

A target stands in this table only if both ends accept it: LLVM's NVPTX back end with the feature
given here, and nvJitLink 13. The back end *aborts the process* for a PTX version older than the
chip's first, so `feature` is not a choice left to the caller. The version is the larger of what
the chip needs and 8.3 (CUDA 12.3), and never above 9.0, so that drivers of CUDA 13.0 can still
compile the PTX themselves. From sm_89 on it is at least 8.4 (CUDA 12.4): `mma` of 8-bit floats.

Shared memory: the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from dataclasses import dataclass

from lego_mlir.diagnostics import LegoError

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Target:
    """One GPU architecture.

    Attributes:
        name: as LLVM, ptxas and the `.target` directive spell it: `sm_90a`.
        capability: compute capability, major and minor.
        ptx: PTX ISA version times ten: 83 is 8.3.
        optin_shared_bytes: shared memory a block may have once its kernel opts in, in bytes.
        static_shared_bytes: shared memory a block may have without that, in bytes; also the limit
            of what a kernel may declare statically.
    """

    name: str
    capability: tuple[int, int]
    ptx: int
    optin_shared_bytes: int
    static_shared_bytes: int = 48 * _KIB

    @property
    def exact(self) -> bool:
        """Whether its code runs on this very capability only (`sm_90a`), not on later ones."""
        return self.name.endswith("a")

    @property
    def feature(self) -> str:
        """The feature string that LLVM's NVPTX back end needs: `+ptx83`."""
        return f"+ptx{self.ptx}"

    @property
    def ptx_version(self) -> str:
        """The version in the PTX it makes: `8.3`."""
        return f"{self.ptx // 10}.{self.ptx % 10}"

    @staticmethod
    def parse(text: str) -> Target:
        """The target of this name.

        Raises:
            LegoError: no such target; the hint lists those there are.
        """
        found = TARGETS.get(text)
        if found is not None:
            return found
        raise LegoError(f"unknown target '{text}'", hint=f"known targets: {', '.join(TARGETS)}")

    def __str__(self) -> str:
        return self.name


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("sm_75", (7, 5), 83, 64 * _KIB),
        Target("sm_80", (8, 0), 83, 163 * _KIB),
        Target("sm_86", (8, 6), 83, 99 * _KIB),
        Target("sm_87", (8, 7), 83, 163 * _KIB),
        Target("sm_89", (8, 9), 84, 99 * _KIB),
        Target("sm_90", (9, 0), 84, 227 * _KIB),
        Target("sm_90a", (9, 0), 84, 227 * _KIB),
        Target("sm_100", (10, 0), 86, 227 * _KIB),
        Target("sm_100a", (10, 0), 86, 227 * _KIB),
        Target("sm_103", (10, 3), 88, 227 * _KIB),
        Target("sm_103a", (10, 3), 88, 227 * _KIB),
        Target("sm_110", (11, 0), 90, 227 * _KIB),
        Target("sm_110a", (11, 0), 90, 227 * _KIB),
        Target("sm_120", (12, 0), 87, 99 * _KIB),
        Target("sm_120a", (12, 0), 87, 99 * _KIB),
        Target("sm_121", (12, 1), 88, 99 * _KIB),
        Target("sm_121a", (12, 1), 88, 99 * _KIB),
    )
}
