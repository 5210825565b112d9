"""The launch of a kernel on tiles: its threads, and its clusters of CTAs."""

from __future__ import annotations

from lego_mlir.diagnostics import MissingFeatureError
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel, constant_size


def check_launch(kernel: TileKernel) -> None:
    """Check that a launch has whole warps and clusters, and what is made of their numbers.

    No operation is about one thread: scalars are the same in all of them.

    Raises:
        LegoError: at the launch, or at the operation.
    """
    _ = kernel.warps
    for argument in list(kernel.body.arguments)[3:6]:
        for use in argument.uses:
            raise kernel.source.error(
                f"'{use.owner.name}' of the number of a thread, in a kernel whose tiles all "
                "threads hold together",
                use.owner.location,
                hint="lego.iota is the index of each element",
            )
    if kernel.cluster > 1:
        _check_clusters(kernel)
    if kernel.ctas > 1:
        _check_ctas(kernel)


def _check_clusters(kernel: TileKernel) -> None:
    """Check that the target has clusters, and the grid whole ones.

    Raises:
        MissingFeatureError: at the launch, the target has none.
        LegoError: at the launch.
    """
    if not kernel.target.has_clusters:
        raise kernel.source.error(
            f"the target {kernel.target} has no clusters of CTAs",
            kernel.launch.location,
            hint="--target=sm_90a, or launch the kernel without a cluster",
            kind=MissingFeatureError,
        )
    grid = constant_size(launch_sizes(kernel.launch)[0])
    if grid is not None and grid % kernel.cluster:
        raise kernel.source.error(
            f"the grid has {grid} CTAs along x, which are no whole clusters of {kernel.cluster}",
            kernel.launch.location,
            hint="a grid of CTAs that is a multiple of the cluster's",
        )


def _check_ctas(kernel: TileKernel) -> None:
    """Check that the CTAs of a cluster compute with the cluster's number, not theirs.

    Raises:
        LegoError: at the operation.
    """
    own = [use.owner for use in kernel.body.arguments[0].uses]
    ids = [op for op in operations_in(kernel.launch) if op.name == "gpu.block_id"]
    own += [op for op in ids if str(op.attributes["dimension"]).rstrip(">").endswith("x")]
    for op in own:
        raise kernel.source.error(
            f"'{op.name}' of the number of a CTA, in a kernel whose tiles the CTAs of a cluster "
            "hold together",
            op.location,
            hint='"gpu.cluster_id"() {dimension = #gpu<dim x>} is the number of the cluster',
        )
