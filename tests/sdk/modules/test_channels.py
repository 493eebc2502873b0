"""The host program of `channels/NAME.py`."""

import pytest

# The outside world of these channels is a directory: a file `in-N` is the Nth message, files `out-…` are what was sent.
PLATFORM = """
    import asyncio, pathlib
    from types import SimpleNamespace

    number = 0

    async def connect():
        '''Says nothing.'''
        if pathlib.Path("refuse").exists():
            pathlib.Path("refuse").unlink()
            raise ConnectionError("refused")

    async def recv():
        global number
        number += 1
        while not pathlib.Path(f"in-{number}").exists():
            await asyncio.sleep(0.01)
        text = pathlib.Path(f"in-{number}").read_text()
        if text == "raise":
            raise ConnectionError("lost")
        if text == "odd":
            return None
        return SimpleNamespace(text=text, sender=7, channel="#room", metadata={"thread": 1})

    async def send(message):
        if message.text == "refuse":
            raise ConnectionError("not now")
        pathlib.Path("out-" + message.text).write_text(f"{message.sender} {message.channel} {message.metadata}")
    """


@pytest.fixture
def channel(modules, tmp_path):
    def channel():
        return modules(tmp_path, "--channel", "chat")

    return channel


def states(driver, *expected):
    for state in expected:
        frame = driver.expect("channel_state")
        assert (frame["state"], frame.get("error")) == state


def test_a_file_is_a_channel(write, channel, tmp_path):
    write("channels/chat.py", PLATFORM)
    write("channels/other.py", "raise RuntimeError('not asked for')")
    driver = channel()

    assert driver.registrations[0] == {"type": "register_channel", "name": "chat", "description": "Says nothing."}
    write("in-1", "hello")
    assert driver.expect("channel_message") == {
        "type": "channel_message",
        "channel": "#room",
        "sender": "7",
        "text": "hello",
        "metadata": {"thread": 1},
    }
    driver.send("channel_send", id="a", channel="#room", sender="7", text="answer", metadata={"thread": 1})
    assert driver.expect("channel_sent") == {"type": "channel_sent", "id": "a"}
    assert (tmp_path / "out-answer").read_text() == "7 #room {'thread': 1}"
    assert driver.shut_down() == 0


def test_functions_may_be_plain_and_messages_the_sdk_s(write, channel):
    write(
        "channels/chat.py",
        """
        '''A queue.'''
        import queue
        from zotd.sdk import Image, Message

        messages = queue.Queue()

        def connect():
            messages.put(Message("first", "me", ""))

        def recv():
            return messages.get()

        def send(message):
            messages.put(Message(message.text, "me", "chat", images=[Image.from_bytes(b"a", "image/png")]))
        """,
    )
    driver = channel()

    assert driver.registrations[0]["description"] == "A queue."
    first = driver.expect("channel_message")
    assert (first["channel"], first["text"], first["metadata"]) == ("chat", "first", {})
    driver.send("channel_send", id="a", channel="chat", sender="me", text="echo")
    assert driver.expect("channel_message")["images"] == [{"mime_type": "image/png", "data": "YQ=="}]
    assert driver.shut_down() == 0, "a plain recv() that never returns keeps nobody"


def test_a_connection_that_fails_is_tried_again(write, channel):
    write("channels/chat.py", PLATFORM)
    write("refuse", "")
    driver = channel()

    states(driver, ("connecting", None), ("retrying", "refused"), ("connected", None))
    assert "ConnectionError: refused" in driver.log()


def test_a_receipt_that_fails_is_tried_again(write, channel):
    write("channels/chat.py", PLATFORM)
    driver = channel()
    write("in-1", "raise")
    states(driver, ("connecting", None), ("connected", None), ("retrying", "lost"))
    write("in-2", "hello")

    assert driver.expect("channel_message")["text"] == "hello"
    states(driver, ("connected", None))
    write("in-3", "odd")
    states(driver, ("retrying", "recv() returned a NoneType without the attributes text and sender"))


def test_a_message_that_cannot_be_sent_is_tried_again_and_waited_for_by_the_next(write, channel, tmp_path):
    refused = PLATFORM.replace("not now", "once").replace(
        'if message.text == "refuse":', 'if message.text == "refuse" and not pathlib.Path("tried").exists():'
    )
    write("channels/chat.py", refused.replace('raise ConnectionError("once")', 'pathlib.Path("tried").touch(); 1 / 0'))
    driver = channel()

    driver.send("channel_send", id="a", channel="chat", sender="7", text="refuse")
    driver.send("channel_send", id="b", channel="chat", sender="7", text="second")

    assert [driver.expect("channel_sent") for _ in "ab"] == [
        {"type": "channel_sent", "id": "a"},
        {"type": "channel_sent", "id": "b"},
    ]
    assert (tmp_path / "out-refuse").exists()
    assert "ZeroDivisionError" in driver.log()


def test_a_message_that_was_not_sent_when_the_channel_has_to_end_is_reported(write, channel):
    write("channels/chat.py", PLATFORM)
    driver = channel()
    driver.send("channel_send", id="a", channel="chat", sender="7", text="refuse")

    assert driver.shut_down() == 0

    (sent,) = [frame for frame in driver.rest() if frame["type"] == "channel_sent"]
    assert sent["error"] == "the extension was stopped before it had an answer"


def test_what_the_contract_misses_is_named(write, channel):
    write("channels/chat.py", "recv = 1\nasync def connect(): ...")
    driver = channel()

    (error,) = driver.registrations
    assert error["error"] == "chat.py does not define recv(), send(): a channel has connect, recv and send"
    driver.send("channel_send", id="a", channel="chat", sender="7", text="x")
    assert driver.expect("channel_sent")["error"] == "the channel's file is gone or does not load"


def test_a_saved_channel_takes_over_and_a_broken_one_does_not(write, channel, tmp_path):
    write("channels/chat.py", PLATFORM)
    driver = channel()
    states(driver, ("connecting", None), ("connected", None))

    write("channels/chat.py", "x = 1")
    driver.expect("module_error")
    write("in-1", "to the old one")
    assert driver.expect("channel_message")["text"] == "to the old one"

    write("channels/chat.py", PLATFORM.replace("number = 0", "number = 10").replace("Says nothing", "New"))
    assert driver.expect("register_channel")["description"] == "New."
    driver.expect("module_error", error="")
    states(driver, ("connecting", None), ("connected", None))
    write("in-2", "nobody waits for this")
    write("in-11", "to the new one")
    assert driver.expect("channel_message")["text"] == "to the new one"

    (tmp_path / "channels" / "chat.py").unlink()
    assert driver.expect("unregister") == {"type": "unregister", "kind": "channel", "name": "chat"}
