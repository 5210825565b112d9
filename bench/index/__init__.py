"""Index expressions: how fast the compiler derives them and how short they are."""
