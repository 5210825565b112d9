"""From PTX to machine code: the assemblers, their results, and the checks of strict mode.

Nothing here knows of lego operations; LLVM's code generation runs in a child process where asked.
"""
