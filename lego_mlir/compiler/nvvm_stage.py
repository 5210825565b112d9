"""Stage nvvm: from scheduled kernels to one gpu.module in the nvvm and llvm dialects.

What MLIR's own conversions do not know, or do otherwise than a kernel needs, is rewritten before
them: reductions of a warp, casts of short floats, divisions by zero. What needs functions of LLVM
or attributes of whole kernels comes after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lego_mlir.compiler.dependent_launch import drop_dependent_launch
from lego_mlir.compiler.kernels.attributes import launch_attributes, set_kernel_attributes
from lego_mlir.compiler.kernels.checks import check_instructions, check_types, index_bitwidth
from lego_mlir.compiler.kernels.resource_limits import check_occupancy
from lego_mlir.compiler.kernels.target_attributes import drop_targets
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source, mlir_errors
from lego_mlir.mlir.launch_sizes.pass_sizes import pass_sizes
from lego_mlir.mlir.lowering import atomics
from lego_mlir.mlir.lowering.buffers import align_shared
from lego_mlir.mlir.modules import functions_in, merge_gpu_modules, operations_in
from lego_mlir.mlir.to_nvvm.bf16_extensions import extend_by_words, extensions_of_words
from lego_mlir.mlir.to_nvvm.cache_hints import check_cache_hints, set_cache_hints
from lego_mlir.mlir.to_nvvm.contractions import contract_products
from lego_mlir.mlir.to_nvvm.divisions import DIVISIONS, divide_by_approximation, is_exact
from lego_mlir.mlir.to_nvvm.flat_views import EXPANDED, flatten_views
from lego_mlir.mlir.to_nvvm.fp8_casts import lower_short_floats
from lego_mlir.mlir.to_nvvm.integer_divisions import guard_divisions
from lego_mlir.mlir.to_nvvm.lower_reduce import lower_reductions
from lego_mlir.mlir.to_nvvm.math_library import define_mathematics, has_extremes, keep_extremes
from lego_mlir.mlir.to_nvvm.shared_memory import TargetMemory, fit_shared
from lego_mlir.mlir.to_nvvm.unsigned_indices import make_unsigned

WHERE_NEEDED = {
    "transfers": (
        "convert-vector-to-scf{full-unroll=true},",
        ("vector.transfer_", "vector.print"),
    ),
    "views": ("expand-strided-metadata, lower-affine,", EXPANDED),
    "nvgpu": ("convert-nvgpu-to-nvvm,", ("nvgpu.",)),
}
"""Passes that visit all operations of a module, by their names in the pipeline; and prefixes of
operations that they are for."""


def lower_to_nvvm(
    module: Any,
    source: Source,
    target: Target,
    memory: TargetMemory,
    *,
    exact: bool,
    run: Callable[..., None],
) -> None:
    """Lower the kernels of a scheduled module, in place.

    Args:
        module: kernels as bodies of gpu.launch, or in modules of their own.
        source: what errors point into.
        target: decides between instructions.
        memory: the shared memory of the target.
        exact: round quotients and functions exactly, whatever the module says.
        run: runs MLIR's pipeline of this stage on the module, with values of its parameters.

    Raises:
        LegoError: the target lacks an instruction, or NVVM a type; or a launch asks for more CTAs
            than a multiprocessor holds, or for more shared memory than a CTA may have.
    """
    context = module.context
    with context, mlir_errors(source):
        pass_sizes(module, source)
    operations = list(operations_in(module.operation))
    drop_targets(operations, source)
    operations = drop_dependent_launch(operations, target.capability)
    has_redux = target.capability >= (8, 0)  # PTX ISA 9.7.13, redux.sync
    with context:
        if lower_reductions(operations, source, has_redux):
            operations = list(operations_in(module.operation))
    check_types(operations, source)
    check_instructions(operations, target, source)
    check_occupancy(operations, source)
    check_cache_hints(operations, source)
    width = index_bitwidth(module, operations)
    of_launches = launch_attributes(operations)
    exact = exact or is_exact(module, source)
    divides = not exact and any(op.name in DIVISIONS for op in operations)
    with context:
        updates, extremes = atomics.has_updates(operations), has_extremes(operations)
        extended = extensions_of_words(operations)
        contract_products(operations, source)
        guard_divisions(operations)
        operations = flatten_views(make_unsigned(operations))
        passes = _needed_passes(operations)
        if lower_short_floats(operations, target.capability):
            extended = extensions_of_words(operations_in(module.operation))
        if extremes:
            keep_extremes(module)
        extend_by_words(extended)
    run(
        chip=target.name,
        features=target.feature,
        index_bitwidth=width,
        has_redux=str(has_redux).lower(),
        **passes,
    )
    with context:
        merge_gpu_modules(module)
        define_mathematics(module, source, exact=exact)
        if updates:
            atomics.relax(module)
        if divides:
            divide_by_approximation(module)
        align_shared(module)
        functions = functions_in(module)
        set_kernel_attributes(module, functions, of_launches, target)
        set_cache_hints(module, functions, of_launches, target)
        fit_shared(module, functions, memory, source)


def _needed_passes(operations: Sequence[Any]) -> dict[str, str]:
    """Return what stands in the pipeline for each of the passes that not every module needs."""
    names = {op.name for op in operations}
    return {
        key: passes if any(name.startswith(prefixes) for name in names) else ""
        for key, (passes, prefixes) in WHERE_NEEDED.items()
    }
