"""The options of a compilation, as plain data: they are known where no compiler is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.hardware.targets import Target


@dataclass(frozen=True)
class Options:
    """The options of one compilation.

    Attributes:
        target: the GPU architecture.
        sizes: values that replace those of the module's `lego.sizes`.
        schedule: a schedule's name or file, instead of the one that the module names.
        parameters: values that replace the defaults of the schedule's parameters.
        keep: whether to keep the module's text after every step of the schedule.
        pipelines: by stage, a pass pipeline or the file that holds it, instead of ours.
        isolate: run LLVM's back end in a child process, so that its crashes become errors.
        strict: reject machine code that spills registers or that the assembler slows down.
        exact_math: round quotients and square roots of f32, f16 and bf16 exactly, and compute other
            functions to a few units in the last place, as a module with the attribute
            `lego.exact_math` requires; else quotients are off by at most 2 units in the last place,
            and functions as `pipelines/mathematics.mlir` says.
        check: check in the kernels those indices and sizes that are not proven to be in range.
        check_each_step: run kernels on tiles on random inputs before and after each pass over
            tiles, in the interpreter; a pass that changes a result is an error.
    """

    target: Target = field(default_factory=lambda: Target.parse(DEFAULT_TARGET))
    sizes: Mapping[str, int] = field(default_factory=dict)
    schedule: str | None = None
    parameters: Mapping[str, int] = field(default_factory=dict)
    keep: bool = False
    pipelines: Mapping[str, str] = field(default_factory=dict)
    isolate: bool = False
    strict: bool = False
    exact_math: bool = False
    check: bool = False
    check_each_step: bool = False
