"""The parts of the live area. Each function is pure: it turns the state into rows."""
