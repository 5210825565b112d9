"""Compile times: whole processes beside Triton's, and by compiler stage inside one process."""
