"""Cases with contenders of any kind: built without a GPU, then checked and timed beside each other.

`case` says what a case is; `run` measures it. The figures and attention are such cases.
"""
