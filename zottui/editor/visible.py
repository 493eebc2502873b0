"""Characters that steer a terminal or show nothing, as the editor shows them; the text itself stays as it was typed."""

from bisect import bisect_right
from itertools import accumulate

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

from zotd.sanitize import is_harmless, visible


class Visible(Processor):
    """Shows `<U+202E>` for that character, and `^[` for an escape; the cursor passes over it in one step."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """One line of the editor, as it is shown."""
        fragments = transformation_input.fragments
        if is_harmless(line := fragment_list_to_text(fragments)):
            return Transformation(fragments)
        shown = visible(line)
        starts = [0, *accumulate(map(len, shown))]
        drawn: StyleAndTextTuples = []
        at = 0
        for fragment in fragments:
            drawn += [(fragment[0], part) for part in shown[at : at + len(fragment[1])]]
            at += len(fragment[1])
        return Transformation(
            drawn,
            source_to_display=lambda column: starts[min(column, len(shown))] + max(0, column - len(shown)),
            display_to_source=lambda column: bisect_right(starts, column) - 1,
        )
