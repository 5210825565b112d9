"""What became of a module, in words: its schedule's parameters, its launches, its machine code."""

from __future__ import annotations

from lego_mlir.compiler.driver import Compilation
from lego_mlir.compiler.schedules import Schedule


def explain(compilation: Compilation) -> str:
    """Compile to machine code and return a description of the result, one item a line.

        target     sm_90a
        schedule   persistent
          stages = 4
          cluster = 2, given
        workspace  packed  f16 512×64, 65536 bytes
        kernel     matmul_kernel  grid 4×1×1  block 384×1×1  dynamic shared memory 229504 bytes
          168 registers a thread, nothing spilled

    Kernels on tiles follow, with the layout of each tile, and what conversions and reductions do.

    Raises:
        LegoError: the module does not compile.
    """
    artifact = compilation.artifact()
    lines = [f"target     {artifact.target}"]
    lines += _described(compilation.schedule)
    lines += [f"workspace  {workspace}" for workspace in artifact.workspaces]
    own = compilation.schedules.own_of_launches
    resources = {found.kernel: found for found in compilation.cubin.resources}
    for number, launch in enumerate(artifact.launches):
        lines.append(f"kernel     {launch}")
        if number in own:
            lines += [f"  {line}" for line in _described(own[number])]
        found = resources.get(launch.kernel)
        if found is not None:
            spilled = found.spill_store_bytes + found.spill_load_bytes
            lines.append(
                f"  {found.registers} registers a thread, "
                + (f"{spilled} bytes spilled" if spilled else "nothing spilled")
            )
    lines += [line for kernel in compilation.explain_tiles() for line in kernel]
    lines += [f"warning    {warning}" for warning in compilation.cubin.warnings]
    return "\n".join(lines) + "\n"


def _described(schedule: Schedule | None) -> list[str]:
    """Return the lines of a schedule and the parameters that its steps have asked for."""
    if schedule is None:
        return ["schedule   none"]
    return [f"schedule   {schedule.name}"] + [
        f"  {name} = {value}{', given' * (name in schedule.parameters)}"
        for name, value in schedule.used_parameters.items()
    ]
