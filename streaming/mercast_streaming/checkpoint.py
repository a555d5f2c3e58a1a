"""What a checkpoint was begun with, kept in it as an empty folder of that name: any file system of Hadoop's will do.

Spark's own state has windows by their ends only, and would take them for those of another length.
"""

from pyspark.sql import SparkSession

_PLACE = "mercast"


class CheckpointError(Exception):
    """A checkpoint cannot be gone on from like this."""


def begin(spark: SparkSession, checkpoint: str, window: int, since: int) -> int:
    """Since when windows are told, in microseconds: from now, or as it was said when the checkpoint was begun."""
    jvm = spark._jvm
    assert jvm is not None
    place = jvm.org.apache.hadoop.fs.Path(f"{checkpoint.rstrip('/')}/{_PLACE}")
    files = place.getFileSystem(spark._jsc.hadoopConfiguration())
    for found in files.listStatus(place) if files.exists(place) else ():
        begun = dict(part.split("=") for part in found.getPath().getName().split(","))
        if int(begun["window"]) != window:
            raise CheckpointError(
                f"the checkpoint {checkpoint} was begun with windows of {begun['window']} s: "
                f"go on with --window {begun['window']}, or name another folder"
            )
        return int(begun["since"])
    files.mkdirs(jvm.org.apache.hadoop.fs.Path(place, f"window={window},since={since}"))
    return since
