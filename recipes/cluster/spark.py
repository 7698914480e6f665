"""Answers lines with Apache Spark: each partition goes through a process of recipes/pipe.lua.

    spark-submit recipes/cluster/spark.py INPUT OUTPUT [--partitions N] [OPTION OF pipe.lua...]
    spark-submit --master spark://host:7077 recipes/cluster/spark.py hdfs:///texts hdfs:///answers --model /models/m.safetensors

INPUT and OUTPUT are paths that Spark's textFile and saveAsTextFile take: a file or a folder, compressed or not. Lines end with LF
or CR LF; a CR alone, at which Spark ends lines by default, does not end a line here. The answers have the order of the lines. If
a task is lost with its worker or its machine, Spark runs it again, and only the output of a complete task counts. If a process
fails, its task fails, and Spark tries it again up to spark.task.maxFailures times.

At the end the script reads OUTPUT and prints how many lines have no answer. The status is 1 if no line has an answer, or if more
than the share of --max-errors have none. OUTPUT stays. (spark-submit prints this on standard output, among its own lines.)

Every machine needs Perigee, LuaJIT and the model at the same paths. PERIGEE_RECIPES names the folder of the recipes; default: the
folder above this file. A task of Spark uses one core, so a process has one thread, unless --threads and spark.task.cpus ask for
more.
"""
import os
import re
import shlex
import sys

from pyspark.sql import SparkSession

RECIPES = os.environ.get("PERIGEE_RECIPES") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


# For a line without an answer pipe.lua writes a record that ends with the line's number and the error. No other record ends
# like that.
FAILED = re.compile(r'(^\{|,)"line":[0-9]+,"error":"([^"\\]|\\.)*"\}$')


def value_of(options, name):
    """The value of one of pipe.lua's options, or None."""
    value = None
    for i, word in enumerate(options):
        if word == name and i + 1 < len(options):
            value = options[i + 1]
        elif word.startswith(name + "="):
            value = word[len(name) + 1:]
    return value


def answers(lines, *options):
    """The answers of an RDD of lines, as an RDD in the same order. options: pipe.lua's."""
    threads = [] if value_of(options, "--threads") else ["--threads", "1"]
    command = ["luajit", os.path.join(RECIPES, "pipe.lua"), "--quiet", *threads, *options]
    # RDD.pipe gives a process no environment but this one. A process that fails is an error only if that is asked for.
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LUA_PATH", "LUA_CPATH") or k.startswith("PERIGEE_")}
    return lines.pipe(shlex.join(command), env=kept, checkCode=True)


def report(written, max_errors=None):
    """Counts the lines without an answer. Exits if there are too many. max_errors: the share that is allowed, a text, or None."""
    lines, failed = written.count(), written.filter(FAILED.search)
    errors = failed.count()
    if errors:
        print(f"spark.py: {errors} of {lines} lines have no answer; the first: {failed.first()}", file=sys.stderr)
    if errors and (errors == lines if max_errors is None else errors > float(max_errors) * lines):
        sys.exit(f"spark.py: that is more than --max-errors allows ({max_errors or 'not all lines'})")


def main(arguments):
    if len(arguments) < 2:
        sys.exit("usage: spark.py INPUT OUTPUT [--partitions N] [MODEL] [OPTION OF pipe.lua...]")
    source, target, *options = arguments
    partitions = None
    if options[:1] == ["--partitions"]:
        partitions, options = int(options[1]), options[2:]
    spark = SparkSession.builder.appName("perigee").config("spark.hadoop.textinputformat.record.delimiter", "\n").getOrCreate()
    answers(spark.sparkContext.textFile(source, partitions), *options).saveAsTextFile(target)
    report(spark.sparkContext.textFile(target), value_of(options, "--max-errors"))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
