"""Slash commands and panels."""


def test_each_kind_of_answer_has_its_action(start_program):
    driver = start_program(
        python="""
            ANSWERS = {
                "prompt": lambda: Prompt("do it"),
                "insert": lambda: Insert("text"),
                "display": lambda: Display("look"),
                "text": lambda: "look",
                "noop": lambda: Noop(),
                "nothing": lambda: None,
                "empty": lambda: "",
                "panel": lambda: OpenPanel(Panel("p", "Title", ["one"], footer="keys")),
                "list": lambda: [],
                "raise": lambda: int("x"),
            }

            @ext.command("do")
            def do(args):
                '''Does things.

                At length.
                '''
                return ANSWERS[args]()
            """,
        typescript="""
            const answers = {
              prompt: () => new Prompt("do it"),
              insert: () => new Insert("text"),
              display: () => new Display("look"),
              text: () => "look",
              noop: () => new Noop(),
              nothing: () => undefined,
              empty: () => "",
              panel: () => new OpenPanel(new Panel("p", { title: "Title", lines: ["one"], footer: "keys" })),
              list: () => [],
              raise: () => { throw new Error("invalid"); },
            };
            ext.command("do", "Does things.", (args) => answers[args]());
            """,
    )

    def answer(args):
        frame = driver.run_command("do", args)
        del frame["type"], frame["id"]
        return frame

    assert driver.registrations == [{"type": "register_command", "name": "do", "description": "Does things."}]
    assert answer("prompt") == {"action": "prompt", "prompt": "do it"}
    assert answer("insert") == {"action": "insert", "insert": "text"}
    assert answer("display") == {"action": "display", "display": "look"}
    assert answer("text") == {"action": "display", "display": "look"}
    assert answer("noop") == answer("nothing") == answer("empty") == {"action": "noop"}
    assert answer("panel") == {
        "action": "open_panel",
        "open_panel": {"id": "p", "title": "Title", "lines": ["one"], "footer": "keys"},
    }
    assert "it may return text, Prompt, Insert, Display, Noop or OpenPanel" in answer("list")["error"]
    assert "invalid" in answer("raise")["error"]


def test_a_command_takes_its_text_and_its_call_in_any_order_or_not_at_all(start_program):
    driver = start_program(
        python="""
            @ext.command("both", "of them")
            async def both(call, text):
                return f"{text} {call.session_id} {call.client_id}"

            @ext.command("none")
            def none():
                return "none"
            """,
        typescript="""
            ext.command("both", "of them", async (text, call) => `${text} ${call.session_id} ${call.client_id}`);
            ext.command("none", "", () => "none");
            """,
    )

    assert [frame["description"] for frame in driver.registrations] == ["of them", ""]
    assert driver.run_command("both", "x", session_id="s", client_id="c")["display"] == "x s c"
    assert driver.run_command("none", "x")["display"] == "none"
    assert driver.run_command("other")["error"] == "this extension has no command /other"


def test_what_a_handler_says_is_about_the_session_that_it_answers(start_program):
    driver = start_program(
        python="""
            @ext.command("all")
            async def everything():
                ext.notify("success", "note")
                ext.clear_notes()
                ext.set_status("key", "text")
                ext.submit("a prompt")
                ext.submit("/slash command")
                ext.open_panel(Panel("p", "Title"))
                ext.notify("info", "elsewhere", session_id="s2")

            @ext.command("later")
            def later():
                threading.Thread(target=lambda: ext.notify("warn", "to all")).start()
            """,
        typescript="""
            ext.command("all", "", async () => {
              ext.notify("success", "note");
              ext.clearNotes();
              ext.setStatus("key", "text");
              ext.submit("a prompt");
              ext.submit("/slash command");
              ext.openPanel(new Panel("p", { title: "Title" }));
              ext.notify("info", "elsewhere", { session_id: "s2" });
            });
            let wake;
            new Promise((resolve) => { wake = resolve; }).then(() => ext.notify("warn", "to all"));
            ext.command("later", "", () => wake());
            """,
    )

    driver.run_command("all", session_id="s1")
    driver.send("command_invoked", id="l", name="later", args="", session_id="s1")

    def said(kind):
        frame = driver.expect(kind)
        del frame["type"]
        return frame

    assert said("notify") == {"level": "success", "message": "note", "session_id": "s1"}
    assert said("clear_notes") == {"session_id": "s1"}
    assert said("set_status") == {"key": "key", "text": "text", "session_id": "s1"}
    assert said("submit") == {"text": "a prompt", "session_id": "s1"}
    assert said("submit_slash") == {"text": "/slash command", "session_id": "s1"}
    assert said("open_panel")["panel"] == {"id": "p", "title": "Title", "lines": [], "footer": ""}
    assert said("notify") == {"level": "info", "message": "elsewhere", "session_id": "s2"}
    assert said("notify") == {"level": "warn", "message": "to all"}


