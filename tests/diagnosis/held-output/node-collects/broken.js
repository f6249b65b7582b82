// A filter that collects lines and writes them when it has 8 KiB.
const fs = require('node:fs');
let block = '';
require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
  block += `seen ${line}\n`;
  if (block.length >= 8192) {
    fs.writeSync(1, block);
    block = '';
  }
}).on('close', () => fs.writeSync(1, block));
