"""Steps that say where dots read their operands, in which pieces, and when they are waited for."""
