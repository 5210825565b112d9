"""FileCheck from PyPI, made as strict as LLVM's where it is silently lax.

`python test/strict_filecheck.py [options] CHECK-FILE < INPUT`. Refused, rather than let pass or
answered otherwise than LLVM does:

- a check prefix that the check file never uses;
- input that does not end in a newline (a final CHECK-NOT misses its last line);
- numeric captures `[[#…]]` other than `[[#@LINE]]`, `--enable-var-scope`, and FILECHECK_OPTS.

So a test that passes here passes with LLVM's FileCheck as well.
"""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

from filecheck.main import main
from filecheck.options import Options, parse_argv_options

KINDS = r"(?:-(?:DAG|COUNT-\d+|NOT|EMPTY|NEXT|SAME|LABEL))?(?:\{LITERAL\})?:"


def objections(options: Options, checks: str, text: str) -> list[str]:
    """Why LLVM's FileCheck would not, or not surely, agree with PyPI's."""
    found = [
        f"the prefix {prefix} is never used"
        for prefix in options.check_prefixes
        if re.search(rf"(?<![A-Za-z0-9_-]){re.escape(prefix)}{KINDS}", checks) is None
    ]
    if text and not text.endswith("\n"):
        found.append("the input does not end in a newline")
    if options.enable_var_scope:
        found.append("--enable-var-scope does nothing here")
    if "FILECHECK_OPTS" in os.environ:
        found.append("FILECHECK_OPTS is set")
    if re.search(r"\[\[#(?! ?@LINE)", checks):
        found.append("numeric captures differ from LLVM's")
    return found


if __name__ == "__main__":
    options = parse_argv_options(list(sys.argv))
    if options.input_file == "-":
        text = sys.stdin.buffer.read().decode()
        sys.stdin = io.StringIO(text)
    else:
        text = Path(options.input_file).read_text(encoding="utf-8")
    refused = objections(options, Path(options.match_filename).read_text(encoding="utf-8"), text)
    if refused:
        sys.exit(f"{options.match_filename}: error: {'; '.join(refused)}")
    main()
