"""The table has a row for every vendor of the catalog, and no other."""

from tests.providers.conformance.table import APIS, EXCEPTED, ROWS, Carried, vendors
from zotd.providers.catalog.vendors import VENDORS
from zotd.providers.connect import APIS as OWN
from zotd.providers.connect import EXTRAS


def test_every_vendor_of_the_catalog_has_a_row():
    assert {*ROWS} | {*EXCEPTED} == {vendor.name for vendor in VENDORS}
    assert not {*ROWS} & {*EXCEPTED}


def test_every_api_has_a_name():
    assert {*APIS} == {*OWN, *EXTRAS}


def test_what_carries_nothing_says_why():
    for name, row in ROWS.items():
        assert bool(row.reason) == (row.carried is Carried.NOTHING), name


def test_the_row_of_a_vendor_says_what_the_catalog_says():
    for vendor in vendors():
        carried = ROWS[vendor.name].carried
        assert (carried is Carried.TEXT) == vendor.echo_reasoning
        assert (carried is Carried.SIGNATURE) == vendor.thought_signatures
        assert (carried is Carried.ENCRYPTED) == (APIS[vendor.api] == "Responses")
        assert (carried is Carried.THINKING) == (APIS[vendor.api] == "Ollama")
        assert (carried is Carried.SIGNED) == (APIS[vendor.api] == "Messages")
