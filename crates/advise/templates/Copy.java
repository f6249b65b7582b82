// Appends standard input to a file: @NAME@.
// Use: java Log.java FILE < SOURCE
// The target must not be open for appending, and only one process may write it.
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

public class Log {
    private static final long CHUNK_BYTES = 1L << 30;

    public static void append(FileInputStream source, Path path) throws IOException {
        try (FileChannel target = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            // A device has no end; the position of a file is where transferTo begins.
            target.position(target.size());
            if (Files.isRegularFile(Path.of("/dev/fd/0"))) {
                FileChannel file = source.getChannel();
                long moved = 1;
                while (moved > 0) { // sendfile(2) or copy_file_range(2), or a mapping where they do not work
                    moved = file.transferTo(file.position(), CHUNK_BYTES, target);
                    file.position(file.position() + moved);
                }
            }
            // A pipe, and files that say that they end and do not, such as those of /proc.
            OutputStream output = Channels.newOutputStream(target);
            source.transferTo(output);
            output.flush();
        }
    }

    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 1) {
            System.err.println("usage: java Log.java FILE");
            System.exit(2);
        }
        try (FileInputStream source = new FileInputStream(FileDescriptor.in)) {
            append(source, Path.of(arguments[0]));
        }
    }
}
