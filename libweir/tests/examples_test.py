#!/usr/bin/env python3
"""examples_test.py BUILD [NAME]: runs the built examples as a user does. The tests are the functions test_* in
examples/; each runs in its own directory. NAME selects the tests whose name contains it."""
import importlib
import pathlib
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "examples"))
import harness  # noqa: E402


def tests(expected):
    for path in sorted((HERE / "examples").glob("test_*.py")):
        module = importlib.import_module(path.stem)
        for name, function in vars(module).items():
            label = f"{path.stem[5:]}: {name[5:]}"
            if name.startswith("test_") and expected in label:
                yield label, function


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    harness.start(pathlib.Path(sys.argv[1]).resolve())
    passed = failed = skipped = 0
    for label, function in tests(sys.argv[2] if len(sys.argv) == 3 else ""):
        try:
            with harness.private_directory():
                function()
            passed += 1
        except harness.Skip as why:
            print(f"skipped {label}: {why}")
            skipped += 1
        except Exception:
            print(f"FAILED  {label}\n{traceback.format_exc()}")
            failed += 1
    print(f"examples: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


sys.exit(main())
