"""What `make spark` runs: recipes/cluster/spark.py on a cluster of two workers, of which one is killed at work with what it runs.

    spark.py MODEL

The answers must be those of one process, in order, complete, nothing twice. It prints what happened.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RECIPES = os.path.join(HERE, "../../recipes")
LINES, PARTITIONS = 20000, 8


def executors(parent):
    """Processes of Spark's executors below one process, and what runs below each."""
    children, found = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as stat, open("/proc/%s/cmdline" % pid, "rb") as line:
                children.setdefault(int(stat.read().rsplit(")", 1)[1].split()[1]), []).append((int(pid), line.read()))
        except OSError:
            pass

    def below(pid):
        return [c for child, line in children.get(pid, []) for c in [(child, line)] + below(child)]

    for pid, line in below(parent):
        if b"CoarseGrainedExecutorBackend" in line and b"java" in line.split(b"\0")[0]:
            found[pid] = [p for p, own in below(pid) if b"pipe.lua" in own]
    return found


def main(model):
    with tempfile.TemporaryDirectory() as folder:
        source, want, target = (os.path.join(folder, name) for name in ("in", "want", "out"))
        with open(source, "w", newline="") as f:
            for i in range(LINES):
                end = "\r\n" if i % 5 == 0 else "\n"
                f.write('{"id":%d,%s"text":"text %d%s"}%s' % (i, "\r" * (i % 7 == 0), i, " some words" * (i % 20), end))
        options = [os.path.abspath(model), "--vectors", "base64", "--keep", "id", "--window", "2"]
        subprocess.run(["luajit", os.path.join(RECIPES, "pipe.lua"), "--input", source, "--output", want, *options], check=True)
        with open(os.path.join(folder, "log"), "w") as log:
            spark = subprocess.Popen([
                "spark-submit", "--master", "local-cluster[2,1,1024]", "--conf", "spark.executor.memory=512m", "--driver-memory",
                "512m", os.path.join(RECIPES, "cluster/spark.py"), source, target, "--partitions", str(PARTITIONS), *options,
            ], stdout=log, stderr=log, cwd=folder)
            killed = None
            while spark.poll() is None:
                for pid, at_work in executors(spark.pid).items():
                    if at_work and not killed:
                        time.sleep(0.3)  # into the middle of it
                        os.kill(pid, signal.SIGKILL)
                        killed = pid
                time.sleep(0.05)
        with open(os.path.join(folder, "log")) as log:
            said = log.read()
        if spark.returncode:
            sys.exit(said[-4000:] + "\nspark-submit failed")
        if not killed or "Lost executor" not in said and "Lost task" not in said and "exited" not in said:
            sys.exit(said[-4000:] + "\nno worker was killed at work")
        parts = sorted(name for name in os.listdir(target) if name.startswith("part-"))
        got = b"".join(open(os.path.join(target, name), "rb").read() for name in parts)
        with open(want, "rb") as f:
            same = f.read() == got
        lost = sum("Lost task" in line for line in said.splitlines())
        print("a worker of two was killed, %d tasks were lost and run again; %d lines in %d parts: %s" % (
            lost, got.count(b"\n"), len(parts), "the answers of one process" if same else "NOT the answers of one process"))
        if not same:
            sys.exit(1)
        with open(source, "w") as f:
            f.write('{"id":1,"text":"a"}\nbad\n{"id":3,"text":"b"}\n{}\n{"id":5,"text":"c"}\n{"id":6,"text":"d"}\n')
        errors = subprocess.run([
            "spark-submit", "--master", "local[1]", "--driver-memory", "512m", os.path.join(RECIPES, "cluster/spark.py"), source,
            target + ".errors", "--partitions", "1", *options,
        ], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder)
        said = "spark.py: 2 of 6 lines have no answer; the first: {\"line\":2,\"error\":\"no valid JSON"
        if errors.returncode or said not in errors.stdout:
            sys.exit(errors.stdout[-4000:] + "\nexpected it to count 2 of 6 lines without an answer, and status 0")
        print("2 of 6 lines without an answer were counted")


if __name__ == "__main__":
    main(sys.argv[1])