def test_a_note_has_one_of_four_levels(start_program):
    driver = start_program(
        python="""
            @ext.command("note")
            def note():
                ext.notify("loud", "x")
            """,
        typescript="""
            ext.command("note", "", () => ext.notify("loud", "x"));
            """,
    )

    assert driver.run_command("note")["error"].startswith(
        "a note has no level 'loud'; there are info, success, warn, error"
    )


def test_a_panel_gets_its_keys_in_order_and_shows_what_it_renders(start_program):
    driver = start_program(
        python="""
            typed = []

            def on_key(key, text):
                time.sleep(0.01 if not typed else 0)
                typed.append(text or key)
                if key == "esc":
                    panel.close()
                else:
                    panel.render(["".join(typed)])

            def on_resize(width, height):
                panel.render(title=f"{width}x{height}", footer="f")

            panel = Panel("p", on_key=on_key, on_resize=on_resize)
            panel.render(["before it is open"])

            @ext.command("open")
            def open_it():
                return OpenPanel(panel)
            """,
        typescript="""
            const typed = [];
            const panel = new Panel("p", {
              onKey: async (key, text) => {
                await sleep(typed.length === 0 ? 10 : 0);
                typed.push(text || key);
                if (key === "esc") panel.close();
                else panel.render({ lines: [typed.join("")] });
              },
              onResize: (width, height) => panel.render({ title: `${width}x${height}`, footer: "f" }),
            });
            panel.render({ lines: ["before it is open"] });
            ext.command("open", "", () => new OpenPanel(panel));
            """,
    )
    assert driver.run_command("open")["open_panel"]["lines"] == ["before it is open"]

    for letter in "abc":
        driver.send("panel_key", panel_id="p", key="rune", text=letter)
    driver.send("panel_resize", panel_id="p", width=80, height=24)
    driver.send("panel_key", panel_id="p", key="esc")

    shown = [driver.expect("panel_render") for _ in range(4)]
    assert [frame["lines"] for frame in shown] == [["a"], ["ab"], ["abc"], ["abc"]]
    assert shown[3] == {"type": "panel_render", "panel_id": "p", "title": "80x24", "lines": ["abc"], "footer": "f"}
    assert driver.expect("panel_close") == {"type": "panel_close", "panel_id": "p"}


def test_a_panel_that_the_user_has_closed_renders_no_more(start_program):
    driver = start_program(
        python="""
            panel = Panel("p", on_close=lambda: ext.notify("info", "closed"))

            @ext.command("open")
            def open_it():
                return OpenPanel(panel)

            @ext.command("render")
            def render():
                panel.render(["x"])
                panel.close()
            """,
        typescript="""
            const panel = new Panel("p", { onClose: () => ext.notify("info", "closed") });
            ext.command("open", "", () => new OpenPanel(panel));
            ext.command("render", "", () => {
              panel.render({ lines: ["x"] });
              panel.close();
            });
            """,
    )
    driver.run_command("open")

    driver.send("panel_close", panel_id="p")
    driver.expect("notify", message="closed")
    driver.run_command("render")
    driver.send("panel_key", panel_id="p", key="up")

    assert driver.shut_down() == 0
    assert driver.rest() == [{"type": "shutdown_ack"}]
