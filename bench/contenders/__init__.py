"""Cases with contenders of any kind: built without a GPU, then checked and timed beside each other.

`case` says what a case is and builds it; `run` measures it; `command` has the steps of the commands
that build, run and report. The figures, attention and sizes are such cases.
"""
