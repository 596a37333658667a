"""SqliteLog keeps the contract of record logs."""

import tempfile
from pathlib import Path

from hypothesis import settings

from agentir_ray.clock import ManualClock
from agentir_ray.storage.protocol import RecordLog
from agentir_ray.storage.sqlite_log import SqliteLog
from tests.contracts.record_log import LogModel, RecordLogContract


class TestSqliteLog(RecordLogContract):
    def open_log(self, folder: Path, owner: str, clock: ManualClock) -> RecordLog:
        return SqliteLog(folder / "log.db", owner=owner, clock=clock, durability="process")


class SqliteModel(LogModel):
    def fresh(self) -> RecordLog:
        self.folder = tempfile.TemporaryDirectory()
        return SqliteLog(Path(self.folder.name, "log.db"), durability="process")

    def reopen(self) -> RecordLog:
        self.log.close()
        return SqliteLog(Path(self.folder.name, "log.db"), durability="process")

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestSqliteModel = SqliteModel.TestCase
TestSqliteModel.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
