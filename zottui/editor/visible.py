"""Makes control and invisible characters visible in the editor; the text itself is not changed."""

from bisect import bisect_right
from itertools import accumulate

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

from zotd.sanitize import is_harmless, visible


class Visible(Processor):
    """Displays U+202E as `<U+202E>` and escape as `^[`; the cursor passes each in one step."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return a line for display, with a mapping between its columns and the text's."""
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
