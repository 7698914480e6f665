"""What pyproject.toml cannot say: the version, which stands in perigee.h, and where the Lua modules and the library are."""
import os
import re
import tempfile

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))


def version():
    for header in "../../engine/perigee.h", "../../../../include/perigee.h":  # of the source tree, of an installed Perigee
        path = os.path.join(HERE, header)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return re.search(r'^#define PGEE_VERSION "(.*)"$', file.read(), re.MULTILINE)[1]
    raise SystemExit(f"perigee.h belongs to neither a source tree of Perigee nor an installed one: there is none beside {HERE}")


class BuildWithHome(build_py):
    """Also writes the module that tells perigee.py where it was installed from."""

    def run(self):
        super().run()
        os.makedirs(self.build_lib, exist_ok=True)
        with open(os.path.join(self.build_lib, "_perigee_home.py"), "w", encoding="utf-8") as file:
            file.write(f"HOME = {HERE!r}\n")


# Temporary files of the build go into another folder, because this one may belong to another user.
scratch = tempfile.TemporaryDirectory()
setup(
    version=version(), cmdclass={"build_py": BuildWithHome},
    options={"build": {"build_base": scratch.name}, "egg_info": {"egg_base": scratch.name}},
)
