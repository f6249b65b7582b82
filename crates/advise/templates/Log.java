// Appends the lines of standard input to a file: @NAME@.
// Use: java Log.java FILE < records
// In a program of your own, use Log with each record and its newline.
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
%if timer
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
%end
%if group
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
%end

public class Log implements AutoCloseable {
    private final FileChannel file;
%if gather
    private final ByteBuffer pending = ByteBuffer.allocateDirect(@BUFFER@);
%end
%if timer
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task, "log timer");
        thread.setDaemon(true);
        return thread;
    });
    private boolean dirty;
    private IOException error;
%end
%if group
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition synced = lock.newCondition();
    private long written, durable;
    private boolean syncing;
    private IOException error;
%end

    public Log(Path path) throws IOException {
%if dsync
        file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND, StandardOpenOption.DSYNC);
%else
        file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
%end
%if synced
        file.force(true);
        // Without it, a power cut can lose the name of a new file.
        Path parent = path.toAbsolutePath().getParent();
        try (FileChannel directory = FileChannel.open(parent, StandardOpenOption.READ)) {
            directory.force(true);
        }
%end
%if timer
        timer.scheduleAtFixedRate(this::runTimer, @PERIOD_MS@, @PERIOD_MS@, TimeUnit.MILLISECONDS);
%end
    }

    private void writeAll(ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) { // a nearly full disk can make a write short
            file.write(bytes);
        }
    }

%if group
    /** Returns when the record is on the device. One thread syncs for all that have written meanwhile. */
    public void record(byte[] record) throws IOException {
        lock.lock();
        try {
            check();
            writeAll(ByteBuffer.wrap(record));
            long mine = ++written;
            while (durable < mine) {
                check();
                if (syncing) {
                    synced.awaitUninterruptibly();
                } else {
                    lead(written);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    private void check() throws IOException {
        if (error != null) {
            throw error;
        }
    }

    private void lead(long covered) {
        syncing = true;
        lock.unlock(); // other threads write meanwhile
        IOException failed = null;
        try {
            file.force(false); // fdatasync(2)
        } catch (IOException caught) {
            failed = caught;
        }
        lock.lock();
        syncing = false;
        error = failed;
        durable = failed == null ? covered : durable;
        synced.signalAll();
    }
%else
%if threads
    public synchronized void record(byte[] record) throws IOException {
%else
    public void record(byte[] record) throws IOException {
%end
%if timer
        if (error != null) {
            throw error;
        }
        dirty = true;
%end
%if gather
        if (record.length > pending.remaining()) {
            flush(); // a write has whole records only
        }
        if (record.length > pending.capacity()) {
            writeAll(ByteBuffer.wrap(record));
        } else {
            pending.put(record);
        }
%else
        writeAll(ByteBuffer.wrap(record));
%end
%if sync_record
        file.force(false); // fdatasync(2)
%end
    }
%end

%if gather
    private void flush() throws IOException {
        pending.flip();
        try {
            writeAll(pending);
        } finally {
            pending.compact(); // after an error, what was not written stays
        }
    }

%end
%if timer
    /** Writes what is pending, and with a sync forces it to the device. */
    private void tick() throws IOException {
        boolean wasDirty;
        synchronized (this) {
            wasDirty = dirty;
            dirty = false;
%if gather
            flush();
%end
        }
%if period
        if (wasDirty) {
            file.force(false); // without the lock: records go on meanwhile
        }
%end
    }

    private void runTimer() {
        try {
            tick();
        } catch (IOException caught) {
            synchronized (this) {
                error = caught; // the next call throws it
            }
        }
    }

%end
    @Override
    public void close() throws IOException {
%if timer
        timer.shutdown();
        try {
            timer.awaitTermination(1, TimeUnit.MINUTES);
        } catch (InterruptedException interrupted) {
            throw new IOException(interrupted);
        }
        synchronized (this) {
            if (error != null) {
                throw error;
            }
        }
        tick();
%else
%if gather
        flush();
%end
%end
        file.close();
    }

    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 1) {
            System.err.println("usage: java Log.java FILE");
            System.exit(2);
        }
        InputStream input = new BufferedInputStream(System.in, 65536);
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        try (Log log = new Log(Path.of(arguments[0]))) {
            for (int next = input.read(); next >= 0; next = input.read()) {
                line.write(next);
                if (next == '\n') {
                    log.record(line.toByteArray());
                    line.reset();
                }
            }
            if (line.size() > 0) {
                log.record(line.toByteArray());
            }
        }
    }
}
