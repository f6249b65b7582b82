// As program.py. process.stdout has no buffer; the queue of a WriteStream is written when the event loop goes on.
const fs = require('fs');
const log = fs.createWriteStream('log');
for (let i = 0; i < 2; i++) {
  process.stdout.write(`out ${i}\n`);
  log.write(`log ${i}\n`);
}
fs.writeFileSync('ready', '');
if (process.argv[2]) process.kill(process.pid, 'SIGKILL');
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60000);
