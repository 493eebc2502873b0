"""An extension's process outlives kill -9 and the restart of its daemon, under a real `systemd --user`."""

import pytest

from tests.service.outliving import outlive
from tests.service.user_manager import lacking

LACKING = lacking()

KILLS = 3


@pytest.mark.skipif(LACKING is not None, reason=str(LACKING))
def test_an_extension_outlives_the_death_and_the_restart_of_its_daemon_and_its_orphans_are_known(tmp_path):
    told = outlive(tmp_path, KILLS)
    assert told.is_one, told
    # It descends from systemd, and from nobody of ours; and it gains nothing by that.
    assert told.orphan == "forbidden"
