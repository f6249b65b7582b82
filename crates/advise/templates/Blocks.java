// Appends the lines of standard input to a file: @NAME@.
// Use: java Log.java FILE < records
// In a program of your own, use Log with each record and its newline. Only one thread of one process may write the file.
%if mmap
// A kill leaves NULs at the end of the file: cut them off before the next use.
%else
// A write has whole blocks, which divide records: a kill can leave a part of one at the end of the file.
%end
%if direct
import com.sun.nio.file.ExtendedOpenOption;
%end
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
%if mmap
import java.nio.MappedByteBuffer;
%end
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

public class Log implements AutoCloseable {
%if mmap
    private static final int WINDOW_BYTES = 4 << 20; // the file grows by so many bytes
    private final FileChannel file;
    private MappedByteBuffer window;
    private long start; // offset of the window

    public Log(Path path) throws IOException {
        file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
        mapWindow(file.size());
    }

    /** Moves the window to an offset, the end of the records. */
    private void mapWindow(long end) throws IOException {
        // With blocks that are written a full disk is an error here. Otherwise it is an error of the machine at a later store.
        ByteBuffer zeros = ByteBuffer.allocate(65536);
        for (long at = end; at < end + WINDOW_BYTES; ) {
            zeros.clear().limit((int) Math.min(zeros.capacity(), end + WINDOW_BYTES - at));
            at += file.write(zeros, at);
        }
        window = file.map(FileChannel.MapMode.READ_WRITE, end, WINDOW_BYTES);
        start = end;
    }

    /** Other processes see the record at once; the kernel writes it back like a write(2). */
    public void record(byte[] record) throws IOException {
        for (int done = 0; done < record.length; ) {
            if (!window.hasRemaining()) {
                mapWindow(start + WINDOW_BYTES);
            }
            int part = Math.min(record.length - done, window.remaining());
            window.put(record, done, part);
            done += part;
        }
    }

    /** Cuts off what was reserved. Call it also after an error. */
    @Override
    public void close() throws IOException {
        file.truncate(start + window.position());
        file.close();
    }
%end
%if direct
    private static final int ALIGN = 4096; // no device has larger sectors
    private static final int BLOCK_BYTES = @BUFFER@;
    private final FileChannel file;
    private final ByteBuffer block = ByteBuffer.allocateDirect(BLOCK_BYTES + ALIGN).alignedSlice(ALIGN).slice(0, BLOCK_BYTES);
    private long start; // offset of the block; a multiple of ALIGN

    public Log(Path path) throws IOException {
        try (FileChannel cached = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            // The first block begins with the bytes after the last aligned offset.
            long end = cached.size();
            start = end - end % ALIGN;
            block.limit((int) (end - start));
            while (block.hasRemaining()) {
                if (cached.read(block, start + block.position()) < 0) {
                    throw new IOException("the file became shorter");
                }
            }
            block.limit(BLOCK_BYTES);
        }
        file = FileChannel.open(path, StandardOpenOption.WRITE, ExtendedOpenOption.DIRECT);
    }

    private void writeBlock(int bytes) throws IOException {
        ByteBuffer rest = block.duplicate().position(0).limit(bytes);
        while (rest.hasRemaining()) {
            file.write(rest, start + rest.position());
        }
        block.clear(); // not after an error: the next call writes the block again
    }

    /** The record is in the file when its block is full. */
    public void record(byte[] record) throws IOException {
        for (int done = 0; done < record.length; ) {
            int part = Math.min(record.length - done, block.remaining());
            block.put(record, done, part);
            done += part;
            if (!block.hasRemaining()) {
                writeBlock(BLOCK_BYTES);
                start += BLOCK_BYTES;
            }
        }
    }

    @Override
    public void close() throws IOException {
        int used = block.position();
        if (used > 0) { // the last block is padded, and the padding cut off
            int padded = (used + ALIGN - 1) / ALIGN * ALIGN;
            block.put(new byte[padded - used]);
            writeBlock(padded);
            file.truncate(start + used);
        }
        file.close();
    }
%end

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
