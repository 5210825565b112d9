"""Clusters on a device: opt in to large ones, and refuse those that it cannot run.

A cluster's CTAs run at the same time on multiprocessors that are near each other. So a launch whose
clusters are too large for that fails; here it is known why.

Source: CUDA driver API, cuOccupancyMaxActiveClusters, and the attribute
CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED.
"""

from __future__ import annotations

from math import prod

from lego_mlir.artifact import KernelLaunch
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import PORTABLE_CLUSTER_CTAS
from lego_mlir.runtime.cuda.failures import check, failure


def allow_cluster(kernel: int, name: str, cluster: tuple[int, int, int], index: int) -> None:
    """Opt in to a kernel's clusters, if they are larger than what every GPU has.

    Args:
        kernel: the driver's handle.
        name: of the kernel.
        cluster: the CTAs of a cluster along x, y and z.
        index: of the device.

    Raises:
        LegoError: the driver refuses.
    """
    from cuda.bindings import driver

    if prod(cluster) <= PORTABLE_CLUSTER_CTAS:
        return
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    with failure(f"kernel '{name}' cannot have clusters of {prod(cluster)} CTAs"):
        check(driver.cuKernelSetAttribute(attribute, 1, kernel, index))


def check_cluster(
    kernel: int, launch: KernelLaunch, cluster: tuple[int, int, int], device: str
) -> None:
    """Refuse clusters of which the device cannot run a single one.

    Args:
        kernel: the driver's handle.
        launch: a launch of it.
        cluster: the CTAs of a cluster along x, y and z.
        device: its name.

    Raises:
        LegoError: the device's multiprocessors have no room for a cluster at one time.
    """
    if clusters_at_once(kernel, launch, cluster) == 0:
        raise LegoError(
            f"kernel '{launch.kernel}' has clusters of {prod(cluster)} CTAs of "
            f"{prod(launch.block)} threads and {launch.shared_bytes} bytes of dynamic shared "
            f"memory, and {device} has no room to run one of them",
            hint="smaller clusters, @lg.kernel(..., cluster=8), or CTAs of fewer warps",
        )


def clusters_at_once(kernel: int, launch: KernelLaunch, cluster: tuple[int, int, int]) -> int:
    """Return how many clusters the device runs at the same time, if it runs nothing else.

    Args:
        kernel: the driver's handle.
        launch: a launch of it, whose own clusters do not count.
        cluster: the CTAs of a cluster along x, y and z.

    Raises:
        LegoError: the driver does not say.
    """
    from cuda.bindings import driver

    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = cluster  # any grid of whole clusters
    config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
    config.sharedMemBytes = launch.shared_bytes
    size = driver.CUlaunchAttribute()
    size.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    size.value.clusterDim.x, size.value.clusterDim.y, size.value.clusterDim.z = cluster
    config.attrs, config.numAttrs = [size], 1
    with failure(f"the clusters of kernel '{launch.kernel}' cannot be examined"):
        function = driver.cuKernelGetFunction(kernel)
        check(function)
        found = driver.cuOccupancyMaxActiveClusters(function[1], config)
        check(found)
    return int(found[1])
