-- As program.py. io.popen flushes all streams, so the program reads its number from /proc.
local log = io.open("log", "w")
for i = 0, 1 do
  io.write("out ", i, "\n")
  log:write("log ", i, "\n")
end
io.open("ready", "w"):close()
local pid = io.open("/proc/self/stat"):read("n")
if arg[1] then os.execute("kill -9 " .. pid) end
os.execute("sleep 60")
