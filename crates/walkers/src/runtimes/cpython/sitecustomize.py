# Loaded by Python at its start under `weir run`: makes standard output line-buffered, or fully buffered on a terminal too.
import os
import sys


def _set_buffering():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    # Import the sitecustomize that Python would have found without this one.
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
    if "sitecustomize" not in sys.modules:
        sys.modules["sitecustomize"] = own
    mode = os.environ.get("WEIR_HOOK")
    if mode and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=not mode.startswith("full"))


_set_buffering()
