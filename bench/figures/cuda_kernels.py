"""What the cases of CUDA share: kernels that nvcc compiles, and the programs of the documents."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.contenders.case import TEMPLATES, Built
from lego_mlir.runtime.cuda import cuda_core

BY_HAND_FOLDER = Path(__file__).with_name("by_hand")

Dims = tuple[int, int, int]
Kernel = Callable[..., None]


def kernels_of(built: Built, source: Path, names: tuple[str, ...], **defines: int) -> list[Kernel]:
    """Compile CUDA C++; return functions `(grid, block, *arguments)` that launch its kernels."""
    import cuda.core as core

    from bench.peers.nvcc import compiled

    cubin = built.folder / f"{source.parent.name}_{source.stem}.cubin"
    path = compiled(source, cubin, built.torch.cuda.get_device_capability(), defines)
    module = core.ObjectCode.from_cubin(path.read_bytes())
    stream = cuda_core.as_stream(built.stream)

    def of(name: str) -> Kernel:
        kernel = module.get_kernel(name)

        def launch(grid: Dims, block: Dims, *arguments: Any) -> None:
            config = core.LaunchConfig(grid=grid, block=block)
            core.launch(stream, config, kernel, *arguments)

        return launch

    return [of(name) for name in names]


def example(name: str) -> Any:
    """Import a program of docs/examples."""
    spec = importlib.util.spec_from_file_location(name, TEMPLATES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
