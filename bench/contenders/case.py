"""What a case is: files that are built without a GPU, and calls that are checked and timed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lego_mlir.files import write_whole

if TYPE_CHECKING:
    from lego_mlir.artifact import Artifact

TEMPLATES = Path(__file__).parents[2] / "docs" / "examples"

OURS, PRINTED, BY_HAND = "ours", "printed", "by hand"

Call = Callable[[], None]
"""Enqueues the work of a case once."""


@dataclass(frozen=True)
class Contenders:
    """What does the work of a case on a GPU.

    Attributes:
        calls: by name.
        results: the tensors that each call writes.
        expected: what they are then.
        tolerance: the largest error, relative to the largest element.
        unchecked: names of calls that write other tensors than `results`: libraries.
        separate: what calls write that have tensors of their own, and what they are then, by name.
        reset: brings inputs that the calls change back, before a check.
        absent: why contenders are missing, by name.
        errors: the largest error of contenders, where it is of interest, by name.
    """

    calls: Mapping[str, Call]
    results: Sequence[Any]
    expected: Sequence[Any]
    tolerance: float
    unchecked: frozenset[str] = frozenset()
    separate: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    reset: Callable[[], None] = lambda: None
    absent: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ContenderCase:
    """One problem that several contenders solve.

    Attributes:
        name: of the case.
        figure: of a paper, `LEGO 12a`, or what the case belongs to.
        printed: the printed kernel's template, and the values that fill it; by file name.
        kernels: returns our kernels by name, if there are any.
        contenders: returns what is timed; it takes a `Built`.
        work: floating-point operations or bytes of a call.
        unit: of a rate: `TFLOP/s` or `GB/s`; empty where time alone counts.
        launches: of a call, if they are many: then it is not repeated in a graph.
    """

    name: str
    figure: str
    printed: Mapping[str, tuple[str, Mapping[str, int | str]]]
    kernels: Callable[[], Mapping[str, Any]]
    contenders: Callable[[Built], Contenders]
    work: float = 0.0
    unit: str = ""
    launches: int = 1

    @property
    def folder(self) -> str:
        """The name of the case's folder."""
        return self.name.translate(str.maketrans(" ×/", "_x-"))


@dataclass(frozen=True)
class Built:
    """What was built of a case.

    Attributes:
        folder: of its files.
        torch: PyTorch.
        stream: PyTorch's stream, which all calls use.
    """

    folder: Path
    torch: Any
    stream: Any

    def artifact(self, name: str) -> Artifact:
        """Load one of our kernels."""
        from lego_mlir.artifact import Artifact

        return Artifact.load(self.folder / f"{name}.lego")

    def ours(self, name: str, *tensors: Any) -> Call:
        """Return a call of one of our kernels on tensors.

        Args:
            name: of the kernel.
            tensors: of the GPU.
        """
        from lego_mlir.runtime import cuda

        bound = cuda.load(self.artifact(name)).bind(*tensors)
        return lambda: bound(self.stream.cuda_stream)


def build_case(case: ContenderCase, folder: Path, target: str) -> None:
    """Print the kernels of a case, and compile ours, into its folder.

    Raises:
        LegoError: a template or a kernel is wrong.
    """
    from lego_mlir.printers.templates import language_of, render

    folder.mkdir(parents=True, exist_ok=True)
    for file, (template, values) in case.printed.items():
        text = (TEMPLATES / template).read_text()
        printed = render(text, values, language_of(template), template)
        write_whole(folder / file, printed.encode())
    for name, kernel in case.kernels().items():
        kernel.compile(target).save(folder / f"{name}.lego")


def build_cases(cases: Iterable[ContenderCase], folder: Path, target: str, manifest: str) -> None:
    """Build cases into a folder; write which commit they are of into its manifest.

    Args:
        cases: each gets a folder of its own.
        folder: of all.
        target: a GPU architecture.
        manifest: the name of a file.

    Raises:
        LegoError: a template or a kernel is wrong.
    """
    from bench.build import commit

    for case in cases:
        build_case(case, folder / case.folder, target)
        print(case.name, flush=True)
    (folder / manifest).write_text(json.dumps({"commit": commit()}))
