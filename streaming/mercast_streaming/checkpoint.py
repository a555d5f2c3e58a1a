"""What a checkpoint was begun with, kept in it as an empty folder of that name: any file system of Hadoop's will do.

Spark's own state has windows by their ends only, and would take them for those of another length.
"""

from pyspark.sql import SparkSession


class CheckpointError(Exception):
    """A checkpoint cannot be gone on from like this."""


class Checkpoint:
    def __init__(self, spark: SparkSession, folder: str, window: int) -> None:
        """CheckpointError if it is of windows of another length."""
        jvm = spark._jvm
        assert jvm is not None
        self._path, self._window = jvm.org.apache.hadoop.fs.Path, window
        self._place = self._path(f"{folder.rstrip('/')}/mercast")
        self._files = self._place.getFileSystem(spark._jsc.hadoopConfiguration())
        self._since: int | None = None
        # Without a word of ours, by a version before or since its first batch failed:
        self._begun_before = self._files.exists(self._path(f"{folder.rstrip('/')}/offsets"))
        if self._files.exists(self._place):
            (found,) = self._files.listStatus(self._place)
            begun = dict(part.split("=") for part in found.getPath().getName().split(","))
            if int(begun["window"]) != window:
                raise CheckpointError(
                    f"the checkpoint {folder} was begun with windows of {begun['window']} s: "
                    f"go on with --window {begun['window']}, or name another folder"
                )
            self._since = int(begun["since"])

    def since(self, now: int) -> int:
        """From when on windows are told, in microseconds: now, or as it was said the first time."""
        if self._since is None:
            self._since = 0 if self._begun_before else now
            self._files.mkdirs(self._path(self._place, f"window={self._window},since={self._since}"))
        return self._since
