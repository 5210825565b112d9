"""The driver alone: `cuLaunchKernelEx` in a loop of machine code, with everything laid out before.

No launch costs less. What a contender takes beyond it is its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import binding as llvm

from lego_mlir.artifact import Artifact
from lego_mlir.runtime.cuda import load
from lego_mlir.runtime.cuda.loaded import handle_of

_LOOP = """
define i32 @loop(ptr %config, ptr %parameters, i64 %count) {{
begin:
  %launch = inttoptr i64 {launch} to ptr
  %kernel = inttoptr i64 {kernel} to ptr
  br label %next
next:
  %k = phi i64 [ 0, %begin ], [ %following, %next ]
  %status = call i32 %launch(ptr %config, ptr %kernel, ptr %parameters, ptr null)
  %following = add i64 %k, 1
  %more = icmp slt i64 %following, %count
  br i1 %more, label %next, label %end
end:
  ret i32 %status
}}
"""


def loop_of(artifact: Artifact, tensors: Sequence[Any]) -> Callable[[int], None]:
    """Return a function that launches a kernel on the legacy default stream so many times.

    Args:
        artifact: of one launch, whose parameters are its arguments in order.
        tensors: PyTorch tensors of a GPU.
    """
    (launch,), ((kernel, _, _),) = artifact.launches, load(artifact).kernels
    cuda = ctypes.CDLL("libcuda.so.1")
    address = ctypes.cast(cuda.cuLaunchKernelEx, ctypes.c_void_p).value
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(_LOOP.format(launch=address, kernel=handle_of(kernel)))
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    loop = kind(engine.get_function_address("loop"))
    # A CUlaunchConfig without attributes: 56 bytes, the sizes first.
    sizes = (*launch.grid, *launch.block, launch.shared_bytes)
    config = (ctypes.c_uint32 * 14)(*(int(n) for n in sizes))
    addresses = [ctypes.c_uint64(tensors[int(p)].data_ptr()) for p in launch.parameters]
    pointers = (ctypes.c_void_p * len(addresses))(*map(ctypes.addressof, addresses))

    def run(count: int) -> None:
        _ = engine, addresses  # which live as long as the function
        if loop(config, pointers, count):
            raise RuntimeError("the driver refuses the launch")

    return run
