"""Run the programs on a GPU and keep their answers: `python -m recorded.record FOLDER [NAME …]`.

Needs NumPy and cuda-bindings. Programs run a few at a time in a child process with a time limit,
so one that hangs costs itself alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from recorded.program import Program, TensorMap
from recorded.programs import PROGRAMS

_TOGETHER = 12
_SECONDS = 40


def main() -> int:
    """Record the named programs, or all."""
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(PROGRAMS)
    if folder.name.endswith(".npz"):
        _record(folder, names)
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    answers: dict[str, np.ndarray] = {}
    failed: list[str] = []
    work = [names[k : k + _TOGETHER] for k in range(0, len(names), _TOGETHER)]
    while work:
        chunk = work.pop(0)
        part = folder / "part.npz"
        command = [sys.executable, "-m", "recorded.record", str(part), *chunk]
        try:
            subprocess.run(command, check=True, timeout=_SECONDS)
            with np.load(part) as found:
                answers |= {k: found[k] for k in found.files}
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as problem:
            if len(chunk) > 1:
                work += [[name] for name in chunk]
            else:
                failed.append(chunk[0])
                print(chunk[0], problem)  # noqa: T201
    (folder / "part.npz").unlink(missing_ok=True)
    np.savez_compressed(folder / "answers.npz", **answers)
    (folder / "device.json").write_text(json.dumps(_device(), indent=2) + "\n")
    print(f"{len(names) - len(failed)} recorded; failed: {', '.join(failed) or 'none'}")  # noqa: T201
    return 1 if failed else 0


def _checked(result: tuple[Any, ...]) -> Any:
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(str(status))
    return values[0] if len(values) == 1 else values


def _device() -> dict[str, str]:
    printed = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    name, driver, capability = (x.strip() for x in printed.splitlines()[0].split(","))
    return {"device": name, "driver": driver, "compute_capability": capability}


def _record(path: Path, names: list[str]) -> None:
    from cuda.bindings import driver

    _checked(driver.cuInit(0))
    context = _checked(driver.cuDevicePrimaryCtxRetain(_checked(driver.cuDeviceGet(0))))
    _checked(driver.cuCtxSetCurrent(context))
    answers: dict[str, np.ndarray] = {}
    for name in names:
        for position, array in zip(
            PROGRAMS[name].outputs, _run(driver, PROGRAMS[name]), strict=True
        ):
            answers[f"{name}.{position}"] = array
    np.savez(path, **answers)


def _run(driver: Any, program: Program) -> list[np.ndarray]:
    module = _checked(driver.cuModuleLoadData(program.text.encode() + b"\0"))
    function = _checked(driver.cuModuleGetFunction(module, b"k"))
    arguments = program.made()
    buffers: list[Any] = []
    values: list[Any] = []
    for argument in arguments:
        if isinstance(argument, TensorMap):
            values.append(_tensor_map(driver, argument, int(buffers[argument.argument])))
            continue
        data = np.ascontiguousarray(argument)
        buffer = _checked(driver.cuMemAlloc(max(data.nbytes, 16)))
        _checked(driver.cuMemcpyHtoD(buffer, data.ctypes.data, data.nbytes))
        buffers.append(buffer)
        values.append(np.array([int(buffer)], np.uint64))
    pointers = np.array([_address(v) for v in values], np.uint64)
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = program.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = program.block
    config.sharedMemBytes = program.shared
    config.numAttrs = 0
    _checked(driver.cuLaunchKernelEx(config, function, pointers.ctypes.data, 0))
    _checked(driver.cuCtxSynchronize())
    results = []
    for position in program.outputs:
        out = np.empty_like(np.ascontiguousarray(arguments[position]))
        _checked(driver.cuMemcpyDtoH(out.ctypes.data, buffers[position], out.nbytes))
        results.append(out)
    for buffer in buffers:
        _checked(driver.cuMemFree(buffer))
    _checked(driver.cuModuleUnload(module))
    return results


def _address(value: Any) -> int:
    return value.ctypes.data if isinstance(value, np.ndarray) else value.getPtr()


_KINDS = {
    "u1": "UINT8", "u2": "UINT16", "u4": "UINT32", "i4": "INT32", "f2": "FLOAT16", "f4": "FLOAT32",
}  # fmt: skip


def _tensor_map(driver: Any, map_: TensorMap, address: int) -> Any:
    rank = len(map_.dims)
    kind = getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_KINDS[map_.dtype]}")
    swizzle = "NONE" if not map_.swizzle else f"{map_.swizzle}B"
    return _checked(
        driver.cuTensorMapEncodeTiled(
            kind,
            rank,
            address,
            [driver.cuuint64_t(n) for n in map_.dims],
            [driver.cuuint64_t(n) for n in map_.strides or (16,)],  # one dimension has none
            [driver.cuuint32_t(n) for n in map_.box],
            [driver.cuuint32_t(1)] * rank,
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
