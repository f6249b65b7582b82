const fs = require("fs");

const cache = Array.from({ length: 500 }, (_, i) => ({ key: i, value: i * i }));
fs.writeFileSync("cache.json.tmp", JSON.stringify(cache));
fs.renameSync("cache.json.tmp", "cache.json");
