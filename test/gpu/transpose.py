"""The transpose on a real GPU, against PyTorch: compile anywhere, check where the GPU is.

    python test/gpu/transpose.py build DIR     needs the compiler, no GPU
    python test/gpu/transpose.py check DIR     needs a GPU, PyTorch and cuda-core, no compiler

`check` runs the artifacts on PyTorch's own device tensors, which pass by DLPack, and on NumPy
arrays, which are copied. Inputs are fresh random bits, outputs are poisoned, and every element is
compared.
"""

from __future__ import annotations

import sys
from pathlib import Path

SIZES = [(256, 256), (1024, 1024), (8192, 8192), (4096, 2048), (32, 8192), (96, 160)]
DTYPES = ["i8", "f16", "f32", "f64"]


def build(folder: Path) -> None:
    from lego_mlir.algebra import Col, OrderBy
    from lego_mlir.kernels import transpose

    folder.mkdir(parents=True, exist_ok=True)
    for m, n in SIZES:
        for dtype in DTYPES:
            transpose(m, n, dtype).compile("sm_90a").save(folder / f"row_{dtype}_{m}x{n}.lego")
        b = OrderBy(Col(n, m))
        transpose(m, n, b=b).compile("sm_90a").save(folder / f"col_f32_{m}x{n}.lego")
        transpose(m, n, tile=16).compile("sm_90a").save(folder / f"tile16_f32_{m}x{n}.lego")


def check(folder: Path) -> int:
    import numpy as np
    import torch

    from lego_mlir import runtime

    failures = 0
    for path in sorted(folder.glob("*.lego")):
        artifact = runtime.Artifact.load(path)
        kind, _, size = path.stem.split("_")
        m, n = (int(x) for x in size.split("x"))
        a, b = artifact.arguments
        width = {"i8": 1, "f16": 2, "f32": 4, "f64": 8}[a.dtype]
        integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[width]
        real = {"i8": torch.int8, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}
        bits = torch.randint(0, 256, (m * n * width,), dtype=torch.uint8, device="cuda")
        x = bits.view(real[a.dtype]).reshape(a.shape)
        y = torch.full((m * n * width,), 0xCD, dtype=torch.uint8, device="cuda")
        y = y.view(real[b.dtype]).reshape(b.shape)
        runtime.launch(artifact, x, y)
        torch.cuda.synchronize()
        source = x.view(integer).reshape(m, n)
        want = source if kind == "col" else source.T
        good = torch.equal(y.view(integer).reshape(-1), want.reshape(-1))
        if m * n <= 1 << 22:  # and through host memory
            out = np.full(b.shape, 0, dtype=y.cpu().numpy().dtype)
            runtime.launch(artifact, x.cpu().numpy(), out, device="cuda")
            good = good and out.tobytes() == y.cpu().numpy().tobytes()
        print(f"{'equal' if good else 'DIFFERENT':10} {path.stem}")
        failures += not good
    print(f"{torch.cuda.get_device_name()}: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    step, folder = sys.argv[1], Path(sys.argv[2])
    sys.exit(check(folder) if step == "check" else build(folder))
