"""Logins by subscription: which vendors have one, how a user logs in, and how the tokens become headers of requests."""
