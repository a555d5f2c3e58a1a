"""What a pod of Spark's executors runs: the driver says the rest by its environment, as to Spark's own image."""

import os
from pathlib import Path

import pyspark

told = os.environ
java = Path(told["JAVA_HOME"], "bin/java") if "JAVA_HOME" in told else Path("/usr/bin/java")
numbered = (key for key in told if key.startswith("SPARK_JAVA_OPT_"))
options = [told[key] for key in sorted(numbered, key=lambda key: int(key.rpartition("_")[2]))]
memory = told["SPARK_EXECUTOR_MEMORY"]
jars = f"{Path(pyspark.__file__).parent}/jars/*"
classes = ":".join(part for part in (told.get("SPARK_CLASSPATH", ""), jars) if part)
said = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
command = [str(java), *options, f"-Xms{memory}", f"-Xmx{memory}", "-cp", classes]
command += ["org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"]
os.execv(java, [*command, *(part for flag, key in said.items() for part in (flag, told[key]))])
