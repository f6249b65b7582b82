// A filter that writes each line at once.
const fs = require('node:fs');
require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
  fs.writeSync(1, `seen ${line}\n`);
});
