"""What became of a module, in words: its schedule's parameters, its launches, its machine code."""

from __future__ import annotations

from lego_mlir.compiler.driver import Compilation


def explain(compilation: Compilation) -> str:
    """Compile to machine code and return a description of the result, one item a line.

        target     sm_90a
        schedule   wgmma
          stages = 4
          cluster = 2, given
        kernel     matmul_kernel  grid 4×1×1  block 384×1×1  dynamic shared memory 229504 bytes
          168 registers a thread, nothing spilled

    Raises:
        LegoError: the module does not compile.
    """
    artifact = compilation.artifact()
    lines = [f"target     {artifact.target}"]
    schedule = compilation.schedule
    if schedule is None:
        lines.append("schedule   none")
    else:
        lines.append(f"schedule   {schedule.name}")
        for name, value in schedule.used_parameters.items():
            lines.append(f"  {name} = {value}{', given' * (name in schedule.parameters)}")
    resources = {found.kernel: found for found in compilation.cubin.resources}
    for launch in artifact.launches:
        lines.append(f"kernel     {launch}")
        found = resources.get(launch.kernel)
        if found is not None:
            spilled = found.spill_store_bytes + found.spill_load_bytes
            lines.append(
                f"  {found.registers} registers a thread, "
                + (f"{spilled} bytes spilled" if spilled else "nothing spilled")
            )
    lines += [f"warning    {warning}" for warning in compilation.cubin.warnings]
    return "\n".join(lines) + "\n"
