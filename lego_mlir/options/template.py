"""The options of `legoc template`, which fills the holes of a template."""

from __future__ import annotations

import argparse

from lego_mlir.options import values
from lego_mlir.options.base import Parser
from lego_mlir.options.printing import TEMPLATE_LANGUAGES

_DESCRIPTION = """\
legoc template fills the holes of a template, the source of a kernel with layouts in {{ }}:

  {% set A = OrderBy(Row(M, K)).TileBy([M/BM, K/BK], [BM, BK]) %}
  a = tl.load(a_ptr + {{ A["pid_m", "k", :, :] }})

A template has {{ }}, {% set %}, {% if %} and {% for %}, as Jinja writes them. Its expressions may
name the blocks, layouts and permutations of the notation, and
  layout(TEXT)                       a layout by its text
  size(NAME, DIVISOR...)             a symbolic size, and what divides it
  var(NAME, LEAST, GREATEST)         a variable of the program, and its range
  header(LAYOUT, NAME), helpers()    the functions of a layout; those that expressions call
  triton(SLICE), cute(LAYOUT)        a tile for Triton, a layout of CuTe
Names in quotes are variables of the program. docs/printers.md says more.
"""


def template_parser() -> argparse.ArgumentParser:
    """Return the parser of `legoc template`; on wrong usage it exits with status 2."""
    parser = Parser(prog="legoc template", description=_DESCRIPTION)
    parser.set_defaults(no_cache=False)
    parser.add_argument("input", metavar="FILE", help="the template, or - for stdin")
    parser.add_argument(
        "--set",
        dest="values",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=values.value,
        help="a number, or a word, that expressions of the template may name",
    )
    parser.add_argument(
        "--language",
        choices=TEMPLATE_LANGUAGES,
        help="of the text; by default by the name of the file: .c, .cu, or .py for Triton",
    )
    parser.add_argument(
        "-o", dest="output", metavar="FILE", help="write to this file instead of stdout"
    )
    parser.add_argument(
        "--limit",
        dest="limits",
        metavar="NAME=N",
        action="append",
        default=[],
        help="replace a limit on the work of the template: template_steps, template_bytes, "
        "index_steps",
    )
    return parser
