// Appends the lines of standard input to a file: @NAME@.
// Use: node log.js FILE < records
// In a program of your own, use RecordLog with each record as a Buffer, with its newline.
'use strict';
const fs = require('fs');
%if synced
const path = require('path');
%end

class RecordLog {
  constructor(file) {
%if dsync
    const flags = fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_APPEND | fs.constants.O_DSYNC;
    this.fd = fs.openSync(file, flags, 0o666);
%else
    this.fd = fs.openSync(file, 'a', 0o666);
%end
%if synced
    fs.fsyncSync(this.fd);
    const directory = fs.openSync(path.dirname(file), 'r');
    fs.fsyncSync(directory); // without it, a power cut can lose the name of a new file
    fs.closeSync(directory);
%end
%if gather
    this.pending = Buffer.allocUnsafe(@BUFFER@);
    this.used = 0;
%end
%if timer
    this.dirty = false;
    this.error = null;
    this.timer = setInterval(() => this.runTimer(), @PERIOD_MS@);
%if period
    this.syncing = null; // a promise while the timer's sync runs
%end
%end
%if group
    this.waiting = [];
    this.syncing = false;
    this.error = null;
%end
  }

  writeAll(bytes) {
    for (let done = 0; done < bytes.length; ) { // a nearly full disk can make a write short
      done += fs.writeSync(this.fd, bytes, done);
    }
  }

%if group
  // Resolves when the record is on the device. One sync serves all records that were written meanwhile.
  record(bytes) {
    if (this.error) return Promise.reject(this.error);
    this.writeAll(bytes);
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      if (!this.syncing) this.sync();
    });
  }

  sync() {
    const covered = this.waiting;
    this.waiting = [];
    this.syncing = covered.length > 0;
    if (!this.syncing) return;
    fs.fdatasync(this.fd, (error) => {
      if (error) this.error = error;
      for (const { resolve, reject } of covered) error ? reject(error) : resolve();
      this.sync();
    });
  }
%else
  record(bytes) {
%if timer
    if (this.error) throw this.error;
    this.dirty = true;
%end
%if gather
    if (this.used + bytes.length > this.pending.length) this.flush(); // a write has whole records only
    if (bytes.length > this.pending.length) {
      this.writeAll(bytes);
    } else {
      this.used += bytes.copy(this.pending, this.used);
    }
%else
    this.writeAll(bytes);
%end
%if sync_record
    fs.fdatasyncSync(this.fd);
%end
  }
%end

%if gather
  flush() {
    while (this.used > 0) { // after an error, what was not written stays
      const written = fs.writeSync(this.fd, this.pending, 0, this.used);
      this.pending.copyWithin(0, written, this.used);
      this.used -= written;
    }
  }

%end
%if timer
  // Writes what is pending, and with a sync forces it to the device.
  runTimer() {
    try {
%if gather
      this.flush();
%end
%if period
      if (!this.dirty || this.syncing) return;
      this.dirty = false;
      this.syncing = new Promise((resolve) => {
        fs.fdatasync(this.fd, (error) => { // records go on meanwhile
          if (error) this.error = error;
          this.syncing = null;
          resolve();
        });
      });
%end
    } catch (error) {
      this.error = error; // the next call throws it
    }
  }

%end
%if period
  // Waits for a sync that still runs: the kernel may report a lost write to it and not to the last one.
  async close() {
%else
  close() {
%end
%if timer
    clearInterval(this.timer);
%if period
    await this.syncing;
%end
    if (this.error) throw this.error;
%end
%if gather
    this.flush();
%end
%if period
    fs.fdatasyncSync(this.fd);
%end
    fs.closeSync(this.fd);
  }
}

async function main() {
  if (process.argv.length !== 3) {
    console.error('usage: node log.js FILE');
    process.exit(2);
  }
  const log = new RecordLog(process.argv[2]);
  let rest = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    let text = Buffer.concat([rest, chunk]);
    for (let end = text.indexOf(10); end >= 0; end = text.indexOf(10)) {
%if group
      await log.record(text.subarray(0, end + 1));
%else
      log.record(text.subarray(0, end + 1));
%end
      text = text.subarray(end + 1);
    }
    rest = text;
  }
%if group
  if (rest.length > 0) await log.record(rest);
%else
  if (rest.length > 0) log.record(rest);
%end
%if period
  await log.close();
%else
  log.close();
%end
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
