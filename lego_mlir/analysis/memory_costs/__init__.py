"""What a warp's memory request costs: bank conflicts in shared memory, sectors in global.

Pure functions of byte offsets; the simulator and the tests count with the same ones.
"""
