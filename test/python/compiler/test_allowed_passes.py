"""Modules, scripts and pass pipelines of a stranger start no program and touch no file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lego_mlir import data
from lego_mlir.compiler.allowed_passes import ALLOWED, LIMITED, passes_in, refusal
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.compiler.nvvm_stage import WHERE_NEEDED
from lego_mlir.compiler.stages import PIPELINED
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir, passmanager
from lego_mlir.mlir.context import Source

SCRIPT = """
  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    transform.include @other failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
  transform.named_sequence @other(%module: !transform.any_op {transform.consumed}) {
    %0 = transform.structured.match ops{["gpu.module"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %1 = transform.apply_registered_pass "PASS" OPTIONS to %0 :
        (!transform.any_op) -> !transform.any_op
    transform.yield
  }
"""
WITH_SEQUENCES = "module attributes {transform.with_named_sequence} {"
TO_BINARY = SCRIPT.replace("PASS", "gpu-module-to-binary").replace(
    'match ops{["gpu.module"]}', 'match ops{["builtin.module"]}'
)
RUNS_PTXAS = TO_BINARY.replace("OPTIONS", 'with options = {"toolkit" = "tk", "format" = "bin"}')
KERNEL = """
gpu.module @kernels TARGETS {
  llvm.func @one() attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
"""


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the programs of the toolkit `tk` make, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("ptxas", "fatbinary", "nvlink"):
        program = tmp_path / "tk" / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexit 1\n")
        program.chmod(0o755)
    library = tmp_path / "tk" / "nvvm" / "libdevice" / "libdevice.10.bc"
    library.parent.mkdir(parents=True)
    library.write_text("; an empty module\n")
    return tmp_path / "ran"


def compile_to(stage: str, text: str, **options: Any) -> str:
    return Compilation(Source("m.mlir", text), Options(**options)).text(stage)


def kernel(target: str = '[#nvvm.target<chip = "sm_90", features = "+ptx83">]') -> str:
    return KERNEL.replace("TARGETS", target)


@pytest.mark.parametrize("name", ["m.mlir", "./m.mlir", "ABSOLUTE", "../transforms/unroll", ""])
def test_a_module_names_no_file_as_its_schedule(name: str, marker: Path) -> None:
    file = marker.parent / "m.mlir"
    name = name.replace("ABSOLUTE", str(file))
    head = WITH_SEQUENCES.replace("{", f'{{lego.schedule = "{name}", ', 1)
    file.write_text(head + RUNS_PTXAS + kernel() + "}")
    with pytest.raises(LegoError, match=r"no schedule .* that a module may name") as caught:
        compile_to("scheduled", file.read_text())
    assert caught.value.location is not None
    assert "--schedule=FILE" in str(caught.value.hint)
    assert not marker.exists()


def test_a_module_names_a_schedule_that_comes_along() -> None:
    text = 'module attributes {lego.schedule = "unroll"} {' + kernel("") + "}"
    assert "llvm.func @one" in compile_to("scheduled", text)


def test_a_sequence_in_the_module_itself_is_not_run(marker: Path) -> None:
    head = WITH_SEQUENCES.replace("{", '{lego.schedule = "unroll", ', 1)
    compile_to("scheduled", head + RUNS_PTXAS + kernel() + "}")
    assert not marker.exists()


PASSES = [
    ("gpu-module-to-binary", 'with options = {"toolkit" = "tk", "format" = "bin"}'),
    ("gpu-module-to-binary", 'with options = {"format" = "isa"}'),
    ("gpu-module-to-binary", ""),
    ("nvvm-attach-target", 'with options = {"l" = "/etc/passwd"}'),
    ("nvvm-attach-target", 'with options = {"chip" = "sm_90 l=/etc/passwd"}'),
    ("nvvm-attach-target", 'with options = {"chip" = "sm_90", "ptxas-cmd-options" = "-v"}'),
    ("inline", 'with options = {"default-pipeline" = "cse"}'),
    ("composite-fixed-point-pass", 'with options = {"pipeline" = "cse"}'),
    ("transform-interpreter", ""),
    ("transform-preload-library", 'with options = {"transform-library-paths" = ["a.mlir"]}'),
    ("gpu-lower-to-nvvm-pipeline", ""),
    ("rocdl-attach-target", ""),
    ("snapshot-op-locations", 'with options = {"filename" = "snapshot"}'),
    ("print-ir", ""),
    ("view-op-graph", ""),
    ("nosuch", ""),
]


@pytest.mark.parametrize(("name", "options"), PASSES)
def test_a_script_with_a_pass_that_may_not_run(name: str, options: str, marker: Path) -> None:
    """Whoever names the script: a stranger's file is refused in any of its sequences."""
    script = marker.parent / "s.mlir"
    text = SCRIPT.replace("PASS", name).replace("OPTIONS", options)
    script.write_text(WITH_SEQUENCES + text + "}")
    with pytest.raises(LegoError, match=rf"the pass '{name}' .*may (not )?run") as caught:
        compile_to("scheduled", kernel(), schedule=str(script))
    assert caught.value.location is not None
    assert (caught.value.location.file, caught.value.location.line) == (str(script), 9)
    assert {path.name for path in marker.parent.iterdir()} == {"tk", "s.mlir"}


def test_options_that_only_the_run_knows(tmp_path: Path) -> None:
    """Those of a pass that may have any are taken, those of a limited one are not."""
    with_option = """
      transform.named_sequence @__transform_main(%module: !transform.any_op) {
        %n = transform.param.constant 2 : i64 -> !transform.any_param
        %0 = transform.apply_registered_pass "PASS"
            with options = {"max-iterations" = %n} to %module
            : (!transform.any_op, !transform.any_param) -> !transform.any_op
        transform.yield
      }
    """
    script = tmp_path / "s.mlir"
    script.write_text(WITH_SEQUENCES + with_option.replace("PASS", "canonicalize") + "}")
    assert "llvm.func @one" in compile_to("scheduled", kernel(""), schedule=str(script))
    script.write_text(WITH_SEQUENCES + with_option.replace("PASS", "inline") + "}")
    with pytest.raises(LegoError, match="'inline' may not run with these options"):
        compile_to("scheduled", kernel(""), schedule=str(script))
    script.write_text(script.read_text().replace("= %n}", "= 2 : i64}").replace(
        "(!transform.any_op, !transform.any_param)", "(!transform.any_op)"))  # fmt: skip
    assert "llvm.func @one" in compile_to("scheduled", kernel(""), schedule=str(script))


@pytest.mark.parametrize(
    "passes",
    [
        "gpu-module-to-binary{format=bin toolkit=tk}",
        "gpu-module-to-binary{format=isa format=bin}",
        "gpu-module-to-binary{format=isa l=/etc/passwd}",
        "gpu-module-to-binary{ toolkit=tk }",
        "gpu-module-to-binary",
        "gpu-module-to-binary()",
        "cse,gpu.module(cse),gpu-module-to-binary{format=fatbin}",
        "canonicalize{max-iterations=2},nvvm-attach-target{l=/etc/passwd}",
        "nvvm-attach-target{chip=sm_90 l={/etc/passwd}}",
        "inline{op-pipelines=gpu.module(gpu-module-to-binary)}",
        "composite-fixed-point-pass{name=x pipeline=gpu-module-to-binary}",
        "any(transform-interpreter)",
    ],
)
def test_a_pass_pipeline_with_a_pass_that_may_not_run(passes: str, marker: Path) -> None:
    for given in (f"builtin.module({passes})", "p.pipeline"):
        (marker.parent / "p.pipeline").write_text(
            f"// gpu-module-to-binary\nbuiltin.module({passes})"
        )
        with pytest.raises(LegoError, match=r"the pass '[-\w]+' .*may (not )?run") as caught:
            compile_to("ptx", kernel(), pipelines={"ptx": given})
        assert caught.value.location is not None
        assert caught.value.location.line == (1 if "(" in given else 2)
    assert not marker.exists()


@pytest.mark.parametrize("stage", ["index", "scheduled", "nvvm"])
def test_the_back_end_runs_only_where_targets_are_known(stage: str) -> None:
    """Before, a target of the module itself could have it read a file."""
    passes = "builtin.module(gpu-module-to-binary{format=isa})"
    with pytest.raises(LegoError, match="only in the pass pipeline of stage 'ptx'"):
        compile_to(stage, kernel(), pipelines={stage: passes}, schedule="unroll")


@pytest.mark.parametrize(
    "target",
    [
        '#nvvm.target<chip = "sm_90", link = ["/etc/passwd"]>',
        '#nvvm.target<chip = "sm_90", flags = {"ptxas-cmd-options" = "-v"}>',
        "#rocdl.target",
        '#xevm.target<chip = "pvc">',
    ],
)
def test_a_target_of_the_module_that_reads_files(target: str) -> None:
    with pytest.raises(LegoError, match="target may say the chip and no more") as caught:
        compile_to("ptx", kernel(f"[{target}]"))
    assert "passwd, error" not in str(caught.value)  # it was not opened


def test_the_target_option_replaces_a_target_of_the_module() -> None:
    """What `--emit=nvvm` prints is a module again, for any target."""
    printed = compile_to("nvvm", kernel("")).replace("sm_90a", "sm_75")
    assert 'chip = "sm_75"' in printed
    assert ".target sm_90a" in compile_to("ptx", printed)


def test_code_that_is_compiled_already() -> None:
    binary = 'gpu.binary @own [#gpu.object<#nvvm.target, assembly = "hello">]'
    with pytest.raises(LegoError, match="compiled already"):
        compile_to("ptx", binary + kernel(""))


def test_our_own_pipelines_and_schedules_keep_to_the_list() -> None:
    """So copies of them, edited, work."""
    for stage in PIPELINED:
        text = re.sub(r"//[^\n]*", "", (data.pipelines() / f"{stage}.pipeline").read_text())
        filled = " ".join(text.split())
        for key, (passes, _) in WHERE_NEEDED.items():
            filled = filled.replace(f"${{{key}}}", passes)
        filled = re.sub(r"\$\{\w+\}", "x", filled)
        found = list(passes_in(filled))
        assert found
        assert [refusal(name, options, stage) for name, options in found] == [None] * len(found)


def test_the_passes_of_the_list_are_known_and_have_no_options_of_files() -> None:
    """MLIR tells a pass's options and their defaults when it prints a pipeline."""
    suspicious = re.compile(r"file|path|pipeline|toolkit|cmd|command|opts|link|module=|dump|print")
    with ir.Context():
        for name in (*ALLOWED, *LIMITED):
            printed = str(passmanager.PassManager.parse(f"any({name})"))
            assert printed.startswith(f"any({name}"), "a pipeline, not a pass"
            if name in ALLOWED:
                assert not suspicious.search(printed.partition("{")[2]), printed


def test_passes_are_found_where_mlir_finds_them() -> None:
    text = "builtin.module(a{x={1,2} y=3},gpu.module(b,any(c)),d{e=f(g)},h()),k"
    assert list(passes_in(text)) == [
        ("a", "x={1,2} y=3"), ("b", ""), ("c", ""), ("d", "e=f(g)"), ("h", ""), ("k", "")
    ]  # fmt: skip
