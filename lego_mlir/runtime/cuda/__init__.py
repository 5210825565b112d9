"""Artifacts on CUDA devices, by cuda-core and the driver.

`device` is what `select` returns, `loaded` has kernels, their binding and their launches, `direct`
makes the launches that cuda-core cannot. Arrays and parameters are `runtime`'s.
"""

from lego_mlir.runtime.cuda.cuda_core import as_stream
from lego_mlir.runtime.cuda.device import Cuda
from lego_mlir.runtime.cuda.loaded import BoundLaunches, LoadedArtifact, load

__all__ = ["BoundLaunches", "Cuda", "LoadedArtifact", "as_stream", "load"]
