"""A value instead of text."""

from dataclasses import dataclass

from zot import Agent


@dataclass
class Invoice:
    """What an invoice says."""

    number: str
    total_cents: int


invoice = Agent().run_sync("Read invoice.txt.", output_type=Invoice).output
print(f"{invoice.number}: {invoice.total_cents / 100:.2f}")
