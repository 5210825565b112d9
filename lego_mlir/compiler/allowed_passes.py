"""The MLIR passes that schedules and pass pipelines of a user may run.

A schedule's script and a pass pipeline may come from a stranger, and some of MLIR's passes start
programs (`gpu-module-to-binary` runs `ptxas` of the folder that its option names), read files
(`transform-preload-library`), write files (`snapshot-op-locations`) or run any other pass
(`transform-interpreter`, `composite-fixed-point-pass`). So a pass runs only if it stands here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lego_mlir.diagnostics import with_guess

_NAMES = """
affine-data-copy-generate affine-expand-index-ops affine-expand-index-ops-as-affine
affine-fold-memref-alias-ops affine-loop-coalescing affine-loop-fusion
affine-loop-invariant-code-motion affine-loop-normalize affine-loop-tile affine-loop-unroll
affine-loop-unroll-jam affine-parallelize affine-pipeline-data-transfer affine-raise-from-memref
affine-scalrep affine-simplify-min-max affine-simplify-structures affine-super-vectorize
arith-emulate-unsupported-floats arith-emulate-wide-int arith-expand arith-int-range-narrowing
arith-unsigned-when-equivalent bubble-down-memory-space-casts buffer-deallocation-simplification
buffer-hoisting buffer-loop-hoisting buffer-results-to-out-params bufferization-lower-deallocations
canonicalize control-flow-sink convert-affine-for-to-gpu convert-arith-to-llvm
convert-bufferization-to-memref convert-cf-to-llvm convert-complex-to-llvm
convert-complex-to-standard convert-elementwise-to-linalg convert-func-to-llvm convert-gpu-to-nvvm
convert-index-to-llvm convert-linalg-to-affine-loops convert-linalg-to-loops
convert-linalg-to-parallel-loops convert-math-to-funcs convert-math-to-libm convert-math-to-llvm
convert-nvgpu-to-nvvm convert-nvvm-to-llvm convert-parallel-loops-to-gpu convert-scf-to-cf
convert-tensor-to-linalg convert-to-llvm convert-ub-to-llvm convert-vector-to-gpu
convert-vector-to-llvm convert-vector-to-scf cse drop-equivalent-buffer-results
duplicate-function-elimination eliminate-empty-tensors empty-tensor-to-alloc-tensor
ensure-debug-info-scope-on-llvm-func expand-realloc expand-strided-metadata finalize-memref-to-llvm
flatten-memref fold-memref-alias-ops fold-tensor-subset-ops gpu-decompose-memrefs
gpu-eliminate-barriers gpu-kernel-outlining gpu-launch-sink-index-computations
gpu-map-parallel-loops int-range-optimizations lift-cf-to-scf linalg-block-pack-matmul
linalg-fold-into-elementwise linalg-fold-unit-extent-dims linalg-fuse-elementwise-ops
linalg-generalize-named-ops linalg-inline-scalar-operands linalg-morph-ops
linalg-specialize-generic-ops llvm-legalize-for-export llvm-optimize-for-nvvm-target
loop-invariant-code-motion loop-invariant-subset-hoisting lower-affine lower-vector-mask
lower-vector-multi-reduction lower-vector-to-from-elements-to-shuffle-tree math-expand-ops
math-extend-to-supported-types math-sincos-fusion math-uplift-to-fma mem2reg memref-emulate-wide-int
memref-expand normalize-memrefs nvgpu-optimize-shared-memory
optimize-allocation-liveness ownership-based-buffer-deallocation promote-buffers-to-stack
reconcile-unrealized-casts reify-result-shapes remove-dead-values
resolve-ranked-shaped-type-result-dims resolve-shaped-type-result-dims sccp
scf-for-loop-canonicalization scf-for-loop-peeling scf-for-loop-range-folding
scf-for-loop-specialization scf-for-to-while scf-forall-to-for scf-forall-to-parallel
scf-parallel-for-to-nested-fors scf-parallel-loop-fusion scf-parallel-loop-specialization
scf-parallel-loop-tiling simplify-depthwise-conv sroa strip-debuginfo symbol-dce symbol-privatize
topological-sort
"""
ALLOWED = frozenset(_NAMES.split())
"""Passes that change the module and do nothing else, whatever their options are.

They are upstream's passes on the dialects that become kernels. To add one, read its options and its
code: it may start no program, open no file, print nothing, and take no pipeline of other passes.
"""

LIMITED = {
    "inline": (
        r"((max-iterations|inlining-threshold)=\d+ ?)*",
        "max-iterations, inlining-threshold",
    ),
    "nvvm-attach-target": (
        r"((chip|features|triple|O|fast|ftz)=[\w+,.-]* ?)*",
        "chip, features, triple, O, fast, ftz",
    ),
    "gpu-module-to-binary": ("format=isa", "format=isa, which has to be there"),
}
"""Passes that are harmless with some options only: a pattern of those, and how errors tell them.

The other options of `inline` hold pipelines of any passes; those of `nvvm-attach-target` files to
link with, and arguments of ptxas. All formats of `gpu-module-to-binary` but isa run ptxas, its
default too, and its other options say which one.
"""

BACK_END = "gpu-module-to-binary"
"""The pass that runs only in stage ptx.

It reads the files that a gpu.module's targets name; only in that stage are those known to name none
(`kernels.target_attributes`).
"""


def refusal(name: str, options: str | None, stage: str | None = None) -> tuple[str, str] | None:
    """Return why a pass may not run, and a hint; `None` if it may run.

    Args:
        name: of the pass.
        options: their text, as in a pass pipeline; `None` if only the run knows them.
        stage: the stage whose pass pipeline has it; `None` for a schedule.
    """
    if name in ALLOWED:
        return None
    if name not in LIMITED:
        return (
            f"the pass '{name}' is none of those that may run in a schedule or a pass pipeline",
            with_guess(
                name,
                (*ALLOWED, *LIMITED),
                "passes that only change the module may run: docs/schedules.md",
            ),
        )
    if name == BACK_END and stage != "ptx":
        return f"the pass '{name}' may run only in the pass pipeline of stage 'ptx'", "leave it out"
    pattern, known = LIMITED[name]
    if options is not None and re.fullmatch(pattern, options.strip()):
        return None
    shown = {None: "these options", "": "no options"}.get(options, f"the options '{options}'")
    return (
        f"the pass '{name}' may not run with {shown}",
        f"options that it may have, written out: {known}",
    )


def passes_in(pipeline: str) -> Iterator[tuple[str, str]]:
    """Yield the passes of a pass pipeline, in order, each with the text of its options.

    The text is split just as MLIR splits it: options end at the brace that closes them, and nothing
    in them is quoted. A name before a parenthesis is that of the operation that passes work on.
    """
    at = 0
    while at < len(pipeline):
        end = _SEPARATOR.search(pipeline, at)
        stop = end.start() if end else len(pipeline)
        name, separator = pipeline[at:stop].strip(), pipeline[stop : stop + 1]
        options = _braced(pipeline, stop + 1) if separator == "{" else ""
        is_anchor = separator == "(" and (name == "any" or "." in name)
        if name and not is_anchor:
            yield name, options
        at = stop + 1 + len(options)


def _braced(text: str, start: int) -> str:
    """Return the text from `start` up to the brace that closes one before it, or all there is."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return text[start:]


_SEPARATOR = re.compile(r"[,(){}]")
