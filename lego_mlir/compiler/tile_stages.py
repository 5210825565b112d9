"""The passes over tile IR as two steps of a compilation: placing tiles, and lowering them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source, mlir_errors
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.tile_ir.kernels import TileKernel, tile_kernels
from lego_mlir.mlir.tile_ir.step_check import StepCheck
from lego_mlir.mlir.tile_ir.verifier import canonicalize_encodings, verify_tiles
from lego_mlir.mlir.tile_passes.assign_layouts import assign_layouts
from lego_mlir.mlir.tile_passes.assign_layouts.registers import check_registers, fits_registers
from lego_mlir.mlir.tile_passes.choose_threads import choose_threads
from lego_mlir.mlir.tile_passes.fill_invalid import fill_invalid
from lego_mlir.mlir.tile_passes.fold_sizes import fold_sizes
from lego_mlir.mlir.tile_passes.hoist_broadcasts import hoist_broadcasts
from lego_mlir.mlir.tile_passes.insert_barriers import insert_barriers
from lego_mlir.mlir.tile_passes.lower_pipelines import lower_rings, lower_roles, lower_teams
from lego_mlir.mlir.tile_passes.lower_tiles import lower_tiles
from lego_mlir.mlir.tile_passes.merge_scalars import merge_scalars
from lego_mlir.mlir.tile_passes.order_contractions import order_contractions
from lego_mlir.mlir.tile_passes.plan_shared_memory import plan_shared_memory
from lego_mlir.mlir.tile_passes.simplify_tiles import simplify_tiles
from lego_mlir.mlir.tile_passes.team_memory import divide_memory
from lego_mlir.mlir.tile_passes.unroll_parts import unroll_parts
from lego_mlir.mlir.tile_passes.untile_accesses import untile_accesses

TilePass: TypeAlias = Callable[[TileKernel], None]

PLACING: Sequence[TilePass] = (
    fold_sizes,
    merge_scalars,
    untile_accesses,
    fill_invalid,
    simplify_tiles,
    hoist_broadcasts,
    order_contractions,
    assign_layouts,
)
LOWERING: Sequence[TilePass] = (
    unroll_parts,
    lower_teams,
    lower_rings,
    lower_tiles,
    plan_shared_memory,
    insert_barriers,
    divide_memory,
    lower_roles,
)


def run_passes(
    passes: Sequence[TilePass],
    module: Any,
    layouts: Layouts,
    source: Source,
    target: Target,
    check: StepCheck | None = None,
) -> None:
    """Run passes over the kernels of a module that have tiles, in place.

    What has tiles is verified before the first pass of `PLACING`; what these make, by
    `check_placed`. With a check it is verified after each pass: that takes as long as the passes
    do, and tells which one is wrong.

    Args:
        passes: `PLACING` or `LOWERING`.
        module: changed in place.
        layouts: reads its layouts.
        source: its text, for errors.
        target: the GPU.
        check: what checks the module before the first of `PLACING`, and after each.

    Raises:
        LegoError: at the operation that is wrong, or that a pass refuses.
    """
    with module.context, ir.Location.unknown(), mlir_errors(source):
        kernels = list(tile_kernels(module, layouts, source, target))
        if not kernels:
            return
        if passes is PLACING:
            for kernel in kernels:
                choose_threads(kernel)
                canonicalize_encodings(kernel)
                verify_tiles(kernel)
            if check is not None:
                check.before(module)
        for step in passes:
            for kernel in kernels:
                step(kernel)
                if check is not None:
                    is_placed = PLACING.index(step) >= PLACING.index(assign_layouts)
                    _verify_after(f"the pass '{step.__name__}'", kernel, placed=is_placed)
            if check is not None:
                check.after(step.__name__, module)


def has_crowds(
    module: Any,
    layouts: Layouts,
    source: Source,
    target: Target,
    check: StepCheck | None = None,
) -> bool:
    """Return whether tiles of a kernel do not fit its registers; arguments as `run_passes`."""
    with module.context:
        return not all(map(fits_registers, tile_kernels(module, layouts, source, target)))


def check_crowds(
    module: Any,
    layouts: Layouts,
    source: Source,
    target: Target,
    check: StepCheck | None = None,
) -> None:
    """Check that the tiles of each kernel fit its registers; arguments as `run_passes`.

    Raises:
        LegoError: at the operation behind which they do not.
    """
    with module.context, ir.Location.unknown():
        for kernel in tile_kernels(module, layouts, source, target):
            check_registers(kernel)


def check_placed(
    module: Any,
    layouts: Layouts,
    source: Source,
    target: Target,
    check: StepCheck | None = None,
    *,
    is_scheduled: bool,
) -> None:
    """Verify kernels on tiles that have layouts.

    The arguments are those of `run_passes`, and whether steps of a schedule have run since.

    Raises:
        LegoError: at the operation that is wrong.
    """
    with module.context, ir.Location.unknown(), mlir_errors(source):
        kernels = list(tile_kernels(module, layouts, source, target))
        if not (kernels or is_scheduled):
            return
        module.operation.verify()
        for kernel in kernels:
            if is_scheduled:
                verify_tiles(kernel, placed=True)
            else:
                _verify_after("a pass", kernel, placed=True)
        if is_scheduled and check is not None and check.has_begun:
            check.after("the schedule", module)


def _verify_after(what: str, kernel: TileKernel, *, placed: bool) -> None:
    """Verify what passes made.

    Args:
        what: has run, for errors.
        kernel: what is verified.
        placed: whether all its tiles must have layouts.

    Raises:
        LegoError: a pass is wrong.
    """
    try:
        verify_tiles(kernel, placed=placed)
    except LegoError as e:
        e.message = f"{what} of the compiler makes a wrong module: {e.message}"
        e.hint = "please report it, with the program; legoc --check-each-step names the pass"
        raise
