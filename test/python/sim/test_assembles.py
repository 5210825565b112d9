"""The programs of these tests are PTX that NVIDIA's assembler takes."""

import re

import pytest


@pytest.mark.run_last
def test_all_programs_assemble(programs):
    """Runs after the other tests and assembles what they have run, in a few large modules."""
    linker = pytest.importorskip("cuda.bindings.nvjitlink")
    if not programs:
        pytest.skip("no other test has run")
    kernels = []
    for number, (text, test) in enumerate(programs.items()):
        # Every program becomes a kernel of one module, with names of its own.
        body = re.sub(r"^\.(version|target|address_size).*$", "", text, flags=re.MULTILINE)
        names = set(re.findall(r"\.entry (\w+)|^\.func (?:\([^)]*\) ?)?(\w+)", body, re.M))
        names = {name for pair in names for name in pair if name}
        names |= set(
            re.findall(r"^\s*\.(?:global|const|extern .shared)[^\n]* (\w+)[\[ ]", body, re.M)
        )
        for name in names:
            body = re.sub(rf"\b{name}\b", f"{name}_{number}", body)
        kernels.append((test, body))
    bad = []
    for test, body in _failing(linker, kernels):
        bad.append(f"{test}: {body}")
    assert not bad, "\n".join([f"{len(bad)} programs do not assemble", *bad[:30]])


def _failing(linker, kernels):
    """Halve until the programs that do not assemble stand alone."""
    problem = _assemble(linker, [body for _, body in kernels])
    if problem is None:
        return []
    if len(kernels) == 1:
        errors = [row for row in problem.splitlines() if "error" in row]
        return [(kernels[0][0], "; ".join(errors[:2]))]
    middle = len(kernels) // 2
    return _failing(linker, kernels[:middle]) + _failing(linker, kernels[middle:])


def _assemble(linker, bodies):
    text = ".version 8.7\n.target sm_90a\n.address_size 64\n" + "\n".join(bodies)
    options = ["-arch=sm_90a", "-O0"]
    handle = linker.create(len(options), options)
    data = text.encode() + b"\0"
    try:
        linker.add_data(handle, linker.InputType.PTX, data, len(data), "tests")
        linker.complete(handle)
    except linker.nvJitLinkError:
        log = bytearray(linker.get_error_log_size(handle))
        linker.get_error_log(handle, log)
        return log.decode()
    finally:
        linker.destroy(handle)
    return None
