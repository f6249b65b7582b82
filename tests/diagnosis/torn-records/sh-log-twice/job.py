import sys

for number in range(400):
    print(f"record {number} is converted")
    if number % 10 == 0:
        print(f"record {number} has no date", file=sys.stderr)
