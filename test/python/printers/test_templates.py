"""Templates: holes are filled with the layout's expressions, and a stranger's template is data."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import printed
import pytest

from lego_mlir import cli, sim
from lego_mlir.diagnostics import LegoError
from lego_mlir.limits import Limits
from lego_mlir.printers.templates import language_of, render

pytest.importorskip("jinja2")

TRANSPOSE = """\
{# Transposes through shared memory, which is swizzled. #}
{% set IN = OrderBy(Row(N, N)).TileBy([N/T, N/T], [T, T]) %}
{% set TILE = OrderBy(GenP([T, T], swizzle())) %}
extern "C" __global__ void transpose(const float* in, float* out) {
  __shared__ float tile[{{ TILE.size }}];
  tile[{{ TILE["threadIdx.y", "threadIdx.x"] }}] =
      in[{{ IN["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"] }}];
  __syncthreads();
  out[{{ IN["blockIdx.x", "blockIdx.y", "threadIdx.y", "threadIdx.x"] }}] =
      tile[{{ TILE["threadIdx.x", "threadIdx.y"] }}];
}
"""


def test_a_cuda_kernel_is_filled_and_runs() -> None:
    text = render(TRANSPOSE, {"N": 64, "T": 16}, "cuda")
    assert "{" in text
    assert "{{" not in text
    a = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    b = np.zeros_like(a)
    sim.launch(printed.ptx_of(text), "transpose", (4, 4, 1), (16, 16, 1), [a, b])
    assert (b == a.T).all()


def test_a_triton_kernel_is_filled_and_runs(tmp_path: Path) -> None:
    text = render(
        """\
import triton
import triton.language as tl
{% set A = OrderBy(Row(M, K)).TileBy([M/BM, K/BK], [BM, BK]) %}
{% set B = OrderBy(Col(M, K)).TileBy([M/BM, K/BK], [BM, BK]) %}


@triton.jit
def copy(a, b):
    i = tl.program_id(0)
    j = tl.program_id(1)
    tl.store(b + {{ B["i", "j", :, :] }}, tl.load(a + {{ A["i", "j", :, :] }}))
""",
        {"M": 32, "K": 64, "BM": 8, "BK": 16},
        "triton",
    )
    module = printed.triton_module(text, tmp_path)
    a = np.arange(32 * 64, dtype=np.int32).reshape(32, 64)
    b = np.zeros((64, 32), np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        module.copy[(4, 4)](printed.Tensor(a), printed.Tensor(b))
    assert (b == a.T).all()


@pytest.mark.parametrize(
    ("hole", "text"),
    [
        ("5", "5"),
        ("'int'", "int"),
        ("T", "float"),
        ("M/4", "16"),
        ("7 // 2 + 7 % 2 - 1 * 3", "1"),
        ("var('i', 0, 99) + 1", "(i + 1)"),
        ("var('i')", "i"),
        ("2 * var('i', 0, 7) // 16", "0"),
        ("OrderBy(Row(4, 8)).apply(1, 2)", "10"),
        ("OrderBy(Row(4, 8))['i', 'j']", "(i * 8 + j)"),
        ("OrderBy(Row(4, 8)).inv(var('f', 0, 31))", "(f >> 3), (f & 7)"),
        ("OrderBy(Row(4, 8)).inv(9)", "1, 1"),
        ("layout('OrderBy(Row(M, N))', N=8)[3, 'j']", "(j + 24)"),
        ("layout('OrderBy(Row(M, 8))').text", "OrderBy(Row(M, 8))"),
        ("OrderBy(Row(size('N'), 8)).TileBy([size('N')/4, 2], [4, 4]).text",
         "OrderBy(Row(N, 8)).TileBy([N/4, 2], [4, 4])"),
        ("OrderBy(GenP([8, 8], swizzle(2))).dims", "8, 8"),
        ("ceildiv(M, 10)", "7"),
        ("cute(OrderBy(Col(4, 8)))", "(4,8):(1,4)"),
        ("cute(OrderBy(Row(4, 8))).cpp()[:0] if false else 1", None),
        ("cute(OrderBy(Row(4, 8))).python()", "cute.make_layout((4, 8), stride=(8, 1))"),
        ("triton(OrderBy(Row(4, 8))['i', :]).shape", "8"),
        ("['a', 'b'] | join(' + ')", "a + b"),
        ("[1, 2, 3] | length", "3"),
        ("M is even", None),
    ],
)  # fmt: skip
def test_holes(hole: str, text: str | None) -> None:
    values = {"M": 64, "T": "float"}
    if text is None:
        with pytest.raises(LegoError):
            render(f"{{{{ {hole} }}}}", values)
        return
    assert render(f"{{{{ {hole} }}}}", values) == text


def test_statements() -> None:
    text = """\
{% for i in range(3) %}
x{{ i }} = {{ OrderBy(Row(4, 4))[i, 1] }};{% if loop.last %} // last{% endif %}

{% endfor %}
"""
    assert render(text) == "x0 = 1;\nx1 = 5;\nx2 = 9; // last\n"


@pytest.mark.parametrize(
    ("file", "language"),
    [("a.cu.j2", "cuda"), ("b/k.cuh", "cuda"), ("k.py.jinja", "triton"), ("k.h.j2", "c")],
)
def test_the_name_of_the_file_tells_the_language(file: str, language: str) -> None:
    assert language_of(file) == language


# ----------------------------------------------------------------------------------------- errors
MISTAKES = [
    ("{{ x }}", "'x' is undefined"),
    ("{{ 5 / 0 }}", "division by zero"),
    ("{{ 5 // 0 }}", "division by zero"),
    ("{{ 7 / 2 }}", "2 does not divide 7"),
    ("{{ OrderBy(Row(4, 4))[1, 2, 3] }}", "takes 2 indices"),
    ("{{ OrderBy(Row(4, 4))[7, 2] }}", "index 0 .* is out of range"),
    ("{{ OrderBy(Row(4, 4)) }}", "stands in a hole without an index"),
    ("{{ OrderBy }}", "a function stands in a hole"),
    ("{{ layout('OrderBy(Row(4') }}", "is never closed"),
    ("{{ layout(5) }}", "a layout is a text in quotes"),
    ("{{ unclosed", "expected .*end of print statement"),
    ("{{ None }}", "stands in a hole"),
    ("{{ nothing() }}", "'nothing' is undefined"),
    ("{{ [1][5] }}", "has no element 5"),
    ("{{ OrderBy(Row(4, 4))[1:2, 3] }}", "sliced by ':'"),
    ("{{ OrderBy(Row(4, 4))['i;x', 3] }}", "is no name in cuda"),
    ("{{ OrderBy(Row(4, 4))['i', :] }}", "is a tile of offsets"),
    ("{% if var('i') < 3 %}{% endif %}", "the truth of"),
    ("{{ header(3, 'A') }}", "header takes a layout"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_have_the_line_of_the_template(text: str, message: str) -> None:
    with pytest.raises(LegoError, match=message) as caught:
        render(f"first\n{{% set M = 4 %}}\n{text}\nlast\n", file="kernel.cu.j2")
    location = caught.value.location
    assert location is not None
    assert location.file == "kernel.cu.j2"
    assert location.line in (3, 4)  # what is never closed ends with the file
    assert "Traceback" not in str(caught.value)


HOSTILE = [
    "{% include '/etc/passwd' %}",
    "{% extends '/etc/passwd' %}",
    "{% import '/etc/passwd' as x %}",
    "{% from '/etc/passwd' import x %}",
    "{{ ''.__class__.__mro__ }}",
    "{{ OrderBy.__globals__ }}",
    "{{ layout('OrderBy(Row(4, 4))').functions }}",
    "{{ layout('OrderBy(Row(4, 4))').apply.__func__ }}",
    "{{ layout('OrderBy(Row(4, 4))')['__class__'] }}",
    "{{ layout('OrderBy(Row(4, 4))').verify() }}",
    "{{ self.__init__.__globals__ }}",
    "{{ range(3).__class__ }}",
    "{{ 'a'.format(1) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ 'a' * 1000000000 }}",
    "{{ [0] * 1000000000 }}",
    "{{ 'a' ~ 'b' }}",
    "{{ 'a' + 'b' }}",
    "{{ 9 ** 999999999 }}",
    "{{ lipsum(n=1000000) }}",
    "{{ cycler(1).next() }}",
    "{{ namespace() }}",
    "{{ 'a' | attr('__class__') }}",
    "{{ 'a' | center(1000000000) }}",
    "{{ range(1000000000) | list }}",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "{% set x %}{% endset %}",
    "{% filter upper %}{% endfilter %}",
    "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "{% for a in [1,2,3,4,5,6,7,8,9,10] %}" * 12 + "{% endfor %}" * 12,
    "{% set a = 'xxxxxxxxxx' %}" + "{% set a = [a, a] | join %}" * 60 + "{{ a }}",
    "{% set a = 3 %}" + "{% set a = a * a %}" * 60 + "{{ a }}",
    "{% for i in range(90000) %}{{ 'x' * 3 }}{% endfor %}",
    "{% for i in range(90000) %}" + "y" * 1000 + "{% endfor %}",
    "{% for i in range(90000) %}{{ OrderBy(GenP([64, 64], hilbert))['i', 'j'] }}{% endfor %}",
    "{{ " + "(" * 2000 + "1" + ")" * 2000 + " }}",
    "{{ " + "-" * 2000 + "1 }}",
    "{{ [1] | map('string') }}",
    "{% autoescape true %}{% endautoescape %}",
    "{% do x %}",
    "{{ var('x; system(1)') }}",
    "{{ header(OrderBy(Row(4, 4)), 'A; int x') }}",
    "{{ range(1, 2, *[1]) }}",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:50])
def test_a_hostile_template_is_an_error(text: str) -> None:
    begin = time.process_time()
    with pytest.raises(LegoError):
        render(text)
    assert time.process_time() - begin < 20


def test_limits_can_be_raised() -> None:
    text = "{% for i in range(200) %}{{ i }}{% endfor %}"
    with Limits(template_steps=100).applied(), pytest.raises(LegoError, match="template_steps"):
        render(text)
    with Limits(template_bytes=100).applied(), pytest.raises(LegoError, match="template_bytes"):
        render(text)
    assert len(render(text)) == 490


# ------------------------------------------------------------------------------------ the command
def test_the_command_fills_a_template(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "k.cu.j2"
    file.write_text("int x = {{ OrderBy(Row(M, 8))['i', 3] }}; {{ T }}\n")
    assert cli.main(["template", str(file), "--set", "M=4", "--set", "T=float"]) == 0
    assert capsys.readouterr().out == "int x = (i * 8 + 3); float\n"
    out = tmp_path / "k.cu"
    arguments = ["template", str(file), "--set", "M=4", "--set", "T=half", "-o", str(out)]
    assert cli.main(arguments) == 0
    assert out.read_text() == "int x = (i * 8 + 3); half\n"
    assert cli.main(["template", str(file)]) == 1
    assert f"{file}:1: error: 'M' is undefined" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["template"], "the following arguments are required: FILE"),
        (["template", "x.cu.j2", "--set", "3=M"], "'3=M' is not NAME=VALUE"),
        (["template", "x.cu.j2", "--set", "M=a b"], "is not NAME=VALUE"),
        (["template", "x.cu.j2", "--language", "rust"], "invalid choice: 'rust'"),
        (["--print=rust", "OrderBy(Row(4))"], "invalid choice: 'rust'"),
        (["--print=c", "OrderBy(Row(4))", "--emit=ptx"], "leave out --emit"),
        (["--name=A", "x.mlir"], "--name needs --print"),
    ],
)
def test_wrong_usage_is_status_2(arguments: list[str], message: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--print=cuda", "OrderBy(Row(M, 8))", "--set", "M=4"], "layout_apply(int i0, int i1)"),
        (["--print=c", "OrderBy(Row(4, 8))", "--name=A"], "static inline A_index A_inv"),
        (["--print=triton", "OrderBy(Row(4, 8))"], "@triton.jit\ndef layout_apply(i0, i1)"),
        (["--print=python", "OrderBy(Row(4, 8))"], "return i0 * 8 + i1"),
        (["--print=numpy", "OrderBy(Row(4, 8))"], "import numpy"),
        (
            ["--print=cute", "OrderBy(Row(4, 8))"],
            "// (4,8):(8,1)\nauto layout = cute::make_layout(",
        ),
    ],
)
def test_the_command_prints_layouts(arguments: list[str], shown: str, capsys: Any) -> None:
    assert cli.main(arguments) == 0
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--print=c", "OrderBy(Row(4, 8)"], "<layout>:1:8: error: '(' is never closed"),
        (["--print=c", "nonsense"], "expected OrderBy"),
        (["--print=c", "OrderBy(GenP([4], @f, @g))"], "there is no function @f"),
        (["--print=c", "OrderBy(Row(4, 8))", "--set", "M=3"], "the layout has no symbol 'M'"),
        (["--print=c", "OrderBy(Row(4, 8))", "--name=for"], "'for' is a word of c"),
        (["--print=cute", "OrderBy(GenP([8, 8], antidiagonal))"], "CuTe has no such layout"),
        (["template", "nowhere.cu.j2"], "cannot read the input"),
        (["template", __file__ + ".txt"], "cannot read the input"),
    ],
)
def test_mistakes_are_status_1(arguments: list[str], message: str, capsys: Any) -> None:
    assert cli.main(arguments) == 1
    assert message in capsys.readouterr().err


def test_jinja_is_imported_for_templates_only() -> None:
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from lego_mlir import printers, cli\n"
        "print(cli.main(['--print=python', 'OrderBy(Row(4))']), end='')\n"
        "from lego_mlir.printers.templates import render\n"
        "try:\n    render('x')\nexcept Exception as e:\n    print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'lego-mlir[templates]'" in done.stdout
