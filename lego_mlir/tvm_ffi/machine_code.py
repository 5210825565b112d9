"""Host code compiled for this process, by LLVM."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm

from lego_mlir.tvm_ffi.code import NAME, HostCode


def compiled(code: HostCode) -> tuple[Any, int]:
    """Compile a function; return the engine, which has its machine code, and its address."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    module = llvm.parse_assembly(str(code.module))
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine, engine.get_function_address(NAME)
