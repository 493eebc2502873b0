"""A runtime inside another program (`Runtime`) or process (`zot rpc`), without a daemon."""
