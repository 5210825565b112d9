"""How operators of the namespace `lego` are registered, and how their kernels are launched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch

from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.frontend import Kernel, KernelChoice, KernelSequence

NAMESPACE = "lego"

_MOST_KERNELS = 4096
"""Kernels that are kept."""

_kernels: dict[Hashable, Kernel | KernelSequence | KernelChoice] = {}
_making = threading.RLock()
_library = torch.library.Library(NAMESPACE, "FRAGMENT")


def register(
    schema: str,
    compute: Callable[..., Any],
    describe: Callable[..., Any],
    gradient: Callable[..., Any] | None = None,
    remember: Callable[..., Any] | None = None,
) -> Any:
    """Register an operator, and return it.

    Args:
        schema: `name(Tensor a) -> Tensor`.
        compute: computes it on tensors of the CPU or of CUDA.
        describe: computes shapes, strides and types only, on tensors without memory.
        gradient: `torch.library.register_autograd`'s backward function.
        remember: its `setup_context`.
    """
    return register_in(_library, NAMESPACE, schema, compute, describe, gradient, remember)


def register_in(
    library: torch.library.Library,
    namespace: str,
    schema: str,
    compute: Callable[..., Any],
    describe: Callable[..., Any],
    gradient: Callable[..., Any] | None = None,
    remember: Callable[..., Any] | None = None,
) -> Any:
    """Register an operator in a library of PyTorch; see `register`."""
    name = schema.partition("(")[0]
    tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
    library.define(schema, tags=tags)
    library.impl(name, compute, "CompositeExplicitAutograd")
    full = f"{namespace}::{name}"
    torch.library.register_fake(full, describe, lib=library)
    if gradient is not None:
        torch.library.register_autograd(full, gradient, setup_context=remember, lib=library)
    return getattr(getattr(torch.ops, namespace), name).default


def launch(
    key: tuple[Hashable, ...],
    build: Callable[[str | None], Kernel | KernelSequence | KernelChoice],
    *tensors: torch.Tensor,
) -> None:
    """Launch the kernel of a problem, which is built and compiled once.

    Args:
        key: of the problem; with the tensors' device it determines the kernel.
        build: returns the kernel for a target, or for the current GPU if that is `None`.
        tensors: the kernel's arguments, all on one device. Those in host memory run in the
            simulator, others on PyTorch's current stream.

    Raises:
        LegoError: there is no such kernel, or the launch fails.
    """
    device = tensors[0].device
    kernel = _kernels.get((device, key))
    if kernel is None:
        # Backward runs in threads of its own; one of them compiles.
        with _making:
            kernel = _kernels.get((device, key)) or _built(device, build)
            launch_in_place(kernel, device, tensors)
            if len(_kernels) >= _MOST_KERNELS:
                _kernels.clear()
            _kernels[device, key] = kernel
        return
    launch_in_place(kernel, device, tensors)


def _built(
    device: torch.device, build: Callable[[str | None], Kernel | KernelSequence | KernelChoice]
) -> Kernel | KernelSequence | KernelChoice:
    if device.type != "cuda":
        return build(DEFAULT_TARGET)
    with torch.cuda.device(device):
        return build(None)


def launch_in_place(
    kernel: Callable[..., None], device: torch.device, arrays: Sequence[Any]
) -> None:
    """Launch on all arguments, and leave PyTorch's current device as it is.

    Args:
        kernel: takes the arguments, and `device`.
        device: of the tensors among them.
        arrays: the arguments.
    """
    if device.type != "cuda":
        kernel(*arrays, device="sim")
    elif torch.cuda.current_device() == device.index:
        kernel(*arrays)
    else:
        with torch.cuda.device(device):
            kernel(*arrays)
