"""Questions of servers to the user."""

from zotd.testing.ext_driver import text_of


def book(driver, session="s_1"):
    return driver.request("tool_call", name="srv__book", args={}, session_id=session)


def test_a_question_has_its_fields_and_their_descriptions(sample):
    driver = sample()
    call = book(driver)
    question = driver.expect("ask_user", tool_call=call)
    assert question["message"] == "Which seats?"
    assert question["fields"] == {"seats": "", "place": "aisle"}
    assert question["about"].splitlines() == [
        "seats (integer): Seats, how many",
        "place (one of window, aisle, optional): Place",
    ]
    assert driver.expect("tool_progress", id=call)["text"] == "waiting for an answer"
    driver.send("user_answer", id=question["id"], action="accept", values={"seats": "2", "place": "window"})
    assert text_of(driver.expect("tool_result", id=call)) == "2 at the window"


def test_an_answer_that_does_not_fit_is_asked_for_again(sample):
    driver = sample()
    call = book(driver)
    for values, why in (({"seats": "many"}, "seats has to be a whole number"), ({"seats": ""}, "seats is missing")):
        question = driver.expect("ask_user", tool_call=call)
        driver.send("user_answer", id=question["id"], action="accept", values=values)
        again = driver.expect("ask_user", tool_call=call)
        assert again["message"] == f"Which seats?\n({why})"
        driver.send("user_answer", id=again["id"], action="accept", values={"seats": 3})
        assert text_of(driver.expect("tool_result", id=call)) == "3 at the aisle"
        call = book(driver)


def test_a_refusal_and_no_answer_are_told_to_the_server(sample):
    driver = sample()
    for action, told in (("decline", "decline"), ("cancel", "cancel"), ("nonsense", "cancel")):
        call = book(driver)
        question = driver.expect("ask_user", tool_call=call)
        driver.send("user_answer", id=question["id"], action=action, values={})
        assert text_of(driver.expect("tool_result", id=call)) == told


def test_nobody_is_asked_when_it_is_unknown_whose_call_asks(sample):
    driver = sample()
    other = driver.request("tool_call", name="srv__endless", args={}, session_id="s_2")
    driver.expect("tool_progress", id=other)
    assert text_of(driver.expect("tool_result", id=book(driver))) == "cancel"
