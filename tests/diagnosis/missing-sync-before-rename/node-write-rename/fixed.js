const fs = require("fs");

const cache = Array.from({ length: 500 }, (_, i) => ({ key: i, value: i * i }));
const file = fs.openSync("cache.json.tmp", "w");
fs.writeSync(file, JSON.stringify(cache));
fs.fsyncSync(file);
fs.closeSync(file);
fs.renameSync("cache.json.tmp", "cache.json");
const directory = fs.openSync(".", "r");
fs.fsyncSync(directory);
fs.closeSync(directory);
