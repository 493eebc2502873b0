"""What a person does with the terminal client, numbered. `test_table.py` reads this, and so do the tests themselves."""

JOURNEYS = {
    1: "zot in an empty home: a prompt and a status bar; what the shell had shown is still in the scrollback",
    2: "no key: one line names the variable and /login, and the prompt can be used",
    3: "a streamed reply of three paragraphs: each appears once, the spinner goes, the usage changes",
    4: "a fence is coloured, a table aligned, a long paragraph is copied as one line",
    5: "400 lines of code at 300 deltas/s: at most 12 rows below, no line twice, all lines in the scrollback",
    6: "a line typed while the model answers waits, shown as queued, and then runs once",
    7: "ctrl+s steers: the model sees it before its next step",
    8: "up in an empty editor takes what waits back",
    9: "esc in mid-reply: interrupted, the prompt is back, what waits is held, the draft stays",
    10: "ctrl+c empties the editor; twice it leaves, and says how to come back to what runs",
    11: "the slash popup: descriptions and sources; an exact name wins",
    12: "an unknown command suggests the nearest, and the model is asked nothing",
    13: "@set in a repository of 20,000 files: settings.py is first; the model sees its path",
    14: "shift-enter in both forms, alt-enter and ctrl+j make new lines; enter sends four",
    15: "a paste of 60 lines is one placeholder; ctrl+g shows all of it, and the model sees all of it",
    16: "ctrl+r finds a prompt of another session; enter takes it, esc gives the draft back",
    17: "vi: begins in INSERT; esc, dd, i; the mode is shown; esc in NORMAL interrupts",
    18: "cards of tools: a header, at most eight lines, how many more; a diff with numbers",
    19: "an approval shows a diff; a shows the rule before it is saved",
    20: "a rejection with a reason: the model sees it, and no file changes",
    21: "ctrl+t: the alternate screen, search, expanding; q leaves, and the scrollback is as it was",
    22: "/jump 3 opens the viewer at the third prompt",
    23: "thinking is counted, leaves a line, and is shown after /thinking show",
    24: "resized in mid-stream: one status bar, one prompt, everything once, the draft intact",
    25: "eight rows: editor and status are visible, the popup scrolls",
    26: "CJK, emoji and right-to-left: the cursor is in its place, backspace takes a whole character",
    27: "control sequences of models and tools do nothing: title, clipboard and screen stay",
    28: "/copy and /copy code fill the clipboard of tmux",
    29: "light and dark: an answer of the terminal chooses the theme, no answer delays nothing",
    30: "NO_COLOR and --plain: no colours; in plain lines roles are words",
    31: "done while nobody looks: one bell, one notification; none while somebody does",
    32: "detach in mid-run, come back: what was missed once, a recap, the stream goes on",
    33: "two terminals of different width: both show everything, drafts are private, two clients are counted",
    34: "an approval in two terminals: the first answer closes both, the call runs once",
    35: "an approval that nobody saw is asked when somebody comes",
    36: "an extension is made, linked, changed, broken: it works without a restart, and the last good one answers",
    37: "a guard that hangs: fails closed with its name, or open with a warning",
    38: "a panel: lines and footer, keys, resize, crash; then the editor has the keys again",
    39: "kill -9 of the daemon in mid-call: reconnecting, then what was cut is said, and nothing runs twice",
    40: "50,000 messages: the prompt at once, /find opens the viewer at the hit, /export writes them",
}
"""By number: what is done, and what is seen."""

LATER: dict[int, str] = {}
"""Those that are not there yet, with the reason."""


def journey(number):
    """Mark a test as this journey, or as a part of it."""

    def mark(test):
        test.journey = number
        return test

    assert number in JOURNEYS
    return mark
