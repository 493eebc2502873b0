"""Other agents that run the turns of a session: programs that speak ACP, started and watched by the daemon."""
