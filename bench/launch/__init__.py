"""What a launch costs the host: ours beside PyTorch's, Triton's and CuTe DSL's in one process."""
