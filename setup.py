"""The compiled kernels. Everything else is in pyproject.toml.

Each kernel is one source in Cython's pure-Python mode: compiled where a C compiler is at hand, interpreted as it stands
where not (``optional``: a failed build is no failed installation). -O3 matters: -O2 is 60 % slower here.
"""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = (
    "roce_dissect.capture.records",
    "roce_dissect.decode.kernel",
    "roce_dissect.flows.ledger",
    "roce_dissect.flows.episodes",
    "roce_dissect.flows.messages",
    "roce_dissect.flows.responder",
    "roce_dissect.flows.tracker",
)
# -fwrapv as Python itself is built: sums of absurd lengths wrap, in the compiled form too, instead of being undefined
FLAGS = ["/O2"] if os.name == "nt" else ["-O3", "-fwrapv"]
# tools/fuzz.py builds with sanitizers, in a folder of its own
FLAGS = os.environ.get("ROCE_DISSECT_KERNEL_FLAGS", "").split() or FLAGS

extensions = cythonize(
    [Extension(name, [name.replace(".", "/") + ".py"], extra_compile_args=FLAGS) for name in KERNELS],
    build_dir="build/cython",
    language_level=3,
)
for extension in extensions:
    extension.optional = True  # said to Extension, cythonize would lose it

setup(ext_modules=extensions)
