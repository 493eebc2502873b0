"""Whether a tool call may run: guards, rules, modes, and the people who are asked."""
