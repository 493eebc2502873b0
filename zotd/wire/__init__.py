"""What crosses a process border: frames as msgspec Structs, framing, error codes, versions."""
