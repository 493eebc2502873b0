"""Fakes and fixtures that users and our own tests share."""
