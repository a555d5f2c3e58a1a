#!/bin/sh
# What a container runs: `mercast` with the words it is given, or, as Spark on Kubernetes asks for it, an executor.
set -e
if [ "$1" = executor ]; then
  # Spark gives the rest in the environment; options for Java one by one.
  env | grep '^SPARK_JAVA_OPT_' | sort -t_ -k4 -n | sed 's/^[^=]*=//' > /tmp/java.options
  exec java -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" @/tmp/java.options \
    -cp "/opt/mercast/pyspark/jars/*:/opt/jars/spark-kafka-connector-4.0.0/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
fi
[ -d /opt/compiled ] && [ ! -e /tmp/compiled ] && cp -r /opt/compiled /tmp/compiled
exec python3 -m mercast "$@"
