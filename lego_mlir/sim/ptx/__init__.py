"""PTX text to a decoded program: lexer, parser, instruction table, control and data flow."""
