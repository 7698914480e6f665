"""Apache Spark: lines through recipes/pipe.lua, a process for each partition.

    spark-submit recipes/cluster/spark.py INPUT OUTPUT [--partitions N] [OPTION OF pipe.lua...]
    spark-submit --master spark://host:7077 recipes/cluster/spark.py hdfs:///texts hdfs:///answers --model /models/m.safetensors

INPUT and OUTPUT are what Spark's textFile and saveAsTextFile take: a file, a folder, compressed or not. Lines end with LF or CR
LF, as everywhere else; unasked, Spark's end with a CR alone, too. The answers have the order of the lines. A task that is lost,
with its worker or its machine, is run again by Spark, and what is written of it counts once, when it is whole. A process that
fails fails its task, which Spark tries again (spark.task.maxFailures) before it gives up.

Every machine has Perigee, LuaJIT and the model at the same paths; PERIGEE_RECIPES names the folder of the recipes, if it is not
that of this file. A task is one core of Spark's, so a process has one thread, unless --threads and spark.task.cpus say more.
"""
import os
import shlex
import sys

from pyspark.sql import SparkSession

RECIPES = os.environ.get("PERIGEE_RECIPES") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def answers(lines, *options):
    """An RDD of lines as an RDD of their answers, in order: options are those of pipe.lua."""
    command = ["luajit", os.path.join(RECIPES, "pipe.lua"), "--quiet", "--threads", "1", *options]
    # RDD.pipe gives a process no environment but this one. A process that fails is an error only if that is asked for.
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LUA_PATH", "LUA_CPATH") or k.startswith("PERIGEE_")}
    return lines.pipe(shlex.join(command), env=kept, checkCode=True)


def main(arguments):
    if len(arguments) < 2:
        sys.exit("usage: spark.py INPUT OUTPUT [--partitions N] [OPTION OF pipe.lua...]")
    source, target, *options = arguments
    partitions = None
    if options[:1] == ["--partitions"]:
        partitions, options = int(options[1]), options[2:]
    spark = SparkSession.builder.appName("perigee").config("spark.hadoop.textinputformat.record.delimiter", "\n").getOrCreate()
    answers(spark.sparkContext.textFile(source, partitions), *options).saveAsTextFile(target)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
