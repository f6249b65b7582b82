# Two tasks of asyncio print lines and wait. Counts to standard error the lines that were in the file at the end of their wait.
import asyncio, os, sys

printed = in_time = 0

async def task(seconds):
    global printed, in_time
    for i in range(5):
        printed += len(f"{seconds} {i}\n")
        print(seconds, i)
        before = printed
        await asyncio.sleep(seconds)
        in_time += os.fstat(1).st_size >= before

async def main():
    await asyncio.gather(task(0.31), task(0.4))

asyncio.run(main())
print(f"in time {in_time}", file=sys.stderr)
