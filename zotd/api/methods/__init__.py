"""The commands, one module per noun; `HANDLERS` lists them all."""
