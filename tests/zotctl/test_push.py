"""`zotctl push`."""

import json

from zotd.testing.push_server import PushServer


def test_browsers_are_listed_and_removed(live):
    service = PushServer()
    service.url = "https://fcm.googleapis.com"  # nothing is sent there
    browser = service.browser()
    with live.connect() as connection:
        fields = {"endpoint": browser.endpoint, "public": browser.public, "auth": browser.auth}
        made = connection.call("push.subscribe", {"name": "Chrome on Android", **fields})
    code, out, _ = live.zotctl("push", "list")
    assert code == 0
    head, row = out.splitlines()
    assert head.split() == ["ID", "BROWSER", "TOKEN", "SINCE"]
    assert str(made["id"]) in row
    assert "Chrome on Android" in row
    code, out, _ = live.zotctl("push", "remove", str(made["id"]))
    assert (code, out) == (0, f"removed {made['id']}: it gets no more push messages\n")
    assert json.loads(live.zotctl("push", "list", "--json")[1]) == {"v": 1, "browsers": []}
    code, _, err = live.zotctl("push", "remove", "d_none")
    assert (code, err) == (1, 'zotctl: no browser "d_none" has subscribed; push.list names them\n')
