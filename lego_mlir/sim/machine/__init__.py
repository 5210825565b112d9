"""The machine that runs a program: waves of CTAs, memory, barriers, asynchronous operations."""
