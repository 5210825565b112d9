"""The file that says what a folder of artifacts has.

It stands alone: where kernels run, nothing that traces them is imported.
"""

MANIFEST = "rows.json"
