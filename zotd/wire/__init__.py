"""Data that crosses a process boundary: frames as msgspec Structs, framing, error codes, versions."""
